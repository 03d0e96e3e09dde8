"""Runs of routines: what is due, what begins, what is skipped, retried and paused. The clock is set by the test."""

from pathlib import Path

import pytest
from tests.routines.conftest import SetClock, StoreBench, moment, show

from freehold.errors import FreeholdError
from freehold.routines import run_changes
from freehold.routines.routine_store import RoutineStore
from freehold.routines.run_changes import COUNTED, MAX_KEPT, RunEnd
from freehold.routines.run_store import RunStore
from freehold.routines.section import RoutineSection
from freehold.timeline import Timeline


def test_a_run_goes_from_due_to_done_and_each_step_is_an_event(stores: StoreBench) -> None:
    stores.add(cron="0 13 * * *")
    assert stores.tick() == ()
    stores.clock.set("2026-06-01 13:00")
    (run,) = stores.tick()
    assert (run.state, show(run.due), run.routine) == ("started", "2026-06-01 13:00", "r")
    stores.finish(result="fine", cost=0.25)
    found = stores.runs.get(run.id)
    assert (found.state, found.result, found.cost) == ("done", "fine", 0.25)
    assert stores.kinds() == ["routine.added", "routine.run_due", "routine.run_started", "routine.run_done"]
    assert show(stores.routines.get("r").next) == "2026-06-02 13:00"


def test_the_end_of_a_run_names_the_turn_of_its_agent(stores: StoreBench) -> None:
    """Others may use the session too: who tells of the run has to know which answer is its own."""
    stores.add(every=60, prompt="Look", command=None)
    stores.clock.forward(60)
    (run,) = stores.tick()
    stores.runs.note_turn(run.id, str(run.session), 3)
    stores.finish()
    (ended,) = stores.timeline.read(kinds=["routine.run_done"])
    assert (ended.data["session"], ended.data["turn"]) == (run.session, 3)


def test_a_run_that_is_due_when_its_routine_is_removed_is_cancelled_with_its_event(stores: StoreBench) -> None:
    stores.add(webhook=True)
    run = stores.runs.trigger("r", "webhook:1", {})
    assert run is not None
    stores.routines.remove("r", who="owner")
    assert stores.states() == ["cancelled"]
    assert stores.kinds() == ["routine.added", "routine.run_due", "routine.run_cancelled", "routine.removed"]
    assert stores.tick() == ()


def test_two_looks_at_the_same_time_make_one_run(stores: StoreBench) -> None:
    stores.add(every=60)
    stores.clock.forward(60)
    assert len(stores.tick()) == 1
    stores.finish()
    assert stores.tick() == ()
    assert stores.states() == ["done"]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("skip", []), ("one", ["2026-06-04 13:00"]), ("all", ["2026-06-03 13:00", "2026-06-04 13:00"])],
)
def test_times_that_passed_while_everything_was_off(stores: StoreBench, policy: str, expected: list[str]) -> None:
    stores.add(cron="0 13 * * *", missed=policy, missed_most=2, overlap="queue")
    stores.clock.set("2026-06-04 18:00")
    begun = []
    while found := stores.tick():
        begun += [show(run.due) for run in found]
        stores.finish()
    assert begun == expected
    assert ("routine.times_missed" in stores.kinds()) == (policy != "all" or len(expected) < 4)
    assert show(stores.routines.get("r").next) == "2026-06-05 13:00"


def test_all_times_that_passed_are_made_up_for_where_runs_are_skipped_too(stores: StoreBench) -> None:
    """They would skip each other. A time of now is skipped as always while they work."""
    stores.add(cron="0 * * * *", missed="all", missed_most=30)
    stores.clock.set("2026-06-03 18:05")
    begun = []
    for _ in range(29):
        begun += [show(run.due) for run in stores.tick()]
        stores.finish()
    assert (len(begun), begun[0]) == (29, "2026-06-02 13:00")
    stores.clock.set("2026-06-03 19:00")
    assert [show(run.due) for run in stores.tick()] == ["2026-06-03 18:00"]
    assert stores.states()[-2:] == ["started", "skipped"]


