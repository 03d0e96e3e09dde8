"""Old events in compressed files: read like all others, part of the chain, and never lost by a crash."""

import gzip
import json
import os
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from freehold.errors import FreeholdError
from freehold.timeline import Timeline, TimelineEvent, archive, archiver
from freehold.timeline.archiver import archive_events

START = datetime(2026, 1, 1, tzinfo=UTC)
LATER = START + timedelta(days=365)
COUNT = 60
ARCHIVED = 48
"""Six blocks of eight; the newest ten events stay."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (archive, archiver):
        monkeypatch.setattr(module, "BLOCK_EVENTS", 8)
    monkeypatch.setattr(archive, "FILE_BYTES", 1200)
    monkeypatch.setattr(archiver, "MIN_LIVE", 10)
    monkeypatch.setattr(archiver, "SLICE_BLOCKS", 2)


def write_events(path: Path, count: int = COUNT) -> list[TimelineEvent]:
    """One an hour; every tenth is of a rare kind."""
    moment = START
    with Timeline(path, clock=lambda: moment) as timeline, timeline.transaction() as tx:
        written = []
        for number in range(1, count + 1):
            moment += timedelta(hours=1)
            kind = "backup.made" if number % 10 == 0 else "egress.asked" if number % 2 else "egress.allowed"
            written.append(tx.append(kind, {"number": number, "text": 'é\n\ud800 "kind":"backup.made"'}, who="agent:ä"))
        return written


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "vault").mkdir(mode=0o700)
    return tmp_path / "timeline.db"


@pytest.fixture
def written(path: Path) -> list[TimelineEvent]:
    written = write_events(path)
    with Timeline(path, clock=lambda: LATER) as timeline:
        assert archive_events(timeline, LATER).last == ARCHIVED
    return [*written, *read(path, lambda timeline: timeline.tail(1))]


def read(path: Path, ask: Callable[[Timeline], list[TimelineEvent]]) -> list[TimelineEvent]:
    with Timeline(path, readonly=True) as timeline:
        return ask(timeline)


def verify(path: Path, known: tuple[int, str] | None = None) -> list[tuple[str, int, int]]:
    with Timeline(path, readonly=True) as timeline:
        return [(problem.fault, problem.seq, problem.last) for problem in timeline.verify(known=known)]


def archive_files(path: Path) -> list[Path]:
    return sorted((path.parent / "timeline-archive").iterdir())


def rewrite(path: Path, seq: int, change: Callable[[str], str]) -> None:
    """As a thief would: changes one line of an archive file, packs it again and corrects its place in the database."""
    with closing(sqlite3.connect(path)) as database:
        for trigger in ("archive_follows", "archive_stays", "archive_stays_same"):
            database.execute(f"DROP TRIGGER {trigger}")
        rows = database.execute("SELECT first, file, offset, size FROM archive ORDER BY first").fetchall()
        name = next(file for first, file, _, _ in rows if first <= seq < first + 8)
        file = path.parent / "timeline-archive" / name
        old, new = file.read_bytes(), b""
        for first, _, offset, size in [row for row in rows if row[1] == name]:
            lines = gzip.decompress(old[offset : offset + size]).decode().splitlines()
            if first <= seq < first + 8:
                lines[seq - first] = change(lines[seq - first])
            packed = gzip.compress("".join(f"{line}\n" for line in lines).encode())
            database.execute("UPDATE archive SET offset = ?, size = ? WHERE first = ?", (len(new), len(packed), first))
            new += packed
        file.write_bytes(new)
        database.commit()


def test_archived_events_are_read_like_all_others(path: Path, written: list[TimelineEvent]) -> None:
    assert written[-1].kind == "timeline.events_archived"
    assert written[-1].data == {"first": 1, "last": ARCHIVED, "count": ARCHIVED}
    with Timeline(path, readonly=True) as timeline:
        ((live,),) = timeline.query("SELECT count(*) FROM event")
        assert live == COUNT - ARCHIVED + 1
        assert timeline.read() == written
        for after in (0, 1, 7, 8, 9, 40, 47, 48, 49, 60):
            assert timeline.read(after, limit=9) == written[after : after + 9]
            assert timeline.read(after, until=44) == written[after:44]
        for before in (1, 2, 9, 10, 48, 49, 50, 62):
            assert timeline.tail(9, before=before) == written[max(0, before - 10) : before - 1]


@pytest.mark.parametrize("kinds", [["backup.made"], ["egress.*"], ["egress.asked", "backup.*"], ["*"], ["none.at_all"]])
def test_kinds_and_times_select_archived_events(path: Path, written: list[TimelineEvent], kinds: list[str]) -> None:
    def wanted(event: TimelineEvent) -> bool:
        return any(
            kind in ("*", event.kind) or event.kind.startswith(kind.rstrip("*")) for kind in kinds if kind != "*"
        ) or ("*" in kinds)

    chosen = [event for event in written if wanted(event)]
    since = START + timedelta(hours=30)
    recent = [event for event in chosen if datetime.fromisoformat(event.at) >= since]
    with Timeline(path, readonly=True) as timeline:
        assert timeline.read(kinds=kinds) == chosen
        assert timeline.read(after=5, kinds=kinds, limit=3) == [event for event in chosen if event.seq > 5][:3]
        assert timeline.tail(4, kinds, before=45) == [event for event in chosen if event.seq < 45][-4:]
        assert timeline.read(kinds=kinds, since=since) == recent
        assert timeline.tail(100, kinds, since) == recent


def test_the_chain_goes_through_the_archive(path: Path, written: list[TimelineEvent]) -> None:
    assert verify(path) == []
    assert verify(path, (3, written[2].hash)) == []
    assert verify(path, (3, "0" * 64)) == [("rewritten", 3, 3)]
    with Timeline(path) as timeline:
        timeline.append("keeper.started")
    assert verify(path) == []


def test_the_files_are_plain_gzip_and_only_the_owner_reads_them(path: Path, written: list[TimelineEvent]) -> None:
    files = archive_files(path)
    assert len(files) > 1
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert files[0].parent.stat().st_mode & 0o777 == 0o700
    lines = subprocess.run(["zcat", *files], check=True, capture_output=True, text=True).stdout.splitlines()
    assert [json.loads(line) for line in lines] == [
        {name: value for name, value in event.as_json().items() if name != "previous"} for event in written[:ARCHIVED]
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace('"number":20', '"number":21'),
        lambda line: line.replace("agent:", "owner:"),
        lambda line: line.replace('"kind":"backup.made","seq"', '"kind":"egress.asked","seq"'),
        lambda line: line.replace('"at":"2026', '"at":"2025'),
    ],
)
def test_a_changed_archived_event_is_named(
    path: Path, written: list[TimelineEvent], change: Callable[[str], str]
) -> None:
    assert written
    rewrite(path, 20, change)
    assert verify(path) == [("changed", 20, 20)]


@pytest.mark.parametrize(
    "change", [lambda _: "{}", lambda _: "not JSON", lambda _: "", lambda line: line + "\n" + line]
)
def test_a_block_that_is_not_its_events_is_reported_and_not_shown(
    path: Path, written: list[TimelineEvent], change: Callable[[str], str]
) -> None:
    assert written
    rewrite(path, 20, change)
    assert verify(path) == [("unreadable", 17, 24)]
    with Timeline(path, readonly=True) as timeline:
        with pytest.raises(FreeholdError, match="Events 17 to 24 cannot be read"):
            timeline.read(16, limit=8)
        assert timeline.read(24, limit=1)[0].seq == 25


def test_a_missing_or_cut_file_is_reported(path: Path, written: list[TimelineEvent]) -> None:
    assert written
    first, *_, last = archive_files(path)
    last.write_bytes(last.read_bytes()[:-1])
    assert verify(path) == [("unreadable", 41, 48)]
    first.unlink()
    assert {fault for fault, _, _ in verify(path)} == {"missing", "unreadable"}
    assert min(seq for _, seq, _ in verify(path)) == 1


def test_a_file_that_is_exchanged_for_a_link_is_not_followed(path: Path, written: list[TimelineEvent]) -> None:
    assert written
    first = archive_files(path)[0]
    elsewhere = path.parent / "elsewhere"
    first.rename(elsewhere)
    first.symlink_to(elsewhere)
    assert ("unreadable", 1, 8) in verify(path)


def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(path: Path, written: list[TimelineEvent]) -> None:
    assert written
    first = archive_files(path)[0]
    first.unlink()
    os.mkfifo(first)
    assert ("unreadable", 1, 8) in verify(path)


def test_archived_events_that_are_forgotten_are_missed(path: Path, written: list[TimelineEvent]) -> None:
    assert written
    with closing(sqlite3.connect(path)) as database:
        database.execute("DROP TRIGGER archive_stays")
        database.execute("DELETE FROM archive")
        database.commit()
    assert ("missing", 1, ARCHIVED) in verify(path)


def test_only_archived_events_leave_the_table(path: Path, written: list[TimelineEvent]) -> None:
    assert written
    with Timeline(path) as timeline:
        for forbidden in (
            "DELETE FROM event WHERE seq = 60",
            "DELETE FROM archive",
            "UPDATE archive SET last = 60",
            "INSERT INTO archive SELECT 49, 61, latest, hash, previous, file, offset, size FROM archive LIMIT 1",
            "INSERT INTO archive SELECT 50, last, latest, hash, previous, file, offset, size FROM archive LIMIT 1",
        ):
            with pytest.raises(sqlite3.IntegrityError), timeline.transaction() as tx:
                tx.execute(forbidden)
        assert timeline.verify() == []


def test_a_slice_that_was_killed_before_it_was_recorded_is_written_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_events(path)
    write_block = archive.ArchiveWriter.write_block
    calls = 0

    def die_after(self: archive.ArchiveWriter, *given: object) -> archive.ArchivedBlock:
        nonlocal calls
        calls += 1
        block = write_block(self, *given)  # type: ignore[arg-type]
        if calls == 4:
            raise KeyboardInterrupt
        return block

    monkeypatch.setattr(archive.ArchiveWriter, "write_block", die_after)
    with Timeline(path) as timeline:
        with pytest.raises(KeyboardInterrupt):
            archive_events(timeline, LATER)
        ((end,),) = timeline.query("SELECT max(last) FROM archive")
        assert end == 16
        assert timeline.verify() == []
        assert archive_events(timeline, LATER).first == 17
        assert timeline.verify() == []
        assert [event.seq for event in timeline.read()] == list(range(1, COUNT + 2))
        assert archive_events(timeline, LATER).count == 0


def test_a_full_disk_moves_nothing_and_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_events(path)

    def full(_file: int, _text: bytes, _start: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive, "_write_all", full)
    with Timeline(path) as timeline:
        with pytest.raises(FreeholdError) as caught:
            archive_events(timeline, LATER)
        assert caught.value.code == "timeline.disk-full"
        ((live,),) = timeline.query("SELECT count(*) FROM event")
        assert live == COUNT
        assert timeline.verify() == []


def test_what_was_changed_is_not_archived(path: Path) -> None:
    write_events(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("DROP TRIGGER event_stays_same")
        database.execute("UPDATE event SET who = 'nobody' WHERE seq = 20")
        database.commit()
    with Timeline(path) as timeline, pytest.raises(FreeholdError, match="Event 20 was changed"):
        archive_events(timeline, LATER)
    assert verify(path) == [("changed", 20, 20)]


def test_a_clock_that_jumps_holds_nothing_back_and_moves_nothing_early(path: Path) -> None:
    moment = START
    with Timeline(path, clock=lambda: moment) as timeline:
        for number in range(COUNT):
            ahead, behind = number in (3, 4), number in (30, 31)
            moment = START + timedelta(hours=number, days=9999 if ahead else -9999 if behind else 0)
            timeline.append("keeper.counted")
        moment = LATER
        assert archive_events(timeline, START + timedelta(hours=24)).last == 24
        assert archive_events(timeline, START).count == 0
        assert timeline.verify() == []


def test_nothing_after_the_anchor_is_archived(path: Path) -> None:
    """The anchor is compared with its event before it moves on."""
    write_events(path, 20)
    anchor = path.parent / "vault" / "timeline-head"
    kept = anchor.read_bytes()
    write_events(path, 40)
    anchor.write_bytes(kept)
    with Timeline(path) as timeline:
        assert archive_events(timeline, LATER).last == 16
        assert timeline.verify() == []
    anchor.write_bytes(kept.replace(b" ", b"x"))
    with Timeline(path) as timeline, pytest.raises(FreeholdError, match="not written by this Freehold"):
        archive_events(timeline, LATER)


def test_a_timeline_of_format_1_gets_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "timeline.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((Path(__file__).parent / "golden" / "v1.sql").read_text())
    with Timeline(path, readonly=True) as timeline:  # read before anything has migrated it
        before = timeline.read()
        assert timeline.verify() == []
    with Timeline(path) as timeline:
        for _ in range(30):
            timeline.append("keeper.counted")
        assert archive_events(timeline, datetime.now(UTC) + timedelta(days=1)).last == 16
        assert timeline.read(limit=3) == before
        assert timeline.verify() == []


def test_space_of_archived_events_is_given_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiver, "_SPARE_PAGES", 0)
    write_events(path, 3000)
    with Timeline(path) as timeline:
        before = timeline.measure()
        archive_events(timeline, LATER)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with Timeline(path, readonly=True) as timeline:
        after = timeline.measure()
    assert (before.archived, after.archived) == (0, 2984)
    assert after.database_bytes < before.database_bytes / 4
    assert after.archive_bytes > 0
