"""Every decision is counted in the metrics, also the repeated ones that the timeline sums up."""

from pathlib import Path

from freehold.egress.decision_log import DecisionLog, DecisionRecord, decisions
from freehold.timeline import Timeline


async def test_each_decision_is_counted_by_its_outcome(tmp_path: Path) -> None:
    before = decisions.value(outcome="connection_refused")
    with Timeline(tmp_path / "timeline.db") as timeline:
        journal = DecisionLog(timeline)
        for _ in range(5):
            await journal.record(DecisionRecord("connection_refused", "computer", "example.org:443", "no rule"))
        assert len(timeline.tail(10)) == 1
    assert decisions.value(outcome="connection_refused") == before + 5
