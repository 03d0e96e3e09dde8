"""`freehold timeline`."""

import json
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypedDict

import click

from freehold.cli._home_files import read_manifest
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.timeline import Timeline, TimelineEvent

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_AGO = re.compile(r"(\d{1,9})([smhdw])")
_ROOM_COLORS = ("cyan", "green", "magenta", "blue", "yellow")


class SinceParameter(click.ParamType[datetime]):
    """`2h`, or a time. A time without a zone is in the zone of this machine."""

    name = "since"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        text = str(value)
        ago = _AGO.fullmatch(text)
        try:
            if ago:
                return datetime.now(UTC) - timedelta(seconds=int(ago[1]) * _UNITS[ago[2]])
            return datetime.fromisoformat(text).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(f"'{text}' is not a time. Use 30m, 2h, 7d, or a time such as 2026-01-31T18:00", param, ctx)


class HeadParameter(click.ParamType[tuple[int, str]]):
    """A sequence number and its hash, as `timeline verify` prints them."""

    name = "head"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, str]:
        found = re.fullmatch(r"(\d{1,18}):([0-9a-f]{64})", str(value))
        if not found:
            self.fail(f"'{value}' is not SEQ:HASH as printed by freehold timeline verify", param, ctx)
        return int(found[1]), found[2]


class TimelineHead(TypedDict):
    seq: int
    hash: str


class FoundFault(TypedDict):
    """Events `seq` to `last` that were changed, removed or reordered."""

    fault: str
    seq: int
    last: int
    detail: str


class TimelineVerdict(TypedDict):
    """`head` is the last event; null when there are problems or no events."""

    ok: bool
    head: TimelineHead | None
    problems: list[FoundFault]


@click.group(invoke_without_command=True)
@click.option("-f", "--follow", is_flag=True, help="Keep printing new events, until Ctrl-C.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    help="Only events of this kind, such as 'egress.*'. Repeat it for several kinds.",
)
@click.option("--since", type=SinceParameter(), metavar="WHEN", help="Only events since then: 30m, 2h, 7d, or a time.")
@click.option("--after", type=click.IntRange(min=0), metavar="SEQ", help="Only events after this sequence number.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most N events: the last ones, or with --after the first. [default: 50; none with --since or --after]",
)
@home_option
@json_option(JsonOutput("freehold.keeper.calls:RecordedEvent", "lines"))
@click.pass_context
def command(
    ctx: click.Context,
    follow: bool,
    kinds: tuple[str, ...],
    since: datetime | None,
    after: int | None,
    limit: int | None,
    home: Home,
    as_json: bool,
) -> None:
    """Print the timeline: everything that happened.

    One line for each event. Freehold does not need to run.

    \b
    Examples:
      freehold timeline -f
      freehold timeline --kind 'egress.*' --since 2h
      freehold timeline --after 1200 --json
      freehold timeline verify
    """
    if ctx.invoked_subcommand is not None:
        ctx.obj = (home, as_json)
        return
    from freehold.timeline import Timeline

    with Timeline(home.timeline, readonly=True) as timeline:
        last = _print_stored(timeline, kinds, since, after, limit, as_json)
        if follow:
            import asyncio

            asyncio.run(_print_new(timeline, last, kinds, as_json))


@command.command()
@click.option(
    "--head",
    "known",
    type=HeadParameter(),
    metavar="SEQ:HASH",
    help="A head printed earlier, which must still be part of the timeline.",
)
@home_option
@json_option(JsonOutput(TimelineVerdict))
@click.pass_context
def verify(ctx: click.Context, known: tuple[int, str] | None, home: Home, as_json: bool) -> None:
    """Check that no event was changed, removed or reordered.

    Exits 1 when something was. Somebody who can write the whole file could rewrite it from some event on. To detect
    that, store the printed head in another place and give it with --head later.

    \b
    Examples:
      freehold timeline verify
      freehold timeline verify --json
    """
    from freehold.timeline import Timeline

    home, as_json = _outer(ctx, home, as_json)
    with Timeline(home.timeline, readonly=True) as timeline:
        problems = timeline.verify(known=known)
        last = timeline.last() if not problems else None
    if as_json:
        head: TimelineHead | None = {"seq": last.seq, "hash": last.hash} if last else None
        found = [FoundFault(fault=p.fault, seq=p.seq, last=p.last, detail=p.detail) for p in problems]
        echo_json(TimelineVerdict(ok=not problems, head=head, problems=found))
    elif problems:
        for problem in problems:
            click.secho(f"{problem.fault:<10} ", fg="red", nl=False)
            click.echo(_printable(problem.detail))
        click.echo(f"{len(problems)} problem{'s' * (len(problems) > 1)} in {home.timeline}", err=True)
    elif last:
        click.echo(f"{last.seq} events; none changed, removed or reordered\nhead {last.seq}:{last.hash}")
    else:
        click.echo("The timeline is empty.")
    if problems:
        sys.exit(1)


