"""`freehold status`."""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper.calls import KeeperStatus
from freehold.strict_json import IsoTime

if TYPE_CHECKING:
    from freehold.egress.models import ActiveStop
    from freehold.keeper.calls import SleepStatus


@dataclass(frozen=True)
class PulledSwitch:
    """The kill switch while it is on: since when, who pulled it and why."""

    at: IsoTime
    who: str
    why: str


@dataclass(frozen=True, kw_only=True)
class ShownStatus(KeeperStatus):
    """All programs now, and what is around them."""

    kill_switch: PulledSwitch | None


STATE_COLORS = {"ready": "green", "idle": "green", "starting": "yellow", "waiting": "yellow", "stopping": "yellow"}


@click.command()
@home_option
@json_option(JsonOutput(ShownStatus))
def command(home: Home, as_json: bool) -> None:
    """Show what is running.

    Lists programs, restarts, memory, ports, isolation, free disk space and the last events, and says when the kill
    switch is on. Exits 0 when everything is ready, 1 when something is not or the disk is full.

    \b
    Examples:
      freehold status
      freehold status --json | jq .programs
    """
    from freehold.keeper.calls import GetKeeperStatus
    from freehold.keeper.client import call_keeper

    status = call_keeper(home, GetKeeperStatus())
    stop = _find_stop(home)
    if as_json:
        echo_json(ShownStatus(**vars(status), kill_switch=None if stop is None else PulledSwitch(**vars(stop))))
    else:
        click.echo(describe_status(status, time.time(), stop))
    if not status.ready or status.disk.state == "full":
        sys.exit(1)


def _find_stop(home: Home) -> "ActiveStop | None":
    """The kill switch while it is on. It is read from the timeline, so the gateway need not run."""
    import sqlite3

    from freehold.egress.models.ledger import Ledger
    from freehold.timeline import Timeline

    try:
        with Timeline(home.timeline, readonly=True) as timeline:
            return Ledger(timeline).stopped()
    except (FreeholdError, sqlite3.Error):
        return None  # no gateway has run yet; or the timeline cannot be read, which the status says


def describe_status(status: KeeperStatus, now: float, stop: "ActiveStop | None" = None) -> str:
    lines = [_headline(status), *([] if stop is None else [_describe_stop(stop)]), ""]
    rows = [("PROGRAM", "STATE", "PID", "UP", "RESTARTS", "MEMORY")]
    for program in status.programs:
        rows.append(
            (
                program.name,
                program.state,
                str(program.pid or "–"),
                _span(now - program.since),
                str(program.restarts),
                _size(program.memory),
            )
        )
    keeper = status.keeper
    rows.append(("keeper", "ready", str(keeper.pid), _span(now - keeper.since), "–", _size(keeper.memory)))
    lines += _table(rows)
    for program in status.programs:
        beginning = program.state == "starting" and not program.restarts
        if program.last_error and program.state != "ready" and not beginning:
            wait = program.next_start_in
            again = f"; next try in {_span(wait)}" if wait is not None else ""
            lines.append(click.style(f"  {program.name}: {program.last_error}{again}", fg="yellow"))
    lines += _mounts(status)
    lines += _exceptions(status)
    lines += ["", *_facts(status), "", click.style("  Last events", dim=True)]
    for event in status.events:
        facts = " ".join(f"{name}={_short(value)}" for name, value in event.data.items())
        lines.append(f"  {event.at[11:19]}  {event.kind:<26} {facts}")
    return "\n".join(lines)


def _headline(status: KeeperStatus) -> str:
    if status.ready and status.disk.state == "full":
        return "  " + click.style("not ready", fg="red", bold=True) + f": {status.disk.words}"
    if status.ready:
        low = f"\n  {click.style(status.disk.words, fg='yellow')}" if status.disk.state == "low" else ""
        return (
            "  "
            + click.style("ready", fg="green", bold=True)
            + f" since {(status.since or '')[:19].replace('T', ' ')} UTC{low}"
        )
    disk = [] if status.disk.state == "ok" else [status.disk.words]
    causes = "; ".join([*status.missing, *disk]) or "still starting"
    return "  " + click.style("not ready", fg="yellow", bold=True) + f": {causes}"


