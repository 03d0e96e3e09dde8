"""A test double of a backend: a real guest as an ordinary process of the host, without walls and without limits.

For tests of the library, the link and the contract alone. It must never leave this folder.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from freehold.computer.contract.conventions import GUEST_PYTHON
from freehold.computer.contract.guest_archive import guest_archive
from freehold.computer.contract.report import Isolation, LimitEvent, MachineUsage, SleepReport
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.contract.transport import InheritedSocket, Transport
from freehold.errors import FreeholdError

# The guest obeys SIGTERM from outside of its pid namespace only, and an unsealed one shares ours: it gets its own.
OWN_PID_NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount")
MAX_LAST_WORDS = 4096


class UnsealedMachine:
    def __init__(self, process: asyncio.subprocess.Process, transport: Transport) -> None:
        self._process = process
        self._transport = transport
        self._stderr = b""
        self._reading = asyncio.ensure_future(self._read_stderr())

    @property
    def pid(self) -> int:
        """The guest, which is the only child of the program that made its pid namespace."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        return int(children[0])

    @property
    def isolation(self) -> Isolation:
        return Isolation("unsealed", "", f"uid {os.geteuid()}", (), {})

    @property
    def transport(self) -> Transport:
        return self._transport

    async def wait(self) -> int:
        await asyncio.shield(self._reading)
        return await self._process.wait()

    async def stop(self, grace: float = 5.0) -> None:
        if self._process.returncode is None and grace > 0:
            with contextlib.suppress(TimeoutError, OSError):
                async with asyncio.timeout(grace):
                    while not self._is_ready():  # noqa: ASYNC110 - there is no event to wait for
                        await asyncio.sleep(0.002)
                    os.kill(self.pid, signal.SIGTERM)
                    await self.wait()
        if self._process.returncode is None:
            self._process.kill()
        await self.wait()

    is_asleep = False

    async def sleep(self) -> SleepReport:
        raise FreeholdError("computer.cannot-sleep", "The unsealed backend has no freezer")

    async def wake(self) -> None:
        return

    def usage(self) -> MachineUsage:
        return MachineUsage()

    def subscribe(self, callback: Callable[[LimitEvent], None]) -> Callable[[], None]:
        return lambda: None

    def last_words(self) -> str:
        return self._stderr.decode(errors="replace")

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(MAX_LAST_WORDS):
            self._stderr = (self._stderr + data)[-MAX_LAST_WORDS:]

    def _is_ready(self) -> bool:
        """Whether it is the guest and has blocked the signal. `unshare` blocks it too, and lets it in again."""
        try:
            guest = Path(f"/proc/{self.pid}")
            if (guest / "exe").readlink() == Path(f"/proc/{self._process.pid}/exe").readlink():
                return False
            status = (guest / "status").read_text()
        except IndexError:  # not forked yet
            return False
        mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigBlk:"))
        return bool(int(mask, 16) >> (signal.SIGTERM - 1) & 1)


class UnsealedBackend:
    name = "unsealed"

    def __init__(self, python: str = GUEST_PYTHON, guest: Path | None = None) -> None:
        self._python = python
        self._guest = guest

    def make_transport(self, path: Path) -> InheritedSocket:
        return InheritedSocket(path)

    async def start(self, spec: ComputerSpec, transport: Transport) -> UnsealedMachine:
        assert isinstance(transport, InheritedSocket)
        if spec.image is not None:
            raise FreeholdError("computer.unknown-image", f"The unsealed backend has no image {spec.image!r}")
        listener = transport.listen().fileno()
        starting = asyncio.ensure_future(self._start_guest(spec, listener))
        try:
            return UnsealedMachine(await asyncio.shield(starting), transport)
        except asyncio.CancelledError:
            # A guest that has just been forked does not die with its parent yet: it is ended in good order.
            await UnsealedMachine(await starting, transport).stop()
            raise

    async def _start_guest(self, spec: ComputerSpec, listener: int) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *OWN_PID_NAMESPACE, self._python, "-I", "-S", "-E", str(self._guest or guest_archive()),
            "--listen", str(listener), "--workspace", str(spec.workspace),
            pass_fds=[listener], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(spec.home), **spec.environment},
        )  # fmt: skip
