"""Watches a computer against its limits: says what is near, what was reached, and holds what no kernel mechanism does."""

import os
import resource
import threading
import time
from collections.abc import Callable, Iterator, Mapping

from freehold.computer.backend import LimitEvent, Mechanism, Usage
from freehold.computer.cgroups import Cgroup
from freehold.computer.disk import CALM, NEAR, QUICK, DiskGuard
from freehold.computer.population import Population
from freehold.computer.spec import Limits

QUIET = 10.0
"""Seconds in which the watch reports memory or processes as reached only once."""
FRESH = 1.0


def describe_mechanisms(cgroup: Cgroup | None) -> Mapping[str, Mechanism]:
    """Which mechanism holds each limit."""

    def grouped(controller: str, otherwise: Mechanism) -> Mechanism:
        if cgroup is None or controller not in cgroup.versions:
            return otherwise
        return "cgroup v2" if cgroup.versions[controller] == 2 else "cgroup v1"

    return {
        "memory": grouped("memory", "watch"),
        "processes": grouped("pids", "rlimit"),
        "cpus": grouped("cpu", "affinity"),
        "open_files": "rlimit",
        "file_size": "rlimit",
        "disk": "watch",
        "inodes": "watch",
        "output": "guest",
        "cpu_time": "guest",
        "wall_time": "guest",
        "tmp": "tmpfs",
    }


def apply_rlimits(pid: int, limits: Limits, mechanisms: Mapping[str, Mechanism]) -> None:
    """Sets on pid 1, before it has children, what all of them inherit. Hard limits: nobody inside can raise them."""
    wanted = {
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_FSIZE: limits.file_size,
        # Not 0: that stops only files, and a host that pipes cores to a handler (apport, systemd-coredump) would start it on
        # data from inside. At 1 the kernel does neither.
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
        # One process can then never outrun the watch, which adds up all of them.
        wanted[resource.RLIMIT_DATA] = limits.memory
    for kind, value in wanted.items():
        _, ceiling = resource.prlimit(pid, kind)
        bound = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
        resource.prlimit(pid, kind, (bound, bound))
    if mechanisms["cpus"] == "affinity":
        usable = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(pid, usable[: max(1, round(limits.cpus))])


class LimitWatch:
    """One computer's counters. `sample` may be called from any thread; events come out once each."""

    def __init__(
        self,
        limits: Limits,
        cgroup: Cgroup | None,
        population: Population,
        disk: DiskGuard,
        report: Callable[[LimitEvent], None],
    ) -> None:
        self._limits = limits
        self._cgroup = cgroup
        self._population = population
        self._disk = disk
        self._report = report
        self._holds_memory = cgroup is None or "memory" not in cgroup.folders
        self._lock = threading.Lock()
        self._warned: set[str] = set()
        self._killed = 0
        self._refused = 0
        self._told: dict[str, float] = {}
        self._kept: dict[str, tuple[LimitEvent, float]] = {}

    @property
    def pause(self) -> float:
        return min(self._disk.pause, QUICK * 2 if self._holds_memory else CALM)

    def sample(self) -> Usage:
        """Reads the counters now and reports what they say, also what the watch kept back a moment ago:

        whoever asks has just seen something end, and wants to know why.
        """
        # Reported while the lock is held: once one of us has counted a kill, the other must find it told.
        with self._lock:
            usage = self._read()
            now = time.monotonic()
            kept, self._kept = self._kept, {}
            fresh = [event for event, when in kept.values() if now - when < FRESH]
            for event in (*fresh, *self._judge(usage)):
                if event.kind == "reached":
                    self._told[event.limit] = now
                self._report(event)
        return usage

    def look(self) -> None:
        """The watch's round: counters first, then the disk, which may take long and is never done by `sample`."""
        with self._lock:
            usage = self._read()
            for event in self._judge(usage):
                self._report_unless_told(event)
        for event in self._disk.look(usage.cpu_seconds):
            self._report(event)

    def _report_unless_told(self, event: LimitEvent) -> None:
        """A limit that is run into again and again is one story: told when it begins, and again only after a while."""
        now = time.monotonic()
        if event.kind == "reached" and now - self._told.get(event.limit, -QUIET) < QUIET:
            self._kept[event.limit] = (event, now)
            return
        if event.kind == "reached":
            self._told[event.limit] = now
        self._report(event)

    def _read(self) -> Usage:
        group, disk = self._cgroup, self._disk.use
        memory = group.memory() if group else None
        count = group.process_count() if group else None
        return Usage(
            memory=self._population.memory() if memory is None else memory,
            memory_peak=group.memory_peak() if group else None,
            processes=self._population.threads() if count is None else count,
            cpu_seconds=group.cpu_seconds() if group else None,
            disk=disk.size if disk else None,
            inodes=disk.inodes if disk else None,
            out_of_memory=group.out_of_memory_kills() if group else self._killed,
            refused_processes=group.refused_forks() if group else None,
        )

    def _judge(self, usage: Usage) -> Iterator[LimitEvent]:
        yield from self._judge_memory(usage.memory or 0)
        allowed = self._limits.processes
        counted = self._cgroup is not None and "pids" in self._cgroup.folders
        refused = self._cgroup.refused_forks() if self._cgroup is not None and counted else 0
        # Without a group nobody counts refusals: standing at the limit is then the sign of them.
        if refused > self._refused or (not counted and (usage.processes or 0) >= allowed):
            self._refused = refused
            yield LimitEvent(
                "reached", "processes", allowed, allowed, f"no more than {allowed} processes: a new one was refused"
            )
        yield from self._warn("processes", usage.processes or 0, allowed)

    def _judge_memory(self, used: int) -> Iterator[LimitEvent]:
        allowed = self._limits.memory
        killed = self._cgroup.out_of_memory_kills() if self._cgroup else 0
        if killed > self._killed:
            self._killed = killed
            yield LimitEvent(
                "reached", "memory", allowed, allowed, f"more than {allowed} bytes were asked for: a process was ended"
            )
        elif self._holds_memory and used > allowed:
            self._population.end_largest()
            self._killed += 1
            yield LimitEvent(
                "reached", "memory", used, allowed, f"{used} of {allowed} bytes are used: the largest process was ended"
            )
        yield from self._warn("memory", used, allowed)

    def _warn(self, limit: str, used: int, allowed: int) -> Iterator[LimitEvent]:
        share = used / allowed
        if share < NEAR:
            self._warned.discard(limit)
        elif limit not in self._warned:
            self._warned.add(limit)
            yield LimitEvent("warning", limit, used, allowed, f"{share:.0%} of computer.limits.{limit} is used")
