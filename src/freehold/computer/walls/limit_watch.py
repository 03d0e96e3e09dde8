"""Watches the limits of a computer: reports those that are near or reached, and enforces those that the kernel does not."""

import os
import resource
import threading
import time
from collections.abc import Callable, Iterator, Mapping

from freehold.computer.contract.report import LimitEvent, LimitMechanism, MachineUsage
from freehold.computer.contract.spec import Limits
from freehold.computer.walls.cgroups import Cgroup
from freehold.computer.walls.disk_guard import LONG_PAUSE, SHORT_PAUSE, WARNING_SHARE, DiskGuard
from freehold.computer.walls.processes import ComputerProcesses
from freehold.computer.walls.project_quota import ProjectQuota

REPORT_INTERVAL = 10.0
"""Seconds in which the watcher reports a reached limit only once."""
MAX_EVENT_AGE = 1.0


def describe_mechanisms(cgroup: Cgroup | None, quota: ProjectQuota | None = None) -> Mapping[str, LimitMechanism]:
    """The mechanism that enforces each limit."""

    def grouped(controller: str, otherwise: LimitMechanism) -> LimitMechanism:
        if cgroup is None or controller not in cgroup.versions:
            return otherwise
        return "cgroup v2" if cgroup.versions[controller] == 2 else "cgroup v1"

    return {
        "memory": grouped("memory", "watch"),
        "processes": grouped("pids", "rlimit"),
        "cpus": grouped("cpu", "affinity"),
        "open_files": "rlimit",
        "file_size": "rlimit",
        "disk": "watch" if quota is None else "project quota",
        "inodes": "watch",
        "output": "guest",
        "cpu_time": "guest",
        "wall_time": "guest",
        "tmp": "tmpfs",
    }


def apply_rlimits(pid: int, limits: Limits, mechanisms: Mapping[str, LimitMechanism]) -> None:
    """Set the hard limits of pid 1 before it has children. All processes inherit them and cannot raise them."""
    wanted = {
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_FSIZE: limits.file_size,
        # Not 0: a host that pipes core dumps to a handler (apport, systemd-coredump) would still run it with data from
        # inside. With 1 the kernel writes no file and runs no handler.
        resource.RLIMIT_CORE: 1,
        resource.RLIMIT_MEMLOCK: 8 * 1024 * 1024,
        resource.RLIMIT_MSGQUEUE: 819_200,
        resource.RLIMIT_SIGPENDING: 4096,
        resource.RLIMIT_NICE: 0,
        resource.RLIMIT_RTPRIO: 0,
    }
    if mechanisms["processes"] == "rlimit":
        wanted[resource.RLIMIT_NPROC] = limits.processes
    if mechanisms["memory"] == "watch":
        # A single process then cannot exceed the limit between two checks of the watcher, which adds up all processes.
        wanted[resource.RLIMIT_DATA] = limits.memory
    for kind, value in wanted.items():
        _, ceiling = resource.prlimit(pid, kind)
        bound = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
        resource.prlimit(pid, kind, (bound, bound))
    if mechanisms["cpus"] == "affinity":
        usable = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(pid, usable[: max(1, round(limits.cpus))])


