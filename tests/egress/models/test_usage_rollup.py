"""What was used long ago takes little room, and every sum stays what it was."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.egress.models.doorway import doorway

from freehold.egress.models import Ledger
from freehold.egress.models.folding import KEPT_WHOLE, fold
from freehold.egress.models.ledger import By, Row, Spell, ensure_tables
from freehold.egress.models.usage import Tokens
from freehold.timeline import Timeline

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
OLD = NOW - KEPT_WHOLE - timedelta(days=3)


def spell(at: datetime, *, session: str = "s1", model: str = "gpt-4o", cost: float | None = 0.5) -> Spell:
    text = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Spell("openai", model, session, "1", Tokens(100, 20, 10, 5), cost, False, "answered", text)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Timeline(tmp_path / "timeline.db") as timeline:
        ensure_tables(timeline)
        found = Ledger(timeline)
        for day in range(3):
            for minute in range(20):
                for session in ("s1", "s2"):
                    at = OLD + timedelta(days=day, minutes=minute)
                    found.close(None, spell(at, session=session, cost=0.5 if minute % 2 else None), 5, [])
        found.close(None, spell(NOW, model="gpt-5"), 5, [])
        yield found


def reports(ledger: Ledger) -> dict[By, list[Row]]:
    words: tuple[By, ...] = ("day", "day_model", "model", "session", "provider")
    return {by: ledger.report(by) for by in words}


def lines(ledger: Ledger) -> int:
    return int(ledger.timeline.query("SELECT count(*) FROM models_usage")[0][0])


def test_every_report_says_the_same_after_folding(ledger: Ledger) -> None:
    before, spent = reports(ledger), ledger.spent(OLD)
    assert lines(ledger) == 121
    # Two sessions on three days, each with and without a price; and today's line.
    assert fold(ledger.timeline, NOW) == 108
    assert lines(ledger) == 13
    assert reports(ledger) == before
    assert ledger.spent(OLD) == spent
    assert ledger.usage("s1").requests == 61


def test_what_is_young_keeps_its_turns_and_folding_again_changes_nothing(ledger: Ledger) -> None:
    fold(ledger.timeline, NOW)
    assert fold(ledger.timeline, NOW) == 0
    assert ledger.usage("s1", "1").requests == 1
    assert fold(ledger.timeline, NOW + timedelta(days=200)) == 0
    assert ledger.usage("s1").requests == 61


def test_a_question_under_way_is_never_folded(ledger: Ledger) -> None:
    at = spell(OLD)
    opened = Spell(at.provider, at.model, "s9", "7", at.tokens, None, True, "open", at.at)
    number = ledger.open(opened)
    fold(ledger.timeline, NOW)
    assert ledger.timeline.query("SELECT turn, outcome FROM models_usage WHERE id = ?", (number,)) == [("7", "open")]


async def test_a_gateway_folds_when_it_starts(tmp_path: Path) -> None:
    with Timeline(tmp_path / "timeline.db") as timeline:
        ensure_tables(timeline)
        for minute in range(10):
            old = datetime.now(UTC) - KEPT_WHOLE - timedelta(days=2, minutes=minute * 0.01)
            Ledger(timeline).close(None, spell(old), 5, [])
    async with doorway(tmp_path) as door:
        async for _ in door.timeline.follow(0):
            if lines(door.models.ledger) < 10:
                break
            await door.ask()
        assert (await door.models.usage_of("s1")).requests >= 10
