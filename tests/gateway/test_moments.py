"""Moments of the API are text, whatever the time is that somebody has set."""

import math
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import BaseModel

from freehold.computer.library.file_entry import read_entry
from freehold.errors import FreeholdError
from freehold.gateway.moments import Moment, to_moment
from freehold.gateway.routes.files import describe_entry

SHARED_MEMORY = Path("/dev/shm")
"""tmpfs keeps times of 64 bits; other file systems cut them."""


class Told(BaseModel):
    at: Moment
    seen: Moment | None


@pytest.mark.parametrize("seconds", [1e12, 1e300, math.inf, 253402300800])
def test_a_time_after_the_calendar_is_its_last_one(seconds: float) -> None:
    assert to_moment(seconds) == datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize("seconds", [-1e12, -1e300, -math.inf, math.nan])
def test_a_time_before_the_calendar_is_its_first_one(seconds: float) -> None:
    assert to_moment(seconds) == datetime.min.replace(tzinfo=UTC)


def test_a_number_of_a_body_is_seconds_and_never_milliseconds() -> None:
    """pydantic alone takes a large number for milliseconds."""
    told = Told.model_validate({"at": 0.5, "seen": 30_000_000_000})
    assert told.model_dump(mode="json") == {"at": "1970-01-01T00:00:00.500000Z", "seen": "2920-08-30T05:20:00Z"}
    assert Told.model_validate({"at": "2026-11-15T09:00:00Z", "seen": None}).at == datetime(2026, 11, 15, 9, tzinfo=UTC)


def test_a_time_that_no_calendar_has_breaks_no_list(tmp_path: Path) -> None:
    """An agent gives a file any time that its file system keeps, and its guest can say any number."""
    path = SHARED_MEMORY / f"freehold-{os.getpid()}"
    path.touch()
    try:
        os.utime(path, ns=(0, 10**30 // 2**10))
        found = path.stat()
    finally:
        path.unlink()
    assert found.st_mtime_ns > 10**22
    entry = read_entry(["far", "file", 1, found.st_mtime_ns, 0o644, None])
    assert describe_entry(entry).model_dump(mode="json")["modified"] == "9999-12-31T23:59:59.999999Z"
    with pytest.raises(FreeholdError, match="malformed file entry"):
        read_entry(["far", "file", 1, 10**400, 0o644, None])
