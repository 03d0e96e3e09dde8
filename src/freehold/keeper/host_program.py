"""A program that is a process on the host, such as the gateway."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from freehold.errors import FreeholdError
from freehold.keeper.log_writer import LogWriter
from freehold.keeper.orphans import OrphanGuard
from freehold.keeper.output_capture import LineSink, OutputRateLimit, PipeCapture
from freehold.keeper.processes import identify_process, kill_group, list_group_members
from freehold.keeper.program import ProgramExit
from freehold.keeper.settings import LogLimits
from freehold.keeper.started_process import EarlyProcess, start_process

LAST_OUTPUT_TIMEOUT = 1.0


class HealthProbe(Protocol):
    async def __call__(self) -> None: ...


@dataclass(frozen=True)
class HttpProbe:
    """Sends GET to a local port; healthy when the status is 200."""

    port: int
    path: str = "/livez"
    host: str = "127.0.0.1"

    async def __call__(self) -> None:
        reader, writer = await asyncio.open_connection(self.host, self.port, limit=4096)
        try:
            request = f"GET {self.path} HTTP/1.1\r\nHost: localhost:{self.port}\r\nConnection: close\r\n\r\n"
            writer.write(request.encode("ascii"))
            status = await reader.readline()
        finally:
            writer.close()
        if status.split(b" ")[1:2] != [b"200"]:
            found = status.decode(errors="replace").strip() or "nothing"
            raise FreeholdError("program.unwell", f"GET {self.path} on port {self.port} answered {found}")


@dataclass(frozen=True)
class SocketProbe:
    """Connects to a unix socket; healthy when a line comes. For programs whose public port may be flooded."""

    path: Path

    async def __call__(self) -> None:
        reader, writer = await asyncio.open_unix_connection(str(self.path), limit=4096)
        try:
            line = await reader.readline()
        finally:
            writer.close()
        if not line:
            raise FreeholdError("program.unwell", f"{self.path.name} closed without an answer")


async def no_probe() -> None:
    """For a program that is healthy as long as its process runs."""


@dataclass(frozen=True)
class HostProgram:
    name: str
    argv: list[str]
    environment: Mapping[str, str]
    log_writer: LogWriter
    orphan_guard: OrphanGuard
    probe: HealthProbe = no_probe
    required: bool = True
    cwd: Path | None = None
    log_limits: LogLimits = field(default_factory=LogLimits)
    descriptors: tuple[int, ...] = ()
    """Open files of the keeper that the process inherits."""
    starts_on_demand: bool = False
    early: EarlyProcess | None = None
    """The process of its first start, if it waits already."""

    async def start(self) -> "HostRun":
        return HostRun(self)


class HostRun:
    """A process that leads its own process group; both outputs are captured."""

    def __init__(self, program: HostProgram) -> None:
        self._program = program
        early = program.early.take() if program.early is not None else None
        started = early or start_process(program.argv, program.environment, program.cwd, program.descriptors)
        self._process = started.process
        self.pid: int = self._process.pid
        process = identify_process(self.pid)
        if process is not None:
            program.orphan_guard.add(process)
        loop = asyncio.get_running_loop()
        rate_limit = OutputRateLimit(program.log_limits, loop.time())
        self._captures = [
            PipeCapture(reading, LineSink(program.name, stream, program.log_writer, program.log_limits, rate_limit))
            for stream, reading in started.outputs.items()
        ]
        self._ending: asyncio.Future[ProgramExit] = loop.create_future()
        self._watch = os.pidfd_open(self.pid)
        loop.add_reader(self._watch, self._exited)

    async def wait_ended(self) -> ProgramExit:
        ending = await asyncio.shield(self._ending)
        # Other processes of the group are killed as well, which closes the pipes.
        await self._end_group()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_OUTPUT_TIMEOUT):
                for capture in self._captures:
                    await capture.done.wait()
        for capture in self._captures:
            capture.close()
        return ending

    async def probe(self) -> float:
        await self._program.probe()
        return 0.0

    async def request_stop(self) -> None:
        if not self._ending.done():
            kill_group(self.pid, signal.SIGTERM)

    async def wait_drained(self) -> None:
        await asyncio.shield(self._ending)

    async def kill(self) -> None:
        if not self._ending.done():
            kill_group(self.pid, signal.SIGKILL)
        await self.wait_ended()

    def _exited(self) -> None:
        asyncio.get_running_loop().remove_reader(self._watch)
        os.close(self._watch)
        code = self._process.wait()
        description = f"exited with {code}" if code >= 0 else f"was killed by {_signal_name(-code)}"
        self._ending.set_result(ProgramExit(description, code))

    async def _end_group(self) -> None:
        while kill_group(self.pid, signal.SIGKILL) and list_group_members(self.pid):  # noqa: ASYNC110 - the kernel has no event for this
            await asyncio.sleep(0.005)
        self._program.orphan_guard.remove(self.pid)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
