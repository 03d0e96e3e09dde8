"""The `freehold` command. Each module of this package without a leading `_` is a command; features add their own."""

import pkgutil
import sys
from importlib import import_module

import click

import freehold.cli
from freehold import __version__
from freehold.cli._crash_report import is_debugging, report_crash
from freehold.cli._nearest_names import SuggestingGroup, with_suggestions
from freehold.cli._options import HOME
from freehold.cli._topics import TOPICS
from freehold.errors import FreeholdError
from freehold.features import list_features, load_reference
from freehold.home import Home, find_home
from freehold.installed_version import run_current_version

MAX_HELP = 68
"""Characters of a command's first sentence: what fits beside its name on a terminal of 80 columns."""


class LazyCommands(SuggestingGroup):
    """Imports a command only when it is used, so that the others do not slow it down."""

    home: Home | None = None
    """The one that the command used; None before it has read its options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name == "--home":
                ctx.fail("--home goes after the command: freehold status --home FOLDER")
            raise

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = (module.name for module in pkgutil.iter_modules(freehold.cli.__path__))
        own = [name.replace("_", "-") for name in names if name != "main" and not name.startswith("_")]
        return sorted([*own, *_feature_commands()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        reference = _feature_commands().get(cmd_name)
        if reference is not None:
            command = load_reference(reference)
        elif cmd_name in self.list_commands(ctx):
            command = import_module(f"freehold.cli.{cmd_name.replace('-', '_')}").command
        else:
            return None
        assert isinstance(command, click.Command)
        return with_suggestions(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        topics = {topic: [*names] for topic, names in TOPICS.items()}
        for feature in list_features():
            topics[feature.topic] += feature.commands
        for topic, names in topics.items():
            rows = [
                (name, command.get_short_help_str(MAX_HELP))
                for name in names
                if (command := self.get_command(ctx, name))
            ]
            with formatter.section(topic):
                formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (FreeholdError, click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if is_debugging():
                raise
            raise report_crash(error, ctx.meta.get(HOME) or find_home(None)) from None
        finally:
            self.home = ctx.meta.get(HOME)


def _feature_commands() -> dict[str, str]:
    """The commands that features declare: name and reference."""
    return {name: reference for feature in list_features() for name, reference in feature.commands.items()}


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="freehold")
def freehold_command() -> None:
    """Your own computer for AI agents.

    \b
    Start here:
      freehold up          start Freehold in the foreground
      freehold status      show what is running
      freehold undo        undo the last change to your files
    """


def main() -> None:
    """Run the command. An error exits with the code of its kind, wrong usage with 2."""
    run_current_version("freehold.cli.main", sys.argv[1:])
    try:
        # With standalone_mode=False, click returns the code of `ctx.exit(code)` instead of exiting with it.
        code = freehold_command.main(prog_name="freehold", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.UsageError as error:
        error.show()
        sys.exit(2)
    except click.Abort:
        click.echo("stopped", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(1)
    except FreeholdError as error:
        assert isinstance(freehold_command, LazyCommands)
        _print_error(error, freehold_command.home or find_home(None))
        sys.exit(error.kind.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


def _print_error(error: FreeholdError, home: Home) -> None:
    from freehold.agents.visible_text import make_visible

    # The message may contain text of an agent or of a remote Freehold.
    code = make_visible(error.code)
    click.secho(f"error: {make_visible(error.message)}", fg="red", err=True, nl=False)
    click.secho(f"  [{code}]", dim=True, err=True)
    click.echo(f"  {make_visible(error.next_step)}", err=True)
    if sys.stderr.isatty():
        from freehold.cli._error_page import find_error_page

        click.secho(f"  About this error: {find_error_page(home, code)}", dim=True, err=True)


if __name__ == "__main__":
    main()
