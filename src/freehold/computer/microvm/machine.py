"""A machine of the micro-VM backend. Each has its own thread, which boots it and watches it until it is gone."""

import asyncio
import contextlib
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable

from freehold.computer.contract.report import Isolation, LimitEvent, MachineUsage, SleepReport
from freehold.computer.contract.transport import Transport
from freehold.computer.microvm.control import ANSWER_TIMEOUT
from freehold.computer.microvm.initramfs import cache_folder
from freehold.computer.microvm.limits import VmProcesses, read_usage
from freehold.computer.microvm.saved_state import SavedState
from freehold.computer.microvm.streams import StreamRelay
from freehold.computer.microvm.thread_calls import ThreadCalls
from freehold.computer.microvm.vm import Blueprint, Vm, VmOrder, has_remote_mounts
from freehold.computer.microvm.vm_start import start_vm
from freehold.computer.walls.disk_guard import DiskGuard
from freehold.computer.walls.event_delivery import EventDelivery
from freehold.computer.walls.freezer import Freezer
from freehold.computer.walls.limit_watch import LimitEvents
from freehold.computer.walls.processes import blocks_signal
from freehold.errors import FreeholdError

MAX_LAST_WORDS = 4096
MAX_CONSOLE = 64 * 1024
READY_POLL_SECONDS = 0.02
WATCH_PAUSE = 0.5
USAGE_TIMEOUT = 1.0
SILENT_PAUSE = 10.0
KILLED = 128 + signal.SIGKILL
PAUSE_TIMEOUT = 5.0


