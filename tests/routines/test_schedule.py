"""When a routine is due: daylight saving, hours of the day, and times that have passed."""

import itertools
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.routines.conftest import BERLIN, moment, show

from freehold.routines.schedule import (
    ActiveHours,
    CronSchedule,
    IntervalSchedule,
    SingleTime,
    check_cron,
    find_next,
    list_following,
    list_passed,
    read_hours,
    read_moment,
    read_zone,
)


def times(expression: str, begin: str, count: int, zone: ZoneInfo = BERLIN) -> list[str | None]:
    found = list_following(CronSchedule(expression, zone), None, moment(begin, zone), count)
    return [show(one, zone) for one in found]


def test_a_time_that_the_clock_skips_in_spring_is_run_at_the_end_of_the_gap() -> None:
    found = times("30 2 * * *", "2026-03-28 12:00", 2)
    assert found == ["2026-03-29 03:00", "2026-03-30 02:30"]


def test_a_time_that_comes_twice_in_autumn_is_run_once() -> None:
    found = list_following(CronSchedule("30 2 * * *", BERLIN), None, moment("2026-10-24 12:00"), 2)
    assert [show(one) for one in found] == ["2026-10-25 02:30", "2026-10-26 02:30"]
    assert found[1] - found[0] == 25 * 3600


def test_every_hour_is_run_in_each_of_the_two_hours_of_autumn() -> None:
    found = list_following(CronSchedule("0 * * * *", BERLIN), None, moment("2026-10-25 00:30"), 4)
    assert [later - earlier for earlier, later in itertools.pairwise(found)] == [3600.0] * 3


def test_the_same_expression_means_another_moment_in_another_zone() -> None:
    tokyo = ZoneInfo("Asia/Tokyo")
    here, there = (CronSchedule("0 7 * * *", zone).following(moment("2026-06-01 00:00")) for zone in (BERLIN, tokyo))
    assert here is not None
    assert there is not None
    assert (show(here), show(there, tokyo)) == ("2026-06-01 07:00", "2026-06-02 07:00")


def test_hours_leave_out_the_night_and_begin_at_their_first_minute() -> None:
    hours = read_hours("08:00-22:00", BERLIN)
    schedule = IntervalSchedule(1800, moment("2026-06-01 00:00"))
    found = list_following(schedule, hours, moment("2026-06-01 21:10"), 3)
    assert [show(one) for one in found] == ["2026-06-01 21:30", "2026-06-02 08:00", "2026-06-02 08:30"]


def test_cron_runs_at_the_first_minute_of_its_hours_too() -> None:
    hours = read_hours("08:00-22:00", BERLIN)
    found = list_following(CronSchedule("0 * * * *", BERLIN), hours, moment("2026-06-01 20:30"), 3)
    assert [show(one) for one in found] == ["2026-06-01 21:00", "2026-06-02 08:00", "2026-06-02 09:00"]
    found = list_following(CronSchedule("0 3,8 * * *", BERLIN), hours, moment("2026-06-01 20:30"), 2)
    assert [show(one) for one in found] == ["2026-06-02 08:00", "2026-06-03 08:00"]


def test_hours_that_begin_in_the_gap_of_spring_begin_at_its_end() -> None:
    hours = read_hours("02:30-03:30", BERLIN)
    found = list_following(CronSchedule("0 3 * * *", BERLIN), hours, moment("2026-03-27 12:00"), 3)
    assert [show(one) for one in found] == ["2026-03-28 03:00", "2026-03-29 03:00", "2026-03-30 03:00"]
    assert hours is not None
    assert show(hours.next_begin(moment("2026-03-29 01:00"))) == "2026-03-29 03:00"


def test_hours_that_come_twice_in_autumn_are_both_hours() -> None:
    """02:00 comes twice. The hours from 02:30 on begin in the first hour, end with it, and begin again."""
    hours = read_hours("02:30-03:30", BERLIN)
    schedule = IntervalSchedule(900, moment("2026-10-25 00:00"))
    found = list_following(schedule, hours, moment("2026-10-25 00:00"), 6)
    local = ["02:30", "02:45", "02:30", "02:45", "03:00", "03:15"]
    assert [show(one) for one in found] == [f"2026-10-25 {one}" for one in local]


