"""The use socket of a computer: asks its clients whether somebody uses it, and lets it sleep while nobody does."""

import asyncio
import contextlib
import math
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from freehold.computer.contract.backend import Machine
from freehold.computer.contract.report import SleepReport
from freehold.computer.library.use import MAX_LINE
from freehold.errors import FreeholdError

ANSWER_TIMEOUT = 5.0
LONGEST_PAUSE = 30.0
"""Seconds between two questions while somebody uses the computer."""
RETRY_AFTER = 300.0
"""Seconds after a sleep that failed in which no other is tried."""


@dataclass(frozen=True)
class Sleep:
    """One sleep, as it began. `since` is in seconds since 1970, `unused` how long nobody had used the computer."""

    since: float
    unused: float
    report: SleepReport


class UseConnection(asyncio.Protocol):
    """One client, as the server sees it."""

    def __init__(self, server: "UseServer") -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._inbox = b""
        self._answer: asyncio.Future[float] | None = None

    def send(self, line: str) -> None:
        if self._transport is not None:
            self._transport.write(line.encode() + b"\n")

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def ask(self) -> float:
        """Seconds for which this client has not used the computer. 0 without an answer."""
        self._answer = asyncio.get_running_loop().create_future()
        self.send("ask")
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                return await self._answer
        except TimeoutError:
            return 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(math.inf)
        self._server.remove(self)

    def data_received(self, data: bytes) -> None:
        *lines, self._inbox = (self._inbox + data).split(b"\n")
        for line in lines:
            if line == b"wake":
                self._server.request_wake()
            elif line.startswith(b"unused "):
                self._take_answer(line[7:])
        if len(self._inbox) > MAX_LINE:
            self.abort()

    def _take_answer(self, words: bytes) -> None:
        try:
            seconds = float(words)
        except ValueError:
            seconds = 0.0
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(seconds if seconds >= 0 else 0.0)


class UseServer:
    """`run` it while the machine runs. `on_sleep` and `on_wake` are told of each sleep, `on_wake` with its seconds."""

    def __init__(
        self,
        machine: Machine,
        sleep_after: float,
        on_sleep: Callable[[Sleep], None],
        on_wake: Callable[[Sleep, float], None],
    ) -> None:
        self._machine = machine
        self._sleep_after = sleep_after
        self._on_sleep = on_sleep
        self._on_wake = on_wake
        self._clients: set[UseConnection] = set()
        self._is_alone = asyncio.Event()
        self._last_change = time.monotonic()
        self._wake = asyncio.Event()
        self._is_busy = False
        """While clients are asked, and while the computer sleeps."""
        self.current: Sleep | None = None
        self.trouble: FreeholdError | None = None
        """Why the last sleep that was tried failed."""

    async def run(self, listener: socket.socket) -> None:
        """Until cancelled, or an unexpected error. The computer is awake at the end.

        `listener` is the use socket. It exists before clients can reach the computer: each of them must be asked.
        """
        server = await asyncio.get_running_loop().create_unix_server(lambda: UseConnection(self), sock=listener)
        try:
            await self._watch()
        finally:
            server.close()
            await self._machine.wake()
            self.current = None
            for client in list(self._clients):
                client.abort()
            if self._clients:
                await self._is_alone.wait()

    def add(self, client: UseConnection) -> None:
        self._clients.add(client)
        self._is_alone.clear()
        self._last_change = time.monotonic()
        if self._is_busy:
            self.request_wake()  # it is greeted with the others when the computer is awake
        else:
            client.send("awake")

    def remove(self, client: UseConnection) -> None:
        self._clients.discard(client)
        if not self._clients:
            self._is_alone.set()
        self._last_change = time.monotonic()

    def request_wake(self) -> None:
        self._wake.set()

    async def _watch(self) -> None:
        pause = self._sleep_after
        while True:
            await asyncio.sleep(pause)
            self._wake.clear()
            self._is_busy = True
            unused = await self._ask_all()
            has_failed = False
            if unused >= self._sleep_after and not self._wake.is_set():
                has_failed = not await self._sleep_until_woken(unused)
                unused = 0.0
            self._is_busy = False
            for client in self._clients:
                client.send("awake")
            pause = self._sleep_after - unused if unused else min(self._sleep_after, LONGEST_PAUSE)
            if has_failed:
                pause = RETRY_AFTER

    async def _ask_all(self) -> float:
        answers = await asyncio.gather(*(client.ask() for client in list(self._clients)))
        return max(0.0, min([time.monotonic() - self._last_change, *answers]))

    async def _sleep_until_woken(self, unused: float) -> bool:
        """Whether the machine could sleep."""
        waking = asyncio.ensure_future(self._wake.wait())
        sleeping = asyncio.ensure_future(self._fall_asleep(unused))
        began = time.monotonic()
        try:
            await asyncio.wait({waking, sleeping}, return_when=asyncio.FIRST_COMPLETED)
            if not sleeping.done() or await sleeping:  # an unexpected error is not kept until somebody comes
                await waking
            await self._machine.wake()
            has_slept = await sleeping
        finally:
            waking.cancel()
            sleeping.cancel()
            await asyncio.gather(waking, sleeping, return_exceptions=True)
        current, self.current = self.current, None
        if current is not None:
            self._on_wake(current, time.monotonic() - began)
        return has_slept

    async def _fall_asleep(self, unused: float) -> bool:
        """Whether the machine could."""
        try:
            report = await self._machine.sleep()
        except FreeholdError as error:
            self.trouble = error
            return False
        self.trouble = None
        if self._wake.is_set():
            with contextlib.suppress(FreeholdError):
                await self._machine.wake()
            return True
        self.current = Sleep(time.time(), unused, report)
        for client in self._clients:
            client.send("asleep")
        self._on_sleep(self.current)
        return True
