"""What the owner is told through a channel, and when."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, time, timedelta
from typing import Any, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from freehold.channels.contract import TELLS, Tell
from freehold.errors import FreeholdError

MAX_BATCH = 86_400
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)


@dataclass(frozen=True)
class ChannelPreferences:
    """`quiet_from` and `quiet_until` are times of the day (`22:00`) in `zone`; both or neither.

    `batch`: seconds for which news is collected. `words`: whether messages have the words of agents, or only say that
    something happened.
    """

    tells: tuple[Tell, ...] = TELLS
    quiet_from: str | None = None
    quiet_until: str | None = None
    zone: str = "UTC"
    batch: int = 20
    words: bool = True

    def check(self) -> None:
        """Raises `channels.bad-value`."""
        for moment in (self.quiet_from, self.quiet_until):
            if moment is not None and _TIME.fullmatch(moment) is None:
                raise _wrong(f"{moment!a:.20} is not a time of the day", "Write it like 22:00")
        if (self.quiet_from is None) != (self.quiet_until is None):
            raise _wrong("Quiet hours need a begin and an end", "Give both, or neither")
        if not 0 <= self.batch <= MAX_BATCH:
            raise _wrong(f"News cannot be collected for {self.batch} s", f"From 0 to {MAX_BATCH} seconds")
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise _wrong(f"There is no time zone {self.zone!a:.60}", "Use a name such as Europe/Berlin") from None

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "tells": list(self.tells)}


def read_preferences(stored: Mapping[str, Any]) -> ChannelPreferences:
    return ChannelPreferences(**{**stored, "tells": cast("tuple[Tell, ...]", tuple(stored["tells"]))})


def find_due(preferences: ChannelPreferences, now: float, delay: float) -> float:
    """When a message of now is due: after `delay` seconds, and not in the quiet hours.

    The end of the quiet hours is a time of the clock on the wall: on the night of a change it comes earlier or later.
    """
    due = now + delay
    if preferences.quiet_from is None or preferences.quiet_until is None:
        return due
    try:
        zone = ZoneInfo(preferences.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # the zones of this machine have changed since
        return due
    begin, end = time.fromisoformat(preferences.quiet_from), time.fromisoformat(preferences.quiet_until)
    local = datetime.fromtimestamp(due, zone)
    at = local.time()
    quiet = begin <= at < end if begin <= end else at >= begin or at < end
    if not quiet:
        return due
    day = local.date() + timedelta(days=1 if at >= end else 0)
    ends = [datetime.combine(day, end, zone).replace(fold=fold).timestamp() for fold in (0, 1)]
    # A time that comes twice ends them twice. One that is skipped ends them behind the gap.
    real = [one for one in ends if one > due and datetime.fromtimestamp(one, zone).time() == end]
    return min(real, default=max(due, ends[0]))


def _wrong(message: str, hint: str) -> FreeholdError:
    return FreeholdError("channels.bad-value", message, hint=hint)
