"""A guest without walls, for tests of the link and the library alone."""

import asyncio
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

from freehold.computer.backend import Isolation, LimitEvent, Machine, Usage
from freehold.computer.spec import ComputerSpec


class BareMachine:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def isolation(self) -> Isolation:
        return Isolation("bare", "", 0, (), {})

    async def wait(self) -> int:
        return await self._process.wait()

    async def stop(self, grace: float = 5.0) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    def usage(self) -> Usage:
        return Usage()

    def subscribe(self, callback: Callable[[LimitEvent], None]) -> Callable[[], None]:
        return lambda: None


class Bare:
    name = "bare"

    def __init__(self, python: str = "/usr/bin/python3") -> None:
        self._python = python

    async def start(self, spec: ComputerSpec, listener: socket.socket, guest: Path) -> Machine:
        process = await asyncio.create_subprocess_exec(
            self._python, "-I", "-S", "-E", str(guest), "--listen", str(listener.fileno()), "--workspace", str(spec.workspace),
            pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(spec.home), **spec.environment},
        )  # fmt: skip
        return BareMachine(process)
