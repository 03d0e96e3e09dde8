"""`freehold redo`."""

import click

from freehold.cli._history import make_author, run_or_preview
from freehold.cli._json_output import JsonOutput, json_option
from freehold.cli._options import home_option
from freehold.history.calls import PlanRedo, RedoChanges
from freehold.home import Home


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would happen to each path. Nothing is written.")
@home_option
@json_option(
    JsonOutput("freehold.history.calls:RestoreReport"),
    JsonOutput("freehold.history.calls:RestorePreview", when="--dry-run"),
)
def command(home: Home, dry_run: bool, as_json: bool) -> None:
    """Take back the last undo.

    \b
    Examples:
      freehold undo
      freehold redo
    """
    run_or_preview(home, RedoChanges(who=make_author()), PlanRedo(), dry_run=dry_run, as_json=as_json)
