"""`freehold slots`."""

import asyncio
import json
from typing import TYPE_CHECKING, Literal, TypedDict, cast

import click

from freehold.agents.visible_text import make_visible
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.cli._slots import open_place, use_slot
from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.slots import Slot, SlotName
    from freehold.slots.transfer import MoveReport

NAMES = ("beads", "pods", "memory", "events")
"""The slots that keep something."""
slot_argument = click.argument("name", metavar="SLOT", type=click.Choice(NAMES))
any_slot_argument = click.argument("name", metavar="SLOT", type=click.Choice((*NAMES, "orchestrator")))


class ListedSlot(TypedDict):
    name: str
    mode: Literal["off", "local", "external"]
    required: bool
    privacy: Literal["off", "soft", "strict"]


@click.group(invoke_without_command=True)
@home_option
@json_option(JsonOutput(ListedSlot, "list"))
@click.pass_context
def command(ctx: click.Context, home: Home, as_json: bool) -> None:
    """Show the slots, and export, import, move or try one.

    Slots are places for durable state beyond files. Each is kept here, by an external service, or switched off:
    [slots] in freehold.toml. Freehold does not need to run.

    \b
    Examples:
      freehold slots
      freehold slots export beads > beads.jsonl
      freehold slots try beads
      freehold slots move beads --to external
    """
    if ctx.invoked_subcommand is None:
        asyncio.run(_show(home, as_json))


async def _show(home: Home, as_json: bool) -> None:
    from freehold.slots.contract import SLOT_NAMES
    from freehold.slots.host import read_section

    async with open_place(home) as (manifest, _):
        sections = {name: read_section(manifest, name) for name in SLOT_NAMES}
    rows: list[ListedSlot] = [
        {"name": name, "mode": one.mode, "required": one.required, "privacy": one.privacy}
        for name, one in sections.items()
    ]
    if as_json:
        echo_json(rows)
        return
    for row in rows:
        privacy = f"  privacy {row['privacy']}" if row["privacy"] != "off" else ""
        click.echo(f"{row['name']:<13} {row['mode']}{'  required' if row['required'] else ''}{privacy}")


@command.command()
@slot_argument
@click.option("--output", "-o", metavar="FILE", help="Write to this file instead of the standard output.")
@home_option
def export(name: str, output: str | None, home: Home) -> None:
    """Write everything in a slot as JSON lines.

    Work items are written in beads' own format, which bd import reads.

    \b
    Example:
      freehold slots export beads -o beads.jsonl
    """

    async def work(slot: "Slot") -> int:
        from freehold.slots.transfer import export_records

        count = 0
        with click.open_file(output or "-", "w", encoding="utf-8") as file:
            async for record in export_records(slot):
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
                count += 1
        return count

    count = use_slot(home, cast("SlotName", name), work)
    click.secho(f"{count} entries", dim=True, err=True)


@command.command(name="import")
@slot_argument
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@home_option
def import_file(name: str, file: str, home: Home) -> None:
    """Store what a file of JSON lines has. - reads the standard input.

    An entry that is newer here than in the file is kept. To go on after an interruption, run it again.

    \b
    Example:
      freehold slots import beads .beads/issues.jsonl
    """

    from freehold.slots.transfer import import_lines

    with click.open_file(file, encoding="utf-8", errors="surrogateescape") as lines:
        count = use_slot(home, cast("SlotName", name), lambda slot: import_lines(slot, lines))
    click.echo(f"{count} entries read")


@command.command()
@slot_argument
@click.option("--to", "target", required=True, type=click.Choice(["local", "external"]), help="Where it is kept then.")
@home_option
def move(name: str, target: Literal["local", "external"], home: Home) -> None:
    """Move a slot between this home and its external service.

    Everything is copied, and both places are compared by number and checksum before the change. Freehold must not run.
    After an interruption, run it again. The old place keeps its copy.

    \b
    Example:
      freehold slots move beads --to external
    """
    from freehold.keeper.lock import lock_home
    from freehold.manifest.edit import edit_manifest

    with lock_home(home):
        done = asyncio.run(_move(home, cast("SlotName", name), target))
        edit_manifest(home.manifest, f"slots.{name}.mode", target)
    click.echo(f"{done.digest.count} entries are now kept {'here' if target == 'local' else 'by the external service'}")


async def _move(home: Home, name: "SlotName", target: Literal["local", "external"]) -> "MoveReport":
    from freehold.slots.host import make_slot, read_section
    from freehold.slots.transfer import move_records

    async with open_place(home) as (manifest, place):
        section = read_section(manifest, name)
        if section.mode in ("off", target):
            raise FreeholdError(
                "slot.conflict", f"slots.{name} is {section.mode}, so it cannot be moved", hint="freehold slots"
            )
        # With the same privacy filter: the owner's export has the values that pseudonyms stand for.
        there = section.model_copy(update={"mode": target})
        source, goal = make_slot(name, section, place), make_slot(name, there, place)
        try:
            await source.connect()
            await goal.connect()
            return await move_records(source, goal, home.root / f"move-{name}.json")
        finally:
            await source.close()
            await goal.close()


@command.command(name="try")
@any_slot_argument
@home_option
@json_option(JsonOutput("freehold.slots.trial:TrialStep", "lines"))
def try_external(name: str, home: Home, as_json: bool) -> None:
    """Try all that Freehold needs of a slot's external service.

    It uses [slots.SLOT.settings] of freehold.toml, whatever the mode is.

    \b
    Example:
      freehold slots try beads
    """
    if not asyncio.run(_try(home, cast("SlotName", name), as_json)):
        raise click.exceptions.Exit(1)


async def _try(home: Home, name: "SlotName", as_json: bool) -> bool:
    from freehold.slots.host import read_section
    from freehold.slots.trial import try_slot

    works = True
    async with open_place(home) as (manifest, place):
        async for step in try_slot(name, place, read_section(manifest, name).settings):
            works = works and step.error is None
            if as_json:
                echo_json(step)
                continue
            mark = click.style("ok", fg="green") if step.error is None else click.style("failed", fg="red")
            click.echo(f"{mark}  {step.name}  ({step.seconds * 1000:.0f} ms)")
            if step.error is not None:
                click.echo(make_visible(f"    {step.error}\n    {step.hint}"))
    return works
