"""`freehold restore`."""

import click

from freehold.cli._history import EntryNumber, make_author, run_or_preview
from freehold.cli._json_output import JsonOutput, json_option
from freehold.cli._options import home_option
from freehold.history.calls import PlanRestore, RestoreEntry
from freehold.home import Home


@click.command()
@click.argument("entry", type=EntryNumber())
@click.argument("paths", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Show what would happen to each path. Nothing is written.")
@home_option
@json_option(
    JsonOutput("freehold.history.calls:RestoreReport"),
    JsonOutput("freehold.history.calls:RestorePreview", when="--dry-run"),
)
def command(home: Home, entry: int, paths: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Restore all files, or only PATHS, to their state in ENTRY.

    \b
    Examples:
      freehold restore 12
      freehold restore 12 workspace/src workspace/README.md
    """
    act, preview = RestoreEntry(entry, paths, who=make_author()), PlanRestore(entry, paths)
    run_or_preview(home, act, preview, dry_run=dry_run, as_json=as_json)
