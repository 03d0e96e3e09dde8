"""Tries an escape or a bomb in real computers, and says what was seen."""

import asyncio
import tempfile
import time
from pathlib import Path

from freehold.computer.backend import LimitEvent
from freehold.computer.computer import Computer
from freehold.computer.escapes.bait import ENVIRONMENT_NAME, Bait
from freehold.computer.escapes.bombs import SMALL, Bomb
from freehold.computer.escapes.escape import NOTHING, Escape, Verdict, command_for, judge
from freehold.computer.escapes.neighbours import NEIGHBOUR
from freehold.computer.process import Result
from freehold.computer.removal import remove_tree
from freehold.errors import FreeholdError

ANSWER_TIME = 20.0


async def try_escape(escape: Escape, bait: Bait, computer: Computer) -> Verdict:
    """What the escape saw; a computer that does not answer afterwards is not a wall that held."""
    if escape.beside_another:
        verdict = await _try_beside_another(escape, bait, computer)
    else:
        verdict = judge(escape, bait, await computer.run(command_for(escape, bait), timeout=60))
    trouble = await _silence(computer)
    return Verdict(escape.name, escape.claim, "escaped", trouble) if trouble else verdict


async def _try_beside_another(escape: Escape, bait: Bait, computer: Computer) -> Verdict:
    neighbour = ["/usr/bin/python3", "-I", "-c", NEIGHBOUR]
    env = {ENVIRONMENT_NAME: bait.token}
    async with await computer.spawn(neighbour, env=env, apart="neighbour", timeout=4 * ANSWER_TIME) as process:
        if await process.stdout.read() != b"ready\n":
            return Verdict(escape.name, escape.claim, "unclear", "there was no other session to try it on")
        command = command_for(escape, bait, neighbour=process.pid)
        verdict = judge(escape, bait, await computer.run(command, timeout=60, apart="attacker"))
        if verdict.outcome == "refused":
            await process.write(b"still there?\n")
            if await process.stdout.read() != b"here\n":
                return Verdict(escape.name, escape.claim, "escaped", "the other session's process was ended")
    return verdict


async def try_bomb(bomb: Bomb, bait: Bait, bystander: Computer) -> Verdict:
    """Sets it off in a computer of its own with small limits. Its limit must stop it; it and the bystander must answer then."""
    folder = Path(tempfile.mkdtemp(prefix="freehold-bomb-"))
    (folder / "workspace").mkdir()
    (folder / "home").mkdir()
    try:
        async with Computer.start(folder / "workspace", folder / "home", limits=SMALL) as computer:
            events: list[LimitEvent] = []
            if computer.machine is not None:
                computer.machine.subscribe(events.append)
            escape = Escape(bomb.name, bomb.claim, bomb.program)
            ran = await computer.run(command_for(escape, bait), timeout=bomb.seconds)
            trouble = await _silence(computer) or await _silence(bystander)
            if computer.machine is not None:
                computer.machine.usage()
            return _judge_bomb(bomb, judge(escape, bait, ran), ran, events, trouble)
    finally:
        await asyncio.to_thread(remove_tree, folder)


def _judge_bomb(bomb: Bomb, own: Verdict, ran: Result, events: list[LimitEvent], trouble: str) -> Verdict:
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
        return verdict("refused", f"computer.limits.{bomb.limit}: {ran.truncated} bytes were thrown away")
    return verdict("escaped", f"computer.limits.{bomb.limit} did not stop it: {own.seen}")


async def _silence(computer: Computer) -> str:
    """Why a computer does not answer, or nothing when it does. The dead of a bomb may take a moment to be buried."""
    deadline = time.monotonic() + ANSWER_TIME
    while True:
        try:
            answer = await computer.run(["/bin/echo", "here"], timeout=ANSWER_TIME)
        except FreeholdError as error:
            if error.code != "computer.cannot-start" or time.monotonic() > deadline:
                return f"a computer no longer answers: {error.message}"
            await asyncio.sleep(0.05)
        else:
            return "" if answer.stdout == b"here\n" else f"a computer answers {answer.stdout!r}"
