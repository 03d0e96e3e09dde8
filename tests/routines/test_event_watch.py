"""Events of others that begin routines: whatever they contain, the next one is read too."""

from typing import Any, cast

import pytest
from tests.routines.conftest import StoreBench

from freehold.errors import FreeholdError
from freehold.routines.event_watch import EventWatch
from freehold.slots import Slot
from freehold.slots.events.cloud_event import CloudEvent

KEYS = {("mine", 1): "a", ("mine", 2): "routine:r1:1", ("mine", 3): "b", ("step", 1): "workflow:w1:2"}
"""The prompts of a session of the owner that a routine uses as well, and of one of a workflow."""


def begin(stores: StoreBench, *events: CloudEvent) -> None:
    async def wait(_seconds: float | None = None) -> None:
        raise AssertionError

    def find_key(session: str, turn: int) -> str:
        try:
            return KEYS[session, turn]
        except KeyError:
            raise FreeholdError("turn.not-found", "There is no such turn") from None

    watch = EventWatch(stores.runs, cast("Slot", None), wait, find_key)  # no event is read from it here
    for event in events:
        watch._begin(event)


def make_event(id: str, **values: Any) -> CloudEvent:
    given = {"sequence": 1, "source": "shop", "type": "org.example.order", "time": "2026-06-01T12:00:00Z"}
    return CloudEvent(**{**given, "id": id, "actor": "import", "data": {}, **values})


@pytest.mark.parametrize("time", ["yesterday", "", "2026-13-01", "\ud800"])
def test_an_event_whose_time_cannot_be_read_begins_nothing_and_stops_nothing(stores: StoreBench, time: str) -> None:
    """An import may have any text there."""
    stores.add(event="org.example.*")
    begin(stores, make_event("1", time=time), make_event("2"))
    assert [run.data["id"] for run in stores.runs.list_runs("r")] == ["2"]
    (refused,) = stores.timeline.read(kinds=["routine.trigger_refused"])
    assert (refused.data["routine"], refused.data["code"]) == ("r", "routine.malformed")


def test_an_event_of_before_the_routine_and_one_of_another_type_begin_nothing(stores: StoreBench) -> None:
    stores.add(event="org.example.order")
    old = [make_event("1", time=time) for time in ("2026-06-01T09:59:59", "2026-06-01T11:59:59+02:00")]
    others = [
        make_event("2", type=type) for type in ("org.example.orders", "org.example", "org.freehold.routine.added")
    ]
    begin(stores, *old, *others, make_event("3", time="2026-06-01T10:00:00"), make_event("3"))
    assert [run.data["id"] for run in stores.runs.list_runs("r")] == ["3"]


def test_what_freehold_tells_of_the_work_of_routines_begins_none(stores: StoreBench) -> None:
    """A routine that begins with the end of a turn has turns itself, and would begin again with each of them."""
    stores.add(event="org.freehold.*")
    stores.add("asks", prompt="x", every=60)
    stores.clock.forward(60)
    (run,) = stores.tick()
    told: list[tuple[str, dict[str, object], str]] = [
        ("turn.ended", {"session": "mine", "turn": 2}, "freehold"),
        ("turn.ended", {"session": "step", "turn": 1}, "freehold"),
        ("turn.ended", {"session": "gone", "turn": 1}, "freehold"),
        ("session.created", {"session": "new"}, "routine:asks"),
        ("session.created", {"session": "new"}, "workflow:nightly"),
        ("session.titled", {"session": run.session}, "freehold"),
        ("session.titled", {"session": "step"}, "freehold"),
        ("workflow.step_done", {"workflow": f"{run.id}-1", "step": "1"}, "freehold"),
        ("routine.added", {"routine": "r"}, "owner"),
    ]
    events = [
        make_event(str(number), type=f"org.freehold.{kind}", data=data, actor=who)
        for number, (kind, data, who) in enumerate(told)
    ]
    begin(stores, *events)
    assert stores.runs.list_runs("r") == []


def test_what_freehold_tells_of_the_owner_begins_routines(stores: StoreBench) -> None:
    stores.add(event="org.freehold.*")
    told: list[tuple[str, dict[str, object]]] = [
        ("turn.ended", {"session": "mine", "turn": 3}),
        ("session.created", {"session": "new"}),
        ("session.titled", {"session": "mine"}),
        ("workflow.failed", {"workflow": "abc", "run": None}),
        ("mesh.work_received", {"neighbour": "x", "run": "1"}),
        ("backup.failed", {}),
    ]
    for number, (kind, data) in enumerate(told):
        begin(stores, make_event(str(number), type=f"org.freehold.{kind}", data=data, actor="owner"))
    assert len(stores.runs.list_runs("r")) == len(told)
