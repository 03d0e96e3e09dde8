"""Old entries are thinned, the quota holds, and the owner is told before entries are dropped."""

import os
import time
from pathlib import Path

import pytest
from tests.history.tree import differences, read_tree, write

from freehold.history import Author, History, HistoryNotice, HistorySettings
from freehold.history.retention_clock import RetentionClock

DAY = 86_400.0


def _set_age(history: History, entry: int, seconds: float, now: float) -> None:
    history._db.execute("UPDATE entry SET at = ? WHERE id = ?", (now - seconds, entry))


def test_entries_are_kept_all_for_a_day_hourly_for_a_week_then_daily(history: History, workspace: Path) -> None:
    now = 1_800_000_000.0
    ages = [40 * DAY, 40 * DAY - 60, 3 * DAY, 3 * DAY - 60, 3 * DAY - 7200, 100, 90, 80]
    for number, age in enumerate(ages):
        write(workspace / "file", str(number))
        entry = history.snapshot().entry
        _set_age(history, entry, age, now)
    _set_age(history, 1, 41 * DAY, now)
    states = {}
    history.collect(now=now)
    kept = [entry.id for entry in history.log()]
    assert kept == [9, 8, 7, 6, 5, 3, 1]
    for entry in kept[:-1]:
        assert history.restore(entry).unsettled == ()
        states[entry] = (workspace / "file").read_text()
    assert states == {9: "7", 8: "6", 7: "5", 6: "4", 5: "3", 3: "1"}
    assert history.verify().damages == ()


def test_a_dropped_entry_frees_the_space_that_only_it_used(history: History, workspace: Path) -> None:
    now = time.time()
    history.collect()
    for number in range(6):
        write(workspace / "large", os.urandom(2 << 20))
        _set_age(history, history.snapshot().entry, 50 * DAY - number, now)
    full = history.size().used
    history.collect(now=now)
    assert history.size().used < full / 3
    assert len([path for path in history._chunks.rglob("*") if path.is_file()]) < 40


def test_at_the_quota_the_owner_is_told_before_anything_is_dropped(tmp_path: Path, workspace: Path) -> None:
    told: list[HistoryNotice] = []
    settings = HistorySettings(quiet=0, quota=4 << 20, quota_grace=600, rate=1 << 30)
    with History(tmp_path / "history", {"workspace": workspace}, settings, on_notice=told.append) as history:
        write(workspace / "good", "known good")
        good = history.snapshot().entry
        history.set_good(good)
        for _ in range(5):
            write(workspace / "large", os.urandom(900_000))
            history.snapshot()
        codes = [notice.code for notice in told]
        assert codes == ["history.quota-nearly", "history.quota-reached"], "told by the snapshot that crossed it"
        entries = len(history.log())
        first = history.collect()
        assert first.waiting
        assert first.dropped == 0
        assert [notice.code for notice in told] == codes
        assert len(history.log()) == entries
        second = history.collect(now=time.time() + 601)
        assert second.dropped > 0
        assert second.used <= 4 << 20
        left = [entry.id for entry in history.log()]
        assert good in left
        assert left[0] == entries
        assert history.restore(good).unsettled == ()
        assert (workspace / "good").read_text() == "known good"
        assert not (workspace / "large").exists()


def test_one_large_snapshot_cannot_exceed_the_quota_by_much(tmp_path: Path, workspace: Path) -> None:
    settings = HistorySettings(quiet=0, quota=4 << 20, rate=1 << 30)
    with History(tmp_path / "history", {"workspace": workspace}, settings) as history:
        history.snapshot()
        before = read_tree(workspace)
        for number in range(12):
            write(workspace / f"flood{number}", os.urandom(1 << 20))
        entry = history.entry(history.snapshot().entry)
        assert any("did not fit into the quota" in note for note in entry.notes)
        assert "history.not-stored" in [notice.code for notice in history.notices()]
        assert history.size().used < 6 << 20
        outcome = history.undo()
        assert outcome.unsettled == ()
        assert not differences(before, read_tree(workspace))
        assert len(outcome.set_aside) >= 6
        assert history.size().set_aside >= 6 << 20


