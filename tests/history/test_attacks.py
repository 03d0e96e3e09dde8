"""A hostile agent changes the tree while it is recorded or restored."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.history.tree import differences, read_tree, write

from freehold.history import History, HistorySettings, tree_reader
from freehold.history.names import find_path, read_name, show_name

ROUNDS = 25


@contextmanager
def running_in_background(act: Callable[[], None]) -> Iterator[None]:
    """Run `act` in a loop in another thread. Its OSErrors are ignored."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            try:
                act()
            except OSError:
                continue

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file that must never be recorded and never be written to."""
    folder = tmp_path / "outside"
    write(folder / "secret", "the owner's key")
    write(folder / "deep" / "secret", "the owner's key")
    return folder


def _contents(history: History) -> set[bytes]:
    found = set()
    for entry in history.log(limit=1000):
        for change in history.changes(entry.id):
            for version in (change.old, change.new):
                if version is not None and version.content is not None:
                    found.add(history.read(version.content))
    return found


def test_a_planted_symlink_is_kept_as_a_link_and_never_followed(
    history: History, workspace: Path, outside: Path
) -> None:
    (workspace / "file").symlink_to(outside / "secret")
    (workspace / "folder").symlink_to(outside)
    history.snapshot()
    assert b"the owner's key" not in _contents(history)
    (workspace / "folder").unlink()
    write(workspace / "folder" / "secret", "mine")
    history.snapshot()
    shutil.rmtree(workspace / "folder")
    (workspace / "folder").symlink_to(outside)
    before = read_tree(outside)
    history.undo()
    assert (workspace / "folder" / "secret").read_text() == "mine"
    assert not differences(before, read_tree(outside))


def test_a_file_swapped_for_a_link_during_snapshots_never_records_files_outside(
    tmp_path: Path, workspace: Path, outside: Path
) -> None:
    write(workspace / "real", "harmless")

    def swap() -> None:
        (workspace / "real").rename(workspace / "aside")
        (workspace / "real").symlink_to(outside / "secret")
        (workspace / "real").unlink()
        (workspace / "aside").rename(workspace / "real")

    with History(tmp_path / "history", {"workspace": workspace}, HistorySettings(quiet=0)) as history:
        with running_in_background(swap):
            for _ in range(ROUNDS):
                history.snapshot()
        assert b"the owner's key" not in _contents(history)


def test_a_folder_replaced_by_a_link_during_a_scan_never_records_files_outside(
    tmp_path: Path, workspace: Path, outside: Path
) -> None:
    for number in range(20):
        write(workspace / "deep" / f"n{number}", "harmless")

    def swap() -> None:
        (workspace / "deep").rename(workspace / "aside")
        (workspace / "deep").symlink_to(outside / "deep")
        (workspace / "deep").unlink()
        (workspace / "aside").rename(workspace / "deep")

    with History(tmp_path / "history", {"workspace": workspace}, HistorySettings(quiet=0)) as history:
        history.start()
        with running_in_background(swap):
            for _ in range(ROUNDS):
                history.snapshot()
        assert b"the owner's key" not in _contents(history)
        newest = history.snapshot().entry
        write(workspace / "deep" / "n3", "changed")
        history.restore(newest)
        assert (workspace / "deep" / "n3").read_text() == "harmless"


def test_a_restore_never_writes_through_a_folder_swapped_for_a_link(
    history: History, workspace: Path, outside: Path
) -> None:
    for number in range(20):
        write(workspace / "deep" / f"n{number}", "old")
    entry = history.snapshot().entry
    before = read_tree(outside)

    def swap() -> None:
        (workspace / "deep").rename(workspace / "aside")
        (workspace / "deep").symlink_to(outside)
        (workspace / "deep").unlink()
        (workspace / "aside").rename(workspace / "deep")

    for round_ in range(5):
        for number in range(20):
            write(workspace / "deep" / f"n{number}", f"new {round_}")
        with running_in_background(swap):
            history.restore(entry)
        assert not differences(before, read_tree(outside))
        if (workspace / "deep").is_symlink():  # the swap was cut off in its middle
            (workspace / "deep").unlink()
    assert history.restore(entry).unsettled == ()


def test_a_hard_link_to_the_outside_is_replaced_and_not_written_through(
    history: History, workspace: Path, outside: Path
) -> None:
    write(workspace / "file", "old")
    history.snapshot()
    (workspace / "file").unlink()
    os.link(outside / "secret", workspace / "file")
    history.undo()
    assert (workspace / "file").read_text() == "old"
    assert (outside / "secret").read_text() == "the owner's key"


def test_a_name_swapped_for_a_fifo_does_not_block_a_snapshot(tmp_path: Path, workspace: Path) -> None:
    write(workspace / "real", "harmless")

    def swap() -> None:
        (workspace / "real").unlink()
        os.mkfifo(workspace / "real")
        (workspace / "real").unlink()
        (workspace / "real").write_text("harmless")

    with (
        History(tmp_path / "history", {"workspace": workspace}, HistorySettings(quiet=0)) as history,
        running_in_background(swap),
    ):
        for _ in range(ROUNDS):
            history.snapshot()


def test_a_file_that_never_stops_growing_is_read_to_a_limit_and_noted(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It grows during every read, like a file whose writer is faster than the reader."""
    path = write(workspace / "endless", "x" * 100)
    with History(tmp_path / "history", {"workspace": workspace}, HistorySettings(quiet=0)) as history:
        real = tree_reader._read
        with monkeypatch.context() as patch:
            patch.setattr(
                tree_reader, "_read", lambda contents, handle, found: _grow(path, real(contents, handle, found))
            )
            entry = history.entry(history.snapshot().entry)
        assert [note for note in entry.notes if "endless changed while it was read" in note]
        assert path.stat().st_size == 100 * (tree_reader.MAX_ATTEMPTS + 2), "the number of readings is bounded"
        history.snapshot()
        version = history.version(history.newest(), "workspace/endless")
        assert version is not None
        assert version.content is not None
        assert history.read(version.content) == path.read_bytes()


