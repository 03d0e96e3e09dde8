"""Memory, processor time and file descriptors of this process, with the metric names of Prometheus clients."""

import os
import resource
import time
from pathlib import Path

from freehold.observe.metrics import MetricsRegistry

_PAGE = resource.getpagesize()


def add_process_metrics(registry: MetricsRegistry) -> None:
    """Add the metrics of this process. Idempotent."""
    started = _started_at()
    registry.gauge("process_resident_memory_bytes", "Memory in use by this process.", read=_resident)
    registry.gauge("process_virtual_memory_bytes", "Address space of this process.", read=_virtual)
    registry.gauge("process_open_fds", "Open file descriptors.", read=_open_fds)
    registry.gauge("process_max_fds", "Limit of open file descriptors.", read=_fd_limit)
    registry.gauge("process_start_time_seconds", "When this process started, since 1970.", read=lambda: started)
    registry.counter("process_cpu_seconds_total", "Processor time used, user and system.", read=time.process_time)


def _statm() -> list[int]:
    return [int(field) for field in Path("/proc/self/statm").read_text().split()]


def _resident() -> float:
    return _statm()[1] * _PAGE


def _virtual() -> float:
    return _statm()[0] * _PAGE


def _open_fds() -> float:
    return sum(1 for _ in Path("/proc/self/fd").iterdir()) - 1  # one of them is this listing


def _fd_limit() -> float:
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return float("inf") if soft == resource.RLIM_INFINITY else soft


def _started_at() -> float:
    stat = Path("/proc/self/stat").read_text()
    ticks = int(stat[stat.rindex(")") + 2 :].split()[19])
    up = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - up + ticks / os.sysconf("SC_CLK_TCK")
