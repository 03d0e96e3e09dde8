"""The sleep of a computer, as the keeper runs and records it."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from freehold.errors import FreeholdError
from freehold.keeper.calls import SleepStatus

if TYPE_CHECKING:
    from freehold.computer.contract.backend import Machine
    from freehold.computer.library.use_server import Sleep

log = logging.getLogger(__name__)

SleepRecord = dict[str, int | float | str | None]
RecordSleep = Callable[[str, SleepRecord], None]


@contextlib.contextmanager
def open_use_socket(computer_socket: Path) -> Iterator[socket.socket]:
    """The use socket, before the computer starts: every client that reaches the computer finds it. Removed on an error."""
    from freehold.computer.contract.transport import listen_at
    from freehold.computer.library.use import use_socket

    path = use_socket(computer_socket)
    path.unlink(missing_ok=True)
    listener = listen_at(path)
    try:
        yield listener
    except BaseException:
        listener.close()
        path.unlink(missing_ok=True)
        raise


class ComputerSleep:
    """Serves the use socket of one machine from now until `close`."""

    def __init__(self, machine: "Machine", after: float, listener: socket.socket, record: RecordSleep) -> None:
        from freehold.computer.library.use_server import UseServer

        self._after = after
        self._record = record
        self._path = Path(listener.getsockname())
        self._times = 0
        self._seconds = 0.0
        self._given_back: int | None = None
        self._server = UseServer(machine, after, self._note_sleep, self._note_wake)
        self._serving = asyncio.create_task(self._serve(listener), name="use of the computer")

    async def _serve(self, listener: socket.socket) -> None:
        """After an unexpected error the computer stays awake, and its status says why."""
        try:
            await self._server.run(listener)
        except Exception as error:
            log.exception("The computer does not sleep any more")
            self._server.trouble = FreeholdError("computer.cannot-sleep", f"The computer cannot sleep: {error}")

    def status(self) -> SleepStatus:
        current, trouble = self._server.current, self._server.trouble
        return SleepStatus(
            after=self._after,
            asleep=current is not None,
            since=None if current is None else current.since,
            given_back=self._given_back,
            times=self._times,
            seconds=round(self._seconds, 3),
            trouble=None if trouble is None else trouble.message,
        )

    async def close(self) -> None:
        """Idempotent."""
        self._serving.cancel()
        await asyncio.gather(self._serving, return_exceptions=True)
        self._path.unlink(missing_ok=True)

    def _note_sleep(self, sleep: "Sleep") -> None:
        report = sleep.report
        self._times += 1
        self._given_back = report.given_back
        self._record(
            "computer.slept",
            {
                "unused": round(sleep.unused),
                "how": report.how,
                "memory": report.memory_before,
                "given_back": report.given_back,
            },
        )

    def _note_wake(self, sleep: "Sleep", seconds: float) -> None:
        self._seconds += seconds
        self._record("computer.woke", {"seconds": round(seconds, 3), "given_back": sleep.report.given_back})