class VmMachine:
    """Created by `MicroVm.start`. `Machine` is its contract; `pid` is QEMU's."""

    def __init__(self, order: VmOrder, transport: Transport, listener: socket.socket) -> None:
        self._order = order
        self._transport = transport
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[Vm] = self._loop.create_future()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._events = EventDelivery(self._loop)
        self._console = b""
        self._console_size = 0
        self._relay = StreamRelay(self._note_end)
        self._limit_events = LimitEvents(order.spec.limits)
        self._vm: Vm | None = None
        self._blueprint: Blueprint | None = None
        self._isolation: Isolation | None = None
        self._processes: VmProcesses | None = None
        self._disk: DiskGuard | None = None
        self._freezer: Freezer | None = None
        self._saved: SavedState | None = None
        self._report: SleepReport | None = None
        self._changing = asyncio.Lock()
        self._is_saving = False
        self._is_lost = False
        self._usage = MachineUsage()
        self._counting = threading.Lock()
        self._silent_until = 0.0
        self._exit: int | None = None
        self._calls = ThreadCalls(self._loop)
        self._thread = threading.Thread(target=self._run_thread, name="micro-VM", daemon=True)

    @property
    def pid(self) -> int | None:
        return None if self._vm is None else self._vm.qemu.pid

    @property
    def isolation(self) -> Isolation:
        if self._isolation is None:
            raise RuntimeError("the machine has not started")
        return self._isolation

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
            if self._started.done() and self._started.exception() is None:  # nobody waits for it any more
                self._started.result().streams.close()
            raise

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    # Sleep

    @property
    def is_asleep(self) -> bool:
        return self._saved is not None or (self._freezer is not None and self._freezer.is_asleep)

    async def sleep(self) -> SleepReport:
        """On disk where QEMU can; else frozen.

        Frozen too if a program inside holds a file that has no name any more, and with remote mounts.
        """
        if self._freezer is None or self._ended.done():
            raise FreeholdError("computer.ended", "The computer has ended")
        if self._can_be_saved() and not self._freezer.is_asleep:
            with contextlib.suppress(FreeholdError):
                # Once begun it is brought to an end, also if nobody waits for it any more.
                return await asyncio.shield(asyncio.ensure_future(self._write_to_disk()))
        if self._ended.done() or self._vm is None:
            raise FreeholdError("computer.ended", "The computer has ended")
        return await self._freezer.sleep()

    def _can_be_saved(self) -> bool:
        blueprint = self._blueprint
        return blueprint is not None and blueprint.hardware.tools.can_save and not has_remote_mounts(self._order.spec)

    async def wake(self) -> None:
        """A machine that cannot be loaded has ended."""
        if self._freezer is not None and self._freezer.is_asleep:
            self._freezer.wake()
            await asyncio.to_thread(self._set_clock)
        await asyncio.shield(asyncio.ensure_future(self._load_from_disk()))

    async def _write_to_disk(self) -> SleepReport:
        async with self._changing:
            if self._report is not None:
                return self._report
            vm = self._vm
            if vm is None or vm.cgroup is None:
                raise FreeholdError("computer.ended", "The computer has ended")
            before = vm.cgroup.memory()
            self._is_saving = True  # the machine will not answer
            try:
                try:
                    await self._relay.pause(PAUSE_TIMEOUT)
                except (TimeoutError, ConnectionError):
                    raise FreeholdError("computer.unresponsive", "The virtual machine does not answer") from None
                try:
                    await self._calls.call(self._save)
                except FreeholdError:
                    self._relay.resume()
                    raise
                self._relay.detach()
                self._report = SleepReport("written to disk", before, 0)
                await self._calls.call(self._put_away)
            finally:
                self._is_saving = False
            return self._report

    async def _load_from_disk(self) -> None:
        async with self._changing:
            if self._report is None:
                return
            self._report = None
            with contextlib.suppress(FreeholdError):  # it has ended: `wait` says so
                await self._calls.call(self._load)
                if self._vm is not None:
                    await self._relay.attach(self._vm.streams)

    def _set_clock(self) -> None:
        """The clock inside stood still, or jumped: it gets the time of this machine."""
        with contextlib.suppress(FreeholdError):
            if self._vm is not None:
                self._vm.control.wake()

    async def stop(self, grace: float = 5.0) -> None:
        if grace > 0:
            await self.wake()
        elif self._freezer is not None:
            self._freezer.wake()  # what is frozen may not be killable
        if not self._ended.done() and grace > 0:
            with contextlib.suppress(TimeoutError, FreeholdError):
                async with asyncio.timeout(grace):
                    await asyncio.to_thread(self._request_end, grace)
                    await self.wait()
        if not self._ended.done():
            self._kill()
            async with self._changing:  # it may just have been written to disk
                self._kill()
        await self.wait()

    def _kill(self) -> None:
        self._order.cancelled.set()
        self._calls.interrupt()
        if self._vm is not None:
            self._vm.kill()

    def _request_end(self, grace: float) -> None:
        """The kernel drops a signal that pid 1 is not prepared for: wait until the guest is."""
        vm = self._vm
        if vm is None:
            return
        deadline = time.monotonic() + grace
        while time.monotonic() < deadline and not _is_ready_for_end(vm):
            time.sleep(READY_POLL_SECONDS)
        vm.control.ask("stop", signal=int(signal.SIGTERM))

    # Usage and events

    def usage(self) -> MachineUsage:
        if self._ended.done() or not self._started.done():
            return MachineUsage()
        # Called in the loop: a machine that does not answer must not hold it up again and again.
        is_silent = self.is_asleep or self._is_saving or time.monotonic() < self._silent_until
        if not is_silent and not self._sample(USAGE_TIMEOUT):
            self._silent_until = time.monotonic() + SILENT_PAUSE
        self._events.deliver()
        return self._usage

    def subscribe(self, callback: Callable[[LimitEvent], None]) -> Callable[[], None]:
        return self._events.subscribe(callback)

    def _sample(self, timeout: float) -> bool:
        """Read the counters of the machine's kernel. False if it does not answer."""
        vm = self._vm
        disk = None if self._disk is None else self._disk.use
        with contextlib.suppress(FreeholdError):
            if vm is None:
                return False
            found = read_usage(vm.control, disk, timeout)
            # A kill that one thread has counted must be reported before the other asks.
            with self._counting:
                self._usage = found
                for event in self._limit_events.find(found):
                    self._events.report(event)
            return True
        return False

    def _note_end(self, status: int) -> None:
        """The guest has ended, says the machine. It has nothing more to do."""
        self._exit = status
        if self._vm is not None:
            self._vm.qemu.kill()

    def _finish(self, status: int) -> None:
        self._relay.close()
        self._listener.close()
        if not self._ended.done():
            self._ended.set_result(status)

    # In the thread

    def _run_thread(self) -> None:
        status = KILLED
        try:
            with contextlib.ExitStack() as stack:
                try:
                    vm, self._blueprint = start_vm(self._order, stack)
                except BaseException as error:
                    failure = error
                    self._events.call_in_loop(
                        lambda: None if self._started.done() else self._started.set_exception(failure)
                    )
                    return
                try:
                    self._isolation = self._blueprint.describe_isolation(vm.walls)
                    self._adopt(vm)
                    self._events.call_in_loop(lambda: None if self._started.done() else self._started.set_result(vm))
                    while not self._order.cancelled.is_set() and not self._is_lost:
                        self._watch()
                    status = KILLED if self._exit is None else self._exit
                finally:
                    self._put_away()
                    self._forget_saved()
        finally:
            self._calls.close()
            self._events.call_in_loop(lambda: self._finish(status))

    def _adopt(self, vm: Vm) -> None:
        spec = self._order.spec
        if self._processes is None:
            self._processes = VmProcesses(vm.control, self._order.uid, vm.pids)
            self._disk = DiskGuard((spec.workspace, spec.home), spec.limits, self._processes)
        self._processes.control, self._processes.pids = vm.control, vm.pids
        self._freezer = Freezer(vm.cgroup, self._processes)
        self._vm = vm

    def _put_away(self) -> None:
        """End the processes of the machine."""
        vm, self._vm = self._vm, None
        if vm is not None:
            if self._freezer is not None:
                self._freezer.close()
            vm.remove()

    def _save(self) -> None:
        if self._vm is None:
            raise FreeholdError("computer.ended", "The computer has ended")
        saved = SavedState.create_unnamed(cache_folder())
        try:
            self._vm.save(saved)
        except BaseException:
            saved.close()
            raise
        self._saved = saved

    def _load(self) -> None:
        if self._blueprint is None or self._saved is None:
            return
        try:
            self._adopt(self._blueprint.load(self._saved, lambda: True, forgives=True))
        except Exception as error:
            self._console = (self._console + f"{error}\n".encode())[-MAX_LAST_WORDS:]
            self._is_lost = True
            raise
        finally:
            self._forget_saved()

    def _forget_saved(self) -> None:
        saved, self._saved = self._saved, None
        if saved is not None:
            saved.close()

    def _watch(self) -> None:
        """Until another machine must be watched, or QEMU or virtiofsd has ended: one is of no use without the other."""
        vm, freezer, disk = self._vm, self._freezer, self._disk
        poll = select.poll()
        poll.register(self._calls.ready, select.POLLIN)
        if vm is None or freezer is None or disk is None:  # written to disk
            poll.poll()
            self._calls.run()
            return
        ends = [os.pidfd_open(pid) for pid in vm.pids]
        console = -1 if vm.qemu.stdout is None else vm.qemu.stdout.fileno()
        for descriptor in (*ends, console, freezer.woken):
            poll.register(descriptor, select.POLLIN)
        due = time.monotonic() + WATCH_PAUSE
        try:
            while not self._order.cancelled.is_set() and not self._is_lost:
                pause = None if freezer.is_asleep else max(0.0, due - time.monotonic()) * 1000
                ready = {descriptor for descriptor, _ in poll.poll(pause)}
                if freezer.woken in ready:
                    os.eventfd_read(freezer.woken)
                if console in ready and not self._read_console(console):
                    poll.unregister(console)
                if ready.intersection(ends):
                    self._is_lost = True
                    return
                if self._calls.ready in ready:
                    self._calls.run()
                    if self._vm is not vm:
                        return
                if time.monotonic() >= due:
                    with freezer.lock:
                        if not freezer.is_asleep and self._saved is None:
                            self._check(disk)
                    due = time.monotonic() + min(WATCH_PAUSE, disk.pause)
        finally:
            for end in ends:
                os.close(end)

    def _read_console(self, console: int) -> bool:
        """False if there is no more to read."""
        data = os.read(console, MAX_LAST_WORDS)
        self._console_size += len(data)
        self._console = (self._console + data)[-MAX_LAST_WORDS:]
        return bool(data) and self._console_size <= MAX_CONSOLE

    def _check(self, disk: DiskGuard) -> None:
        if not self._started.done():
            return
        self._sample(ANSWER_TIMEOUT)
        with contextlib.suppress(FreeholdError):
            for event in disk.check(self._usage.cpu_seconds):
                self._events.report(event)


def _is_ready_for_end(vm: Vm) -> bool:
    return blocks_signal(str(vm.control.ask("status").get("status")), signal.SIGTERM)
