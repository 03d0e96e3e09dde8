"""The computer as a program of the keeper. It is healthy while its guest answers on the link."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from freehold.computer.registry import DEFAULT_BACKEND
from freehold.errors import FreeholdError
from freehold.home import MAIN_COMPUTER
from freehold.keeper.calls import ComputerStatus, ComputerUsage, IsolationStatus
from freehold.keeper.computer_sleep import ComputerSleep, SleepRecord, open_use_socket
from freehold.keeper.log_writer import LogWriter
from freehold.keeper.plan import KeeperPlan
from freehold.keeper.program import ProgramExit
from freehold.keeper.recorder import RecordEvent

if TYPE_CHECKING:
    from freehold.computer.contract.backend import Backend, Machine
    from freehold.computer.contract.report import LimitEvent
    from freehold.computer.contract.spec import ComputerSpec, Mount
    from freehold.computer.library.connection import ComputerConnection
    from freehold.computer.mounts.mount_point import MountPoints

    LaunchFunction = Callable[[ComputerSpec, Path, Backend], Awaitable[Machine]]

STOP_GRACE = 4.0
"""Seconds that the guest has to end everything inside; then the machine is killed."""


def make_computer_spec(
    plan: KeeperPlan,
    workspace: Path,
    home: Path,
    unpacked: Path,
    points: "MountPoints | None" = None,
    shown: Mapping[str, Path] | None = None,
) -> "ComputerSpec":
    """`shown` are folders by their place inside, such as that of the agents. They are mounted read-only and whole, so
    that what is added is visible at once.

    Blocking: archives and commits are unpacked below `unpacked`, and `points` prepared for what is mounted later.
    """
    from freehold.computer.contract.spec import ComputerSpec, Device, Limits, MemoryMount, Mount

    own = [Mount(folder, place) for place, folder in (shown or {}).items()]
    return ComputerSpec(
        workspace=workspace,
        home=home,
        limits=Limits(**plan.limits),  # type: ignore[arg-type]  # the manifest has checked which are whole numbers
        mounts=(*own, *_provide_mounts(plan, unpacked, points)),
        memory_mounts=tuple(MemoryMount(one.target, one.size) for one in plan.mounts if one.kind == "memory"),
        devices=tuple(Device(Path(device), device) for device in plan.devices),
        image=plan.image,
    )


def _provide_mounts(plan: KeeperPlan, unpacked: Path, points: "MountPoints | None") -> "list[Mount]":
    from freehold.computer.contract.spec import Mount
    from freehold.computer.mounts.unpacked import UnpackedFolders

    folders = UnpackedFolders(unpacked)
    found: list[Mount] = []
    if points is not None:
        points.prepare(number for number, one in enumerate(plan.mounts) if one.is_remote)
    for number, one in enumerate(plan.mounts):
        if one.is_remote and points is not None:
            # Read-only for itself: what is mounted on it says whether it can be written.
            found.append(Mount(points.folder(number), one.target, follows=True))
            continue
        source = Path(one.source).expanduser()
        if one.kind == "archive":
            from freehold.computer.mounts.archive import unpack_archive

            source = unpack_archive(source, folders)
        elif one.kind == "git":
            from freehold.computer.mounts.git_tree import provide_commit

            source = provide_commit(source, one.commit, folders)
        if one.kind != "memory":
            found.append(Mount(source, one.target, one.writable))
    folders.remove_others()
    return found


@dataclass
class ComputerProgram:
    """Starts one computer, and reports the limits that it meets. `computer` is its name; the program of `main` is `computer`."""

    spec: "ComputerSpec"
    socket: Path
    record: RecordEvent
    log_writer: LogWriter
    backend: str = DEFAULT_BACKEND
    engine_host: str | None = None
    computer: str = MAIN_COMPUTER
    required: bool = True
    starts_on_demand: bool = False
    sleep_after: float | None = None
    points: "MountPoints | None" = None
    """Of the remote mounts, if it has some."""
    sleep: ComputerSleep | None = field(default=None, init=False)
    _machine: "Machine | None" = field(default=None, init=False)

    @property
    def name(self) -> str:
        return "computer" if self.computer == MAIN_COMPUTER else f"computer-{self.computer}"

    async def start(self) -> "ComputerRun":
        # In a thread: the first import is slow, and the gateway starts at the same time.
        launch, backend = await asyncio.to_thread(_import_launch, self.backend, self.engine_host)
        self.sleep = None
        with contextlib.ExitStack() as stack:
            if self.points is not None:
                await asyncio.to_thread(stack.enter_context, self.points.held_empty())
            return await self._launch(launch, backend)

    async def _launch(self, launch: "LaunchFunction", backend: "Backend") -> "ComputerRun":
        if self.sleep_after is None:
            self._machine = machine = await launch(self.spec, self.socket, backend)
            return ComputerRun(machine, self)
        with open_use_socket(self.socket) as listener:
            self._machine = machine = await launch(self.spec, self.socket, backend)
            self.sleep = ComputerSleep(machine, self.sleep_after, listener, self._record_sleep)
        return ComputerRun(machine, self)

    def _record_sleep(self, event: str, data: SleepRecord) -> None:
        self.record(event, {"computer": self.computer, **data})

    def status(self) -> ComputerStatus:
        """What the machine that runs now is isolated by, and what it uses."""
        machine = self._machine
        if machine is None:
            return ComputerStatus(None, None, None)
        found = machine.isolation
        isolation = IsolationStatus(found.backend, found.version, found.runs_as, tuple(found.walls), dict(found.limits))
        sleep = None if self.sleep is None else self.sleep.status()
        return ComputerStatus(isolation, ComputerUsage(**vars(machine.usage())), sleep)

    def report_limit(self, event: "LimitEvent") -> None:
        self.record(
            "computer.limit_reached" if event.kind == "reached" else "computer.limit_near",
            {
                "computer": self.computer,
                "setting": event.setting,
                "used": event.used,
                "allowed": event.allowed,
                "message": event.message,
            },
        )
        self.log_writer.note(self.name, "warning", event.message)


def _import_launch(backend: str, engine_host: str | None) -> "tuple[LaunchFunction, Backend]":
    from freehold.computer.library.launch import launch
    from freehold.computer.registry import find_backend

    return launch, find_backend(backend, engine_host)


class ComputerRun:
    def __init__(self, machine: "Machine", program: ComputerProgram) -> None:
        self._machine = machine
        self._program = program
        self._connection: ComputerConnection | None = None
        self._unsubscribe = machine.subscribe(program.report_limit)

    @property
    def pid(self) -> int | None:
        from freehold.computer.contract.backend import find_host_pid

        return find_host_pid(self._machine)

    @property
    def lost_because(self) -> str:
        """Why it was lost with another machine, if it was."""
        from freehold.computer.contract.backend import RemoteParts

        return self._machine.lost_because if isinstance(self._machine, RemoteParts) else ""

    async def wait_ended(self) -> ProgramExit:
        code = await self._machine.wait()
        self._unsubscribe()
        if self._program.sleep is not None:
            await self._program.sleep.close()
        if self._connection is not None:
            await self._connection.close()
        # This output comes from inside the computer; the name of the stream says so.
        for line in self._machine.last_words().splitlines()[-20:]:
            self._program.log_writer.write(self._program.name, "inside", line.encode())
        return ProgramExit(f"ended with {code}" if code >= 0 else f"was killed by signal {-code}", code)

    async def probe(self) -> float:
        from freehold.computer.library.connection import ComputerConnection

        if self._connection is None or not self._connection.live:
            if self._connection is not None:
                await self._connection.close()
            self._connection = ComputerConnection(self._machine.transport, reconnect=False)
            await self._connection.open()
        # The link sends a heartbeat every few seconds.
        return self._connection.link.silence

    async def request_stop(self) -> None:
        """Nothing to do: its work comes from the gateway and the services, which stop first."""

    async def wait_drained(self) -> None:
        await self._machine.stop(STOP_GRACE)

    async def kill(self) -> None:
        with contextlib.suppress(FreeholdError):
            await self._machine.stop(0)
        await self.wait_ended()
