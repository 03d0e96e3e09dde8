"""A moment as the API has it: text in ISO 8601, made from seconds since 1970."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BeforeValidator

_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def to_moment(seconds: float) -> datetime:
    """The first or the last year of the calendar for what lies beyond: an agent sets the times of its files as it likes."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return _LAST if seconds > 0 else _FIRST


def _read_seconds(value: object) -> object:
    return to_moment(value) if isinstance(value, int | float) else value


Moment = Annotated[datetime, BeforeValidator(_read_seconds)]
"""A field of a body that is made from what the house has: seconds since 1970."""
