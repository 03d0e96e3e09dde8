"""The `freehold` command. Every module beside this one that does not start with `_` is a verb."""

import difflib
import pkgutil
import sys
from importlib import import_module

import click

import freehold.cli
from freehold import __version__
from freehold.cli._options import HOME
from freehold.cli._unexpected import explain_unexpected, is_debugging
from freehold.errors import FreeholdError
from freehold.home import find_home


class Verbs(click.Group):
    """Loads a verb only when it is asked for, so that `freehold status` does not pay for `freehold chat`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name == "--home":
                ctx.fail("--home goes after the verb: freehold status --home FOLDER")
            raise

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = (module.name for module in pkgutil.iter_modules(freehold.cli.__path__))
        return sorted(name for name in names if name != "main" and not name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command = import_module(f"freehold.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            verbs = self.list_commands(ctx)
            near = difflib.get_close_matches(args[0], verbs, 1)
            meant = f" Did you mean {near[0]}?" if near else ""
            ctx.fail(f"There is no verb '{args[0]}'.{meant} The verbs are: {', '.join(verbs)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (FreeholdError, click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if is_debugging():
                raise
            raise explain_unexpected(error, ctx.meta.get(HOME) or find_home(None)) from None


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="freehold")
def freehold_command() -> None:
    """Your own agent computer: one owner, one brain, one computer.

    \b
    Start here:
      freehold up          start it here, in the foreground
      freehold status      what is running
      freehold undo        take back the last change to your files
    """


def main() -> None:
    """Run the command; an explained problem exits 1, wrong usage exits 2."""
    try:
        # Outside its standalone mode click returns the code of `ctx.exit(code)` instead of exiting with it.
        code = freehold_command.main(standalone_mode=False)
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
        from freehold.agents.visible import make_visible

        # It may hold words of an agent's, or of a Freehold elsewhere.
        click.secho(f"error: {make_visible(error.message)}", fg="red", err=True, nl=False)
        click.secho(f"  [{make_visible(error.code)}]", dim=True, err=True)
        if error.hint:
            click.echo(f"  {make_visible(error.hint)}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


if __name__ == "__main__":
    main()
