"""A program that is a process of this host, such as the gateway."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from freehold.errors import FreeholdError
from freehold.keeper.capture import Allowance, Capture, LineSink
from freehold.keeper.logbook import Logbook
from freehold.keeper.processes import identify, kill_group, members
from freehold.keeper.program import Ending
from freehold.keeper.settings import LogLimits
from freehold.keeper.strays import Strays, dies_with_parent

LAST_WORDS_PATIENCE = 1.0


class Probe(Protocol):
    async def __call__(self) -> None: ...


@dataclass(frozen=True)
class HttpProbe:
    """GET a path on loopback; well when it answers 200."""

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
            words = status.decode(errors="replace").strip() or "nothing"
            raise FreeholdError("program.unwell", f"GET {self.path} on port {self.port} answered {words}")


@dataclass(frozen=True)
class SocketProbe:
    """Connect to a unix socket; well when a line comes. For programs whose own port strangers may flood."""

    path: Path

    async def __call__(self) -> None:
        reader, writer = await asyncio.open_unix_connection(str(self.path), limit=4096)
        try:
            line = await reader.readline()
        finally:
            writer.close()
        if not line:
            raise FreeholdError("program.unwell", f"{self.path.name} said nothing")


async def no_probe() -> None:
    """For a program whose only question is whether it lives."""


@dataclass(frozen=True)
class HostProgram:
    name: str
    argv: list[str]
    environment: Mapping[str, str]
    book: Logbook
    strays: Strays
    probe: Probe = no_probe
    required: bool = True
    cwd: Path | None = None
    logs: LogLimits = field(default_factory=LogLimits)

    async def start(self) -> "HostRun":
        return HostRun(self)


class HostRun:
    """A process that leads its own session and group, with both outputs captured."""

    def __init__(self, program: HostProgram) -> None:
        self._program = program
        pipes = {"stdout": os.pipe(), "stderr": os.pipe()}
        try:
            # Not asyncio's subprocess: its child watcher is a thread a child, and knows a child only by its pid.
            self._process = subprocess.Popen(
                dies_with_parent(program.argv),
                stdin=subprocess.DEVNULL,
                stdout=pipes["stdout"][1],
                stderr=pipes["stderr"][1],
                env=dict(program.environment),
                cwd=program.cwd,
                start_new_session=True,
            )
        except OSError:
            for reading, _ in pipes.values():
                os.close(reading)
            raise
        finally:
            for _, writing in pipes.values():
                os.close(writing)
        self.pid: int = self._process.pid
        process = identify(self.pid)
        if process is not None:
            program.strays.add(process)
        loop = asyncio.get_running_loop()
        allowance = Allowance(program.logs, loop.time())
        self._captures = [
            Capture(reading, LineSink(program.name, stream, program.book, program.logs, allowance))
            for stream, (reading, _) in pipes.items()
        ]
        self._ending: asyncio.Future[Ending] = loop.create_future()
        self._watch = os.pidfd_open(self.pid)
        loop.add_reader(self._watch, self._exited)

    async def ended(self) -> Ending:
        ending = await asyncio.shield(self._ending)
        # What the leader left behind in its group goes with it, and lets go of the pipes.
        await self._end_group()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_PATIENCE):
                for capture in self._captures:
                    await capture.done.wait()
        for capture in self._captures:
            capture.close()
        return ending

    async def probe(self) -> float:
        await self._program.probe()
        return 0.0

    async def refuse(self) -> None:
        if not self._ending.done():
            kill_group(self.pid, signal.SIGTERM)

    async def drain(self) -> None:
        await asyncio.shield(self._ending)

    async def kill(self) -> None:
        if not self._ending.done():
            kill_group(self.pid, signal.SIGKILL)
        await self.ended()

    def _exited(self) -> None:
        asyncio.get_running_loop().remove_reader(self._watch)
        os.close(self._watch)
        code = self._process.wait()
        words = f"exited with {code}" if code >= 0 else f"was killed by {_signal_name(-code)}"
        self._ending.set_result(Ending(words, code))

    async def _end_group(self) -> None:
        while kill_group(self.pid, signal.SIGKILL) and members(self.pid):  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(0.005)
        self._program.strays.remove(self.pid)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