def test_a_time_that_was_missed_is_made_up_for_within_the_hours_only(stores: StoreBench) -> None:
    stores.add(cron="0 21 * * *", hours="08:00-22:00")
    stores.clock.set("2026-06-02 03:00")
    assert stores.tick() == ()
    assert stores.runs.find_next_time() == moment("2026-06-02 08:00")
    stores.clock.set("2026-06-02 08:00")
    assert [show(run.due) for run in stores.tick()] == ["2026-06-01 21:00"]


def test_a_run_is_tried_again_within_the_hours_only(stores: StoreBench) -> None:
    stores.add(cron="50 21 * * *", hours="08:00-22:00", retries=1, retry_delay=1200)
    stores.clock.set("2026-06-01 21:50")
    assert len(stores.tick()) == 1
    stores.finish("failed", error="no")
    stores.clock.set("2026-06-01 22:10")
    assert stores.tick() == ()
    stores.clock.set("2026-06-02 08:00")
    assert [run.attempt for run in stores.tick()] == [2]


def test_a_run_that_has_waited_for_another_begins_within_the_hours_only(stores: StoreBench) -> None:
    stores.add(webhook=True, hours="08:00-22:00", overlap="queue")
    stores.runs.trigger("r", "webhook:1", {})
    stores.runs.trigger("r", "webhook:2", {})
    stores.runs.trigger("r", "manual:3", {}, who="owner")
    assert [run.cause for run in stores.tick()] == ["webhook:1"]
    stores.clock.set("2026-06-01 23:00")
    stores.finish()
    assert [run.cause for run in stores.tick()] == ["manual:3"]
    stores.finish()
    assert stores.tick() == ()
    stores.clock.set("2026-06-02 08:00")
    assert [run.cause for run in stores.tick()] == ["webhook:2"]


def test_a_time_of_the_hours_that_is_some_seconds_late_is_run(stores: StoreBench) -> None:
    stores.add(cron="59 21 * * *", hours="08:00-22:00")
    stores.clock.set("2026-06-01 22:00")
    assert len(stores.tick()) == 1


def test_a_run_that_is_tried_again_does_not_replace_a_newer_one(stores: StoreBench) -> None:
    stores.add(webhook=True, overlap="replace", retries=1, retry_delay=60)
    stores.runs.trigger("r", "webhook:old", {})
    stores.tick()
    stores.finish("failed", error="no")
    stores.runs.trigger("r", "webhook:new", {})
    assert [run.cause for run in stores.tick()] == ["webhook:new"]
    stores.clock.forward(60)
    claimed = stores.runs.begin_due()
    assert (claimed.begun, claimed.replaced) == ((), ())
    assert stores.states() == ["skipped", "started"]


def test_a_time_that_is_a_few_seconds_late_is_not_missed(stores: StoreBench) -> None:
    stores.add(cron="0 13 * * *", missed="skip")
    stores.clock.set(moment("2026-06-01 13:00") + 59)
    assert len(stores.tick()) == 1


def test_overlap_skips_queues_or_replaces(stores: StoreBench) -> None:
    for name in ("skip", "queue", "replace"):
        stores.add(name, every=600, overlap=name)
    stores.clock.forward(600)
    assert len(stores.tick()) == 3
    stores.clock.forward(600)
    claimed = stores.runs.begin_due()
    assert claimed.begun == ()
    assert [run.routine for run in claimed.replaced] == ["replace"]
    assert stores.states("skip") == ["started", "skipped"]
    assert stores.states("queue") == ["started", "due"] == stores.states("replace")
    stores.finish("cancelled")
    assert sorted(run.routine for run in stores.runs.begin_due().begun) == ["queue", "replace"]