def _describe_stop(stop: "ActiveStop") -> str:
    why = f": {_short(stop.why)}" if stop.why else ""
    since = f"{stop.at[:19].replace('T', ' ')} UTC"
    words = f"  The kill switch is on since {since}{why}. Agents and model requests are refused."
    return click.style(words, fg="red", bold=True) + "\n  To allow them again: freehold stop --lift"


def _facts(status: KeeperStatus) -> list[str]:
    isolation = status.isolation
    ports = ", ".join(f"{port.name} {port.host}:{port.port}" for port in status.ports)
    walls = (
        f"{isolation.backend} {isolation.version}, {isolation.runs_as}, {len(isolation.walls)} walls"
        if isolation
        else "none"
    )
    facts = {
        "Open": status.url,
        "Undo": status.keeper_url,
        "Ports": ports,
        "Isolation": walls,
        "Home": status.home,
        "Disk": status.disk.words,
    }
    usage = status.usage
    if usage:
        count = "–" if usage.processes is None else usage.processes
        facts["Computer"] = f"{_size(usage.memory)} memory, {count} processes, {_size(usage.disk)} disk"
    if status.sleep is not None:
        facts["Sleep"] = _sleep(status.sleep, time.time())
    if status.timeline_trouble:
        facts["Timeline"] = click.style(status.timeline_trouble, fg="yellow")
    return ["  " + click.style(f"{name:<10}", dim=True) + str(value) for name, value in facts.items()]


def _mounts(status: "KeeperStatus") -> list[str]:
    if not status.mounts:
        return []
    rows = [("MOUNT", "STATE", "KIND", "SOURCE", "MODE")]
    for mount in status.mounts:
        mode = "writable" if mount.writable or mount.kind == "memory" else "read-only"
        rows.append((mount.target, mount.state, mount.kind, mount.source or "–", mode))
    troubles = [
        click.style(f"  {mount.target}: {_printable(mount.words)}", fg="yellow")
        for mount in status.mounts
        if mount.words
    ]
    return ["", *_table(rows), *troubles]


def _exceptions(status: "KeeperStatus") -> list[str]:
    lines = [""] if status.exceptions else []
    for one in status.exceptions:
        until = f", until {one.until}" if one.until is not None else ""
        lines.append(click.style(f"  Exception {one.name}{until}: ", fg="yellow") + _printable(one.reason))
        lines += [f"    {words}" for words in one.adds or (one.why,)]
    return lines


def _sleep(sleep: "SleepStatus", now: float) -> str:
    if sleep.trouble is not None:
        return click.style(sleep.trouble, fg="yellow")
    if sleep.since is not None:
        given_back = f", {_size(sleep.given_back)} given back" if sleep.given_back else ""
        return f"asleep for {_span(now - sleep.since)}{given_back}; wakes when it is used"
    slept = f"; slept {sleep.times} times, {_span(sleep.seconds)} in all" if sleep.times else ""
    return f"awake, sleeps after {_span(sleep.after)} without use{slept}"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for number, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        if number == 0:
            lines.append(click.style("  " + "  ".join(cells).rstrip(), dim=True))
        else:
            cells[1] = click.style(cells[1], fg=STATE_COLORS.get(row[1], "red"))
            lines.append("  " + "  ".join(cells).rstrip())
    return lines


def _span(seconds: float) -> str:
    seconds = max(0, int(seconds))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _size(amount: int | None) -> str:
    return "–" if amount is None else f"{amount / 1e6:.1f} MB"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    text = _printable(text)
    return text if len(text) <= 60 else text[:59] + "…"


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "�" for character in text)
