"""The bubblewrap backend: a computer sealed by namespaces, system-call filters and control groups of this kernel.

Each computer has a thread that starts it and stays until it is gone. The kernel ties the sandbox's life to that very
thread (PR_SET_PDEATHSIG), so that nothing outlives the keeper, not even one ended with SIGKILL.
"""

import asyncio
import contextlib
import os
import select
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from freehold.computer.backend import Isolation, LimitEvent, Usage
from freehold.computer.disk import DiskGuard
from freehold.computer.layout import check_folders, check_image, check_mounts
from freehold.computer.limits import LimitWatch
from freehold.computer.population import Population
from freehold.computer.sealing import MAX_WORDS, Order, Sealed, hears, seal
from freehold.computer.spec import ComputerSpec
from freehold.errors import FreeholdError

NOBODY_IN_PARTICULAR = 64242
LAST_WORDS = 4096
LISTENING = 0.002
"""How often a guest that was just started is looked at until it can be asked to end."""


class Bubblewrap:
    """`uid` is who a computer started by root is on the host; an ordinary user's computer is that user."""

    name = "bubblewrap"

    def __init__(self, uid: int = NOBODY_IN_PARTICULAR) -> None:
        self._uid = uid if os.geteuid() == 0 else os.geteuid()
        if self._uid == 0:
            raise FreeholdError(
                "computer.no-isolation", "A computer never runs as root", hint="Give a uid that is not 0, or none"
            )

    async def start(self, spec: ComputerSpec, listener: socket.socket, guest: Path) -> "BubblewrapMachine":
        check_folders(spec)
        check_mounts(spec)
        check_image(spec)
        machine = BubblewrapMachine(Order(spec, listener.fileno(), guest, self._uid))
        await machine.begin()
        return machine


class BubblewrapMachine:
    """Made by `Bubblewrap.start`; see `Machine` for what it promises."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[Sealed] = self._loop.create_future()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._callbacks: list[Callable[[LimitEvent], None]] = []
        self._reported: deque[LimitEvent] = deque()
        self._words = b""
        self._watch: LimitWatch | None = None
        self._abandoned = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="computer", daemon=True)

    @property
    def pid(self) -> int:
        return self._started.result().guest

    @property
    def isolation(self) -> Isolation:
        return self._started.result().isolation

    def last_words(self) -> str:
        """The end of what the sandbox and the guest wrote to stderr. Comes from inside: not to be trusted."""
        return self._words.decode(errors="replace")

    async def begin(self) -> None:
        self._thread.start()
        try:
            await asyncio.shield(self._started)
        except asyncio.CancelledError:
            self._abandoned.set()
            await asyncio.shield(self._ended)
            raise

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    async def stop(self, grace: float = 5.0) -> None:
        if not self._ended.done() and grace > 0:
            with contextlib.suppress(TimeoutError, ProcessLookupError):
                async with asyncio.timeout(grace):
                    # A guest that has only just been started would never know that it was asked.
                    while not self._ended.done() and not hears(self.pid, signal.SIGTERM):  # noqa: ASYNC110 - the kernel tells nobody
                        await asyncio.sleep(LISTENING)
                    if not self._ended.done():
                        os.kill(self.pid, signal.SIGTERM)
                    await self.wait()
        if not self._ended.done():
            self._started.result().end()
        await self.wait()

    def usage(self) -> Usage:
        if self._watch is None or self._ended.done():
            return Usage()
        usage = self._watch.sample()
        self._deliver()
        return usage

    def subscribe(self, callback: Callable[[LimitEvent], None]) -> Callable[[], None]:
        self._callbacks.append(callback)

        def unsubscribe() -> None:
            with contextlib.suppress(ValueError):
                self._callbacks.remove(callback)

        return unsubscribe

    def _deliver(self) -> None:
        """In the loop: whatever was reported so far, by the thread or by `usage`, each event once."""
        while self._reported:
            event = self._reported.popleft()
            for callback in tuple(self._callbacks):
                callback(event)

    def _report(self, event: LimitEvent) -> None:
        self._reported.append(event)
        self._tell(self._deliver)

    def _tell(self, act: Callable[[], None]) -> None:
        # A loop that closed first has nobody left to tell.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(act)

    def _keep(self) -> None:
        """The thread: seals, watches, clears away."""
        status = -1
        try:
            try:
                sealed = seal(self._order)
            except BaseException as error:
                failure = error
                self._tell(lambda: _fail(self._started, failure))
                return
            try:
                spec = self._order.spec
                population = Population(sealed.guest, self._order.uid, sealed.cgroup, spec.limits.file_size)
                disk = DiskGuard((spec.workspace, spec.home), spec.limits, population)
                self._watch = LimitWatch(spec.limits, sealed.cgroup, population, disk, self._report)
                self._tell(lambda: _settle(self._started, sealed))
                status = self._watch_until_end(sealed, self._watch)
            finally:
                sealed.clear_away()
        finally:
            self._tell(lambda: _settle(self._ended, status))

    def _watch_until_end(self, sealed: Sealed, watch: LimitWatch) -> int:
        ended = os.pidfd_open(sealed.helper.pid)
        words = -1 if sealed.helper.stderr is None else sealed.helper.stderr.fileno()
        heard = 0
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        poll.register(words, select.POLLIN)
        due = time.monotonic()
        try:
            while True:
                if self._abandoned.is_set():
                    sealed.end()
                ready = {descriptor for descriptor, _ in poll.poll(max(0.0, due - time.monotonic()) * 1000)}
                if words in ready:
                    said = os.read(words, LAST_WORDS)
                    heard += len(said)
                    self._words = (self._words + said)[-LAST_WORDS:]
                    # Whoever floods stderr is left to wait for a reader that does not come.
                    if not said or heard > MAX_WORDS:
                        poll.unregister(words)
                if ended in ready:
                    watch.sample()
                    return sealed.helper.wait()
                if time.monotonic() >= due:
                    watch.look()
                    due = time.monotonic() + watch.pause
        finally:
            os.close(ended)


T = TypeVar("T")


def _settle(future: "asyncio.Future[T]", value: T) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: "asyncio.Future[Sealed]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