def test_a_run_that_waits_for_another_does_not_keep_the_gateway_awake(stores: StoreBench) -> None:
    stores.add(every=600, overlap="queue")
    stores.clock.forward(600)
    stores.tick()
    stores.clock.forward(600)
    stores.tick()
    assert stores.states() == ["started", "due"]
    next_time = stores.runs.find_next_time()
    assert next_time is not None
    assert next_time > stores.clock.now()


def test_a_failed_run_is_tried_again_later_each_time_and_then_has_failed(stores: StoreBench) -> None:
    stores.add(every=86400, retries=2, retry_delay=60)
    stores.clock.forward(86400)
    (run,) = stores.tick()
    stores.finish("failed", error="no", cost=1.0)
    waits = []
    for _ in range(2):
        again = stores.runs.get(run.id)
        assert (again.state, again.session) == ("due", None)
        waits.append(round(again.begin - stores.clock.now()))
        stores.clock.set(again.begin)
        assert [one.id for one in stores.tick()] == [run.id]
        stores.finish("failed", error="no", cost=1.0)
    assert waits == [60, 120]
    found = stores.runs.get(run.id)
    assert (found.state, found.attempt, found.cost) == ("failed", 3, 3.0)
    assert stores.routines.get("r").failures == 1


def test_a_run_whose_end_is_uncertain_is_not_tried_again(stores: StoreBench) -> None:
    stores.add(every=600, retries=5)
    stores.clock.forward(600)
    stores.tick()
    stores.finish("uncertain", error="Freehold was restarted")
    assert stores.states() == ["uncertain"]
    assert stores.tick() == ()


def test_a_routine_that_fails_too_often_in_a_row_is_paused_and_the_owner_is_told(stores: StoreBench) -> None:
    stores.add(every=600, pause_after=2)
    for state in ("failed", "done", "failed", "failed"):
        stores.clock.forward(600)
        assert len(stores.tick()) == 1
        stores.finish(state, error="the disk is full" if state == "failed" else None)
    routine = stores.routines.get("r")
    assert (routine.state, routine.next) == ("paused", None)
    assert "2 times in a row" in str(routine.reason)
    assert "the disk is full" in str(routine.reason)
    (paused,) = stores.timeline.read(kinds=["routine.paused"])
    assert paused.data["routine"] == "r"
    resumed = stores.routines.resume("r", who="owner")
    assert (resumed.state, resumed.failures) == ("on", 0)
    assert resumed.next is not None


def test_the_budget_of_a_day_skips_the_rest_of_the_day(stores: StoreBench) -> None:
    stores.add(every=3600, budget_day=1.0)
    for _ in range(2):
        stores.clock.forward(3600)
        stores.tick()
        stores.finish(cost=0.6)
    stores.clock.forward(3600)
    assert stores.tick() == ()
    assert "1.20 US dollars" in str(stores.runs.list_runs("r")[0].error)
    stores.clock.forward(3600)
    assert stores.tick() == ()
    (told,) = stores.timeline.read(kinds=["routine.budget_reached"])  # once a day
    assert told.data == {"routine": "r", "spent": 1.2, "of": 1.0}
    stores.clock.set("2026-06-02 00:00")
    assert len(stores.tick()) == 1
    stores.finish(cost=1.5)
    stores.clock.forward(3600)
    assert stores.tick() == ()
    assert len(stores.timeline.read(kinds=["routine.budget_reached"])) == 2


def test_nothing_begins_while_the_kill_switch_is_on(stores: StoreBench) -> None:
    stores.add(every=600)
    stores.clock.forward(600)
    assert stores.runs.begin_due(stopped="The kill switch is on").begun == ()
    assert stores.states() == ["skipped"]


def test_one_cause_makes_one_run_and_another_makes_another(stores: StoreBench) -> None:
    stores.add(webhook=True)
    assert stores.runs.trigger("r", "webhook:1", {"body": "x"}) is not None
    assert stores.runs.trigger("r", "webhook:1", {"body": "y"}) is None
    assert stores.runs.trigger("r", "webhook:2", {"body": "x"}) is not None
    assert stores.states() == ["due", "due"]


