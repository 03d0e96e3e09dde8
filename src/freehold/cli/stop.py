"""`freehold stop`."""

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, TypedDict

import click

from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.strict_json import IsoTime

if TYPE_CHECKING:
    from freehold.timeline import Timeline

REPORT_TIMEOUT = 25.0
"""Seconds in which the gateway reports what it has ended."""


class StopState(TypedDict):
    """Whether the kill switch is on, since when, and what it ended."""

    stopped: bool
    at: IsoTime | None
    summary: str | None


@click.command()
@click.argument("why", default="")
@click.option("--lift", is_flag=True, help="Allow agents and model requests again.")
@home_option
@json_option(JsonOutput(StopState))
def command(why: str, lift: bool, home: Home, as_json: bool) -> None:
    """Kill switch: end all agents and refuse model requests.

    Ends every process that agents started, daemons included, and closes all network connections of the computer. Your
    own terminals, services and SSH sessions keep running. Takes effect within a second and stays in force, also after
    a restart, until you lift it. Files, history and undo keep working.

    \b
    Examples:
      freehold stop
      freehold stop "it deletes the wrong files"
      freehold stop --lift
    """
    from freehold.egress.models.ledger import Ledger, ensure_tables
    from freehold.home import ensure_private_folder
    from freehold.timeline import Timeline

    ensure_private_folder(home.root)
    with Timeline(home.timeline) as timeline:
        ensure_tables(timeline)
        ledger = Ledger(timeline)
        summary = None
        if lift:
            ledger.resume()
        else:
            before, last = ledger.stopped(), timeline.last()
            ledger.stop(why=why)
            summary = asyncio.run(_find_summary(home, timeline, last.seq if last else 0, pulled=before is None))
        stopped = ledger.stopped()
    if as_json:
        at = stopped.at if stopped else None
        echo_json(StopState(stopped=stopped is not None, at=at, summary=summary))
    elif stopped is None:
        click.echo("Agents and model requests are allowed again.")
    else:
        click.echo(f"Stopped. Model requests are refused. {summary}\nTo allow agents again: freehold stop --lift")


async def _find_summary(home: Home, timeline: "Timeline", after: int, *, pulled: bool) -> str:
    """What was ended and what was not: as the gateway reports it, or done here when the gateway does not answer."""
    from freehold.computer import Computer

    try:
        async with Computer.connect(home.computer_socket()) as computer:
            reported = await _await_report(timeline, after) if pulled else None
            if reported is not None:
                return reported
            ended = (await computer.end_sessions()).describe()
            return f"{ended} The gateway has not confirmed that it closed their connections." if pulled else ended
    except FreeholdError as error:
        if error.code == "link.refused":
            return "The computer is not running, so no agent runs."
        return f"Processes of agents may still run: {error.message}. To end everything: freehold down."


async def _await_report(timeline: "Timeline", after: int) -> str | None:
    with suppress(TimeoutError):
        async with asyncio.timeout(REPORT_TIMEOUT), aclosing(timeline.follow(after, ["agents.ended"])) as events:
            async for event in events:
                return str(event.data["summary"])
    return None
