"""Shell commands: in the foreground or in the background, with limited output, and ended with all their child processes."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

MAX_KEPT_OUTPUT = 256 * 1024
EXIT_TIMEOUT = 2.0
DRAIN_TIMEOUT = 0.3
SHOW_INTERVAL = 0.2


class Job:
    """A running command. Only the end of its output is kept."""

    def __init__(self, command: str, process: asyncio.subprocess.Process) -> None:
        self.command = command
        self.left_out = 0
        self._process = process
        self._output = bytearray()
        self._new_output = asyncio.Event()
        self._reading = asyncio.ensure_future(self._read())

    @classmethod
    async def start(cls, command: str, cwd: Path) -> "Job":
        process = await asyncio.create_subprocess_exec(
            "/bin/bash",
            "-c",
            command,
            cwd=cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        return cls(command, process)

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.returncode

    @property
    def output(self) -> str:
        text = self._output.decode(errors="replace")
        return f"[… {self.left_out} bytes are not shown …]\n{text}" if self.left_out else text

    async def wait(self, timeout: float, show: Callable[[str], Awaitable[None]] | None = None) -> bool:
        """Whether it ended in time. `show` gets the output so far at intervals."""
        showing = asyncio.ensure_future(self._show(show)) if show is not None else None
        try:
            async with asyncio.timeout(timeout):
                await self._process.wait()
                # A child process that still runs may keep the stream open for ever.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(DRAIN_TIMEOUT):
                        await asyncio.shield(self._reading)
        except TimeoutError:
            return False
        else:
            return True
        finally:
            if showing is not None:
                showing.cancel()
                await asyncio.gather(showing, return_exceptions=True)

    async def end(self) -> None:
        """Ends it with its whole process group. Idempotent."""
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(EXIT_TIMEOUT):
                await self._process.wait()
        except TimeoutError:
            pass
        finally:
            self._signal(signal.SIGKILL)
        await self._process.wait()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while data := await self._process.stdout.read(65536):
            self._output += data
            if len(self._output) > MAX_KEPT_OUTPUT:
                extra = len(self._output) - MAX_KEPT_OUTPUT
                self.left_out += extra
                del self._output[:extra]
            self._new_output.set()

    async def _show(self, show: Callable[[str], Awaitable[None]]) -> None:
        while True:
            await self._new_output.wait()
            self._new_output.clear()
            await show(self.output)
            await asyncio.sleep(SHOW_INTERVAL)
