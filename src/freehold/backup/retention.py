"""Which backups are kept: the newest one, and the last of so many hours, days and weeks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True)
class BackupRetention:
    hourly: int = 24
    daily: int = 14
    weekly: int = 26


def choose_kept(snapshots: Iterable[tuple[int, float]], rule: BackupRetention) -> set[int]:
    """The numbers to keep, from pairs of number and time. Numbers give the order: clocks can jump."""
    newest_first = sorted(snapshots, reverse=True)
    kept = {number for number, _ in newest_first[:1]}
    for count, period in ((rule.hourly, _hour), (rule.daily, _day), (rule.weekly, _week)):
        kept |= _keep_last_of_each(newest_first, count, period)
    return kept


def _keep_last_of_each(
    newest_first: list[tuple[int, float]], count: int, period: Callable[[datetime], tuple[int, ...]]
) -> set[int]:
    seen: set[tuple[int, ...]] = set()
    kept = set()
    for number, at in newest_first:
        name = period(datetime.fromtimestamp(at, UTC))
        if name not in seen:
            if len(seen) == count:
                break
            seen.add(name)
            kept.add(number)
    return kept


def _hour(moment: datetime) -> tuple[int, ...]:
    return (*_day(moment), moment.hour)


def _day(moment: datetime) -> tuple[int, ...]:
    return (moment.year, moment.month, moment.day)


def _week(moment: datetime) -> tuple[int, ...]:
    return tuple(moment.isocalendar()[:2])
