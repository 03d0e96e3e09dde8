"""Very deep folders: an undo of them costs what they have, and needs few open files."""

import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from freehold.history import History, HistorySettings, tree_reader
from freehold.history.folder_handles import FolderHandles
from freehold.history.staging_area import has_name, prepare_staging
from freehold.history.tree_reader import WidenedModes

FEW_FILES = 160


def make_chain(folder: Path, levels: int) -> None:
    """Folders in folders, each with a file. The path may be longer than what one call takes."""
    handle = os.open(folder, os.O_RDONLY)
    for level in range(levels):
        os.mkdir("d", dir_fd=handle)
        file = os.open("f", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=handle)
        os.write(file, b"%d" % level)
        os.close(file)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)


def read_chain(folder: Path) -> list[bytes]:
    """What the files say, from the top to the bottom."""
    found = []
    handle = os.open(folder, os.O_RDONLY)
    while has_name(b"d", handle):
        file = os.open("f", os.O_RDONLY, dir_fd=handle)
        found.append(os.read(file, 100))
        os.close(file)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)
    return found


@contextmanager
def few_open_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len([*Path("/proc/self/fd").iterdir()]) + FEW_FILES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("watched", [True, False])
def test_undo_and_redo_of_a_folder_that_is_deeper_than_files_may_be_open(
    tmp_path: Path, workspace: Path, watched: bool
) -> None:
    levels = FEW_FILES * 3
    with History(tmp_path / "history", {"workspace": workspace}, HistorySettings(quiet=0)) as history:
        if watched:
            history.start()
        history.snapshot()
        make_chain(workspace, levels)
        history.snapshot("turn")
        with few_open_files():
            assert history.undo().unsettled == ()
            assert not any(workspace.iterdir())
            assert history.redo().unsettled == ()
        assert read_chain(workspace) == [b"%d" % level for level in range(levels)]
        with few_open_files():
            assert history.revert(2).unsettled == ()
        assert not any(workspace.iterdir())
        history.empty_staging()


def count_work(history: History, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many folders an undo opens, and how many statements it runs."""
    counts = [0]
    real = tree_reader.open_folder

    def open_folder(folder: int, name: bytes) -> int:
        counts[0] += 1
        return real(folder, name)

    with monkeypatch.context() as patch:
        patch.setattr(tree_reader, "open_folder", open_folder)
        history._db.set_trace_callback(lambda _: counts.__setitem__(0, counts[0] + 1))
        try:
            assert history.undo().unsettled == ()
        finally:
            history._db.set_trace_callback(None)
    return counts[0]


def test_the_work_of_an_undo_grows_with_the_depth_and_not_with_its_square(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = []
    for levels in (100, 400):
        base = tmp_path / str(levels)
        tree = base / "tree"
        tree.mkdir(parents=True)
        with History(base / "history", {"workspace": tree}, HistorySettings(quiet=0)) as history:
            history.snapshot()
            make_chain(tree, levels)
            history.snapshot("turn")
            away = count_work(history, monkeypatch)
            make_chain(tree, levels)
            history.snapshot("turn")
            shutil.rmtree(tree / "d")
            history.snapshot("turn")
            work.append(away + count_work(history, monkeypatch))
    assert work[1] < 8 * work[0], work  # with the square it would be sixteen times as much


def test_a_handle_leads_to_the_folder_that_is_at_the_path_and_never_through_a_symlink(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a" / "b").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    handles = FolderHandles({b"root": root}, WidenedModes())
    entered = os.fstat(handles.enter((b"root", b"a", b"b")))
    assert os.path.samestat(entered, (root / "a" / "b").stat())
    (root / "c").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match=r"Not a directory|symbolic"):
        handles.enter((b"root", b"c"))
    assert handles.depth == 1
    with pytest.raises(FileNotFoundError):
        handles.enter((b"root", b"a", b"missing", b"below"))
    assert handles.depth == 2
    handles.close()
    handles.close()


def test_staging_is_emptied_of_what_a_crash_left_however_deep_it_is(tmp_path: Path) -> None:
    staging = tmp_path / "staging"
    (staging / "0123").mkdir(parents=True)
    make_chain(staging / "0123", 1500)
    (staging / "0123" / "forbidden").mkdir(mode=0)
    (staging / "0123" / "link").symlink_to(tmp_path)
    with few_open_files():
        prepare_staging(staging)
    assert not any(staging.iterdir())
    assert tmp_path.is_dir()
