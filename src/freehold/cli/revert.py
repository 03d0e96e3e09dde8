"""`freehold revert`."""

import click

from freehold.cli._history import EntryNumber, make_author, run_or_preview
from freehold.cli._json_output import JsonOutput, json_option
from freehold.cli._options import home_option
from freehold.history.calls import PlanRevert, RevertEntry, Side
from freehold.home import Home

SIDES: dict[str, Side] = {"old": "old", "mine": "mine"}


@click.command()
@click.argument("entry", type=EntryNumber())
@click.option(
    "--choose",
    multiple=True,
    metavar="[PATH=]old|mine",
    help="For a path in conflict, or for all: keep the state before ENTRY (old) or the state now (mine).",
)
@click.option(
    "--dry-run", is_flag=True, help="Show what would happen to each path, and every conflict. Nothing is written."
)
@home_option
@json_option(
    JsonOutput("freehold.history.calls:RestoreReport"),
    JsonOutput("freehold.history.calls:RestorePreview", when="--dry-run"),
)
def command(home: Home, entry: int, choose: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Take back only what ENTRY changed, and keep later changes.

    Later changes to other lines of the same file are kept. If the same lines were changed again, nothing is written
    until you choose a side.

    \b
    Examples:
      freehold revert 12 --dry-run
      freehold revert 12 --choose workspace/a.py=old --choose workspace/b.py=mine
      freehold revert 12 --choose old
    """
    choices: dict[str, Side] = {}
    for each in choose:
        path, _, choice = each.rpartition("=")
        side = SIDES.get(choice)
        if side is None:
            raise click.BadParameter(f"'{each}' does not end in old or mine", param_hint="--choose")
        choices[path] = side
    act, preview = RevertEntry(entry, choices, who=make_author()), PlanRevert(entry, choices)
    run_or_preview(home, act, preview, dry_run=dry_run, as_json=as_json)
