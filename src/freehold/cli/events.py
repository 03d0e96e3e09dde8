"""`freehold events`."""

import json
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import click

from freehold.agents.visible_text import make_visible
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.cli._slots import call_slot, use_slot
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.strict_json import IsoTime

if TYPE_CHECKING:
    from freehold.slots import Slot
    from freehold.slots.events.cloud_event import CloudEvent


class PrintedEvent(TypedDict):
    """The structured form of CloudEvents."""

    sequence: str
    specversion: str
    id: str
    source: str
    type: str
    time: IsoTime
    datacontenttype: str
    actor: str
    subject: NotRequired[str]
    timelineseq: NotRequired[int]
    imported: NotRequired[bool]
    data: dict[str, Any]


MAX_SHOWN = 200
"""How many characters of the data of an event are printed. --json prints all of it."""
letters_argument = click.argument("letters", metavar="[NUMBER]...", nargs=-1, type=click.IntRange(min=1))


@click.group(invoke_without_command=True)
@click.option("-f", "--follow", is_flag=True, help="Keep printing new events, until Ctrl-C.")
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only this type, such as 'org.freehold.session.*'."
)
@click.option("--after", type=click.IntRange(min=0), metavar="CURSOR", help="Only events after this one.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, metavar="N", help="At most N events. [default: 50]")
@home_option
@json_option(JsonOutput(PrintedEvent, "lines"))
@click.pass_context
def command(
    ctx: click.Context,
    follow: bool,
    types: tuple[str, ...],
    after: int | None,
    limit: int,
    home: Home,
    as_json: bool,
) -> None:
    """Show what others are told, and send again what a sink did not take.

    Events are CloudEvents from the timeline, and what programs and agents publish. They are kept when slots.events in
    freehold.toml is "local" or "external". Freehold does not need to run.

    \b
    Examples:
      freehold events
      freehold events --follow --type 'org.freehold.session.*'
      freehold events publish com.example.report.done --data '{"pages": 3}'
      freehold events delivery
      freehold events resend
    """
    if ctx.invoked_subcommand is not None:
        return

    async def show(slot: "Slot") -> None:
        from freehold.slots import SlotCaller
        from freehold.slots.events.contract import AwaitEvents, ReadEvents

        owner = SlotCaller("owner")
        page = await slot.call(ReadEvents(after or 0, types, limit, newest=after is None), owner)
        while True:
            if page.missed:
                click.secho(f"{page.missed} events after {after} are not kept any more", dim=True, err=True)
            for event in page.events:
                _print(event, as_json)
            if not follow:
                return
            await slot.call(AwaitEvents(page.cursor, 5.0), owner)
            page = await slot.call(ReadEvents(page.cursor, types, limit), owner)

    use_slot(home, "events", show)


def _print(event: "CloudEvent", as_json: bool) -> None:
    if as_json:
        echo_json(event.as_json())
        return
    subject = f"  {event.subject}" if event.subject else ""
    data = json.dumps(event.data, ensure_ascii=False)
    shown = data if len(data) <= MAX_SHOWN else f"{data[:MAX_SHOWN]}…"
    text = f"{event.sequence:>6}  {event.time}  {event.type}  {event.actor}{subject}  {shown}"
    click.echo(make_visible(text, lines=False))


@command.command()
@click.argument("type", metavar="TYPE")
@click.option("--data", default="{}", metavar="JSON", help="What is told: a JSON object.")
@click.option("--subject", metavar="TEXT", help="What it is about.")
@click.option("--key", metavar="KEY", help="The same event with the same key is published once.")
@home_option
@json_option(JsonOutput("freehold.slots.events.contract:PublishedEvent"))
def publish(type: str, data: str, subject: str | None, key: str | None, home: Home, as_json: bool) -> None:
    """Publish an event.

    \b
    Example:
      freehold events publish com.example.report.done --data '{"pages": 3}'
    """
    from freehold.slots.events.contract import PublishEvent

    try:
        given = json.loads(data)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise FreeholdError("events.invalid", "--data is not a JSON object", hint="""Such as --data '{"pages": 3}'""")
    made = call_slot(home, "events", PublishEvent(type, given, subject, key))
    if as_json:
        echo_json(made)
    else:
        click.echo(f"Published {made.type}: {made.id}")


@command.command()
@home_option
@json_option(JsonOutput("freehold.slots.events.contract:DeliveryStatus"))
def delivery(home: Home, as_json: bool) -> None:
    """Show where events are sent, and how far that is.

    \b
    Example:
      freehold events delivery
    """
    from freehold.slots.events.contract import GetDelivery

    found = call_slot(home, "events", GetDelivery())
    if as_json:
        echo_json(found)
        return
    if found.state == "none":
        click.echo("Events are kept here and sent nowhere.")
        return
    click.echo(f"{found.sink}  {found.target}  {'takes events' if found.state == 'ok' else 'takes no events'}")
    click.echo(f"{found.waiting} wait, {found.dead} dead letters, {found.dropped} dropped")
    if found.error:
        click.echo(make_visible(found.error))


@command.command()
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="NUMBER", help="Only those after this one.")
@home_option
@json_option(JsonOutput("freehold.slots.events.contract:DeadLetterPage"))
def dead(after: int, home: Home, as_json: bool) -> None:
    """List the events that the sink did not take.

    \b
    Example:
      freehold events dead
    """
    from freehold.slots.events.contract import ListDeadLetters

    page = call_slot(home, "events", ListDeadLetters(after))
    if as_json:
        echo_json(page)
        return
    for letter in page.letters:
        again = "  is being sent again" if letter.again else ""
        click.echo(make_visible(f"{letter.sequence:>6}  {letter.event.type}  {letter.error}{again}", lines=False))
    if not page.letters:
        click.echo("There are no dead letters.")
    elif page.cursor is not None:
        click.secho(f"More: freehold events dead --after {page.cursor}", dim=True, err=True)


@command.command()
@letters_argument
@home_option
def resend(letters: tuple[int, ...], home: Home) -> None:
    """Send dead letters again, by their numbers or all of them.

    They are sent while Freehold runs.

    \b
    Examples:
      freehold events resend
      freehold events resend 17 18
    """
    from freehold.slots.events.contract import ResendDeadLetters

    click.echo(f"{call_slot(home, 'events', ResendDeadLetters(letters)).count} events are sent again")


@command.command()
@letters_argument
@home_option
def drop(letters: tuple[int, ...], home: Home) -> None:
    """Remove dead letters: those with these numbers, or all of them. The log keeps the events.

    \b
    Example:
      freehold events drop 17
    """
    from freehold.slots.events.contract import DropDeadLetters

    click.echo(f"{call_slot(home, 'events', DropDeadLetters(letters)).count} dead letters were removed")
