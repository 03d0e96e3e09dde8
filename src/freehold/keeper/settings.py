"""The keeper's times and limits. Not in the manifest; tests change them."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RestartPolicy:
    """When a program that crashed is started again. Times are monotonic, because the wall clock may jump."""

    first: float = 0.2
    factor: float = 2.0
    limit: float = 20.0
    # A wait is shortened at random by up to this share, so that programs that crashed together do not start together.
    jitter: float = 0.3
    # This many crashes within the window are a crash loop: it is reported, and the wait becomes `loop_wait`.
    loop_deaths: int = 5
    loop_window: float = 60.0
    loop_wait: float = 30.0


@dataclass(frozen=True)
class StopDeadlines:
    """How long each stage of a stop may take. Then the programs that are late are reported, and the next stage begins."""

    refuse: float = 2.0
    drain: float = 8.0
    final_writes: float = 15.0
    kill: float = 5.0


@dataclass(frozen=True)
class LogLimits:
    file_bytes: int = 4 << 20
    files: int = 4
    line_bytes: int = 16 << 10
    # Per program; faster output is counted and dropped.
    bytes_per_second: int = 1 << 20
    burst_bytes: int = 4 << 20
    # Lines that wait for the disk, of all programs together.
    waiting_bytes: int = 8 << 20


@dataclass(frozen=True)
class KeeperSettings:
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    stop: StopDeadlines = field(default_factory=StopDeadlines)
    logs: LogLimits = field(default_factory=LogLimits)
    # How often a starting program is probed, and one that has answered.
    starting_probe_interval: float = 0.02
    probe_interval: float = 2.0
    probe_timeout: float = 3.0
    # A program that has not answered this long after its start is killed and started again.
    start_deadline: float = 30.0
    # A program that stops answering is unhealthy after the first time, and killed and started again after the second.
    unhealthy_after: float = 10.0
    lost_after: float = 30.0
    # `freehold up` waits this long for the seal before it reports what is missing.
    ready_deadline: float = 60.0
    now: Callable[[], float] = time.time
