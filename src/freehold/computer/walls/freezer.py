"""Sleep of a computer that runs on this kernel: its control group is frozen, and its memory moved to swap if there is any."""

import asyncio
import contextlib
import ctypes
import os
import subprocess
import threading
import time
from pathlib import Path

from freehold.computer.contract.report import SleepReport
from freehold.computer.walls.cgroups import Cgroup
from freehold.computer.walls.processes import FileHolders
from freehold.errors import FreeholdError

FREEZE_TIMEOUT = 2.0
SYS_PROCESS_MADVISE = 440  # the same number on every architecture
MADV_PAGEOUT = 21
PAGEOUT_STEP = 64 * 1024 * 1024

# Waits for the end of its standard input, which the end of the keeper closes. Processes in a freezer of version 1 cannot
# be killed before they are thawed.
_THAW_WHEN_ORPHANED = 'read -r word || echo THAWED > "$1"'

_libc = ctypes.CDLL(None, use_errno=True)


class Freezer:
    """`lock` is held by whoever else freezes the group for a moment. `woken` becomes readable when the sleep has ended."""

    def __init__(self, cgroup: Cgroup | None, processes: FileHolders) -> None:
        self._cgroup = cgroup
        self._processes = processes
        self._guard: subprocess.Popen[bytes] | None = None
        self._report: SleepReport | None = None
        self._is_asleep = False
        self._sleeping = asyncio.Lock()
        self.lock = threading.Lock()
        self.woken = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    @property
    def is_asleep(self) -> bool:
        return self._is_asleep

    async def sleep(self) -> SleepReport:
        """Raises `computer.cannot-sleep` without a group that can be frozen."""
        async with self._sleeping:
            if self._is_asleep and self._report is not None:
                return self._report
            before = await asyncio.to_thread(self._freeze)
            after = await asyncio.to_thread(self._give_back_memory)
            self._report = SleepReport("frozen", before, after)
            return self._report

    def wake(self) -> None:
        """Quick, and callable from the loop while `sleep` still moves memory. Idempotent."""
        if self._is_asleep and self._cgroup is not None:
            self._is_asleep = False
            self._cgroup.freeze(False)
            self._cgroup.allow_swap(False)
            self._end_guard()
            os.eventfd_write(self.woken, 1)

    def close(self) -> None:
        """At the end of the machine."""
        self._is_asleep = False
        self._end_guard()
        os.close(self.woken)

    def _freeze(self) -> int | None:
        cgroup = self._cgroup
        if cgroup is None:
            raise _cannot_sleep("this user may not create control groups")
        memory = cgroup.memory()
        with self.lock:
            self._start_guard(cgroup)
            self._is_asleep = True  # from here on `wake` thaws
            deadline = time.monotonic() + FREEZE_TIMEOUT
            frozen = cgroup.freeze(True)
            while frozen and self._is_asleep and not cgroup.is_frozen():
                if time.monotonic() > deadline:
                    frozen = False
                time.sleep(0.0005)
        if not frozen:
            self.wake()
            raise _cannot_sleep("the kernel did not freeze every process")
        if not self._is_asleep:  # woken meanwhile: the thaw may have come before the freeze
            cgroup.freeze(False)
        return memory

    def _give_back_memory(self) -> int | None:
        """Move the memory of the processes to swap, and return what is left. Stops when the machine is woken."""
        assert self._cgroup is not None
        if _has_swap():
            self._cgroup.allow_swap(True)
            for pid in self._processes.list_pids():
                with contextlib.suppress(OSError):
                    self._page_out(pid)
            if not self._is_asleep:
                self._cgroup.allow_swap(False)
        return self._cgroup.memory()

    def _page_out(self, pid: int) -> None:
        ranges = [line.split() for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
        descriptor = os.pidfd_open(pid)
        try:
            for words in ranges:
                if len(words) > 5 and words[5].startswith("[v"):
                    continue
                start, end = (int(word, 16) for word in words[0].split("-"))
                for place in range(start, end, PAGEOUT_STEP):
                    if not self._is_asleep:
                        return
                    vector = (ctypes.c_size_t * 2)(place, min(PAGEOUT_STEP, end - place))
                    _libc.syscall(SYS_PROCESS_MADVISE, descriptor, ctypes.byref(vector), 1, MADV_PAGEOUT, 0)
        finally:
            os.close(descriptor)

    def _start_guard(self, cgroup: Cgroup) -> None:
        if cgroup.thaw_file is not None and self._guard is None:
            self._guard = subprocess.Popen(
                ["/bin/sh", "-c", _THAW_WHEN_ORPHANED, "sh", str(cgroup.thaw_file)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={},
                cwd="/",
            )

    def _end_guard(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.kill()
            guard.wait()
            if guard.stdin is not None:
                guard.stdin.close()


def _has_swap() -> bool:
    try:
        return len(Path("/proc/swaps").read_text().splitlines()) > 1
    except OSError:
        return False


def _cannot_sleep(why: str) -> FreeholdError:
    return FreeholdError(
        "computer.cannot-sleep",
        f"The computer cannot sleep: {why}",
        hint="Run Freehold as root or as a systemd service with Delegate=yes, or leave computer.sleep_after out",
        kind="unavailable",
    )
