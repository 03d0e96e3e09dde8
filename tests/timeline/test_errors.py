"""Errors of the disk and the file are explained, and no acknowledged event is lost."""

import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from freehold.errors import FreeholdError
from freehold.timeline import Timeline, database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Timeline(tmp_path / "timeline.db") as timeline:
        for _ in range(3):
            timeline.append("keeper.started")
    return tmp_path / "timeline.db"


@contextmanager
def refused(code: str) -> Iterator[None]:
    with pytest.raises(FreeholdError) as caught:
        yield
    assert caught.value.code == code
    assert caught.value.hint


@contextmanager
def file_size_limit(limit: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def append_until_refused(timeline: Timeline) -> tuple[int, FreeholdError]:
    acknowledged = 0
    for _ in range(10_000):
        try:
            acknowledged = timeline.append("keeper.counted", {"text": "x" * 4000}).seq
        except FreeholdError as error:
            return acknowledged, error
    raise AssertionError("the disk never filled")


def test_a_full_database_is_explained_and_keeps_what_was_acknowledged(path: Path) -> None:
    with Timeline(path) as timeline:
        with timeline.transaction() as tx:
            tx.execute("PRAGMA max_page_count = 60").fetchone()
        acknowledged, error = append_until_refused(timeline)
        assert error.code == "timeline.disk-full"
        with timeline.transaction() as tx:
            tx.execute("PRAGMA max_page_count = 100000").fetchone()
        assert timeline.append("keeper.recovered").seq == acknowledged + 1
        assert timeline.verify() == []


def test_a_write_error_is_explained_and_later_writes_work(path: Path) -> None:
    """The operating system itself refuses: a file may not grow beyond a limit."""
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with Timeline(path) as timeline:
            with file_size_limit(300_000):
                acknowledged, error = append_until_refused(timeline)
            assert error.code in ("timeline.disk-full", "timeline.disk-error")
            assert acknowledged > 3
            assert timeline.append("keeper.recovered").seq == acknowledged + 1
            assert timeline.verify() == []
    finally:
        signal.signal(signal.SIGXFSZ, old)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", folder]).returncode:
        pytest.skip("mounting a small file system needs root; the two tests before hold the same without it")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_full_file_system_is_explained_and_recovers(small_disk: Path) -> None:
    with Timeline(small_disk / "timeline.db") as timeline:
        ballast = small_disk / "ballast"
        ballast.write_bytes(b"x" * 200_000)
        acknowledged, error = append_until_refused(timeline)
        assert error.code == "timeline.disk-full"
        ballast.unlink()
        assert timeline.append("keeper.recovered").seq == acknowledged + 1
        assert timeline.verify() == []


def test_a_disk_without_a_free_byte_can_still_be_read(small_disk: Path) -> None:
    path = small_disk / "timeline.db"
    with Timeline(path) as timeline:
        timeline.append("keeper.started")
    with (small_disk / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(b"x" * 4096)
    with refused("timeline.disk-full"), Timeline(path) as timeline:
        timeline.append("keeper.started")
    with Timeline(path, readonly=True) as timeline:
        assert [event.kind for event in timeline.read()] == ["keeper.started"]
        assert timeline.verify() == []


@pytest.mark.parametrize("leftovers", [False, True], ids=["clean", "with the files of an earlier reader"])
def test_a_read_only_file_system_can_be_read_and_says_why_it_cannot_be_written(
    small_disk: Path, leftovers: bool
) -> None:
    path = small_disk / "timeline.db"
    with Timeline(path) as timeline:
        timeline.append("keeper.started")
    if leftovers:
        Timeline(path, readonly=True).close()
    assert path.with_name("timeline.db-wal").exists() == leftovers
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with refused("timeline.read-only"):
        Timeline(path)
    with Timeline(path, readonly=True) as timeline:
        assert [event.kind for event in timeline.read()] == ["keeper.started"]
        assert timeline.verify() == []


def test_a_timeline_opened_for_reading_refuses_to_write(path: Path) -> None:
    with Timeline(path, readonly=True) as timeline:
        with refused("timeline.read-only"):
            timeline.append("keeper.started")
        with pytest.raises(FreeholdError):
            timeline.query("DELETE FROM event")


def test_reading_does_not_create_a_missing_timeline(tmp_path: Path) -> None:
    with refused("timeline.missing"):
        Timeline(tmp_path / "timeline.db", readonly=True)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_is_not_yet_a_timeline(tmp_path: Path) -> None:
    path = tmp_path / "timeline.db"
    path.touch()
    with refused("timeline.missing"):
        Timeline(path, readonly=True)
    with Timeline(path) as timeline:
        assert timeline.append("keeper.started").seq == 1


def test_a_missing_folder_is_explained(tmp_path: Path) -> None:
    with refused("timeline.cannot-open"):
        Timeline(tmp_path / "nowhere" / "timeline.db")


def test_a_link_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "timeline.db").symlink_to(tmp_path / "elsewhere.db")
    with refused("timeline.cannot-open"):
        Timeline(tmp_path / "timeline.db")
    assert not (tmp_path / "elsewhere.db").exists()


def test_a_file_that_is_not_a_database_is_explained_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "timeline.db"
    path.write_bytes(b"this is a letter, not a database\n" * 300)
    before = path.read_bytes()
    with refused("timeline.corrupt"):
        Timeline(path)
    with refused("timeline.corrupt"):
        Timeline(path, readonly=True)
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "timeline.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
        other.commit()
    with refused("timeline.foreign"):
        Timeline(path)
    with closing(sqlite3.connect(path)) as other:
        assert [name for (name,) in other.execute("SELECT name FROM sqlite_schema")] == ["recipes"]


def test_a_timeline_from_a_newer_freehold_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {database.FORMAT + 1}")
    with refused("timeline.newer"):
        Timeline(path)


def test_damaged_pages_are_explained(path: Path) -> None:
    with Timeline(path) as timeline, timeline.transaction() as tx:
        for _ in range(300):
            tx.append("keeper.counted")
    raw = bytearray(path.read_bytes())
    raw[4096 * 8 :] = b"\xa5" * (len(raw) - 4096 * 8)
    path.write_bytes(raw)
    with Timeline(path, readonly=True) as timeline, refused("timeline.corrupt"):
        timeline.read()


def test_an_event_that_is_not_json_any_more_is_explained_on_reading(path: Path) -> None:
    with closing(sqlite3.connect(path)) as thief:
        thief.execute("DROP TRIGGER event_stays_same")
        thief.execute("UPDATE event SET data = '{' WHERE seq = 2")
        thief.commit()
    with Timeline(path) as timeline, refused("timeline.tampered"):
        timeline.read()


def test_a_writer_that_waits_too_long_for_the_lock_gets_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LOCK_TIMEOUT", 0.05)
    with Timeline(path) as timeline, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with refused("timeline.busy"):
            timeline.append("keeper.started")
        other.execute("COMMIT")
        assert timeline.append("keeper.started").seq == 4


def test_the_timeline_imports_very_little() -> None:
    """The keeper loads it: no other room, nothing from outside the standard library."""
    code = (
        "import sys; before = set(sys.modules); import freehold.timeline; new = set(sys.modules) - before;"
        "names = {name.partition('.')[0] for name in new} - {'freehold'};"
        "print(sorted(names - sys.stdlib_module_names), 'asyncio' in new,"
        " sorted(n for n in new if n.startswith('freehold.') and not n.startswith('freehold.timeline')))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "[] False ['freehold.errors', 'freehold.private_file']\n"


def test_every_error_code_has_its_line_in_the_guide() -> None:
    root = Path(__file__).parents[2]
    source = "".join(file.read_text() for file in (root / "src/freehold/timeline").glob("*.py"))
    guide = (root / "docs/guides/timeline.md").read_text()
    # What only a builder can cause is not for the owner's table.
    builder = {"timeline.bad-kind", "timeline.bad-who", "timeline.too-big", "timeline.not-json"}
    codes = set(re.findall(r'"(timeline\.[a-z-]+)"', source)) - builder
    assert codes
    assert codes == set(re.findall(r"^\| `(timeline\.[a-z-]+)`", guide, re.MULTILINE))
