"""A machine of the micro-VM backend. Each has its own thread, which boots it and watches it until it is gone."""

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

from freehold.computer.contract.report import Isolation, LimitEvent, MachineUsage, SleepReport
from freehold.computer.contract.transport import Transport
from freehold.computer.microvm.control import ANSWER_TIMEOUT
from freehold.computer.microvm.limits import VmProcesses, read_usage
from freehold.computer.microvm.streams import StreamRelay
from freehold.computer.microvm.vm import Vm, VmOrder, start_vm
from freehold.computer.walls.disk_guard import DiskGuard
from freehold.computer.walls.freezer import Freezer
from freehold.computer.walls.limit_watch import LimitEvents
from freehold.errors import FreeholdError

MAX_LAST_WORDS = 4096
MAX_CONSOLE = 64 * 1024
READY_POLL_SECONDS = 0.02
WATCH_PAUSE = 0.5
USAGE_TIMEOUT = 1.0
SILENT_PAUSE = 10.0
KILLED = 128 + signal.SIGKILL


class VmMachine:
    """Created by `MicroVm.start`. `Machine` is its contract; `pid` is QEMU's."""

    def __init__(self, order: VmOrder, transport: Transport, listener: socket.socket) -> None:
        self._order = order
        self._transport = transport
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[Vm] = self._loop.create_future()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._callbacks: list[Callable[[LimitEvent], None]] = []
        self._reported: deque[LimitEvent] = deque()
        self._console = b""
        self._relay = StreamRelay(self._note_end)
        self._events = LimitEvents(order.spec.limits)
        self._disk: DiskGuard | None = None
        self._freezer: Freezer | None = None
        self._usage = MachineUsage()
        self._counting = threading.Lock()
        self._silent_until = 0.0
        self._exit: int | None = None
        self._thread = threading.Thread(target=self._run_thread, name="micro-VM", daemon=True)

    @property
    def pid(self) -> int:
        return self._started.result().qemu.pid

    @property
    def isolation(self) -> Isolation:
        return self._started.result().isolation

    @property
    def transport(self) -> Transport:
        return self._transport

    def last_words(self) -> str:
        return self._console.decode(errors="replace")

    async def begin(self) -> None:
        self._thread.start()
        try:
            vm = await asyncio.shield(self._started)
            await self._relay.open(vm.streams, self._listener)
        except asyncio.CancelledError:
            self._order.cancelled.set()
            await asyncio.shield(self._ended)
            if self._started.done():
                self._started.exception()  # nobody waits for it any more
            raise

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    @property
    def is_asleep(self) -> bool:
        return self._freezer is not None and self._freezer.is_asleep

    async def sleep(self) -> SleepReport:
        if self._freezer is None or self._ended.done():
            raise FreeholdError("computer.ended", "The computer has ended")
        return await self._freezer.sleep()

    async def wake(self) -> None:
        if self._freezer is not None and self._freezer.is_asleep:
            self._freezer.wake()
            await asyncio.to_thread(self._set_clock)

    def _set_clock(self) -> None:
        """The clock inside stood still, or jumped: it gets the time of this machine."""
        with contextlib.suppress(FreeholdError):
            self._started.result().control.wake()

    async def stop(self, grace: float = 5.0) -> None:
        await self.wake()
        if not self._ended.done() and grace > 0:
            with contextlib.suppress(TimeoutError, FreeholdError):
                async with asyncio.timeout(grace):
                    await asyncio.to_thread(self._request_end, grace)
                    await self.wait()
        if not self._ended.done():
            self._started.result().kill()
        await self.wait()

    def _request_end(self, grace: float) -> None:
        """The kernel drops a signal that pid 1 is not prepared for: wait until the guest is."""
        control = self._started.result().control
        deadline = time.monotonic() + grace
        while time.monotonic() < deadline and not _blocks_sigterm(str(control.ask("status").get("status"))):
            time.sleep(READY_POLL_SECONDS)
        control.ask("stop", signal=int(signal.SIGTERM))

    def usage(self) -> MachineUsage:
        if self._ended.done() or not self._started.done():
            return MachineUsage()
        # Called in the loop: a machine that does not answer must not hold it up again and again.
        if not self.is_asleep and time.monotonic() >= self._silent_until and not self._sample(USAGE_TIMEOUT):
            self._silent_until = time.monotonic() + SILENT_PAUSE
        self._deliver_events()
        return self._usage

    def subscribe(self, callback: Callable[[LimitEvent], None]) -> Callable[[], None]:
        self._callbacks.append(callback)

        def unsubscribe() -> None:
            with contextlib.suppress(ValueError):
                self._callbacks.remove(callback)

        return unsubscribe

    def _sample(self, timeout: float) -> bool:
        """Read the counters of the machine's kernel. False if it does not answer."""
        disk = None if self._disk is None else self._disk.use
        with contextlib.suppress(FreeholdError):
            found = read_usage(self._started.result().control, disk, timeout)
            # A kill that one thread has counted must be reported before the other asks.
            with self._counting:
                self._usage = found
                for event in self._events.find(found):
                    self._report(event)
            return True
        return False

    def _deliver_events(self) -> None:
        while self._reported:
            event = self._reported.popleft()
            for callback in tuple(self._callbacks):
                callback(event)

    def _report(self, event: LimitEvent) -> None:
        self._reported.append(event)
        self._call_in_loop(self._deliver_events)

    def _call_in_loop(self, callback: Callable[[], None]) -> None:
        # RuntimeError: the loop is closed already, so there is nothing to call.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback)

    def _note_end(self, status: int) -> None:
        """The guest has ended, says the machine. It has nothing more to do."""
        self._exit = status
        self._started.result().qemu.kill()

    def _run_thread(self) -> None:
        status = KILLED
        try:
            try:
                vm = start_vm(self._order)
            except BaseException as error:
                failure = error
                self._call_in_loop(lambda: None if self._started.done() else self._started.set_exception(failure))
                return
            try:
                spec = self._order.spec
                processes = VmProcesses(
                    vm.control, self._order.uid, (vm.qemu.pid, *(share.process.pid for share in vm.shares))
                )
                self._disk = DiskGuard((spec.workspace, spec.home), spec.limits, processes)
                self._freezer = freezer = Freezer(vm.cgroup, processes)
                try:
                    self._call_in_loop(lambda: None if self._started.done() else self._started.set_result(vm))
                    self._watch_until_end(vm, self._disk, freezer)
                finally:
                    freezer.close()
                status = KILLED if self._exit is None else self._exit
            finally:
                vm.remove()
        finally:
            self._call_in_loop(lambda: self._finish(status))

    def _finish(self, status: int) -> None:
        self._relay.close()
        self._listener.close()
        if not self._ended.done():
            self._ended.set_result(status)

    def _watch_until_end(self, vm: Vm, disk: DiskGuard, freezer: Freezer) -> None:
        """Until QEMU or virtiofsd has ended: one is of no use without the other."""
        ends = [os.pidfd_open(process.pid) for process in (vm.qemu, *(share.process for share in vm.shares))]
        console = -1 if vm.qemu.stdout is None else vm.qemu.stdout.fileno()
        poll = select.poll()
        for descriptor in (*ends, console, freezer.woken):
            poll.register(descriptor, select.POLLIN)
        received, due = 0, time.monotonic() + WATCH_PAUSE
        try:
            while not self._order.cancelled.is_set():
                pause = None if freezer.is_asleep else max(0.0, due - time.monotonic()) * 1000
                ready = {descriptor for descriptor, _ in poll.poll(pause)}
                if freezer.woken in ready:
                    os.eventfd_read(freezer.woken)
                if console in ready:
                    data = os.read(console, MAX_LAST_WORDS)
                    received += len(data)
                    self._console = (self._console + data)[-MAX_LAST_WORDS:]
                    if not data or received > MAX_CONSOLE:
                        poll.unregister(console)
                if ready.intersection(ends):
                    return
                if time.monotonic() >= due:
                    with freezer.lock:
                        if not freezer.is_asleep:
                            self._check(disk)
                    due = time.monotonic() + min(WATCH_PAUSE, disk.pause)
        finally:
            for end in ends:
                os.close(end)

    def _check(self, disk: DiskGuard) -> None:
        if not self._started.done():
            return
        self._sample(ANSWER_TIMEOUT)
        with contextlib.suppress(FreeholdError):
            for event in disk.check(self._usage.cpu_seconds):
                self._report(event)


def _blocks_sigterm(status: str) -> bool:
    masks = [line.split()[1] for line in status.splitlines() if line.startswith("SigBlk:")]
    return bool(masks) and bool(int(masks[0], 16) >> (signal.SIGTERM - 1) & 1)
