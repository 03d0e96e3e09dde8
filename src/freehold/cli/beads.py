"""`freehold beads`."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import click

from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.cli._slots import call_slot
from freehold.home import Home
from freehold.slots.beads.contract import KINDS, STATUSES

if TYPE_CHECKING:
    from freehold.slots.beads.contract import Bead, BeadDetails, BeadKind, BeadWrite

kind_option = click.option("--kind", type=click.Choice(KINDS), help="What kind of item it is.")
priority_option = click.option("--priority", "-p", type=click.IntRange(0, 4), help="0 is first, 4 is last.")
label_option = click.option("--label", "labels", multiple=True, metavar="LABEL", help="Repeat it for several labels.")


@click.group(invoke_without_command=True)
@click.option("--ready", is_flag=True, help="Only items that can be begun: open, and waiting for no other item.")
@click.option("--status", type=click.Choice(STATUSES), help="Only items in this state. [default: all but closed]")
@click.option("--all", "show_all", is_flag=True, help="Closed items as well.")
@click.option("--label", metavar="LABEL", help="Only items with this label.")
@click.option("--text", metavar="TEXT", help="Only items with this text in the title or the description.")
@home_option
@json_option(JsonOutput("freehold.slots.beads.contract:Bead", "list"))
@click.pass_context
def command(
    ctx: click.Context,
    ready: bool,
    status: str | None,
    show_all: bool,
    label: str | None,
    text: str | None,
    home: Home,
    as_json: bool,
) -> None:
    """List and change work items.

    The most important is first. Freehold does not need to run. Items are kept when slots.beads in freehold.toml is
    "local" or "external".

    \b
    Examples:
      freehold beads --ready
      freehold beads create "Mend the roof" -p 1 --label house
      freehold beads work fh-2k4m9qx
      freehold beads changes fh-2k4m9qx
      freehold beads close fh-2k4m9qx "It no longer leaks"
    """
    if ctx.invoked_subcommand is not None:
        return
    found = [
        bead
        for bead in _read_all(home, ready=ready, status=status, label=label, text=text)
        if show_all or status or bead.status != "closed"
    ]
    if as_json:
        echo_json(found)
    elif found:
        for bead in found:
            click.echo(_line(bead))
    else:
        click.echo('There are no such items. Create one: freehold beads create "TITLE"')


def _read_all(home: Home, **wanted: Any) -> "list[Bead]":
    from freehold.cli._slots import use_slot
    from freehold.slots import Slot, SlotCaller
    from freehold.slots.beads.contract import MAX_PAGE, ListBeads

    async def read(slot: Slot) -> "list[Bead]":
        found: list[Bead] = []
        cursor: str | None = None
        while True:
            page = await slot.call(ListBeads(**wanted, limit=MAX_PAGE, cursor=cursor), SlotCaller("owner"))
            found += page.beads
            cursor = page.cursor
            if cursor is None:
                return found

    return use_slot(home, "beads", read)


@command.command()
@click.argument("bead", metavar="ITEM")
@home_option
@json_option(JsonOutput("freehold.slots.beads.contract:BeadDetails"))
def show(bead: str, home: Home, as_json: bool) -> None:
    """Show an item with its comments, its evidence and its history.

    \b
    Example:
      freehold beads show fh-2k4m9qx
    """
    from freehold.slots.beads.contract import GetBead

    found = call_slot(home, "beads", GetBead(bead))
    if as_json:
        echo_json(found)
    else:
        _print_details(found)


@command.command()
@click.argument("title")
@click.option("--description", "-d", default="", metavar="TEXT", help="What is to be done.")
@kind_option
@priority_option
@label_option
@click.option("--parent", metavar="ITEM", help="The item that it is part of.")
@click.option("--needs", multiple=True, metavar="ITEM", help="An item that must be closed first.")
@home_option
@json_option(JsonOutput("freehold.slots.beads.contract:Bead"))
def create(
    title: str,
    description: str,
    kind: str | None,
    priority: int | None,
    labels: tuple[str, ...],
    parent: str | None,
    needs: tuple[str, ...],
    home: Home,
    as_json: bool,
) -> None:
    """Create an item.

    \b
    Examples:
      freehold beads create "Mend the roof" -p 1 --label house
      freehold beads create "Buy tiles" --parent fh-2k4m9qx
    """
    from freehold.slots.beads.contract import CreateBead

    chosen = cast("BeadKind", kind or "task")
    request = CreateBead(title, description, chosen, 2 if priority is None else priority, labels, parent, needs)
    _change(home, request, as_json)


@command.command()
@click.argument("bead", metavar="ITEM")
@click.option("--title", metavar="TEXT", help="The new title.")
@click.option("--description", "-d", metavar="TEXT", help="The new description.")
@kind_option
@priority_option
@label_option
@click.option("--parent", metavar="ITEM", help="The item that it is part of; '' for none.")
@home_option
@json_option(JsonOutput("freehold.slots.beads.contract:Bead"))
def update(
    bead: str,
    title: str | None,
    description: str | None,
    kind: str | None,
    priority: int | None,
    labels: tuple[str, ...],
    parent: str | None,
    home: Home,
    as_json: bool,
) -> None:
    """Change an item. Labels that are given replace all labels.

    \b
    Example:
      freehold beads update fh-2k4m9qx --priority 0
    """
    from freehold.slots.beads.contract import UpdateBead

    chosen = cast("BeadKind | None", kind)
    _change(home, UpdateBead(bead, title, description, chosen, priority, labels or None, parent), as_json)


@command.command()
@click.argument("bead", metavar="ITEM")
@home_option
@json_option(JsonOutput("freehold.slots.beads.contract:Bead"))
def claim(bead: str, home: Home, as_json: bool) -> None:
    """Take an item, so that nobody else works on it.

    \b
    Example:
      freehold beads claim fh-2k4m9qx
    """
    from freehold.slots.beads.contract import ClaimBead

    _change(home, ClaimBead(bead), as_json)


@command.command()
@click.argument("bead", metavar="ITEM")
@home_option
@json_option(JsonOutput("freehold.slots.beads.contract:Bead"))
def release(bead: str, home: Home, as_json: bool) -> None:
    """Give an item back, also one that an agent holds.

    \b
    Example:
      freehold beads release fh-2k4m9qx
    """
    from freehold.slots.beads.contract import ReleaseBead

    _change(home, ReleaseBead(bead), as_json)


@command.command()
@click.argument("bead", metavar="ITEM")
@click.argument("reason")
@click.option("--evidence", metavar="TEXT", help="What shows that it is done; needed where an agent has worked.")
@home_option
@json_option(JsonOutput("freehold.slots.beads.contract:Bead"))
def close(bead: str, reason: str, evidence: str | None, home: Home, as_json: bool) -> None:
    """Close an item.

    \b
    Example:
      freehold beads close fh-2k4m9qx "Done" --evidence "tests/test_roof.py passes"
    """
    from freehold.slots.beads.contract import CloseBead

    _change(home, CloseBead(bead, reason, evidence), as_json)


@command.command()
@click.argument("bead", metavar="ITEM")
@home_option
@json_option(JsonOutput("freehold.slots.beads.contract:Bead"))
def reopen(bead: str, home: Home, as_json: bool) -> None:
    """Open a closed item again.

    \b
    Example:
      freehold beads reopen fh-2k4m9qx
    """
    from freehold.slots.beads.contract import ReopenBead

    _change(home, ReopenBead(bead), as_json)


@command.command()
@click.argument("bead", metavar="ITEM")
@click.argument("text")
@home_option
@json_option(JsonOutput("freehold.slots.beads.contract:Bead"))
def comment(bead: str, text: str, home: Home, as_json: bool) -> None:
    """Comment on an item.

    \b
    Example:
      freehold beads comment fh-2k4m9qx "The tiles are ordered"
    """
    from freehold.slots.beads.contract import CommentBead

    _change(home, CommentBead(bead, text), as_json)


@command.command()
@click.argument("bead", metavar="ITEM")
@click.argument("needs", metavar="OTHER")
@click.option("--remove", is_flag=True, help="It does not need the other one any more.")
@home_option
@json_option(JsonOutput("freehold.slots.beads.contract:Bead"))
def need(bead: str, needs: str, remove: bool, home: Home, as_json: bool) -> None:
    """Let an item wait until another one is closed.

    \b
    Examples:
      freehold beads need fh-2k4m9qx fh-7hj3c8d
      freehold beads need fh-2k4m9qx fh-7hj3c8d --remove
    """
    from freehold.slots.beads.contract import AddNeed, RemoveNeed

    _change(home, RemoveNeed(bead, needs) if remove else AddNeed(bead, needs), as_json)


@command.command()
@click.argument("bead", metavar="ITEM")
@click.option("--agent", metavar="AGENT", help="Which agent. [default: the default agent]")
@click.option("--model", metavar="MODEL", help="Which model. [default: the agent's own]")
@home_option
@json_option(JsonOutput("freehold.client.slot_models:BeadWork"))
def work(bead: str, agent: str | None, model: str | None, home: Home, as_json: bool) -> None:
    """Set an agent on an item. Freehold must run.

    A session is started, which holds the item. The item is then closed only with evidence.

    \b
    Example:
      freehold beads work fh-2k4m9qx --agent claude
    """
    from freehold.cli._running_freehold import running_freehold

    with running_freehold(home, "beads", "beads", "prompt") as freehold:
        done = freehold.beads.work(bead, agent=agent, model=model)
    if as_json:
        echo_json(done.model_dump())
    else:
        click.echo(f"Session {done.session} works on {bead}")


@command.command()
@click.argument("bead", metavar="ITEM")
@home_option
@json_option(JsonOutput("freehold.client.slot_models:BeadFileChange", "list"))
def changes(bead: str, home: Home, as_json: bool) -> None:
    """Show which files the sessions of an item have changed. Freehold must run.

    The newest is first. Each has the number of its entry in history.

    \b
    Examples:
      freehold beads changes fh-2k4m9qx
      freehold diff 12
    """
    from freehold.cli._running_freehold import running_freehold

    with running_freehold(home, "beads", "beads") as freehold:
        found = freehold.beads.changes(bead)
    if as_json:
        echo_json([one.model_dump() for one in found])
        return
    for one in found:
        click.echo(
            f"{one.entry:>6}  {one.at:%Y-%m-%d %H:%M} UTC  session {one.session}"
            f"  {one.added} added, {one.changed} changed, {one.removed} removed"
        )
    if found:
        click.secho(f"To see one: freehold diff {found[0].entry}", dim=True, err=True)
    else:
        click.echo("No session has changed files for this item.")


def _change(home: Home, request: "BeadWrite", as_json: bool) -> None:
    bead = call_slot(home, "beads", request)
    if as_json:
        echo_json(bead)
    else:
        click.echo(_line(bead))


def _line(bead: "Bead") -> str:
    from freehold.agents.visible_text import make_visible

    state = "blocked" if bead.blocked else bead.status.replace("_", " ")
    held = f"  ({bead.holder})" if bead.holder else ""
    labels = f"  [{', '.join(bead.labels)}]" if bead.labels else ""
    return make_visible(
        f"{bead.id:<12} P{bead.priority}  {bead.kind:<7} {state:<11} {bead.title}{labels}{held}", lines=False
    )


def _print_details(details: "BeadDetails") -> None:
    from freehold.agents.visible_text import make_visible

    bead = details.bead
    click.echo(_line(bead))
    facts = {
        "part of": bead.parent,
        "children": ", ".join(details.children),
        "needs": ", ".join(bead.needs),
        "blocks": ", ".join(details.blocks),
        "sessions": ", ".join(bead.sessions),
        "closed": bead.close_reason,
        "evidence": bead.evidence,
    }
    for name, value in facts.items():
        if value:
            click.echo(f"  {name}: {make_visible(value)}")
    if bead.description:
        click.echo(f"\n{make_visible(bead.description)}")
    for one in details.comments:
        click.secho(f"\n{make_visible(one.author)}, {_moment(one.at)}:", dim=True)
        click.echo(make_visible(one.text))
    click.echo()
    for change in details.history:
        click.secho(f"{_moment(change.at)}  {make_visible(change.who)}  {change.action.replace('_', ' ')}", dim=True)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
