"""One examination: the checks that start nothing, then every escape attempt in computers of its own."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING

from freehold.computer.registry import DEFAULT_BACKEND, find_backend
from freehold.doctor.backend_choice import ATTACHED, BackendChoice, choose_backend, load_own_manifest
from freehold.doctor.events import AttemptEnded, DoctorEnded, DoctorEvent, DoctorStarted, IsolationFound, MissingWall
from freehold.doctor.exceptions import try_exceptions
from freehold.doctor.facts import read_facts
from freehold.doctor.mounts import FoundMount, find_mounts
from freehold.doctor.report import DoctorReport, collect_report
from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.computer.contract.backend import Backend
    from freehold.computer.escapes import EscapeAttempt, Verdict
    from freehold.computer.library.computer import Computer

SHOWN_BY_ENGINE = ("masked-proc", "no-sysfs")
"""Attempts to read about the kernel. An engine that others run hides less of /proc and /sys than ours do: docs/guides/deploy.md."""
EventHandler = Callable[[DoctorEvent], None]


async def run_doctor(home: Home, *, quick: bool, on_event: EventHandler, backend: str | None = None) -> DoctorReport:
    """Call `on_event` for each thing that is found, as it is found, and return all of it.

    `quick` leaves out the attempts to use up memory, disk and processes. No computer is started when a wall is missing.
    Without `backend` it examines the one of the manifest.
    """
    events: list[DoctorEvent] = []

    def emit(event: DoctorEvent) -> None:
        events.append(event)
        on_event(event)

    choice = choose_backend(home, backend)
    started = await check_machine(home, quick=quick, backend=choice)
    emit(started)
    if not started.missing_walls:
        await _try_escapes(quick, emit, choice, home)
        async for tried in try_exceptions(home, choice):
            emit(tried)
    report = collect_report(started, events)
    emit(DoctorEnded(report.ok))
    return report


def run_doctor_until_terminated(
    home: Home, *, quick: bool, on_event: EventHandler, backend: str | None = None
) -> DoctorReport | None:
    """`run_doctor` in a process of its own. None when SIGTERM ended it; its computers are stopped first."""

    async def run() -> DoctorReport:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await run_doctor(home, quick=quick, on_event=on_event, backend=backend)

    try:
        return asyncio.run(run())
    except asyncio.CancelledError:
        return None


async def check_machine(home: Home, *, quick: bool, backend: BackendChoice) -> DoctorStarted:
    """The facts, missing walls, manifest errors and mounts of this machine. Starts no computer."""
    from freehold.computer import escapes

    missing = tuple(_find_missing_walls(backend, home))
    total = len(_choose_escapes(backend)) + (0 if quick or backend.name == ATTACHED else len(escapes.BOMBS))
    loaded = load_own_manifest(home)
    errors: tuple[str, ...] = ()
    mounts: tuple[FoundMount, ...] = ()
    if loaded is not None:
        errors = tuple(f"{problem.code} {problem.message}" for problem in loaded.errors)
        mounts = await find_mounts(home, loaded.manifest.computer.mounts)
    return DoctorStarted(0 if missing else total, read_facts(), missing, errors, mounts)


def _choose_escapes(backend: BackendChoice) -> "tuple[EscapeAttempt, ...]":
    """All, but for a computer that somebody else starts: it is the owner's own, which goes on working."""
    from freehold.computer import escapes

    if backend.name != ATTACHED:
        return tuple(escapes.ESCAPES)
    return tuple(one for one in escapes.ESCAPES if not one.then_stop and one.name not in SHOWN_BY_ENGINE)


def _find_missing_walls(backend: BackendChoice, home: Home) -> Iterator[MissingWall]:
    if backend.name == ATTACHED:
        if not home.computer_socket().exists():
            yield MissingWall("computer", "No computer is attached", "freehold up, and start its container")
        return
    if backend.name == DEFAULT_BACKEND:
        from freehold.computer.bubblewrap import requirements

        for one in requirements.find_missing_requirements():
            yield MissingWall(one.wall, one.message, one.hint)
        return
    if backend.name == "microvm":
        from freehold.computer.microvm.requirements import check_vm_requirements

        try:
            check_vm_requirements()
        except FreeholdError as error:
            yield MissingWall("virtual machine", error.message, error.hint)
        return
    from freehold.computer.engine.api import find_engine

    try:
        find_engine(backend.name, backend.host).version()
    except FreeholdError as error:
        yield MissingWall("engine", error.message, error.hint)


async def _try_escapes(quick: bool, emit: EventHandler, choice: BackendChoice, home: Home) -> None:
    from freehold.computer.library.computer import Computer

    attempts = _choose_escapes(choice)
    if choice.name == ATTACHED:
        async with Computer.connect(home.computer_socket()) as computer:
            async for verdict in _attempt_verdicts(computer, attempts):
                emit(AttemptEnded(verdict))
        return
    backend = find_backend(choice.name, choice.host)
    async with Computer.start(backend=backend) as computer:
        if computer.machine is None:
            raise RuntimeError("a computer that was started has a machine")
        emit(IsolationFound(computer.machine.isolation))
        async for verdict in _attempt_verdicts(computer, attempts, None if quick else backend):
            emit(AttemptEnded(verdict))


async def _attempt_verdicts(
    computer: "Computer", attempts: "tuple[EscapeAttempt, ...]", bombed: "Backend | None" = None
) -> "AsyncIterator[Verdict]":
    """With `bombed`, also what would use up memory, disk and processes, in other computers of that backend."""
    from freehold.computer import escapes

    with escapes.placed_bait() as bait:
        async for verdict in escapes.try_escapes(attempts, bait, computer):
            yield verdict
        for bomb in () if bombed is None else escapes.BOMBS:
            yield await escapes.try_bomb(bomb, bait, computer, bombed)