class LimitWatch:
    """The counters of one computer. `sample` may be called from any thread. Each event is reported once."""

    def __init__(
        self,
        limits: Limits,
        cgroup: Cgroup | None,
        processes: ComputerProcesses,
        disk: DiskGuard,
        report: Callable[[LimitEvent], None],
    ) -> None:
        self._limits = limits
        self._cgroup = cgroup
        self._processes = processes
        self._disk = disk
        self._report = report
        self._holds_memory = cgroup is None or "memory" not in cgroup.folders
        self._lock = threading.Lock()
        self._warned: set[str] = set()
        self._killed = 0
        self._refused = 0
        self._reported_at: dict[str, float] = {}
        self._held_back: dict[str, tuple[LimitEvent, float]] = {}

    @property
    def pause(self) -> float:
        return min(self._disk.pause, SHORT_PAUSE * 2 if self._holds_memory else LONG_PAUSE)

    def sample(self) -> MachineUsage:
        """Read the counters now and report events, also those that the watcher held back a moment ago.

        The caller has just seen a process die and wants to know why.
        """
        # Report with the lock held: a kill that one thread has counted must be reported before the other asks.
        with self._lock:
            usage = self._read()
            now = time.monotonic()
            kept, self._held_back = self._held_back, {}
            fresh = [event for event, when in kept.values() if now - when < MAX_EVENT_AGE]
            for event in (*fresh, *self._find_events(usage)):
                if event.kind == "reached":
                    self._reported_at[event.limit] = now
                self._report(event)
        return usage

    def check(self) -> None:
        """One round of the watcher: the counters, then the disk. The disk may take long, so `sample` never measures it."""
        with self._lock:
            usage = self._read()
            for event in self._find_events(usage):
                self._report_once(event)
        for event in self._disk.check(usage.cpu_seconds):
            self._report(event)

    def _report_once(self, event: LimitEvent) -> None:
        """Report a limit that is reached again and again once per REPORT_INTERVAL."""
        now = time.monotonic()
        if event.kind == "reached" and now - self._reported_at.get(event.limit, -REPORT_INTERVAL) < REPORT_INTERVAL:
            self._held_back[event.limit] = (event, now)
            return
        if event.kind == "reached":
            self._reported_at[event.limit] = now
        self._report(event)

    def _read(self) -> MachineUsage:
        group, disk = self._cgroup, self._disk.use
        memory = group.memory() if group else None
        count = group.process_count() if group else None
        return MachineUsage(
            memory=self._processes.measure_memory() if memory is None else memory,
            memory_peak=group.memory_peak() if group else None,
            processes=self._processes.count_threads() if count is None else count,
            cpu_seconds=group.cpu_seconds() if group else None,
            disk=disk.size if disk else None,
            inodes=disk.inodes if disk else None,
            out_of_memory=group.out_of_memory_kills() if group else self._killed,
            refused_processes=group.refused_forks() if group else None,
        )

    def _find_events(self, usage: MachineUsage) -> Iterator[LimitEvent]:
        yield from self._find_memory_events(usage.memory or 0)
        allowed = self._limits.processes
        counted = self._cgroup is not None and "pids" in self._cgroup.folders
        refused = self._cgroup.refused_forks() if self._cgroup is not None and counted else 0
        # Without a cgroup the kernel does not count refusals: reaching the limit is then the sign.
        if refused > self._refused or (not counted and (usage.processes or 0) >= allowed):
            self._refused = refused
            yield LimitEvent(
                "reached", "processes", allowed, allowed, f"{allowed} processes exist: a new one was refused"
            )
        yield from self._warn("processes", usage.processes or 0, allowed)

    def _find_memory_events(self, used: int) -> Iterator[LimitEvent]:
        allowed = self._limits.memory
        killed = self._cgroup.out_of_memory_kills() if self._cgroup else 0
        if killed > self._killed:
            self._killed = killed
            yield LimitEvent(
                "reached", "memory", allowed, allowed, f"more than {allowed} bytes were requested: a process was killed"
            )
        elif self._holds_memory and used > allowed:
            self._processes.kill_largest()
            self._killed += 1
            yield LimitEvent(
                "reached",
                "memory",
                used,
                allowed,
                f"{used} of {allowed} bytes are used: the largest process was killed",
            )
        yield from self._warn("memory", used, allowed)

    def _warn(self, limit: str, used: int, allowed: int) -> Iterator[LimitEvent]:
        share = used / allowed
        if share < WARNING_SHARE:
            self._warned.discard(limit)
        elif limit not in self._warned:
            self._warned.add(limit)
            yield LimitEvent("warning", limit, used, allowed, f"{share:.0%} of computer.limits.{limit} is used")


class LimitEvents:
    """Finds the events in the counters of a computer whose own kernel holds the limits. Each is reported once."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._killed = 0
        self._refused = 0
        self._warned: set[str] = set()

    def find(self, usage: MachineUsage) -> Iterator[LimitEvent]:
        limits = self._limits
        killed, refused = usage.out_of_memory or 0, usage.refused_processes or 0
        if killed > self._killed:
            words = f"more than {limits.memory} bytes were requested: a process was killed"
            yield LimitEvent("reached", "memory", limits.memory, limits.memory, words)
        if refused > self._refused:
            words = f"{limits.processes} processes exist: a new one was refused"
            yield LimitEvent("reached", "processes", limits.processes, limits.processes, words)
        self._killed, self._refused = max(killed, self._killed), max(refused, self._refused)
        for limit, used, allowed in (
            ("memory", usage.memory or 0, limits.memory),
            ("processes", usage.processes or 0, limits.processes),
        ):
            share = used / allowed
            if share < WARNING_SHARE:
                self._warned.discard(limit)
            elif limit not in self._warned:
                self._warned.add(limit)
                yield LimitEvent("warning", limit, used, allowed, f"{share:.0%} of computer.limits.{limit} is used")