def test_hours_may_reach_over_midnight() -> None:
    hours = read_hours("22:00-06:00", BERLIN)
    assert hours is not None
    inside = ["2026-06-01 23:00", "2026-06-02 05:59", "2026-06-01 22:00"]
    outside = ["2026-06-01 21:59", "2026-06-02 06:00", "2026-06-02 12:00"]
    assert [hours.contains(moment(one)) for one in inside + outside] == [True] * 3 + [False] * 3


def test_what_never_falls_into_its_hours_has_no_next_time() -> None:
    hours = ActiveHours(*(read_hours("08:00-09:00", BERLIN).__dict__[key] for key in ("begin", "end", "zone")))
    assert find_next(CronSchedule("0 12 * * *", BERLIN), hours, moment("2026-06-01 00:00")) is None


def test_a_year_of_missed_minutes_is_not_counted_one_by_one() -> None:
    """Only as many steps back as are wanted are made: a machine that was off for a year starts at once."""
    schedule = CronSchedule("* * * * *", BERLIN)
    found = list_passed(schedule, None, moment("2025-06-01 12:00"), moment("2026-06-01 12:00"), 3)
    assert [show(one) for one in found] == ["2026-06-01 11:58", "2026-06-01 11:59", "2026-06-01 12:00"]


def test_a_single_time_passes_once() -> None:
    once = SingleTime(moment("2026-06-01 12:00"))
    assert once.following(moment("2026-06-01 11:59")) == once.moment
    assert once.following(once.moment) is None
    assert list_passed(once, None, once.moment, once.moment + 99, 5) == (once.moment,)


@pytest.mark.parametrize("wrong", ["", "* * * *", "61 * * * *", "* * * * * *", "0 0 31 2 *", "a b c d e"])
def test_an_expression_that_cron_would_not_run_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="cron"):
        check_cron(wrong)


@pytest.mark.parametrize("wrong", ["Mars/Olympus", "../etc/passwd", "/etc/passwd", ""])
def test_a_zone_that_does_not_exist_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="time zone"):
        read_zone(wrong)


def test_a_time_with_an_offset_of_its_own_needs_no_zone() -> None:
    assert read_moment("2026-06-01T12:00+00:00", BERLIN) == moment("2026-06-01 14:00")
    assert read_moment("2026-06-01T12:00", BERLIN) == moment("2026-06-01 12:00")


MOMENTS = st.integers(int(moment("2026-01-01 00:00")), int(moment("2028-01-01 00:00"))).map(float)
SCHEDULES = st.sampled_from(["*/7 * * * *", "30 2 * * *", "0 */3 * * *", "15 2,3 25-31 3,10 *", "0 0 1 * *"]).map(
    lambda text: CronSchedule(text, BERLIN)
) | st.integers(10, 100_000).map(lambda seconds: IntervalSchedule(seconds, moment("2026-01-01 00:07")))


@settings(max_examples=60, deadline=None)
@given(SCHEDULES, MOMENTS)
def test_the_way_back_finds_what_the_way_forward_found(schedule: CronSchedule | IntervalSchedule, begin: float) -> None:
    """No time is lost or seen twice, whichever way it is looked for: across each change of the clock."""
    forward = list_following(schedule, None, begin, 5)
    assert list_passed(schedule, None, forward[0], forward[-1], 10) == forward


@settings(max_examples=60, deadline=None)
@example(CronSchedule("0 */3 * * *", BERLIN), 1_801_879_200.0, "02:30-03:30")  # into the gap of spring
@given(SCHEDULES, MOMENTS, st.sampled_from(["08:00-22:00", "22:00-06:00", "02:30-03:30", "00:00-00:15"]))
def test_hours_leave_out_what_is_outside_and_nothing_else(
    schedule: CronSchedule | IntervalSchedule, begin: float, text: str
) -> None:
    hours = read_hours(text, BERLIN)
    assert hours is not None
    all_times = list_following(schedule, None, begin, 400)
    wanted = [one for one in all_times if hours.contains(one)]
    assert list_following(schedule, hours, begin, len(wanted)) == tuple(wanted)
