"""Times alone make no entry: they become a part of the newest one."""

import os
from pathlib import Path

import pytest
from tests.history.tree import read_tree, write

from freehold.history import History


def test_writing_the_same_content_again_makes_no_entry(history: History, workspace: Path) -> None:
    write(workspace / "file", "one")
    history.snapshot("turn")
    before = read_tree(workspace)
    write(workspace / "file", "two")
    entry = history.snapshot("turn").entry
    write(workspace / "file", "two")
    os.utime(workspace / "file", ns=(7, 7))
    again = history.snapshot("turn")
    assert (again.entry, again.changed) == (entry, False)
    outcome = history.undo()
    assert outcome.entry.why == f"undo of entry {entry}"
    assert read_tree(workspace) == before


@pytest.mark.parametrize("names", [["file"], ["file", "linked"]])
def test_the_time_comes_back_with_the_newest_entry_and_earlier_ones_keep_theirs(
    history: History, workspace: Path, names: list[str]
) -> None:
    write(workspace / "file", "same")
    for name in names[1:]:
        os.link(workspace / "file", workspace / name)
    history.snapshot("turn")
    first = read_tree(workspace)
    write(workspace / "other", "1")
    second = history.snapshot("turn").entry
    os.utime(workspace / "file", ns=(7, 7))
    assert not history.snapshot("turn").changed
    touched = read_tree(workspace)
    write(workspace / "other", "2")
    history.snapshot("turn")
    assert history.restore(second).unsettled == ()
    assert read_tree(workspace) == touched
    assert history.restore(second - 1).unsettled == ()
    assert read_tree(workspace) == first


def test_a_time_that_changed_with_other_files_is_no_counted_change(history: History, workspace: Path) -> None:
    write(workspace / "file", "same")
    history.snapshot("turn")
    os.utime(workspace / "file", ns=(7, 7))
    write(workspace / "new", "1")
    entry = history.entry(history.snapshot("turn").entry)
    assert (entry.added, entry.changed, entry.removed) == (1, 0, 0)
    shown = {change.path for change in history.changes(entry.id) if not change.is_only_time}
    assert shown == {b"workspace/new"}


def test_a_temporary_file_that_is_gone_makes_no_entry(history: History, workspace: Path) -> None:
    newest = history.newest()
    write(workspace / "draft", "x").unlink()
    assert not history.snapshot("turn").changed
    assert history.newest() == newest


def test_a_mode_is_a_change(history: History, workspace: Path) -> None:
    write(workspace / "file", "same", 0o644)
    history.snapshot("turn")
    (workspace / "file").chmod(0o755)
    assert history.snapshot("turn").changed