def test_half_characters_of_what_triggers_are_replaced(stores: StoreBench) -> None:
    """Such as in the name of a file that is not UTF-8. No answer of the API could have them."""
    stores.add(files=["*"])
    run = stores.runs.trigger("r", "entry:1", {"paths": ["a\udcff.txt"], "\ud800": 1})
    assert run is not None
    assert run.data == {"paths": ["a?.txt"], "?": 1}


def test_what_triggers_too_often_is_refused(stores: StoreBench) -> None:
    stores.add(webhook=True, most_per_hour=3)
    for number in range(3):
        stores.runs.trigger("r", f"webhook:{number}", {})
    with pytest.raises(FreeholdError) as caught:
        stores.runs.trigger("r", "webhook:4", {})
    assert caught.value.code == "routine.too-many"
    stores.clock.forward(3601)
    assert stores.runs.trigger("r", "webhook:5", {}) is not None


def test_what_happens_outside_of_the_hours_waits_for_them(stores: StoreBench) -> None:
    stores.add(webhook=True, hours="14:00-15:00")
    run = stores.runs.trigger("r", "webhook:1", {})
    assert run is not None
    assert show(run.begin) == "2026-06-01 14:00"
    assert stores.tick() == ()
    stores.clock.set("2026-06-01 14:00")
    assert len(stores.tick()) == 1


def test_a_paused_routine_runs_only_when_somebody_asks_for_it(stores: StoreBench) -> None:
    stores.add(webhook=True)
    stores.routines.pause("r", who="owner")
    with pytest.raises(FreeholdError):
        stores.runs.trigger("r", "webhook:1", {})
    assert stores.runs.trigger("r", "manual:1", {}, who="owner") is not None
    assert len(stores.tick()) == 1


def test_the_position_of_an_event_is_stored_with_its_run(stores: StoreBench) -> None:
    stores.add(event="a.*")
    stores.runs.trigger("r", "event:7", {}, position=("events", "7"))
    assert stores.routines.read_position("events") == "7"
    stores.routines.pause("r", who="owner")
    with pytest.raises(FreeholdError):
        stores.runs.trigger("r", "event:8", {}, position=("events", "8"))
    assert stores.routines.read_position("events") == "7"


def test_old_runs_are_removed_and_open_ones_never(stores: StoreBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_changes, "PRUNE_INTERVAL", 1)
    stores.add(webhook=True, most_per_hour=3600, overlap="queue")
    first = stores.runs.trigger("r", "webhook:first", {})
    assert first is not None
    for number in range(30):
        run = stores.runs.trigger("r", f"webhook:old-{number}", {})
        assert run is not None
        stores.runs.end(run.id, RunEnd("done"))
    stores.clock.forward(COUNTED + 1)
    for number in range(MAX_KEPT):
        run = stores.runs.trigger("r", f"webhook:{number}", {})
        assert run is not None
        stores.runs.end(run.id, RunEnd("done"))
    kept = stores.runs.list_runs("r", limit=MAX_KEPT * 2)
    assert len(kept) == MAX_KEPT + 1
    assert kept[-1].id == first.id


