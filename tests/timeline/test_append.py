"""Appended events are stored in order, chained, and together with the state that they belong to."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from freehold.errors import FreeholdError
from freehold.observe.secrets import Secret
from freehold.timeline import Timeline, Transaction
from freehold.timeline.event import GENESIS, digest, encode_data


@pytest.fixture
def timeline(tmp_path: Path) -> Iterator[Timeline]:
    with Timeline(tmp_path / "timeline.db") as opened:
        yield opened


def test_an_event_comes_back_as_it_was_written(timeline: Timeline) -> None:
    data: Any = {"path": "a\udcff.txt", "list": (1, 2.5, None, True), "deep": {"ключ": "значение"}}
    written = timeline.append("history.file_changed", data, who="agent:claude")
    assert timeline.last() == written
    assert written.seq == 1
    assert written.who == "agent:claude"
    assert written.data == {"path": "a\udcff.txt", "list": [1, 2.5, None, True], "deep": {"ключ": "значение"}}
    assert written.previous == GENESIS


def test_each_event_is_chained_to_the_one_before(timeline: Timeline) -> None:
    first, second = timeline.append("keeper.started"), timeline.append("keeper.stopped", {"why": "asked"})
    assert second.previous == first.hash
    text = encode_data("keeper.stopped", {"why": "asked"})
    assert second.hash == digest(first.hash, 2, second.at, "keeper.stopped", "freehold", text)


def test_the_hash_is_plain_sha256_over_the_previous_hash_and_canonical_json(timeline: Timeline) -> None:
    """Another program can check the chain without any of our code."""
    import hashlib
    import json

    event = timeline.append("keeper.started", {"b": 1, "a": "é"}, who="owner")
    fields = {"seq": event.seq, "at": event.at, "kind": event.kind, "who": event.who, "data": event.data}
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    assert event.hash == hashlib.sha256((GENESIS + canonical).encode()).hexdigest()


@pytest.mark.parametrize(
    "kind", ["", "started", "Keeper.started", "keeper.", ".x", "keeper started", "a.b\n", "a." + "b" * 90]
)
def test_a_kind_that_is_not_room_and_past_tense_is_refused(timeline: Timeline, kind: str) -> None:
    with pytest.raises(FreeholdError) as refused:
        timeline.append(kind)
    assert refused.value.code == "timeline.bad-kind"
    assert timeline.last() is None


@pytest.mark.parametrize("who", ["", "a\nb", "x" * 300])
def test_an_invalid_who_is_refused(timeline: Timeline, who: str) -> None:
    with pytest.raises(FreeholdError, match="who did it"):
        timeline.append("keeper.started", who=who)


class Mode(StrEnum):
    ASK = "ask"


@pytest.mark.parametrize(
    "value",
    [
        Secret("sk-very-secret"),
        b"bytes",
        float("nan"),
        float("inf"),
        {1: 2},
        10**5000,
        Path("/"),
        datetime.now(UTC),
        {1, 2},
        Mode.ASK,
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_are_not_plain_json_are_refused_and_not_shown(timeline: Timeline, value: Any) -> None:
    with pytest.raises(FreeholdError) as refused:
        timeline.append("keeper.started", {"deep": [{"value": value}]})
    assert refused.value.code == "timeline.not-json"
    assert "data.deep[0].value" in refused.value.message
    assert "very-secret" not in str(refused.value)
    assert timeline.last() is None


def test_data_that_is_too_deep_or_too_big_is_refused(timeline: Timeline) -> None:
    deep: Any = []
    deep.append(deep)
    with pytest.raises(FreeholdError, match="deep"):
        timeline.append("keeper.started", {"deep": deep})
    with pytest.raises(FreeholdError) as refused:
        timeline.append("keeper.started", {"text": "x" * 70_000})
    assert refused.value.code == "timeline.too-big"
    timeline.append("keeper.started", {"text": "x" * 65_000})
    assert timeline.verify() == []


def test_an_event_and_its_state_commit_together_or_not_at_all(timeline: Timeline) -> None:
    timeline.ensure_schema("egress", "CREATE TABLE egress_rule (host TEXT PRIMARY KEY)")
    with timeline.transaction() as tx:
        tx.execute("INSERT INTO egress_rule VALUES (?)", ("example.org",))
        tx.append("egress.host_allowed", {"host": "example.org"})
        assert timeline.query("SELECT * FROM egress_rule") == []  # nobody sees half of it
        assert timeline.last() is None
    assert timeline.query("SELECT * FROM egress_rule") == [("example.org",)]

    def host_twice(tx: Transaction) -> None:
        tx.append("egress.host_allowed", {"host": "example.org"})
        tx.execute("INSERT INTO egress_rule VALUES (?)", ("example.org",))

    def bad_event(tx: Transaction) -> None:
        tx.execute("INSERT INTO egress_rule VALUES (?)", ("example.com",))
        tx.append("bad")

    def interrupted(tx: Transaction) -> None:
        tx.append("egress.host_allowed", {"host": "example.net"})
        raise KeyboardInterrupt

    failing: list[tuple[type[BaseException], Callable[[Transaction], None]]] = [
        (sqlite3.IntegrityError, host_twice),
        (FreeholdError, bad_event),
        (KeyboardInterrupt, interrupted),
    ]
    for error, act in failing:
        with pytest.raises(error), timeline.transaction() as tx:
            act(tx)
    assert timeline.query("SELECT * FROM egress_rule") == [("example.org",)]
    assert [event.seq for event in timeline.read()] == [1]
    assert timeline.append("egress.host_denied").seq == 2
    assert timeline.verify() == []


def test_a_transaction_inside_a_transaction_is_refused_instead_of_hanging(timeline: Timeline) -> None:
    with timeline.transaction() as tx:
        with pytest.raises(RuntimeError, match="use the Transaction"):
            timeline.append("keeper.started")
        tx.append("keeper.started")
    assert [event.seq for event in timeline.read()] == [1]


def test_the_tables_of_a_room_are_migrated_step_by_step_and_each_step_runs_once(tmp_path: Path) -> None:
    path = tmp_path / "timeline.db"
    first = """CREATE TABLE mesh_peer (name TEXT);
               CREATE TRIGGER mesh_peer_added AFTER INSERT ON mesh_peer BEGIN SELECT 1; END;
               INSERT INTO mesh_peer VALUES ('semi;colon')"""
    second = "ALTER TABLE mesh_peer ADD COLUMN seen TEXT"
    with Timeline(path) as timeline:
        timeline.ensure_schema("mesh", first)
        timeline.ensure_schema("mesh", first)
    with Timeline(path) as timeline:
        timeline.ensure_schema("mesh", first, second)
        timeline.ensure_schema("mesh", first, second)
        assert timeline.query("SELECT name, seen FROM mesh_peer") == [("semi;colon", None)]
        with pytest.raises(FreeholdError) as refused:
            timeline.ensure_schema("mesh", first)
        assert refused.value.code == "timeline.newer"
        with pytest.raises(sqlite3.OperationalError):
            timeline.ensure_schema("broken", "CREATE TABLE broken_one (a TEXT)", "nonsense")
        assert timeline.query("SELECT name FROM sqlite_schema WHERE name = 'broken_one'") == []


def test_threads_append_without_loss_or_gap(timeline: Timeline) -> None:
    def write(name: int) -> None:
        for count in range(25):
            timeline.append("keeper.counted", {"thread": name, "count": count})

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = timeline.read()
    assert [event.seq for event in events] == list(range(1, 101))
    for name in range(4):
        assert [event.data["count"] for event in events if event.data["thread"] == name] == list(range(25))
    assert timeline.verify() == []


def test_a_clock_that_jumps_back_changes_neither_order_nor_chain(tmp_path: Path) -> None:
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    with Timeline(tmp_path / "timeline.db", clock=lambda: moment) as timeline:
        for hours in (0, -48, 1000, -9000):
            moment = datetime(2030, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
            timeline.append("keeper.clock_read", {"hours": hours})
        assert [event.data["hours"] for event in timeline.read()] == [0, -48, 1000, -9000]
        assert timeline.verify() == []


def test_events_cannot_be_changed_or_removed_through_sql(timeline: Timeline) -> None:
    timeline.append("keeper.started")
    for forbidden in (
        "UPDATE event SET who = 'nobody'",
        "DELETE FROM event",
        "UPDATE head SET seq = 0",
        "DELETE FROM head",
        "INSERT INTO event SELECT 7, at, kind, who, data, previous, hash FROM event",
        "INSERT OR REPLACE INTO event SELECT seq, at, kind, 'nobody', data, previous, hash FROM event",
    ):
        with pytest.raises(sqlite3.IntegrityError), timeline.transaction() as tx:
            tx.execute(forbidden)
    assert timeline.verify() == []


def test_only_the_owner_can_read_the_file(timeline: Timeline) -> None:
    timeline.append("keeper.started")
    files = sorted(timeline.path.parent.iterdir())
    assert len(files) == 3
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
