"""When a routine is due: the times of cron, every and at, in a time zone, within the hours of the day."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from freehold.routines.section import RoutineSection

MAX_STEPS = 1000
"""Windows of hours that are looked at before a schedule counts as one without a next time."""
_HOURS = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])")


class Schedule(Protocol):
    """Times in seconds since 1970."""

    def following(self, moment: float) -> float | None:
        """The first time after a moment."""
        ...

    def preceding(self, moment: float) -> float | None:
        """The last time at or before a moment."""
        ...


@dataclass(frozen=True)
class CronSchedule:
    expression: str
    zone: ZoneInfo

    def following(self, moment: float) -> float | None:
        # A part of a second would be rounded, perhaps up to the time that is looked for.
        return self._step(math.floor(moment), reverse=False)

    def preceding(self, moment: float) -> float | None:
        return self._step(math.floor(moment) + 1, reverse=True)

    def _step(self, moment: float, *, reverse: bool) -> float | None:
        from cronsim import CronSim

        try:
            return next(CronSim(self.expression, datetime.fromtimestamp(moment, self.zone), reverse)).timestamp()
        except (StopIteration, OverflowError, ValueError):
            return None


@dataclass(frozen=True)
class IntervalSchedule:
    """Counted from `anchor`, so that a restart does not move the times."""

    seconds: int
    anchor: float

    def following(self, moment: float) -> float | None:
        return self.anchor + (math.floor((moment - self.anchor) / self.seconds) + 1) * self.seconds

    def preceding(self, moment: float) -> float | None:
        return self.anchor + math.floor((moment - self.anchor) / self.seconds) * self.seconds


@dataclass(frozen=True)
class SingleTime:
    moment: float

    def following(self, moment: float) -> float | None:
        return self.moment if self.moment > moment else None

    def preceding(self, moment: float) -> float | None:
        return self.moment if self.moment <= moment else None


@dataclass(frozen=True)
class ActiveHours:
    """A part of every day. One that ends before it begins reaches into the next day."""

    begin: time
    end: time
    zone: ZoneInfo

    def contains(self, moment: float) -> bool:
        now = datetime.fromtimestamp(moment, self.zone).time()
        if self.begin <= self.end:
            return self.begin <= now < self.end
        return now >= self.begin or now < self.end

    def next_begin(self, moment: float) -> float:
        """The next begin after a moment."""
        return self._find(moment, self.begin, forwards=True)

    def last_end(self, moment: float) -> float:
        """The last end at or before a moment."""
        return self._find(moment, self.end, forwards=False)

    def _find(self, moment: float, wanted: time, *, forwards: bool) -> float:
        day = datetime.fromtimestamp(moment, self.zone).date()
        found = sorted(
            one for step in range(-2, 3) for one in _find_moments(day + timedelta(days=step), wanted, self.zone)
        )
        if forwards:
            return next(one for one in found if one > moment)
        return next(one for one in reversed(found) if one <= moment)


def _find_moments(day: date, wanted: time, zone: ZoneInfo) -> set[float]:
    """When the clock on the wall comes to this time of a day: twice in autumn, and at the end of the gap for a time that it
    skips in spring."""
    local = datetime.combine(day, wanted)
    first, second = (local.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
    if first <= second:
        return {first, second}
    # It is skipped. The second is before the gap then, and the first behind it.
    before, behind = math.floor(second), math.ceil(first)
    while behind - before > 1:
        middle = (before + behind) // 2
        if datetime.fromtimestamp(middle, zone).replace(tzinfo=None) < local:
            before = middle
        else:
            behind = middle
    return {float(behind)}


def read_schedule(spec: "RoutineSection", zone: ZoneInfo, anchor: float) -> Schedule | None:
    """The schedule of a routine that is triggered by time; None for any other. Raises ValueError.

    `anchor` is when the routine was made: `every` counts from there.
    """
    if spec.cron is not None:
        check_cron(spec.cron)
        return CronSchedule(spec.cron, zone)
    if spec.every is not None:
        return IntervalSchedule(spec.every, anchor)
    if spec.at is not None:
        return SingleTime(read_moment(spec.at, zone))
    return None


def find_next(schedule: Schedule, hours: ActiveHours | None, moment: float) -> float | None:
    """The first time after a moment that is within the hours."""
    for _ in range(MAX_STEPS):
        found = schedule.following(moment)
        if found is None or hours is None or hours.contains(found):
            return found
        # The begin of the hours is itself a time at which it may run.
        moment = math.nextafter(hours.next_begin(found), -math.inf)
    return None


def list_passed(
    schedule: Schedule, hours: ActiveHours | None, first: float, now: float, most: int
) -> tuple[float, ...]:
    """The last times from `first` until now, the oldest first, and at most so many. The way back is short, however long
    the time was."""
    return tuple(reversed(list(_go_back(schedule, hours, first, now, most))))


def _go_back(schedule: Schedule, hours: ActiveHours | None, first: float, now: float, most: int) -> Iterator[float]:
    moment, left = now, most
    for _ in range(MAX_STEPS):
        found = schedule.preceding(moment)
        if found is None or found < first or left == 0:
            return
        if hours is None or hours.contains(found):
            left -= 1
            yield found
            moment = math.nextafter(found, -math.inf)
        else:
            moment = math.nextafter(hours.last_end(found), -math.inf)


def list_following(schedule: Schedule, hours: ActiveHours | None, moment: float, count: int) -> tuple[float, ...]:
    """The next times, for a dry run."""
    found: list[float] = []
    while len(found) < count:
        following = find_next(schedule, hours, found[-1] if found else moment)
        if following is None:
            break
        found.append(following)
    return tuple(found)


def check_cron(expression: str) -> None:
    """Raises ValueError."""
    from cronsim import CronSim, CronSimError

    if len(expression.split()) != 5:
        raise ValueError(f"{expression!r} has {len(expression.split())} fields; cron has five, such as 0 7 * * MON-FRI")
    try:
        CronSim(expression, datetime(2026, 1, 1))
    except CronSimError as error:
        raise ValueError(f"{expression!r} is not a time of cron: {error}") from error


def read_moment(text: str, zone: ZoneInfo) -> float:
    """A time such as `2027-01-01T09:00`, in the zone unless it has an offset of its own. Raises ValueError."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time such as 2027-01-01T09:00") from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=zone)).timestamp()


def read_hours(text: str | None, zone: ZoneInfo) -> ActiveHours | None:
    """Raises ValueError."""
    if text is None:
        return None
    found = _HOURS.fullmatch(text)
    if found is None or text[:5] == text[6:]:
        raise ValueError(f"{text!r} is not a part of the day such as 08:00-22:00")
    begin, end = time(int(found[1]), int(found[2])), time(int(found[3]), int(found[4]))
    return ActiveHours(begin, end, zone)


def read_zone(name: str) -> ZoneInfo:
    """Raises ValueError."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{name!r} is not a time zone such as Europe/Berlin") from None
