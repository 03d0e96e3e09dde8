"""A computer on another machine, as the process that started it sees it. It ends with that process."""

import asyncio
import contextlib
import itertools
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from freehold.computer.contract.report import Isolation, LimitEvent, MachineUsage, SleepReport
from freehold.computer.contract.transport import InheritedSocket, Transport
from freehold.errors import FreeholdError
from freehold.fleet.computer_lease import LOST
from freehold.fleet.fleet_client import open_fleet
from freehold.fleet.remote_spec import ReportedIsolation, decode_event, decode_reported, decode_sleep, decode_usage
from freehold.fleet.wire import Stream, encode_message, read_error, read_message

RETURN_SECONDS = 40.0
"""How long a fleet that has ended may take to come back. Then the computer is lost."""
RETRY_PAUSE = 0.2
STOP_MARGIN = 30.0
_log = logging.getLogger("freehold.fleet")


class _FleetGone(Exception):
    """The connection to the fleet has ended before it answered."""


class RemoteMachine:
    """Created by `RayBackend.start`. `Machine` and `RemoteParts` are its contract."""

    def __init__(self, path: Path, request: dict[str, Any], transport: InheritedSocket) -> None:
        self._path = path
        self._request = request
        self._transport = transport
        self._listener: socket.socket = transport.listen().dup()
        self._stream: Stream | None = None
        self._replies: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)
        self._callbacks: list[Callable[[LimitEvent], None]] = []
        self._end_callbacks: list[Callable[[FreeholdError], None]] = []
        self._connected = asyncio.Event()
        """Set while the fleet answers, and when nobody will."""
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._reading: asyncio.Task[None] | None = None
        self._isolation = Isolation("ray", "", "", (), {})
        self._words = ""
        self._usage = MachineUsage()
        self._is_asleep = False
        self._id = ""
        self.node = ""
        self.guest_pid: int | None = None
        """On its node."""
        self.waits_for = ""
        """Why it has no room yet."""
        self.lost_because = ""

    @property
    def isolation(self) -> Isolation:
        return self._isolation

    @property
    def transport(self) -> Transport:
        return self._transport

    @property
    def is_asleep(self) -> bool:
        return self._is_asleep

    def last_words(self) -> str:
        return self._words

    async def begin(self) -> None:
        """Until it runs, or cannot."""
        try:
            stream = self._stream = await open_fleet(self._path, [self._listener.fileno()])
            stream[1].write(encode_message({"do": "start", **self._request}))
            started = await self._await_start(stream)
        except (OSError, asyncio.IncompleteReadError):
            self._close()
            raise FreeholdError("fleet.not-running", "The fleet ended while the computer was starting") from None
        except BaseException:
            self._close()
            raise
        self._id, self.node, self.guest_pid = started["id"], started["node"], started["pid"]
        reported: ReportedIsolation = decode_reported(ReportedIsolation, started["isolation"])
        self._isolation = reported.on_node(self.node)
        self._connected.set()
        self._reading = asyncio.create_task(self._live(), name=f"a computer on {self.node}")

    async def _await_start(self, stream: Stream) -> dict[str, Any]:
        while True:
            message = await read_message(stream[0])
            if "error" in message:
                raise read_error(message["error"])
            if "started" in message:
                self.waits_for = ""
                found: dict[str, Any] = message["started"]
                return found
            self.waits_for = str(message.get("waiting", ""))

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    async def stop(self, grace: float = 5.0) -> None:
        was_running = not self._ended.done()
        if was_running:
            with contextlib.suppress(FreeholdError, TimeoutError):
                async with asyncio.timeout(grace + STOP_MARGIN):
                    code = await self._ask("stop", grace=grace)
                    self._end(int(code))
        if not self._ended.done():
            self._end(LOST)
        if was_running and grace > 0 and self.lost_because:  # nothing that is done later would say so
            _log.warning("The computer on %s ended without its last files: %s", self.node, self.lost_because)
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})

    async def fetch_files(self) -> None:
        await self._ask("fetch")

    def usage(self) -> MachineUsage:
        """The last known: see `refresh_usage`."""
        return MachineUsage() if self._ended.done() else self._usage

    async def refresh_usage(self) -> None:
        with contextlib.suppress(FreeholdError):  # it has just ended, or its node is away for a moment
            self._usage = decode_usage(await self._ask("usage"))

    def when_ended(self, callback: Callable[[FreeholdError], None]) -> None:
        self._end_callbacks.append(callback)

    def subscribe(self, callback: Callable[[LimitEvent], None]) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback) if callback in self._callbacks else None

    async def sleep(self) -> SleepReport:
        report = decode_sleep(await self._ask("sleep"))
        self._is_asleep = True
        return report

    async def wake(self) -> None:
        if not self._ended.done():
            await self._ask("wake")
        self._is_asleep = False

    async def _ask(self, do: str, **more: Any) -> Any:
        """Waits for a fleet that is started again. What can be asked may be asked twice. Raises `computer.ended`."""
        while True:
            await self._connected.wait()
            if self._ended.done() or self._stream is None:
                raise self._explain_end()
            number = next(self._numbers)
            reply = self._replies[number] = asyncio.get_running_loop().create_future()
            try:
                self._stream[1].write(encode_message({"n": number, "do": do, **more}))
                return await reply
            except _FleetGone:
                continue
            finally:
                self._replies.pop(number, None)

    def _explain_end(self) -> FreeholdError:
        return FreeholdError("computer.ended", self.lost_because or "The computer has ended")

    async def _live(self) -> None:
        """Until it has ended. A fleet that was started again finds it where it was."""
        while not self._ended.done() and self._stream is not None:
            try:
                while True:
                    self._take(await read_message(self._stream[0]))
            except (OSError, asyncio.IncompleteReadError, FreeholdError):
                self._connected.clear()
                self._fail_replies()
            if not self._ended.done() and not await self._return():
                self._end(LOST)
            self._connected.set()

    async def _return(self) -> bool:
        """Whether the fleet is back, and has it."""
        try:
            async with asyncio.timeout(RETURN_SECONDS):
                while not await self._try_return():  # noqa: ASYNC110 - another process comes back
                    await asyncio.sleep(RETRY_PAUSE)
        except TimeoutError:
            self.lost_because = "The fleet did not come back"
        except FreeholdError as error:
            self.lost_because = error.message
        return not self.lost_because

    async def _try_return(self) -> bool:
        """Raises `computer.ended` when it is gone."""
        self._close_stream()
        try:
            stream = self._stream = await open_fleet(self._path, [self._listener.fileno()])
            found = {"do": "adopt", "id": self._id, "node": self.node}
            stream[1].write(encode_message({**self._request, **found}))
            await self._await_start(stream)
        except FreeholdError as error:
            if error.code == "computer.ended":
                raise
            return False
        except (OSError, asyncio.IncompleteReadError):
            return False
        return True

    def _take(self, message: dict[str, Any]) -> None:
        notice = message.get("notice")
        if notice == "ended":
            self.lost_because = str(message.get("why", ""))
            self._end(int(message["code"]))
        elif notice == "words":
            self._words = str(message["words"])
        elif notice == "event":
            event = decode_event(message["event"])
            for callback in tuple(self._callbacks):
                callback(event)
        elif (reply := self._replies.get(message.get("n", 0))) is not None and not reply.done():
            if "error" in message:
                reply.set_exception(read_error(message["error"]))
            else:
                reply.set_result(message.get("result"))

    def _end(self, code: int) -> None:
        if not self._ended.done():
            self._ended.set_result(code)
        self._is_asleep = False
        self._connected.set()
        self._fail_replies()
        self._close()
        callbacks, self._end_callbacks = self._end_callbacks, []
        for callback in callbacks:
            callback(self._explain_end())

    def _fail_replies(self) -> None:
        for reply in self._replies.values():
            if not reply.done():
                reply.set_exception(_FleetGone())

    def _close(self) -> None:
        self._listener.close()
        self._close_stream()

    def _close_stream(self) -> None:
        if self._stream is not None:
            self._stream[1].transport.abort()
