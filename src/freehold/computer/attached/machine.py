"""A computer that somebody else started. Its thread waits for it, links it and watches its disk until it is gone."""

import asyncio
import contextlib
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from freehold.computer.attached.attachment import AttachedGuest, AttachmentOrder, attach_computer
from freehold.computer.attached.seal import WALLS, describe_limits
from freehold.computer.contract.report import Isolation, LimitEvent, MachineUsage, SleepReport
from freehold.computer.contract.transport import Transport
from freehold.computer.walls.disk_guard import DiskGuard
from freehold.computer.walls.event_delivery import EventDelivery
from freehold.computer.walls.landlock import SESSIONS_APART, can_separate_sessions
from freehold.errors import FreeholdError

MAX_LAST_WORDS = 4096
MAX_STDERR = 64 * 1024
END_TIMEOUT = 10.0
ENDED, LOST = 0, 128 + signal.SIGKILL


@dataclass(frozen=True)
class AttachedProcesses:
    """No process of the computer is visible here. When its folders grow beyond their limit, the whole computer ends."""

    uid: int
    end: Callable[[], None]

    def list_pids(self) -> list[int]:
        return []

    def hold_writes(self) -> None:
        return

    def release_writes(self) -> None:
        return

    def kill_all_but_guest(self) -> int:
        self.end()
        return 0


class AttachedMachine:
    """Created by `AttachedBackend.start`. `Machine` is its contract. Its end is the end of its container."""

    def __init__(self, order: AttachmentOrder, transport: Transport, release: Callable[[], None]) -> None:
        self._order = order
        self._transport = transport
        self._release = release
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[AttachedGuest] = self._loop.create_future()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._events = EventDelivery(self._loop)
        self._cancelled = threading.Event()
        self._was_asked = False
        self._last_words = b""
        spec = order.spec
        processes = AttachedProcesses(order.uid, self._end_at_once)
        self._disk = DiskGuard((spec.workspace, spec.home), spec.limits, processes)
        self._thread = threading.Thread(target=self._run_thread, name="attached computer", daemon=True)

    @property
    def isolation(self) -> Isolation:
        walls = (*WALLS, SESSIONS_APART) if can_separate_sessions() else WALLS
        limits = describe_limits(self._started.result().report)
        return Isolation("attached", "1", f"uid {self._order.uid} in another container", walls, limits)

    @property
    def transport(self) -> Transport:
        return self._transport

    def last_words(self) -> str:
        return self._last_words.decode(errors="replace")

    async def begin(self) -> None:
        self._thread.start()
        try:
            await asyncio.shield(self._started)
        except asyncio.CancelledError:
            self._cancelled.set()
            await asyncio.shield(self._ended)
            if self._started.done():
                self._started.exception()  # nobody else asks for it
            raise

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    @property
    def is_asleep(self) -> bool:
        return False

    async def sleep(self) -> SleepReport:
        raise FreeholdError(
            "computer.cannot-sleep",
            "A computer of backend attached cannot sleep: it belongs to the engine that started it",
            hint="Leave computer.sleep_after out",
        )

    async def wake(self) -> None:
        return

    async def stop(self, grace: float = 5.0) -> None:
        self._was_asked = True
        if not self._ended.done() and grace > 0:
            with contextlib.suppress(TimeoutError, OSError):
                async with asyncio.timeout(grace):
                    self._started.result().control.send(b"e")
                    await self.wait()
        self._end_at_once()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_TIMEOUT):
                await self.wait()
        # A container that was paused answers nobody. It ends when it goes on.
        self._cancelled.set()
        await self.wait()

    def usage(self) -> MachineUsage:
        if self._ended.done():
            return MachineUsage()
        self._events.deliver()
        disk = self._disk.use
        return MachineUsage() if disk is None else MachineUsage(disk=disk.size, inodes=disk.inodes)

    def subscribe(self, callback: Callable[[LimitEvent], None]) -> Callable[[], None]:
        return self._events.subscribe(callback)

    def _end_at_once(self) -> None:
        """The guest ends when its control connection does, and everything inside with it. In any thread."""
        if not self._ended.done() and self._started.done():
            with contextlib.suppress(OSError):
                self._started.result().control.shutdown(socket.SHUT_WR)

    def _run_thread(self) -> None:
        status = LOST
        try:
            try:
                guest = attach_computer(self._order, self._cancelled.is_set)
            except BaseException as error:
                failure = error
                self._events.call_in_loop(
                    lambda: None if self._started.done() else self._started.set_exception(failure)
                )
                return
            try:
                self._events.call_in_loop(lambda: None if self._started.done() else self._started.set_result(guest))
                self._watch(guest)
            finally:
                guest.close()
            status = ENDED if self._was_asked else LOST
        finally:
            self._release()
            self._events.call_in_loop(lambda: None if self._ended.done() else self._ended.set_result(status))

    def _watch(self, guest: AttachedGuest) -> None:
        """Until the guest is gone, or nobody wants the computer any more."""
        received = 0
        poll = select.poll()
        poll.register(guest.control, select.POLLIN)
        poll.register(guest.errors, select.POLLIN)
        due = time.monotonic()
        while not self._cancelled.is_set():
            ready = {descriptor for descriptor, _ in poll.poll(max(0.0, due - time.monotonic()) * 1000)}
            if guest.errors in ready:
                data = os.read(guest.errors, MAX_LAST_WORDS)
                received += len(data)
                self._last_words = (self._last_words + data)[-MAX_LAST_WORDS:]
                # A guest that floods its standard error is no longer read, and blocks.
                if not data or received > MAX_STDERR:
                    poll.unregister(guest.errors)
            if guest.control.fileno() in ready and not guest.control.recv(1):
                return
            if time.monotonic() >= due:
                for event in self._disk.check(None):
                    self._events.report(event)
                due = time.monotonic() + self._disk.pause
