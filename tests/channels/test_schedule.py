"""When a message is due: after what is collected, and not in the quiet hours of the owner's clock."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.channels.quiet_hours import ChannelPreferences, find_due
from freehold.errors import FreeholdError

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = ChannelPreferences(quiet_from="22:00", quiet_until="07:00", zone="Europe/Berlin")
EARLY = ChannelPreferences(quiet_from="22:00", quiet_until="02:30", zone="Europe/Berlin")
NOON = ChannelPreferences(quiet_from="12:00", quiet_until="14:00", zone="Europe/Berlin")


def berlin(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp()


@pytest.mark.parametrize(
    ("preferences", "now", "due"),
    [
        (NIGHT, "2026-03-01 21:59:00", "2026-03-01 21:59:00"),
        (NIGHT, "2026-03-01 22:00:00", "2026-03-02 07:00:00"),
        (NIGHT, "2026-03-02 06:59:59", "2026-03-02 07:00:00"),
        (NIGHT, "2026-03-02 07:00:00", "2026-03-02 07:00:00"),
        (NOON, "2026-03-02 13:00:00", "2026-03-02 14:00:00"),
        (NOON, "2026-03-02 11:00:00", "2026-03-02 11:00:00"),
        # The nights in which the clock is set forward and back.
        (NIGHT, "2026-03-28 23:00:00", "2026-03-29 07:00:00"),
        (NIGHT, "2026-10-24 23:00:00", "2026-10-25 07:00:00"),
        (EARLY, "2026-03-29 01:00:00", "2026-03-29 03:30:00"),
    ],
)
def test_quiet_hours_are_those_of_the_clock_on_the_wall(preferences: ChannelPreferences, now: str, due: str) -> None:
    assert find_due(preferences, berlin(now), 0) == berlin(due)


def test_quiet_hours_end_again_when_their_last_hour_comes_twice() -> None:
    """02:00 comes twice in that night: it is quiet until 02:30 in both hours."""
    first, second = berlin("2026-10-25 02:15:00"), berlin("2026-10-25 02:15:00") + 3600
    assert find_due(EARLY, first, 0) == first + 900
    assert find_due(EARLY, second, 0) == second + 900
    assert find_due(EARLY, second + 900, 0) == second + 900


def test_what_is_collected_into_the_quiet_hours_waits_for_their_end() -> None:
    assert find_due(NIGHT, berlin("2026-03-01 21:59:50"), 20) == berlin("2026-03-02 07:00:00")


@given(st.integers(1_700_000_000, 1_900_000_000), st.integers(0, 86_400), st.times(), st.times())
def test_a_message_is_never_due_before_it_is_made_nor_later_than_a_day_after(
    now: int, delay: int, begin: object, end: object
) -> None:
    preferences = ChannelPreferences(quiet_from=f"{begin:%H:%M}", quiet_until=f"{end:%H:%M}", zone="Europe/Berlin")
    due = find_due(preferences, now, delay)
    assert now + delay <= due <= now + delay + 25 * 3600 + 1
    assert find_due(preferences, due, 0) == due


@pytest.mark.parametrize(
    "wrong",
    [
        ChannelPreferences(quiet_from="22:00"),
        ChannelPreferences(quiet_from="25:00", quiet_until="07:00"),
        ChannelPreferences(zone="Europe/Nowhere"),
        ChannelPreferences(zone="../../etc/passwd"),
        ChannelPreferences(batch=-1),
    ],
)
def test_preferences_that_make_no_sense_are_refused(wrong: ChannelPreferences) -> None:
    with pytest.raises(FreeholdError, match=r"channels\.bad-value"):
        wrong.check()
