"""Runs an escape attempt or a bomb in real computers, and judges the result."""

import asyncio
import itertools
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from freehold.computer.contract.backend import Backend
from freehold.computer.contract.conventions import GUEST_PYTHON
from freehold.computer.contract.report import LimitEvent
from freehold.computer.escapes.bait import ENVIRONMENT_NAME, Bait
from freehold.computer.escapes.bombs import SMALL, Bomb
from freehold.computer.escapes.escape import (
    NOTHING,
    SURVIVOR,
    EscapeAttempt,
    Verdict,
    build_command,
    judge_escape,
)
from freehold.computer.escapes.neighbours import NEIGHBOUR
from freehold.computer.escapes.series import try_series
from freehold.computer.library.computer import Computer
from freehold.computer.library.process import CommandResult
from freehold.computer.library.removal import remove_tree
from freehold.errors import FreeholdError

EMULATED_SLOWNESS = 5
ATTEMPT_SECONDS = 60.0
ANSWER_TIMEOUT = 20.0


async def try_escapes(escapes: Iterable[EscapeAttempt], bait: Bait, computer: Computer) -> AsyncIterator[Verdict]:
    """Run attempts, in this order. Those that need nothing beside them share one process, which is much faster."""
    for is_alone, group in itertools.groupby(escapes, lambda one: not (one.beside_another or one.then_stop)):
        if not is_alone:
            for escape in group:
                yield await try_escape(escape, bait, computer)
            continue
        last: Verdict | None = None
        async for verdict in try_series(list(group), bait, computer, _time_limit(computer)):
            if last is not None:
                yield last
            last = verdict
        trouble = await _find_unresponsive(computer)
        if last is not None:
            yield Verdict(last.name, last.claim, "escaped", trouble) if trouble else last


async def try_escape(escape: EscapeAttempt, bait: Bait, computer: Computer) -> Verdict:
    """Run an attempt. A computer that no longer answers afterwards counts as an escape."""
    if escape.beside_another:
        verdict = await _try_beside_another(escape, bait, computer)
    elif escape.then_stop:
        verdict = await _try_then_stop(escape, bait, computer)
    else:
        verdict = judge_escape(
            escape, bait, await computer.run(build_command(escape, bait), timeout=_time_limit(computer))
        )
    trouble = await _find_unresponsive(computer)
    return Verdict(escape.name, escape.claim, "escaped", trouble) if trouble else verdict


async def _try_beside_another(escape: EscapeAttempt, bait: Bait, computer: Computer) -> Verdict:
    neighbour = [GUEST_PYTHON, "-I", "-c", NEIGHBOUR]
    env = {ENVIRONMENT_NAME: bait.token}
    async with await computer.spawn(neighbour, env=env, apart="neighbour", timeout=4 * ANSWER_TIMEOUT) as process:
        if await process.stdout.read() != b"ready\n":
            return Verdict(escape.name, escape.claim, "unclear", "the process of the other session did not start")
        command = build_command(escape, bait, neighbour=process.pid)
        verdict = judge_escape(
            escape, bait, await computer.run(command, timeout=_time_limit(computer), apart="attacker")
        )
        if verdict.outcome == "refused":
            await process.write(b"still there?\n")
            if await process.stdout.read() != b"here\n":
                return Verdict(escape.name, escape.claim, "escaped", "the process of the other session was killed")
    return verdict


async def _try_then_stop(escape: EscapeAttempt, bait: Bait, computer: Computer) -> Verdict:
    async def find_survivors() -> list[int]:
        return [one.pid for one in await computer.processes() if one.name == SURVIVOR and one.state != "Z"]

    command, limit = build_command(escape, bait), _time_limit(computer)
    verdict = judge_escape(escape, bait, await computer.run(command, timeout=limit, apart="attacker"))
    if verdict.outcome != "refused":
        return verdict
    before = await find_survivors()
    if not before:
        return Verdict(escape.name, escape.claim, "unclear", "its processes were gone before the stop")
    await computer.end_sessions()
    after = await find_survivors()
    if after:
        return Verdict(
            escape.name, escape.claim, "escaped", f"{len(after)} of {len(before)} processes survived the stop"
        )
    return Verdict(escape.name, escape.claim, "refused", f"all {len(before)} processes were ended")


async def try_bomb(bomb: Bomb, bait: Bait, bystander: Computer, backend: Backend | None = None) -> Verdict:
    """Run a bomb in a new computer with small limits. Its limit must stop it, and afterwards both computers must answer."""
    folder = Path(tempfile.mkdtemp(prefix="freehold-bomb-"))
    (folder / "workspace").mkdir()
    (folder / "home").mkdir()
    try:
        async with Computer.start(folder / "workspace", folder / "home", limits=SMALL, backend=backend) as computer:
            events: list[LimitEvent] = []
            if computer.machine is not None:
                computer.machine.subscribe(events.append)
            escape = EscapeAttempt(bomb.name, bomb.claim, bomb.program)
            ran = await computer.run(build_command(escape, bait), timeout=bomb.seconds * _slowness(computer))
            trouble = await _find_unresponsive(computer) or await _find_unresponsive(bystander)
            if computer.machine is not None:
                computer.machine.usage()
            return _judge_bomb(bomb, judge_escape(escape, bait, ran), ran, events, trouble)
    finally:
        await asyncio.to_thread(remove_tree, folder)


def _time_limit(computer: Computer) -> float:
    return ATTEMPT_SECONDS * _slowness(computer)


def _slowness(computer: Computer) -> int:
    """A virtual machine may be emulated: it then takes many times as long to reach a limit."""
    limits = {} if computer.machine is None else computer.machine.isolation.limits
    return EMULATED_SLOWNESS if "virtual machine" in limits.values() else 1


def _judge_bomb(bomb: Bomb, own: Verdict, ran: CommandResult, events: list[LimitEvent], trouble: str) -> Verdict:
    def verdict(outcome: str, seen: str) -> Verdict:
        return Verdict(bomb.name, bomb.claim, "refused" if outcome == "refused" else "escaped", seen)

    if own.outcome == "escaped":
        return own
    if trouble:
        return verdict("escaped", trouble)
    if bomb.limit is None or (own.outcome == "refused" and own.seen != NOTHING):
        return own
    reached = {event.limit: event for event in events if event.kind == "reached"}
    if bomb.limit in reached:
        return verdict("refused", f"{reached[bomb.limit].setting}: {reached[bomb.limit].message}")
    if ran.limit == bomb.limit:
        return verdict("refused", f"computer.limits.{bomb.limit}: {ran.truncated} bytes were discarded")
    return verdict("escaped", f"computer.limits.{bomb.limit} did not stop it: {own.seen}")


async def _find_unresponsive(computer: Computer) -> str:
    """Why a computer does not answer; empty if it does. Killed processes may take a moment to disappear."""
    deadline = time.monotonic() + ANSWER_TIMEOUT
    while True:
        try:
            answer = await computer.run(["/bin/echo", "here"], timeout=ANSWER_TIMEOUT)
        except FreeholdError as error:
            if error.code != "computer.cannot-start" or time.monotonic() > deadline:
                return f"a computer no longer answers: {error.message}"
            await asyncio.sleep(0.05)
        else:
            return "" if answer.stdout == b"here\n" else f"a computer answers {answer.stdout!r}"