@command.command()
@home_option
@json_option(JsonOutput("freehold.timeline.timeline:TimelineSize"))
@click.pass_context
def size(ctx: click.Context, home: Home, as_json: bool) -> None:
    """Show how many events there are, where, and their disk space.

    \b
    Examples:
      freehold timeline size
      freehold timeline size --json
    """

    from freehold.timeline import Timeline

    home, as_json = _outer(ctx, home, as_json)
    with Timeline(home.timeline, readonly=True) as timeline:
        found = timeline.measure()
    if as_json:
        echo_json(found)
        return
    click.echo(f"{found.events - found.archived:,} events in {home.timeline} ({found.database_bytes:,} bytes)")
    if found.archived:
        folder = home.timeline.with_name("timeline-archive")
        click.echo(f"{found.archived:,} older events in {folder} ({found.archive_bytes:,} bytes)")


@command.command()
@click.option("--older-than", type=click.IntRange(min=0), metavar="DAYS", help="Instead of retention.timeline.")
@home_option
@json_option(JsonOutput("freehold.timeline.archiver:ArchivedRange"))
@click.pass_context
def archive(ctx: click.Context, older_than: int | None, home: Home, as_json: bool) -> None:
    """Move old events to compressed files now.

    Freehold does this once a day with events that are older than retention.timeline in freehold.toml. They can still be
    read and verified. The newest 1,024 events stay.

    \b
    Examples:
      freehold timeline archive
      freehold timeline archive --older-than 30
    """

    from freehold.timeline import Timeline
    from freehold.timeline.archiver import archive_events

    home, as_json = _outer(ctx, home, as_json)
    if older_than is None:
        manifest = read_manifest(home)
        age = timedelta(seconds=manifest.retention.timeline)
    else:
        age = timedelta(days=older_than)
    with Timeline(home.timeline, readonly=True):
        pass  # a missing timeline is an error here; opening it for writing would make one
    with Timeline(home.timeline) as timeline:
        moved = archive_events(timeline, datetime.now(UTC) - age)
    if as_json:
        echo_json(moved)
    elif moved.count:
        click.echo(f"{moved.count:,} events moved to the archive: {moved.first} to {moved.last}")
    else:
        click.echo("No event is old enough.")


def _outer(ctx: click.Context, home: Home, as_json: bool) -> tuple[Home, bool]:
    """The options may be before or after the subcommand."""
    outer_home, outer_json = ctx.obj
    given = ctx.get_parameter_source("home") is not click.core.ParameterSource.DEFAULT
    return (home if given else outer_home), as_json or outer_json


def _print_stored(
    timeline: "Timeline",
    kinds: Sequence[str],
    since: datetime | None,
    after: int | None,
    limit: int | None,
    as_json: bool,
) -> int:
    """Return the last sequence number, so that following continues without a gap."""
    newest = timeline.last()
    head = newest.seq if newest else 0
    if after is None and (limit is not None or since is None):
        for event in timeline.tail(limit or 50, kinds, since):
            _print(event, as_json)
            head = max(head, event.seq)
        return head
    after, left = after or 0, limit
    while True:
        page = timeline.read(after, None, kinds, since, min(1000, left) if left is not None else 1000)
        for event in page:
            _print(event, as_json)
        if not page:
            return max(head, after)
        after = page[-1].seq
        if left is not None and (left := left - len(page)) <= 0:
            return after


async def _print_new(timeline: "Timeline", after: int, kinds: Sequence[str], as_json: bool) -> None:
    from contextlib import aclosing

    async with aclosing(timeline.follow(after, kinds)) as events:
        async for event in events:
            _print(event, as_json)


def _print(event: "TimelineEvent", as_json: bool) -> None:
    if as_json:
        echo_json(event.as_json())
        return
    room = event.kind.partition(".")[0]
    color = _ROOM_COLORS[sum(room.encode()) % len(_ROOM_COLORS)]
    when = _local(event.at)
    facts = " ".join(f"{name}={_value(value)}" for name, value in event.data.items())
    line = (
        click.style(f"{event.seq:>6} ", dim=True)
        + when
        + "  "
        + click.style(f"{event.kind:<28}", fg=color)
        + click.style(f" {_printable(event.who)}", dim=True)
        + (f"  {facts}" if facts else "")
    )
    click.echo(line)


def _local(at: str) -> str:
    try:
        return f"{datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M:%S}"
    except ValueError:
        return _printable(at)


def _value(value: object) -> str:
    text = value if isinstance(value, str) and value and " " not in value else json.dumps(value, ensure_ascii=False)
    return _printable(text if len(text) <= 200 else text[:199] + "…")


def _printable(text: str) -> str:
    """Escape control characters, because event data may come from the computer."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
