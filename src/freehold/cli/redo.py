"""`freehold redo`."""

import click

from freehold.cli._history import run_or_preview
from freehold.cli._options import home_option, json_option
from freehold.home import Home


@click.command()
@click.option("--dry-run", is_flag=True, help="Name every path and what would happen to it; write nothing.")
@home_option
@json_option
def command(home: Home, dry_run: bool, as_json: bool) -> None:
    """Bring back what the last undo took away.

    \b
    Example:
      freehold undo
      freehold redo
    """
    run_or_preview(home, "history.redo", {}, dry_run=dry_run, as_json=as_json)
