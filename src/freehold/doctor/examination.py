"""One examination: the checks that start nothing, then every escape attempt in computers of its own."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from freehold.doctor.events import AttemptEnded, DoctorEnded, DoctorEvent, DoctorStarted, IsolationFound, MissingWall
from freehold.doctor.facts import read_facts
from freehold.doctor.report import DoctorReport, collect_report
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.computer.escapes import Verdict
    from freehold.computer.library.computer import Computer

EventHandler = Callable[[DoctorEvent], None]


async def run_doctor(home: Home, *, quick: bool, on_event: EventHandler) -> DoctorReport:
    """Call `on_event` for each thing that is found, as it is found, and return all of it.

    `quick` leaves out the attempts to use up memory, disk and processes. No computer is started when a wall is missing.
    """
    events: list[DoctorEvent] = []

    def emit(event: DoctorEvent) -> None:
        events.append(event)
        on_event(event)

    started = check_machine(home, quick=quick)
    emit(started)
    if not started.missing_walls:
        await _try_escapes(quick, emit)
    report = collect_report(started, events)
    emit(DoctorEnded(report.ok))
    return report


def run_doctor_until_terminated(home: Home, *, quick: bool, on_event: EventHandler) -> DoctorReport | None:
    """`run_doctor` in a process of its own. None when SIGTERM ended it; its computers are stopped first."""

    async def run() -> DoctorReport:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await run_doctor(home, quick=quick, on_event=on_event)

    try:
        return asyncio.run(run())
    except asyncio.CancelledError:
        return None


def check_machine(home: Home, *, quick: bool) -> DoctorStarted:
    """The facts, missing walls and manifest errors of this machine. Starts no computer."""
    from freehold.computer import escapes
    from freehold.computer.bubblewrap import requirements

    missing = tuple(MissingWall(one.wall, one.message, one.hint) for one in requirements.find_missing_requirements())
    total = len(escapes.ESCAPES) + (0 if quick else len(escapes.BOMBS))
    return DoctorStarted(0 if missing else total, read_facts(), missing, _find_manifest_errors(home))


def _find_manifest_errors(home: Home) -> tuple[str, ...]:
    from freehold.manifest import load_manifest

    if not home.manifest.exists():
        return ()
    loaded = load_manifest(home.manifest, os.environ, home=home.root)
    return tuple(f"{problem.code} {problem.message}" for problem in loaded.errors)


async def _try_escapes(quick: bool, emit: EventHandler) -> None:
    from freehold.computer.bubblewrap.backend import Bubblewrap
    from freehold.computer.library.computer import Computer

    async with Computer.start(backend=Bubblewrap()) as computer:
        if computer.machine is None:
            raise RuntimeError("a computer that was started has a machine")
        emit(IsolationFound(computer.machine.isolation))
        async for verdict in _attempt_verdicts(computer, quick):
            emit(AttemptEnded(verdict))


async def _attempt_verdicts(computer: "Computer", quick: bool) -> "AsyncIterator[Verdict]":
    from freehold.computer import escapes

    with escapes.placed_bait() as bait:
        for escape in escapes.ESCAPES:
            yield await escapes.try_escape(escape, bait, computer)
        for bomb in () if quick else escapes.BOMBS:
            yield await escapes.try_bomb(bomb, bait, computer)
