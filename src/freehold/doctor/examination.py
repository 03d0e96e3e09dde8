"""One examination: the checks that start nothing, then every escape attempt in computers of its own."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freehold.computer.registry import DEFAULT_BACKEND, find_backend
from freehold.doctor.events import AttemptEnded, DoctorEnded, DoctorEvent, DoctorStarted, IsolationFound, MissingWall
from freehold.doctor.facts import read_facts
from freehold.doctor.mounts import FoundMount, find_mounts
from freehold.doctor.report import DoctorReport, collect_report
from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.computer.contract.backend import Backend
    from freehold.computer.escapes import Verdict
    from freehold.computer.library.computer import Computer
    from freehold.manifest.loader import LoadedManifest

ENGINE_VARIABLE = "SANDBOX_HOST"
"""Where a container engine is reached, if not where it usually is."""
EventHandler = Callable[[DoctorEvent], None]


@dataclass(frozen=True)
class BackendChoice:
    """The backend that is examined. `host` is where its engine is reached, if not where it usually is."""

    name: str
    host: str | None


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
        await _try_escapes(quick, emit, choice)
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


def choose_backend(home: Home, wanted: str | None) -> BackendChoice:
    """The wanted one, else that of the manifest; its engine where the manifest or SANDBOX_HOST says."""
    loaded = _load_manifest(home)
    if loaded is not None and not loaded.errors:
        computer = loaded.manifest.computer
        return BackendChoice(wanted or computer.backend, computer.host or os.environ.get(ENGINE_VARIABLE))
    return BackendChoice(wanted or DEFAULT_BACKEND, os.environ.get(ENGINE_VARIABLE))


async def check_machine(home: Home, *, quick: bool, backend: BackendChoice) -> DoctorStarted:
    """The facts, missing walls, manifest errors and mounts of this machine. Starts no computer."""
    from freehold.computer import escapes

    missing = tuple(_find_missing_walls(backend))
    total = len(escapes.ESCAPES) + (0 if quick else len(escapes.BOMBS))
    loaded = _load_manifest(home)
    errors: tuple[str, ...] = ()
    mounts: tuple[FoundMount, ...] = ()
    if loaded is not None:
        errors = tuple(f"{problem.code} {problem.message}" for problem in loaded.errors)
        mounts = await find_mounts(home, loaded.manifest.computer.mounts)
    return DoctorStarted(0 if missing else total, read_facts(), missing, errors, mounts)


def _find_missing_walls(backend: BackendChoice) -> Iterator[MissingWall]:
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


def _load_manifest(home: Home) -> "LoadedManifest | None":
    from freehold.manifest import load_manifest

    return load_manifest(home.manifest, os.environ, home=home.root) if home.manifest.exists() else None


async def _try_escapes(quick: bool, emit: EventHandler, choice: BackendChoice) -> None:
    from freehold.computer.library.computer import Computer

    backend = find_backend(choice.name, choice.host)
    async with Computer.start(backend=backend) as computer:
        if computer.machine is None:
            raise RuntimeError("a computer that was started has a machine")
        emit(IsolationFound(computer.machine.isolation))
        async for verdict in _attempt_verdicts(computer, quick, backend):
            emit(AttemptEnded(verdict))


async def _attempt_verdicts(computer: "Computer", quick: bool, backend: "Backend") -> "AsyncIterator[Verdict]":
    from freehold.computer import escapes

    with escapes.placed_bait() as bait:
        for escape in escapes.ESCAPES:
            yield await escapes.try_escape(escape, bait, computer)
        for bomb in () if quick else escapes.BOMBS:
            yield await escapes.try_bomb(bomb, bait, computer, backend)
