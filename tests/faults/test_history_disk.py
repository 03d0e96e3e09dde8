"""Full disks, I/O errors and clock jumps: earlier entries stay intact, the error is reported, and history works afterwards."""

import errno
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.history.tree import differences, read_tree, write

from freehold.errors import FreeholdError
from freehold.history import History, HistorySettings, new_files
from freehold.history.contents import ContentStore, write_all

QUIET = HistorySettings(quiet=0)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@needs_root
@pytest.mark.parametrize("large", [True, False])
def test_a_full_disk_fails_the_snapshot_and_keeps_earlier_entries_intact(tmp_path: Path, large: bool) -> None:
    workspace = tmp_path / "workspace"
    write(workspace / "file", "one")
    before = read_tree(workspace)
    with (
        small_disk(tmp_path / "disk", "3M") as disk,
        History(disk / "history", {"workspace": workspace}, HistorySettings(quiet=0, quota=1 << 30)) as history,
    ):
        history.start()
        history.snapshot()
        write(workspace / "file", "two")
        for number in range(1 if large else 200):
            write(workspace / f"more{number}", os.urandom(8 << 20 if large else 40_000))
        for _ in range(2):
            with pytest.raises(FreeholdError, match="disk is full") as refused:
                history.snapshot("turn")
            assert refused.value.code == "history.disk-full"
        with pytest.raises(FreeholdError, match="disk is full"):
            history.undo()
        assert (workspace / "file").read_text() == "two", "nothing is undone that could not be taken first"
        assert [entry.id for entry in history.log()] == [1]
        assert history.verify().damages == ()
        for path in workspace.glob("more*"):
            path.unlink()
        history.collect()
        assert history.snapshot("turn").changed
        assert history.undo().unsettled == ()
        assert not differences(before, read_tree(workspace))


@needs_root
@pytest.mark.parametrize("same_disk", [True, False])
def test_a_restore_that_does_not_fit_on_the_disk_changes_nothing_and_can_be_repeated(
    tmp_path: Path, same_disk: bool
) -> None:
    with small_disk(tmp_path / "disk", "8M") as disk:
        workspace = disk / "workspace"
        for number in range(10):
            write(workspace / f"f{number}", os.urandom(100_000))
        before = read_tree(workspace)
        folder = disk / "history" if same_disk else tmp_path / "history"
        with History(folder, {"workspace": workspace}, HistorySettings(quiet=0, quota=1 << 30)) as history:
            history.snapshot()
            for number in range(10):
                (workspace / f"f{number}").unlink()
            history.snapshot("turn")
            ballast = disk / "ballast"
            with ballast.open("wb") as file:
                room = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
                os.posix_fallocate(file.fileno(), 0, room - 450_000)
            for _ in range(2):
                with pytest.raises(FreeholdError, match="Nothing was changed") as refused:
                    history.undo()
                assert refused.value.code == "history.disk-full"
                assert list(workspace.iterdir()) == []
                assert history.interrupted() is None
            ballast.unlink()
            assert history.undo().unsettled == ()
            assert not differences(before, read_tree(workspace))


@pytest.mark.parametrize("part", ["_write_chunk", "sync"])
def test_an_io_error_of_the_store_is_explained_and_leaves_no_half_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    workspace = tmp_path / "workspace"
    write(workspace / "file", "one")
    with History(tmp_path / "history", {"workspace": workspace}, QUIET) as history:
        history.snapshot()
        write(workspace / "file", "two")
        write(workspace / "large", os.urandom(200_000))

        def broken(*_: object) -> int:
            raise OSError(errno.EIO, "Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr(ContentStore, part, broken)
            with pytest.raises(FreeholdError, match="Earlier entries are intact") as refused:
                history.snapshot("turn")
            assert refused.value.code == "history.store-failed"
        assert [each.id for each in history.log()] == [1]
        assert history.snapshot("turn").entry == 2
        assert history.restore(1).unsettled == ()
        assert (workspace / "file").read_text() == "one"


def test_an_io_error_during_a_restore_is_reported_for_its_path_and_the_others_are_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"
    for name in ("a", "bad", "c"):
        write(workspace / name, f"old {name}")
    with History(tmp_path / "history", {"workspace": workspace}, QUIET) as history:
        history.snapshot()
        for name in ("a", "bad", "c"):
            write(workspace / name, "new")
        real = write_all

        def fail(handle: int, data: bytes) -> None:
            if data == b"old bad":
                raise OSError(errno.EIO, "Input/output error")
            real(handle, data)

        with monkeypatch.context() as patch:
            patch.setattr(new_files, "write_all", fail)
            outcome = history.undo()
        assert outcome.unsettled == ((b"workspace/bad", os.strerror(errno.EIO)),)
        assert [(workspace / name).read_text() for name in ("a", "bad", "c")] == ["old a", "new", "old c"]


def test_a_clock_that_jumps_neither_hides_a_change_nor_reorders_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"
    write(workspace / "file", "0")
    now, now_ns = time.time, time.time_ns
    with History(tmp_path / "history", {"workspace": workspace}, QUIET) as history:
        history.snapshot()
        for number, jump in enumerate((-400 * 86_400, 400 * 86_400, -3600), 1):
            with monkeypatch.context() as patch:
                patch.setattr(time, "time", lambda jump=jump: now() + jump)
                patch.setattr(time, "time_ns", lambda jump=jump: now_ns() + int(jump * 1e9))
                path = write(workspace / "file", str(number))
                os.utime(path, (now() + jump, now() + jump))
                assert history.snapshot("turn").entry == number + 1
        assert [entry.id for entry in history.log()] == [4, 3, 2, 1]
        for number in (2, 1, 0):
            assert history.undo().unsettled == ()
            assert (workspace / "file").read_text() == str(number)


def test_a_write_in_the_same_tick_with_the_same_size_and_time_is_still_found(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    path = write(workspace / "file", "aaaa")
    with History(tmp_path / "history", {"workspace": workspace}, QUIET) as history:
        for number in range(50):
            path.write_text(f"{number:04}")
            os.utime(path, ns=(1, 1))
            history.snapshot("turn")
            version = history.version(history.newest(), "workspace/file")
            assert version is not None
            assert version.content is not None
            assert history.read(version.content) == f"{number:04}".encode()
