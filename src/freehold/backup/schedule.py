"""When which work is due. Plain values in, plain values out: the program asks at every tick."""

from dataclasses import dataclass
from typing import Literal

from freehold.backup.status import BackupStatus

Work = Literal["now", "verify", "rehearse", "prune"]
DAY = 86_400.0
MONTH = 30 * DAY
FIRST_RETRY = 60.0
MAX_RETRY = 1800.0


@dataclass(frozen=True)
class Attempts:
    """Failures of a kind of work in a row, and when the last one was."""

    count: int = 0
    at: float = 0.0

    def may_try(self, now: float) -> bool:
        return self.count == 0 or not 0 <= now - self.at < min(MAX_RETRY, FIRST_RETRY * 2 ** (self.count - 1))


def choose_work(
    status: BackupStatus, attempts: dict[Work, Attempts], *, changed: bool, after: float, now: float
) -> Work | None:
    """The most urgent work that is due. A clock that was set back makes work due at once, never overdue for ever."""
    due: list[Work] = []
    if status.last is None or (changed and status.pending is not None and not 0 <= now - status.pending < after):
        due.append("now")
    if status.last is not None:
        regular: tuple[tuple[Work, float | None, float], ...] = (
            ("prune", status.pruned, DAY),
            ("verify", status.verification.at if status.verification is not None else None, DAY),
            ("rehearse", status.rehearsal.at if status.rehearsal is not None else None, MONTH),
        )
        for work, last, period in regular:
            if last is None or not 0 <= now - last < period:
                due.append(work)
    return next((work for work in due if attempts.get(work, Attempts()).may_try(now)), None)
