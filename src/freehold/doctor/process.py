"""The doctor as a second process, followed line by line."""

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import IO

from freehold.doctor.events import DoctorEnded, DoctorEvent, decode_event
from freehold.home import Home

STOP_TIMEOUT = 10.0
MAX_LINE = 256 * 1024
MAX_STDERR = 2_000
NICENESS = 10


class DoctorFailed(Exception):
    """The process did not finish its examination. The text says why."""


def doctor_command(home: Home, quick: bool) -> list[str]:
    command = [sys.executable, "-m", "freehold.doctor", "--home", str(home.root)]
    return [*command, "--quick"] if quick else command


class DoctorProcess:
    """`follow` runs the process; `stop` ends it early."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: asyncio.subprocess.Process | None = None
        self._stopped = False

    def stop(self) -> None:
        """Idempotent; also before `follow` has started the process."""
        self._stopped = True
        self._send(signal.SIGTERM)

    async def follow(self, on_event: Callable[[DoctorEvent], None]) -> None:
        """Call `on_event` for each event until the process ends. Raises DoctorFailed unless the last is `DoctorEnded`.

        The process is ended when this is cancelled: first in good order, so that it stops its computers.
        """
        with tempfile.TemporaryFile() as stderr:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *self._command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=stderr,
                    limit=MAX_LINE,
                )
            except OSError as error:
                raise DoctorFailed(f"The doctor could not be started: {error}") from error
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self._process.pid, NICENESS)
            if self._stopped:
                self._send(signal.SIGTERM)
            try:
                has_ended = await self._read_events(on_event)
                code = await self._process.wait()
            finally:
                await self._end()
            if not has_ended:
                raise DoctorFailed(f"The doctor ended with exit code {code}{_read_last_line(stderr)}")

    async def _read_events(self, on_event: Callable[[DoctorEvent], None]) -> bool:
        assert self._process is not None
        assert self._process.stdout is not None
        has_ended = False
        try:
            while line := await self._process.stdout.readline():
                event = decode_event(line)
                has_ended = isinstance(event, DoctorEnded)
                on_event(event)
        except ValueError as error:
            raise DoctorFailed(f"The doctor wrote a line that is not one of its events: {error}") from None
        return has_ended

    async def _end(self) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._send(signal.SIGTERM)
            try:
                async with asyncio.timeout(STOP_TIMEOUT):
                    await self._process.wait()
            except TimeoutError:
                self._send(signal.SIGKILL)
                await self._process.wait()

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self._process is not None and self._process.returncode is None:
                self._process.send_signal(number)


def _read_last_line(stderr: IO[bytes]) -> str:
    stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - MAX_STDERR))
    lines = stderr.read().decode(errors="replace").strip().splitlines()
    return f": {lines[-1]}" if lines else ""
