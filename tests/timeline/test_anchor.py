"""The end of the timeline is anchored in the vault: who can write the timeline's file cannot cut it unseen."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from tests.timeline.test_verification import fill, tamper

from freehold.timeline import Timeline
from freehold.timeline.anchor import HeadAnchor
from freehold.timeline.event import digest

SIZE = 8


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "vault").mkdir(mode=0o700)
    fill(tmp_path / "timeline.db")
    return tmp_path / "timeline.db"


def found(path: Path) -> list[tuple[str, int, int]]:
    with Timeline(path, readonly=True) as timeline:
        return [(problem.fault, problem.seq, problem.last) for problem in timeline.verify()]


def cut(path: Path, last: int) -> None:
    """Remove the tail, and make the note of the last event fit: what is left is a valid chain."""
    with closing(sqlite3.connect(path)) as database:
        (chained,) = database.execute("SELECT hash FROM event WHERE seq = ?", (last,)).fetchone() or ("0" * 64,)
    tamper(path, ("DELETE FROM event WHERE seq > ?", (last,)), ("UPDATE head SET seq = ?, hash = ?", (last, chained)))


@pytest.mark.parametrize("last", [0, 1, 5, SIZE - 1])
def test_a_tail_that_was_cut_with_its_head_note_is_missed(path: Path, last: int) -> None:
    assert found(path) == []
    cut(path, last)
    assert found(path) == [("missing", last + 1, SIZE)]
    with Timeline(path, readonly=True) as timeline:
        assert "anchored in the vault" in timeline.verify()[0].detail


@pytest.mark.parametrize("more", [1, 3, 5])
def test_new_events_after_a_cut_do_not_hide_it(path: Path, more: int) -> None:
    """Fewer than were cut, as many, and more."""
    cut(path, SIZE - 3)
    with Timeline(path) as timeline:
        for _ in range(more):
            timeline.append("keeper.counted", {"number": 1})
    last = SIZE - 3 + more
    assert found(path) == ([("missing", last + 1, SIZE)] if last < SIZE else [("rewritten", SIZE, SIZE)])


def test_a_chain_that_was_rewritten_to_its_end_is_found(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT seq, at, kind, who FROM event ORDER BY seq").fetchall()
    previous, statements = "0" * 64, []
    for seq, at, kind, who in rows:
        new = digest(previous, seq, at, kind, who, "{}")
        statements.append(("UPDATE event SET data = '{}', previous = ?, hash = ? WHERE seq = ?", (previous, new, seq)))
        previous = new
    tamper(path, *statements, ("UPDATE head SET hash = ?", (previous,)))
    assert found(path) == [("rewritten", SIZE, SIZE)]


KILLED = """
import os, sys
from freehold.timeline import Timeline
from freehold.timeline.anchor import HeadAnchor
advance, HeadAnchor.advance = HeadAnchor.advance, lambda *_: os.kill(os.getpid(), 9)
Timeline(sys.argv[1]).append("keeper.counted", {"number": 9})
"""


def test_a_kill_between_the_event_and_its_anchor_is_no_fault(path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == -9
    with Timeline(path, readonly=True) as timeline:
        last = timeline.last()
        assert last is not None
        assert last.seq == SIZE + 1  # the event is stored
    anchored = HeadAnchor(path).read()
    assert anchored is not None
    assert anchored.seq == SIZE  # its anchor is not
    assert found(path) == []
    with Timeline(path) as timeline:
        timeline.append("keeper.counted", {"number": 10})
    assert found(path) == []
    cut(path, SIZE + 1)
    assert found(path) == [("missing", SIZE + 2, SIZE + 2)]


@pytest.mark.parametrize("change", ["number", "hash", "signature", "length", "key"])
def test_a_changed_anchor_is_told_and_is_not_replaced(path: Path, change: str) -> None:
    file = path.parent / "vault" / "timeline-head"
    text = file.read_bytes()
    if change == "key":
        (path.parent / "vault" / "timeline-key").write_bytes(b"k" * 32)
    elif change == "length":
        file.write_bytes(text[:40])
    else:
        place = {"number": 19, "hash": 30, "signature": 100}[change]
        file.write_bytes(text[:place] + (b"1" if text[place : place + 1] != b"1" else b"2") + text[place + 1 :])
    changed = file.read_bytes()
    with Timeline(path) as timeline:
        timeline.append("keeper.counted", {"number": 9})
    assert file.read_bytes() == changed
    assert found(path) == [("changed", 0, 0)]


def test_the_anchor_and_its_key_are_private(path: Path) -> None:
    for name in ("timeline-head", "timeline-key"):
        assert stat.S_IMODE((path.parent / "vault" / name).stat().st_mode) == 0o600


def test_many_writers_leave_the_anchor_at_the_last_event(path: Path) -> None:
    def write() -> None:
        with Timeline(path) as timeline:
            for _ in range(20):
                timeline.append("keeper.counted", {})

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    anchored = HeadAnchor(path).read()
    assert anchored is not None
    assert anchored.seq == SIZE + 80
    assert found(path) == []


def test_a_timeline_of_an_older_version_gets_its_anchor_with_the_next_event(path: Path) -> None:
    for name in ("timeline-head", "timeline-key"):
        (path.parent / "vault" / name).unlink()
    assert found(path) == []
    with Timeline(path) as timeline:
        timeline.append("keeper.counted", {})
    cut(path, SIZE)
    assert found(path) == [("missing", SIZE + 1, SIZE + 1)]


def test_an_event_is_stored_even_if_it_cannot_be_anchored(path: Path) -> None:
    vault = path.parent / "vault"
    (vault / "timeline-head").unlink()
    (vault / "timeline-head").symlink_to(path.parent / "elsewhere")
    with Timeline(path) as timeline:
        assert timeline.append("keeper.counted", {}).seq == SIZE + 1
    assert not os.path.lexists(path.parent / "elsewhere")


def test_a_timeline_without_a_vault_has_no_anchor(tmp_path: Path) -> None:
    fill(tmp_path / "timeline.db")
    assert [child.name for child in tmp_path.iterdir()] == ["timeline.db"]
    assert found(tmp_path / "timeline.db") == []
