"""`freehold undo`."""

import click

from freehold.cli._history import EntryNumber, make_author, run_or_preview
from freehold.cli._json_output import JsonOutput, json_option
from freehold.cli._options import home_option
from freehold.history.calls import PlanUndo, UndoChanges
from freehold.home import Home


@click.command()
@click.argument("entry", required=False, type=EntryNumber())
@click.option("--dry-run", is_flag=True, help="Show what would happen to each path. Nothing is written.")
@home_option
@json_option(
    JsonOutput("freehold.history.calls:RestoreReport"),
    JsonOutput("freehold.history.calls:RestorePreview", when="--dry-run"),
)
def command(home: Home, entry: int | None, dry_run: bool, as_json: bool) -> None:
    """Undo the last change to your files.

    With ENTRY, go back to the state before that entry. Works even when Freehold is not running. Unrecorded changes are recorded first, so nothing is lost.
    To take back an undo: `freehold redo`.

    \b
    Examples:
      freehold undo --dry-run
      freehold undo
      freehold undo 12
    """
    act, preview = UndoChanges(entry, who=make_author()), PlanUndo(entry)
    run_or_preview(home, act, preview, dry_run=dry_run, as_json=as_json)
