"""`freehold restore`."""

import click

from freehold.cli._history import EntryNumber, run_or_preview
from freehold.cli._options import home_option, json_option
from freehold.home import Home


@click.command()
@click.argument("entry", type=EntryNumber())
@click.argument("paths", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Name every path and what would happen to it; write nothing.")
@home_option
@json_option
def command(home: Home, entry: int, paths: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Make all files, or only PATHS, as they were in ENTRY.

    \b
    Examples:
      freehold restore 12
      freehold restore 12 workspace/src workspace/README.md
    """
    run_or_preview(home, "history.restore", {"entry": entry, "paths": list(paths)}, dry_run=dry_run, as_json=as_json)
