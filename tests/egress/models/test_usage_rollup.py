"""Old usage takes little space, and every total stays the same."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.egress.models.gateway_harness import run_gateway

from freehold.egress.models import Ledger
from freehold.egress.models.ledger import ReportGrouping, UsageRecord, UsageReportRow, ensure_tables
from freehold.egress.models.schema import SCHEMA
from freehold.egress.models.usage import TokenCounts
from freehold.egress.models.usage_rollup import ROLL_UP_AFTER, roll_up_usage
from freehold.timeline import Timeline

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
OLD = NOW - ROLL_UP_AFTER - timedelta(days=3)


def spell(at: datetime, *, session: str = "s1", model: str = "gpt-4o", cost: float | None = 0.5) -> UsageRecord:
    text = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return UsageRecord("openai", model, session, "1", TokenCounts(100, 20, 10, 5), cost, False, "answered", text)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Timeline(tmp_path / "timeline.db") as timeline:
        ensure_tables(timeline)
        found = Ledger(timeline)
        for day in range(3):
            for minute in range(20):
                for session in ("s1", "s2"):
                    at = OLD + timedelta(days=day, minutes=minute)
                    found.close(spell(at, session=session, cost=0.5 if minute % 2 else None), 5, [])
        found.close(spell(NOW, model="gpt-5"), 5, [])
        yield found


def reports(ledger: Ledger) -> dict[ReportGrouping, list[UsageReportRow]]:
    words: tuple[ReportGrouping, ...] = ("day", "day_model", "model", "session", "provider")
    return {by: ledger.report(by) for by in words}


def lines(ledger: Ledger) -> int:
    return int(ledger.timeline.query("SELECT count(*) FROM models_usage")[0][0])


def test_every_report_is_the_same_after_a_rollup(ledger: Ledger) -> None:
    before, spent = reports(ledger), ledger.spent(OLD)
    assert lines(ledger) == 121
    # Two sessions on three days, each with and without a price; and today's line.
    assert roll_up_usage(ledger.timeline, NOW) == 108
    assert lines(ledger) == 13
    assert reports(ledger) == before
    assert ledger.spent(OLD) == spent
    assert ledger.usage("s1").requests == 61


def test_reports_have_the_sums_of_the_single_requests(ledger: Ledger) -> None:
    single = ledger.timeline.query(
        "SELECT substr(at, 1, 10), sum(requests), sum(input), sum(output), sum(cost), sum(cost IS NULL)"
        " FROM models_usage GROUP BY 1 ORDER BY 1 DESC"
    )
    told = [(row.key[0], row.usage) for row in ledger.report("day")]
    assert [(day, usage.requests, usage.tokens.input, usage.tokens.output, usage.priced) for day, usage in told] == [
        row[:5] for row in single
    ]
    assert [usage.cost is None for _, usage in told] == [bool(row[5]) for row in single] == [False, True, True, True]
    assert [row.key for row in ledger.report("day", since="2026-11-01")] == [("2026-11-15",)]


@pytest.mark.parametrize("steps", range(3, len(SCHEMA)))
def test_usage_from_before_the_sums_is_in_every_report(tmp_path: Path, steps: int) -> None:
    """Step 4 of the migration made the sums by day, step 5 those by model and by session."""
    with Timeline(tmp_path / "timeline.db") as timeline:
        timeline.ensure_schema("models", *SCHEMA[:steps])
        for cost in (0.5, None):
            Ledger(timeline).close(spell(OLD, cost=cost), 5, [])
        ensure_tables(timeline)
        Ledger(timeline).close(spell(OLD), 5, [])
        for rows in (*reports(Ledger(timeline)).values(), Ledger(timeline).report("session", since="2026-01-01")):
            (row,) = rows
            assert (row.usage.requests, row.usage.tokens.input, row.usage.cost, row.usage.priced) == (3, 300, None, 1.0)


def test_sessions_since_a_day_have_the_usage_since_then(ledger: Ledger) -> None:
    day = (OLD + timedelta(days=2)).strftime("%Y-%m-%d")
    assert [(row.key, row.usage.requests) for row in ledger.report("session", since=day)] == [
        (("s1",), 21),
        (("s2",), 20),
    ]
    assert [(row.key, row.usage.requests) for row in ledger.report("session")] == [(("s1",), 61), (("s2",), 60)]


def test_a_report_has_the_newest_rows_and_no_others(ledger: Ledger) -> None:
    days = [(OLD + timedelta(days=day)).strftime("%Y-%m-%d") for day in range(3)]
    assert [row.key for row in ledger.report("day", limit=2)] == [("2026-11-15",), (days[2],)]
    assert [row.key[:1] for row in ledger.report("day_model", limit=3)] == [("2026-11-15",), (days[2],), (days[1],)]
    assert [row.key for row in ledger.report("session", limit=1)] == [("s1",)]


def test_turns_are_reported_newest_first_with_all_their_requests(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freehold.egress.models.ledger._TURN_ROWS", 2)
    for number, turn in enumerate(("2", None, "2", "3")):
        at = NOW + timedelta(minutes=number)
        ledger.close(replace(spell(at), turn=turn), 5, [])
    told = [(row.key, row.usage.requests) for row in ledger.report("turn")]
    assert told == [(("s1", "3"), 1), (("s1", "2"), 2), (("s1", None), 1), (("s1", "1"), 61), (("s2", "1"), 60)]
    assert [row.key for row in ledger.report("turn", limit=2)] == [("s1", "3"), ("s1", "2")]
    assert [row.usage.requests for row in ledger.report("turn", since="2026-11-15")] == [1, 2, 1, 1]


def test_recent_usage_keeps_its_turns_and_a_second_rollup_changes_nothing(ledger: Ledger) -> None:
    roll_up_usage(ledger.timeline, NOW)
    assert roll_up_usage(ledger.timeline, NOW) == 0
    assert ledger.usage("s1", "1").requests == 1
    assert roll_up_usage(ledger.timeline, NOW + timedelta(days=200)) == 0
    assert ledger.usage("s1").requests == 61


def test_a_running_request_is_never_rolled_up(ledger: Ledger) -> None:
    at = spell(OLD)
    opened = UsageRecord(at.provider, at.model, "s9", "7", at.tokens, None, True, "open", at.at)
    ledger.close(opened, 0, [])
    roll_up_usage(ledger.timeline, NOW)
    assert ledger.timeline.query("SELECT turn, outcome FROM models_usage WHERE session = 's9'") == [("7", "open")]


async def test_a_gateway_rolls_up_usage_when_it_starts(tmp_path: Path) -> None:
    with Timeline(tmp_path / "timeline.db") as timeline:
        ensure_tables(timeline)
        for minute in range(10):
            old = datetime.now(UTC) - ROLL_UP_AFTER - timedelta(days=2, minutes=minute * 0.01)
            Ledger(timeline).close(spell(old), 5, [])
    async with run_gateway(tmp_path) as gateway:
        async for _ in gateway.timeline.follow(0):
            if lines(gateway.models.ledger) < 10:
                break
            await gateway.ask()
        assert (await gateway.models.usage_of("s1")).requests >= 10
