"""`freehold undo`."""

import click

from freehold.cli._history import EntryNumber, run_or_preview
from freehold.cli._options import home_option, json_option
from freehold.home import Home


@click.command()
@click.argument("entry", required=False, type=EntryNumber())
@click.option("--dry-run", is_flag=True, help="Name every path and what would happen to it; write nothing.")
@home_option
@json_option
def command(home: Home, entry: int | None, dry_run: bool, as_json: bool) -> None:
    """Take back the last change to your files, or go back to before ENTRY.

    Works with everything else down. What is not in the history yet is taken into it first, so nothing is lost:
    `freehold redo` comes forward again.

    \b
    Examples:
      freehold undo --dry-run
      freehold undo
      freehold undo 12
    """
    run_or_preview(home, "history.undo", {"entry": entry}, dry_run=dry_run, as_json=as_json)
