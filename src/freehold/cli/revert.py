"""`freehold revert`."""

import click

from freehold.cli._history import EntryNumber, run_or_preview
from freehold.cli._options import home_option, json_option
from freehold.home import Home


@click.command()
@click.argument("entry", type=EntryNumber())
@click.option(
    "--choose",
    multiple=True,
    metavar="[PATH=]old|mine",
    help="For a path in conflict (or all): as before ENTRY, or as it is now.",
)
@click.option(
    "--dry-run", is_flag=True, help="Name every path, what would happen to it, and every conflict; write nothing."
)
@home_option
@json_option
def command(home: Home, entry: int, choose: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Take back only what ENTRY changed, and keep what came after.

    Lines changed elsewhere in a file later are kept. Where the same lines changed again, nothing at all is written
    until you choose.

    \b
    Examples:
      freehold revert 12 --dry-run
      freehold revert 12 --choose workspace/a.py=old --choose workspace/b.py=mine
      freehold revert 12 --choose old
    """
    choices: dict[str, str] = {}
    for each in choose:
        path, _, choice = each.rpartition("=")
        if choice not in ("old", "mine"):
            raise click.BadParameter(f"'{each}' does not end in old or mine", param_hint="--choose")
        choices[path] = choice
    run_or_preview(home, "history.revert", {"entry": entry, "choose": choices}, dry_run=dry_run, as_json=as_json)
