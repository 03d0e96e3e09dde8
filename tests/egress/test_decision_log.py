"""Every decision is recorded, and no number of them fills the disk."""

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from freehold.egress.decision_log import EVENT_BURST, REPEAT_WINDOW, DecisionLog, DecisionRecord
from freehold.errors import FreeholdError
from freehold.timeline import Timeline


@pytest.fixture
def timeline(tmp_path: Path) -> Iterator[Timeline]:
    with Timeline(tmp_path / "timeline.db") as opened:
        yield opened


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def entry(target: str = "example.org:443") -> DecisionRecord:
    return DecisionRecord("connection_refused", "agent:test", target, "no rule allows it")


async def test_the_first_is_written_at_once_and_says_who_what_and_why(timeline: Timeline) -> None:
    await DecisionLog(timeline).record(entry())
    (event,) = timeline.read()
    assert (event.kind, event.who) == ("egress.connection_refused", "agent:test")
    assert event.data == {"target": "example.org:443", "reason": "no rule allows it"}


async def test_the_same_again_is_counted(timeline: Timeline) -> None:
    clock = Clock()
    journal = DecisionLog(timeline, clock)
    for _ in range(1000):
        await journal.record(entry())
    await journal.flush()
    assert len(timeline.read()) == 1
    clock.now += REPEAT_WINDOW
    await journal.flush()
    first, second = timeline.read()
    assert "repeated" not in first.data
    assert second.data["repeated"] == 999
    await journal.flush(everything=True)
    assert len(timeline.read()) == 2


async def test_a_flood_of_different_ones_is_summed(timeline: Timeline) -> None:
    clock = Clock()
    journal = DecisionLog(timeline, clock)
    for number in range(5000):
        await journal.record(entry(f"x{number}.example:443"))
    await journal.flush()
    events = timeline.read(limit=10_000)
    assert len(events) == EVENT_BURST + 1
    assert events[-1].kind == "egress.decisions_summed"
    assert events[-1].data["connection_refused"] == 5000 - EVENT_BURST
    examples = events[-1].data["examples"]
    assert isinstance(examples, list)
    assert len(examples) == 20
    assert len(journal.recent) == 100


async def test_nothing_counted_is_lost_at_the_end(timeline: Timeline) -> None:
    journal = DecisionLog(timeline, Clock())
    for _ in range(3):
        await journal.record(entry())
    await journal.flush(everything=True)
    assert [event.data.get("repeated") for event in timeline.read()] == [None, 2]


async def test_what_was_not_written_is_not_counted_as_known(
    timeline: Timeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = DecisionLog(timeline, Clock())
    with monkeypatch.context() as patch:
        patch.setattr(timeline, "transaction", Mock(side_effect=FreeholdError("timeline.disk-full", "full")))
        for _ in range(2):
            with pytest.raises(FreeholdError):
                await journal.record(entry())
    await journal.record(entry())
    assert len(timeline.read()) == 1
