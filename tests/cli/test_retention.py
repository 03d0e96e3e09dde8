"""`freehold retention`: the rules of the manifest, and what they have done in this home."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from freehold.cli.main import freehold_command
from freehold.egress.models import Ledger
from freehold.egress.models.ledger import UsageRecord, ensure_tables
from freehold.egress.models.usage import TokenCounts
from freehold.egress.models.usage_rollup import roll_up_usage
from freehold.home import Home, find_home
from freehold.retention.report import format_days, format_size
from freehold.timeline import Timeline
from freehold.timeline.archiver import archive_events

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = find_home(tmp_path / "home")
    found.root.mkdir()
    found.logs.mkdir()
    found.manifest.write_text('[retention]\ntimeline = "40d"\n[history]\nquota = "3GiB"\n')
    (found.logs / "keeper.jsonl").write_bytes(b"x" * 2048)
    with Timeline(found.timeline) as timeline:
        timeline.append("keeper.started", {})
    return found


def ask(home: Home) -> dict[str, dict[str, Any]]:
    result = CliRunner().invoke(freehold_command, ["retention", "--json", "--home", str(home.root)])
    assert result.exit_code == 0, result.output
    return {rule["name"]: rule for rule in json.loads(result.output)["rules"]}


def test_every_rule_says_how_long_where_and_which_setting_changes_it(home: Home) -> None:
    rules = ask(home)
    assert list(rules) == ["timeline", "usage", "history", "set-aside", "conversations", "logs"]
    assert "older than 40 days" in rules["timeline"]["kept"]
    assert "older than 92 days" in rules["usage"]["kept"]
    assert "3.2 GB" in rules["history"]["kept"]
    assert "The last 17 MB of each program" in rules["logs"]["kept"]
    assert rules["logs"]["now"] == "2.0 kB"
    assert [rule["setting"] for rule in rules.values()] == [
        "retention.timeline",
        "retention.usage",
        "history.quota",
        None,
        None,
        None,
    ]
    for rule in rules.values():
        assert all(place.startswith(str(home.root)) for place in rule["where"])


def test_the_last_archive_and_the_last_sums_are_named(home: Home) -> None:
    assert ask(home)["timeline"]["last_archived"] is None
    clock = NOW - timedelta(days=100)
    with Timeline(home.timeline, clock=lambda: clock) as timeline:
        with timeline.transaction() as tx:
            for _ in range(4 * 1024):
                tx.append("keeper.started", {})
        ensure_tables(timeline)
        asked = UsageRecord(
            "p", "m", "s", "1", TokenCounts(1, 1, 0, 0), 0.5, False, "answered", "2026-07-01T10:00:00.000Z"
        )
        Ledger(timeline).close(asked, 5, [])
        roll_up_usage(timeline, NOW)
        clock = NOW
        assert archive_events(timeline, NOW - timedelta(days=40)).count > 0
    rules = ask(home)
    assert rules["timeline"]["last_archived"] == "2026-11-16T12:00:00.000Z"
    assert rules["timeline"]["where"] == [f"{home.root}/timeline.db", f"{home.root}/timeline-archive"]
    assert rules["usage"]["now"] == "Sums up to 2026-07-01, then each request"


def test_the_words_for_people_have_the_same_facts(home: Home) -> None:
    result = CliRunner().invoke(freehold_command, ["retention", "--home", str(home.root)])
    assert result.exit_code == 0, result.output
    for rule in ask(home).values():
        assert rule["title"] in result.output
        assert rule["kept"] in result.output


def test_a_folder_without_a_freehold_is_told(tmp_path: Path) -> None:
    result = CliRunner().invoke(freehold_command, ["retention", "--home", str(tmp_path / "none")])
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("seconds", "words"), [(86_400, "1 day"), (8_035_200, "93 days"), (7200, "2 hours"), (90, "90 seconds")]
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert format_days(seconds) == words


@pytest.mark.parametrize(
    ("amount", "words"), [(0, "0 bytes"), (1536, "1.5 kB"), (3 * 10**10, "30 GB"), (5 * 10**12, "5.0 TB")]
)
def test_sizes_in_words(amount: int, words: str) -> None:
    assert format_size(amount) == words