def test_runs_that_count_today_are_known_however_many_there_are(
    stores: StoreBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the budget of a day would begin anew after 500 runs, and a webhook could be sent again."""
    monkeypatch.setattr(run_changes, "PRUNE_INTERVAL", 1)
    monkeypatch.setattr(run_changes, "MAX_KEPT", 5)
    stores.add(webhook=True, most_per_hour=20, budget_day=1.0, overlap="queue")
    for number in range(20):
        run = stores.runs.trigger("r", f"webhook:{number}", {"body": "x"})
        assert run is not None
        stores.tick()
        stores.finish(cost=0.05, result="said")
    with pytest.raises(FreeholdError) as caught:
        stores.runs.trigger("r", "webhook:20", {})
    assert caught.value.code == "routine.too-many"
    stores.clock.forward(3601)
    assert stores.runs.trigger("r", "webhook:0", {}) is None
    assert stores.runs.trigger("r", "webhook:20", {}) is not None
    assert stores.tick() == ()
    assert "1.00 US dollars" in str(stores.runs.list_runs("r")[0].error)
    whole = [run for run in stores.runs.list_runs("r") if run.result is not None]
    assert len(whole) <= 5


def test_all_attempts_of_a_run_share_its_budget(stores: StoreBench) -> None:
    stores.add(webhook=True, budget=1.0, budget_day=3.0, retries=5, retry_delay=60)
    run = stores.runs.trigger("r", "webhook:1", {})
    assert run is not None
    stores.tick()
    routine = stores.routines.get("r")
    assert stores.runs.find_most(routine, stores.runs.get(run.id)) == 1.0
    stores.finish("failed", error="no", cost=0.75)
    stores.clock.forward(60)
    (again,) = stores.tick()
    assert (again.attempt, stores.runs.find_most(routine, again)) == (2, 0.25)
    stores.finish("failed", error="It has cost 0.25 US dollars, which is its budget", cost=0.3)
    found = stores.runs.get(run.id)
    assert (found.state, found.attempt, found.cost) == ("failed", 2, 1.05)


def test_its_own_times_do_not_keep_the_owner_from_running_it_now(stores: StoreBench) -> None:
    stores.add(every=10, most_per_hour=3)
    for _ in range(10):
        stores.clock.forward(10)
        assert len(stores.tick()) == 1
        stores.finish()
    for number in range(3):
        assert stores.runs.trigger("r", f"manual:{number}", {}, who="owner") is not None
    with pytest.raises(FreeholdError):
        stores.runs.trigger("r", "manual:3", {}, who="owner")


# Clocks


def test_a_clock_that_is_corrected_backwards_runs_no_time_of_cron_twice(stores: StoreBench) -> None:
    stores.add(cron="0 13 * * *")
    stores.clock.set("2026-06-01 13:00")
    assert len(stores.tick()) == 1
    stores.finish()
    stores.clock.set("2026-06-01 12:10")
    assert stores.tick() == ()
    assert "routine.clock_set_back" in stores.kinds()
    stores.clock.set("2026-06-01 13:00")
    assert stores.tick() == ()
    stores.clock.set("2026-06-02 13:00")
    assert len(stores.tick()) == 1


def test_a_clock_that_was_far_ahead_does_not_silence_a_routine(stores: StoreBench) -> None:
    """It stood in the year 2031 for a while. What was planned for then is planned again for now."""
    stores.add("daily", cron="0 13 * * *", missed="skip")
    stores.add("often", every=600, missed="skip")
    stores.tick()
    stores.clock.set("2031-01-01 12:55")
    stores.tick()
    stores.clock.set("2031-01-01 13:00")
    assert "daily" in [run.routine for run in stores.tick()]
    stores.finish()
    stores.clock.set("2026-06-01 12:05")
    stores.tick()
    assert show(stores.routines.get("daily").next) == "2026-06-01 13:00"
    assert show(stores.routines.get("often").next) == "2026-06-01 12:10"
    stores.clock.set("2026-06-01 12:10")
    assert [run.routine for run in stores.tick()] == ["often"]


def test_a_clock_that_was_not_set_yet_decides_nothing(stores: StoreBench) -> None:
    """A machine without a battery starts in 1970, and is told the time by the network a moment later."""
    stores.add(cron="0 13 * * *")
    stores.tick()
    stores.clock.set("1970-01-02 12:59")
    assert stores.tick() == ()
    assert show(stores.routines.get("r").next) == "2026-06-01 13:00"
    stores.clock.set("2026-06-01 12:30")
    assert stores.tick() == ()
    assert "routine.clock_set_back" not in stores.kinds()


def test_an_interval_goes_on_when_the_clock_goes_back(stores: StoreBench) -> None:
    stores.add(every=600)
    for _ in range(3):
        stores.clock.forward(600)
        stores.tick()
        stores.finish()
    stores.clock.set("2026-06-01 12:05")
    stores.tick()
    stores.clock.set("2026-06-01 12:10")
    assert len(stores.tick()) == 1


def test_a_retry_does_not_wait_for_a_time_that_was_never_meant(stores: StoreBench) -> None:
    stores.add(webhook=True, retries=1, retry_delay=3600)
    stores.clock.set("2031-01-01 12:00")
    stores.add("ticker", every=600)
    stores.runs.trigger("r", "webhook:1", {})
    stores.tick()
    stores.finish("failed", error="no")
    stores.clock.set("2026-06-01 12:00")
    stores.tick()
    begin = stores.runs.list_runs("r")[0].begin
    assert begin - stores.clock.now() <= 6 * 3600


def test_a_laptop_that_slept_over_its_time_makes_up_for_it_once(stores: StoreBench) -> None:
    stores.add(cron="*/10 * * * *", missed="one")
    stores.clock.set("2026-06-01 12:10")
    stores.tick()
    stores.finish()
    stores.clock.set("2026-06-02 08:04")
    assert [show(run.due) for run in stores.tick()] == ["2026-06-02 08:00"]
    stores.finish()
    stores.clock.set("2026-06-02 08:10")
    assert [show(run.due) for run in stores.tick()] == ["2026-06-02 08:10"]


def test_a_machine_in_another_zone_keeps_the_hour_of_the_day_unless_the_routine_names_its_zone(
    stores: StoreBench,
) -> None:
    stores.add("here", cron="0 7 * * *")
    stores.add("there", cron="0 7 * * *", zone="Europe/Berlin")
    stores.tick()
    stores.clock.move_to("America/New_York")
    stores.tick()
    assert show(stores.routines.get("here").next) == "2026-06-01 13:00"
    assert show(stores.routines.get("there").next) == "2026-06-02 07:00"
    assert "routine.zone_changed" in stores.kinds()
    stores.clock.set("2026-06-01 13:00")
    assert [run.routine for run in stores.tick()] == ["here"]


# The manifest


def test_the_manifest_adds_changes_and_removes_its_routines_and_leaves_the_others(stores: StoreBench) -> None:
    stores.add("own", every=600)
    one = RoutineSection.model_validate({"every": 600, "command": "true"})
    two = RoutineSection.model_validate({"cron": "0 7 * * *", "command": "true"})
    stores.routines.adopt_manifest({"a": one, "b": one})
    stores.routines.pause("b", who="owner")
    stores.routines.adopt_manifest({"a": two, "b": one})
    assert [(r.name, r.trigger, r.state) for r in stores.routines.list_routines()] == [
        ("a", "cron", "on"),
        ("b", "every", "paused"),
        ("own", "every", "on"),
    ]
    with pytest.raises(FreeholdError) as caught:
        stores.routines.remove("a", who="owner")
    assert caught.value.code == "routine.conflict"
    stores.routines.adopt_manifest({})
    assert [r.name for r in stores.routines.list_routines()] == ["own"]
    before = len(stores.kinds())
    stores.routines.adopt_manifest({})
    assert len(stores.kinds()) == before


def test_a_new_start_does_not_move_the_times_of_a_routine(stores: StoreBench, tmp_path: Path, clock: SetClock) -> None:
    wanted = {"a": RoutineSection.model_validate({"every": 3600, "command": "true"})}
    stores.routines.adopt_manifest(wanted)
    clock.forward(1800)
    with Timeline(tmp_path / "timeline.db") as timeline:
        again = RoutineStore(timeline, clock)
        again.prepare()
        again.adopt_manifest(wanted)
        assert show(again.get("a").next) == "2026-06-01 13:00"
        assert RunStore(again).find_next_time() == again.get("a").next
