"""How patient the keeper is. The owner does not set these; tests do."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RestartPolicy:
    """When a program that died is started again. All waits are on the monotonic clock: the wall clock may jump."""

    first: float = 0.2
    factor: float = 2.0
    limit: float = 20.0
    # A wait is shortened at random by up to this share, so that programs that fell together do not rise together.
    jitter: float = 0.3
    # This many deaths within the window is a crash loop: said aloud, and tried only every `loop_wait`.
    loop_deaths: int = 5
    loop_window: float = 60.0
    loop_wait: float = 30.0


@dataclass(frozen=True)
class StopDeadlines:
    """How long each stage of a stop may take before its stragglers are named and the next begins."""

    refuse: float = 2.0
    drain: float = 8.0
    final_writes: float = 15.0
    kill: float = 5.0


@dataclass(frozen=True)
class LogLimits:
    file_bytes: int = 4 << 20
    files: int = 4
    line_bytes: int = 16 << 10
    # Per program; what comes faster is counted, not kept.
    bytes_per_second: int = 1 << 20
    burst_bytes: int = 4 << 20
    # Lines waiting for the disk, all programs together.
    waiting_bytes: int = 8 << 20


@dataclass(frozen=True)
class KeeperSettings:
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    stop: StopDeadlines = field(default_factory=StopDeadlines)
    logs: LogLimits = field(default_factory=LogLimits)
    # How often a starting program is asked, and one that has answered.
    starting_probe: float = 0.02
    probe: float = 2.0
    probe_patience: float = 3.0
    # A started program that has not answered by then is ended and started again.
    start_deadline: float = 30.0
    # Silence of a program that did answer: unhealthy, then lost (and restarted).
    unhealthy_after: float = 10.0
    lost_after: float = 30.0
    # `freehold up` waits this long for the seal before it says what is missing.
    ready_deadline: float = 60.0
    now: Callable[[], float] = time.time