def _grow(path: Path, found: int) -> int:
    with path.open("ab") as file:
        file.write(b"x" * 100)
    return found


def test_odd_names_are_kept_and_shown_without_harm(history: History, workspace: Path) -> None:
    base = os.fsencode(workspace)
    odd = [b"new\nline", b"\xff\xfe", b"\x1b[31mred", b"back\\slash", b"\\x41", "ü\u202e.txt".encode(), b" ", b"-rf *"]
    for name in odd:
        Path(os.fsdecode(base + b"/" + name)).write_bytes(name)
    before = read_tree(workspace)
    history.snapshot()
    for name in odd:
        shown = show_name(b"workspace/" + name)
        assert shown.isprintable()
        assert read_name(shown) == b"workspace/" + name
        version = history.version(history.newest(), shown)
        assert version is not None
        assert version.content is not None
        assert history.read(version.content) == name
        Path(os.fsdecode(base + b"/" + name)).unlink()
    history.snapshot("turn")
    history.undo()
    assert not differences(before, read_tree(workspace))
    assert find_path(str(workspace / "x"), history.roots) == (b"workspace", b"x")


def test_a_path_of_more_than_4000_characters(history: History, workspace: Path) -> None:
    handle = os.open(workspace, os.O_RDONLY)
    for _ in range(90):
        os.mkdir("d" * 50, dir_fd=handle)
        inner = os.open("d" * 50, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    deep = os.open("bottom", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=handle)
    os.write(deep, b"deep")
    os.close(deep)
    os.close(handle)
    history.snapshot()
    subtree = "workspace/" + "/".join(["d" * 50] * 90) + "/bottom"
    assert len(subtree) > 4500
    shutil.rmtree(workspace / ("d" * 50))
    history.snapshot("turn")
    assert history.undo().unsettled == ()
    handle = os.open(workspace, os.O_RDONLY)
    for _ in range(90):
        inner = os.open("d" * 50, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    bottom = os.open("bottom", os.O_RDONLY, dir_fd=handle)
    assert os.read(bottom, 10) == b"deep"
    os.close(bottom)
    os.close(handle)


def test_a_hundred_thousand_entries_in_one_folder(tmp_path: Path) -> None:
    base = Path("/dev/shm") if Path("/dev/shm").is_dir() else tmp_path
    folder = base / f"freehold-many-{os.getpid()}"
    try:
        crowd = folder / "workspace" / "crowd"
        crowd.mkdir(parents=True)
        for number in range(100_000):
            os.close(os.open(crowd / str(number), os.O_CREAT | os.O_WRONLY))
        with History(folder / "history", {"workspace": folder / "workspace"}, HistorySettings(quiet=0)) as history:
            history.start()
            history.snapshot()
            write(crowd / "777", "changed")
            (crowd / "778").unlink()
            history.snapshot("turn")
            assert [history.log()[0].changed, history.log()[0].removed] == [1, 1]
            history.undo()
            assert (crowd / "777").read_text() == ""
            assert (crowd / "778").exists()
    finally:
        shutil.rmtree(folder)
