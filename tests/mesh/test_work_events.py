"""Events that a neighbour tells of work: whatever it sends, they stay in order and bounded."""

from typing import Any

from freehold.mesh.work_events import (
    MAX_ANSWER,
    MAX_EVENT,
    MAX_EVENTS,
    MAX_JOBS,
    MAX_LENGTH,
    WorkEvents,
    bound_events,
)
from freehold.slots.orchestrator.contract import RunEvent


def event(seq: object, text: str = "x") -> dict[str, Any]:
    return {"seq": seq, "at": "t", "kind": "message", "data": {"text": text}}


def test_only_what_is_new_and_in_order_is_kept() -> None:
    events = WorkEvents()
    assert events.take("job", {"events": [event(1), event(3), event(2), event(3), event("4"), "x", event(2**60)]})
    assert [one["seq"] for one in events.list("job")] == [1, 3]
    assert not events.take("job", {"events": [event(3)]})
    assert not events.take("job", {"events": {"seq": 9}})
    assert (events.last("job"), events.last("other"), "other" in events) == (3, 0, False)


def nested(depth: int) -> object:
    found: object = "x"
    for place in range(depth):
        found = [found] if place % 2 else {"in": found}
    return found


def test_what_is_nested_too_deeply_to_be_passed_on_is_left_out() -> None:
    """Who reads it would fail, again and again."""
    events = WorkEvents()
    kinds: list[object] = [nested(900), ["message"], None, "message"]
    for seq, kind in enumerate(kinds, 1):
        one = {"seq": seq, "at": nested(900), "kind": kind, "data": {"deep": nested(900 if seq < 4 else 10)}}
        assert events.take("job", {"events": [one]})
    found = events.list("job")
    assert [one["data"] for one in found] == [{}, {}, {}, {"deep": nested(10)}]
    assert [(one["at"], one["kind"]) for one in found] == [("", ""), ("", ""), ("", ""), ("", "message")]


def test_one_job_cannot_fill_the_memory() -> None:
    events = WorkEvents()
    events.take("many", {"events": [event(seq) for seq in range(1, 3 * MAX_EVENTS)]})
    assert [len(events.list("many")), events.last("many")] == [MAX_EVENTS, 3 * MAX_EVENTS - 1]
    for seq in range(1, 200):
        events.take("long", {"events": [event(seq, "x" * (MAX_EVENT - 100))]})
    assert sum(len(one["data"]["text"]) for one in events.list("long")) <= MAX_LENGTH
    assert events.last("long") == 199
    events.take("long", {"events": [event(200, "x" * MAX_EVENT)]})
    assert events.list("long")[-1]["data"] == {}


def test_many_jobs_cannot_fill_the_memory_and_one_that_goes_on_is_kept() -> None:
    events = WorkEvents()
    for number in range(3 * MAX_JOBS):
        events.take("goes-on", {"events": [event(number + 1)]})
        events.take(f"job-{number}", {"events": [event(1)]})
    assert events.last("goes-on") == 3 * MAX_JOBS
    assert "job-0" not in events
    assert sum(f"job-{number}" in events for number in range(3 * MAX_JOBS)) == MAX_JOBS - 1


def test_an_answer_has_no_more_than_the_other_side_reads() -> None:
    told = [RunEvent(seq, "t", "message", {"text": "x" * 60_000}) for seq in range(1, 100)]
    found = bound_events(told)
    assert [one.seq for one in found] == list(range(1, len(found) + 1))
    assert len(found) == -(-MAX_ANSWER // 60_011)
    large = [RunEvent(1, "t", "message", {"text": "x" * MAX_EVENT}), RunEvent(2, "t", "message", {"text": "y"})]
    assert [one.data for one in bound_events(large)] == [{}, {"text": "y"}]
    assert bound_events([]) == ()
