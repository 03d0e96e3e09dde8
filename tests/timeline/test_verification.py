"""Every change to the file that bypasses the timeline is found and reported."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freehold.timeline import ChainProblem, Timeline
from freehold.timeline.event import digest

SIZE = 8
TRIGGERS = ("event_follows", "event_stays_same", "event_stays", "head_advances", "head_stays")


def fill(path: Path, count: int = SIZE) -> None:
    with Timeline(path) as timeline, timeline.transaction() as tx:
        for number in range(1, count + 1):
            tx.append("keeper.counted" if number % 2 else "egress.asked", {"number": number})


def tamper(path: Path, *statements: str | tuple[str, tuple[object, ...]]) -> None:
    """As a thief would: with SQLite, without our triggers."""
    with closing(sqlite3.connect(path)) as database:
        for trigger in TRIGGERS:
            database.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        for statement in statements:
            database.execute(*((statement,) if isinstance(statement, str) else statement))
        database.commit()


def verify(path: Path) -> list[ChainProblem]:
    with Timeline(path, readonly=True) as timeline:
        return timeline.verify()


def found(path: Path) -> list[tuple[str, int, int]]:
    return [(problem.fault, problem.seq, problem.last) for problem in verify(path)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fill(tmp_path / "timeline.db")
    return tmp_path / "timeline.db"


def test_an_untouched_timeline_has_no_problems(path: Path) -> None:
    steps: list[tuple[int, int]] = []
    with Timeline(path) as timeline:
        assert timeline.verify(progress=lambda done, total: steps.append((done, total))) == []
    assert steps[-1] == (SIZE, SIZE)


def test_an_empty_timeline_has_no_problems(tmp_path: Path) -> None:
    Timeline(tmp_path / "timeline.db").close()
    assert found(tmp_path / "timeline.db") == []


@pytest.mark.parametrize("column", ["at", "kind", "who", "data", "previous", "hash"])
@pytest.mark.parametrize("seq", [1, 4, SIZE])
def test_a_changed_column_is_found_and_named(path: Path, column: str, seq: int) -> None:
    tamper(path, f"UPDATE event SET {column} = {column} || ' ' WHERE seq = {seq}")
    assert found(path) == [("changed", seq, seq)]


def test_whitespace_in_the_data_is_a_change_too(path: Path) -> None:
    tamper(path, """UPDATE event SET data = '{"number": 3}' WHERE seq = 3""")
    assert found(path) == [("changed", 3, 3)]


@pytest.mark.parametrize(("first", "last"), [(1, 1), (4, 5), (SIZE, SIZE), (3, SIZE), (1, SIZE)])
def test_missing_events_are_found_in_the_middle_and_at_the_end(path: Path, first: int, last: int) -> None:
    tamper(path, f"DELETE FROM event WHERE seq BETWEEN {first} AND {last}")
    assert found(path) == [("missing", first, last)]


def test_two_events_that_changed_places_are_found(path: Path) -> None:
    tamper(
        path,
        "UPDATE event SET seq = 100 WHERE seq = 3",
        "UPDATE event SET seq = 3 WHERE seq = 6",
        "UPDATE event SET seq = 6 WHERE seq = 100",
    )
    assert found(path) == [("reordered", 3, 3), ("reordered", 6, 6)]
    assert [problem.detail for problem in verify(path)] == [
        "event 3 was written as event 6",
        "event 6 was written as event 3",
    ]


def test_an_event_removed_with_the_others_moved_up_is_found(path: Path) -> None:
    tamper(
        path,
        "DELETE FROM event WHERE seq = 4",
        *(f"UPDATE event SET seq = {seq} WHERE seq = {seq + 1}" for seq in range(4, SIZE)),
        "UPDATE head SET seq = seq - 1",
    )
    assert found(path) == [("reordered", seq, seq) for seq in range(4, SIZE)]


def test_an_event_rewritten_with_a_fitting_hash_is_found_by_the_next(path: Path) -> None:
    for seq in (4, SIZE):
        rewrite(path, seq)
    assert found(path) == [("changed", 4, 4), ("changed", SIZE, SIZE)]


def rewrite(path: Path, seq: int) -> str:
    with closing(sqlite3.connect(path)) as database:
        at, kind, who, previous = database.execute(
            "SELECT at, kind, who, previous FROM event WHERE seq = ?", (seq,)
        ).fetchone()
    data = '{"number":666}'
    new = digest(previous, seq, at, kind, who, data)
    tamper(path, ("UPDATE event SET data = ?, hash = ? WHERE seq = ?", (data, new, seq)))
    return new


def test_a_cut_tail_is_found_even_when_new_events_were_forged_after_it(path: Path) -> None:
    tamper(path, "DELETE FROM event WHERE seq > 5", "UPDATE head SET seq = 5")
    assert found(path) == [("changed", 5, 5)]


def test_a_forged_extra_event_is_found(path: Path) -> None:
    tamper(path, "INSERT INTO event SELECT 9, at, kind, who, data, hash, hash FROM event WHERE seq = 8")
    assert ("changed", 9, 9) in found(path)
    tamper(path, "DELETE FROM event WHERE seq = 9", "UPDATE event SET seq = -5 WHERE seq = 1")
    assert found(path) == [("changed", -5, -5), ("missing", 1, 1)]


def test_a_missing_head_is_found(path: Path) -> None:
    tamper(path, "DELETE FROM head")
    assert [problem.fault for problem in verify(path)] == ["changed"]


def test_a_completely_rewritten_chain_is_found_with_a_known_hash(path: Path) -> None:
    with Timeline(path) as timeline:
        last = timeline.last()
        assert last is not None
        known = (last.seq, last.hash)
        assert timeline.verify(known=known) == []
    new = rewrite(path, SIZE)
    tamper(path, ("UPDATE head SET hash = ?", (new,)))
    with Timeline(path) as timeline:
        assert timeline.verify() == []  # what no chain alone can see
        assert [problem.fault for problem in timeline.verify(known=known)] == ["rewritten"]
        assert [problem.fault for problem in timeline.verify(known=(99, new))] == ["rewritten"]


def test_bytes_that_are_not_text_are_reported(path: Path) -> None:
    tamper(path, "UPDATE event SET who = CAST(x'ff00fe' AS TEXT) WHERE seq = 2")
    assert found(path) == [("changed", 2, 2)]


def test_the_number_of_reported_problems_is_limited(tmp_path: Path) -> None:
    path = tmp_path / "timeline.db"
    fill(path, 1500)
    tamper(path, "UPDATE event SET who = 'nobody'")
    problems = verify(path)
    assert len(problems) == 1001
    assert problems[-1].detail == "and 500 more problems"


def test_damage_to_the_file_is_reported_with_what_could_be_read(tmp_path: Path) -> None:
    path = tmp_path / "timeline.db"
    fill(path, 300)
    raw = bytearray(path.read_bytes())
    raw[4096 * 8 : 4096 * 12] = b"\xa5" * (4096 * 4)
    path.write_bytes(raw)
    assert "unreadable" in {problem.fault for problem in verify(path)}


COLUMNS = st.sampled_from(["at", "kind", "who", "data", "previous", "hash"])
SEQS = st.integers(1, SIZE)


def change(column: str, seq: int, text: str) -> list[str | tuple[str, tuple[object, ...]]]:
    return [(f"UPDATE event SET {column} = ? WHERE seq = ?", (text, seq))]


def remove(first: int, second: int) -> list[str | tuple[str, tuple[object, ...]]]:
    return [("DELETE FROM event WHERE seq IN (?, ?)", (first, second))]


def swap(first: int, second: int) -> list[str | tuple[str, tuple[object, ...]]]:
    moves: list[tuple[str, tuple[object, ...]]] = [
        ("UPDATE event SET seq = ? WHERE seq = ?", (to, origin))
        for origin, to in ((first, 100), (second, first), (100, second))
    ]
    return [*moves]


def copy(column: str, first: int, second: int) -> list[str | tuple[str, tuple[object, ...]]]:
    return [
        (
            f"UPDATE event SET {column} = coalesce((SELECT {column} FROM event WHERE seq = ?), {column}) WHERE seq = ?",
            (first, second),
        )
    ]


TAMPERING = st.one_of(
    st.builds(change, COLUMNS, SEQS, st.text(st.characters(codec="utf-8"), max_size=5)),
    st.builds(remove, SEQS, SEQS),
    st.builds(swap, SEQS, SEQS),
    st.builds(copy, COLUMNS, SEQS, SEQS),
)
Contents = list[tuple[object, ...]]


def contents(path: Path) -> Contents:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT * FROM event ORDER BY seq").fetchall()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(TAMPERING, min_size=1, max_size=3))
def test_any_tampering_is_found(
    tmp_path_factory: pytest.TempPathFactory, acts: list[list[str | tuple[str, tuple[object, ...]]]]
) -> None:
    """The record verifies exactly when its content is what was written."""
    path = tmp_path_factory.mktemp("tampering") / "timeline.db"
    fill(path)
    before = contents(path)
    for act in acts:
        tamper(path, *act)
    after = contents(path)
    problems = verify(path)
    assert bool(problems) == (after != before)
    touched = {row[0] for row in set(after) ^ set(before)}
    named = {seq for problem in problems for seq in range(problem.seq, problem.last + 1)}
    assert named <= touched  # no correct event is reported
    assert bool(named & touched) == bool(touched)


GOLDEN = Path(__file__).parent / "golden" / "v1.sql"


def test_a_timeline_written_by_format_1_still_reads_and_verifies(tmp_path: Path) -> None:
    path = tmp_path / "timeline.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(GOLDEN.read_text())
    with Timeline(path) as timeline:
        assert [event.kind for event in timeline.read()] == ["keeper.started", "egress.asked", "keeper.stopped"]
        assert timeline.verify() == []
        assert timeline.append("keeper.started").seq == 4
        assert timeline.verify() == []