def test_an_agent_that_fills_history_on_purpose_is_stopped_by_its_rate_and_the_owner_is_told(
    tmp_path: Path, workspace: Path
) -> None:
    told: list[HistoryNotice] = []
    agent = Author("agent", agent="claude", session="8d1f", turn="1")
    settings = HistorySettings(quiet=0, quota=64 << 20, rate=2 << 20)
    with History(tmp_path / "history", {"workspace": workspace}, settings, on_notice=told.append) as history:
        write(workspace / "precious", "the owner's")
        history.snapshot()
        before = read_tree(workspace)
        history.mark("before", who=agent)
        for _ in range(20):
            write(workspace / "precious", os.urandom(1 << 20))
            history.snapshot()
        history.mark("after", who=agent)
        assert history.size().used < 4 << 20, "twenty times one MiB were written"
        assert "history.rate-exceeded" in [notice.code for notice in told]
        assert "claude (session 8d1f)" in next(n.message for n in told if n.code == "history.rate-exceeded")
        history.mark("before", who=agent)
        entries = len(history.log())
        write(workspace / "precious", "more")
        history.take_quiet_snapshot("")
        assert len(history.log()) == entries, "no more entries during its turn"
        write(workspace / "mine", os.urandom(4 << 20))
        history.note("after", Author("owner"), "saved mine")
        version = history.version(history.newest(), "workspace/mine")
        assert version is not None
        assert version.content is not None, "the owner is not limited"
        history.restore(1)
        assert not differences(before, read_tree(workspace))


def test_rows_count_towards_the_quota(tmp_path: Path, workspace: Path) -> None:
    """Many names without content."""
    told: list[HistoryNotice] = []
    settings = HistorySettings(quiet=0, quota=512 << 10, rate=1 << 30)
    with History(tmp_path / "history", {"workspace": workspace}, settings, on_notice=told.append) as history:
        history.snapshot()
        for number in range(6000):
            write(workspace / "many" / f"{number:04}", "")
        history.snapshot()
        assert history.size().kept_bytes < 1000
        assert "history.quota-reached" in [notice.code for notice in told]


def test_undo_works_after_entries_were_thinned(history: History, workspace: Path) -> None:
    now = time.time()
    write(workspace / "file", "a")
    first = history.snapshot("turn").entry
    before = read_tree(workspace)
    for text in "bcd":
        write(workspace / "file", text)
        _set_age(history, history.snapshot("turn").entry, 20 * DAY, now)
    _set_age(history, first, 25 * DAY, now)
    write(workspace / "file", "e")
    last = history.snapshot("turn").entry
    history.collect(now=now)
    assert [entry.id for entry in history.log()] == [last, last - 1, first, 1]
    history.undo()
    history.undo()
    assert not differences(before, read_tree(workspace))


def test_a_clock_that_jumps_ahead_thins_nothing_and_gives_a_notice(
    history: History, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        write(workspace / "file", str(number))
        history.snapshot()
    before = [entry.id for entry in history.log()]
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 400 * DAY)
    assert history.collect().thinned == 0
    assert [entry.id for entry in history.log()] == before
    assert [notice.code for notice in history.notices()] == ["history.clock-ahead"]
    monkeypatch.undo()
    history.collect()
    assert history.notices() == []


def test_entries_age_at_most_twice_as_fast_as_time_and_one_day_per_start(history: History) -> None:
    wall, real = [1000 * DAY], [0.0]
    clock = RetentionClock(history._db, lambda: wall[0], lambda: real[0])
    assert clock.advance() == 1000 * DAY
    wall[0], real[0] = 1400 * DAY, 3600.0
    assert clock.advance() == 1000 * DAY + 7200
    again = RetentionClock(history._db, lambda: wall[0], lambda: real[0])
    assert again.advance() == 1001 * DAY + 7200
    assert round(again.behind / DAY) == 399
    wall[0] = 900 * DAY
    assert again.advance() == 900 * DAY
