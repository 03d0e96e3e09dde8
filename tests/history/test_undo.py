"""Undo, redo, restore and revert through `History`."""

import os
import shutil
import stat
import threading
from pathlib import Path

import pytest
from tests.history.tree import differences, read_tree, write

from freehold.errors import FreeholdError
from freehold.history import Author, History, staging_area
from freehold.history.names import show_name


def test_undo_brings_back_everything_a_shell_command_destroyed(history: History, workspace: Path) -> None:
    write(workspace / "src" / "a.py", "print()\n", 0o755)
    write(workspace / ".git" / "HEAD", "ref: refs/heads/main\n")
    write(workspace / "src" / "nested" / ".git" / "objects" / "ab", b"\0\1\2")
    (workspace / "empty").mkdir()
    (workspace / "link").symlink_to("src/a.py")
    os.link(workspace / "src" / "a.py", workspace / "same.py")
    (workspace / "locked").mkdir()
    write(workspace / "locked" / "in", "x")
    (workspace / "locked").chmod(0o555)
    before = read_tree(workspace)
    history.mark("before")
    for name in ("src", ".git", "empty", "locked"):
        shutil.rmtree(workspace / name)
    (workspace / "link").unlink()
    history.mark("after", "turn", Author("agent", agent="claude", turn="7", prompt="clean up"), "clean up")
    outcome = history.undo(who=Author("owner"))
    assert outcome.unsettled == ()
    assert not differences(before, read_tree(workspace))
    assert outcome.entry.kind == "undo"
    assert outcome.entry.who.by == "owner"
    assert (workspace / "same.py").samefile(workspace / "src" / "a.py")


def test_undo_goes_further_back_each_time_and_redo_comes_forward_again(history: History, workspace: Path) -> None:
    states = []
    for number in range(4):
        write(workspace / "file", f"{number}\n")
        history.snapshot("turn")
        states.append(read_tree(workspace))
    for number in (2, 1, 0):
        assert history.undo().unsettled == ()
        assert not differences(states[number], read_tree(workspace))
    for number in (1, 2, 3):
        assert history.redo().unsettled == ()
        assert not differences(states[number], read_tree(workspace))
    with pytest.raises(FreeholdError, match="nothing to redo"):
        history.redo()


def test_an_edit_after_an_undo_ends_redo_but_loses_nothing(history: History, workspace: Path) -> None:
    write(workspace / "file", "one")
    history.snapshot("turn")
    write(workspace / "file", "two")
    second = history.snapshot("turn").entry
    history.undo()
    write(workspace / "file", "three")
    with pytest.raises(FreeholdError, match="nothing to redo"):
        history.redo()
    history.undo()
    assert (workspace / "file").read_text() == "one"
    history.restore(second)
    assert (workspace / "file").read_text() == "two"


def test_unrecorded_changes_are_recorded_before_an_undo(history: History, workspace: Path) -> None:
    write(workspace / "file", "kept")
    history.snapshot("turn")
    write(workspace / "file", "never marked")
    history.undo()
    assert (workspace / "file").read_text() == "kept"
    history.redo()
    assert (workspace / "file").read_text() == "never marked"


def test_the_plan_names_every_path_and_its_fate_and_writes_nothing(history: History, workspace: Path) -> None:
    write(workspace / "stays", "x")
    write(workspace / "goes", "x")
    write(workspace / "changes", "x")
    write(workspace / "mode", "x")
    history.snapshot()
    write(workspace / "new", "y")
    (workspace / "goes").unlink()
    write(workspace / "changes", "y")
    (workspace / "mode").chmod(0o700)
    after = read_tree(workspace)
    plan = history.plan_undo()
    fates = {show_name(b"/".join(step.path)): step.fate for step in plan.steps}
    assert fates == {
        "workspace": "time",
        "workspace/new": "remove",
        "workspace/goes": "write",
        "workspace/changes": "write",
        "workspace/mode": "mode",
    }
    assert not differences(after, read_tree(workspace))


def test_restore_of_one_path_leaves_the_others(history: History, workspace: Path) -> None:
    write(workspace / "a" / "one", "old")
    write(workspace / "b", "old")
    entry = history.snapshot().entry
    write(workspace / "a" / "one", "new")
    write(workspace / "a" / "two", "new")
    write(workspace / "b", "new")
    history.restore(entry, ["workspace/a"])
    assert (workspace / "a" / "one").read_text() == "old"
    assert not (workspace / "a" / "two").exists()
    assert (workspace / "b").read_text() == "new"


def test_a_restore_writes_only_what_differs(history: History, workspace: Path) -> None:
    for number in range(20):
        write(workspace / f"f{number}", "same")
    history.snapshot()
    inodes = {path: path.stat().st_ino for path in workspace.iterdir()}
    write(workspace / "f3", "other")
    history.undo()
    changed = {path.name for path in workspace.iterdir() if path.stat().st_ino != inodes[path]}
    assert changed == {"f3"}


def test_files_that_became_folders_and_folders_that_became_files(history: History, workspace: Path) -> None:
    write(workspace / "file", "was a file")
    write(workspace / "folder" / "deep" / "in", "was a folder")
    (workspace / "link").symlink_to("nowhere")
    before = read_tree(workspace)
    history.snapshot()
    (workspace / "file").unlink()
    write(workspace / "file" / "now" / "a-folder", "x")
    shutil.rmtree(workspace / "folder")
    write(workspace / "folder", "now a file")
    (workspace / "link").unlink()
    (workspace / "link").mkdir()
    after = read_tree(workspace)
    assert history.undo().unsettled == ()
    assert not differences(before, read_tree(workspace))
    assert history.redo().unsettled == ()
    assert not differences(after, read_tree(workspace))


def test_a_file_that_is_open_keeps_its_bytes_for_its_reader(history: History, workspace: Path) -> None:
    write(workspace / "log", "old")
    history.snapshot()
    write(workspace / "log", "newer")
    with (workspace / "log").open() as reader:
        history.undo()
        assert reader.read() == "newer"
    assert (workspace / "log").read_text() == "old"


def test_a_new_fifo_is_noted_and_left_alone(history: History, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    write(workspace / "small", "y")
    history.snapshot()
    outcome = history.undo()
    assert stat.S_ISFIFO((workspace / "pipe").lstat().st_mode)
    assert not (workspace / "small").exists()
    assert {path for path, _ in outcome.unsettled} == {b"workspace/pipe"}


def test_a_file_with_a_huge_hole_is_kept_as_it_is_and_costs_nothing(history: History, workspace: Path) -> None:
    path = write(workspace / "disk.img", b"begin" * 20_000)
    with path.open("r+b") as file:
        file.seek(40 << 30)
        file.write(b"the end")
    blocks = path.stat().st_blocks
    used = history.size().used
    history.snapshot()
    assert history.size().used - used < 1 << 20
    path.unlink()
    history.snapshot("turn")
    assert history.undo().unsettled == ()
    assert path.stat().st_size == (40 << 30) + 7
    assert path.stat().st_blocks <= blocks + 16
    with path.open("rb") as file:
        assert file.read(100_000) == b"begin" * 20_000
        file.seek(40 << 30)
        assert file.read() == b"the end"
    assert history.verify().damages == ()
    version = history.version(history.newest(), "workspace/disk.img")
    assert version is not None
    assert version.content is not None
    assert history.read_range(version.content, (40 << 30) - 3, 10) == b"\0\0\0the end"


def test_revert_takes_back_one_entry_and_keeps_later_changes(history: History, workspace: Path) -> None:
    write(workspace / "text", "".join(f"line {n}\n" for n in range(30)))
    write(workspace / "other", "1")
    history.snapshot()
    write(workspace / "text", (workspace / "text").read_text().replace("line 3\n", "LINE THREE\n"))
    write(workspace / "added", "by the entry")
    (workspace / "other").unlink()
    entry = history.snapshot("turn").entry
    write(workspace / "text", (workspace / "text").read_text() + "appended later\n")
    write(workspace / "later", "kept")
    history.snapshot("turn")
    assert history.revert(entry).unsettled == ()
    text = (workspace / "text").read_text()
    assert "line 3\n" in text
    assert text.endswith("appended later\n")
    assert not (workspace / "added").exists()
    assert (workspace / "other").read_text() == "1"
    assert (workspace / "later").read_text() == "kept"
    history.undo()
    assert (workspace / "added").read_text() == "by the entry"


def test_a_revert_of_several_entries_takes_back_all_of_them_and_keeps_later_changes(
    history: History, workspace: Path
) -> None:
    """A turn has more than one entry when writing paused during the turn."""
    before = history.snapshot("snapshot").entry
    (workspace / "first").write_text("1")
    history.snapshot("quiet")
    (workspace / "second").write_text("2")
    last = history.snapshot("turn").entry
    (workspace / "later").write_text("3")
    assert history.revert(last, since=before).unsettled == ()
    assert not (workspace / "first").exists()
    assert not (workspace / "second").exists()
    assert (workspace / "later").read_text() == "3"
    with pytest.raises(FreeholdError, match="does not come before"):
        history.plan_revert(last, since=last)


def test_a_revert_with_conflicts_writes_nothing_until_the_owner_chooses(history: History, workspace: Path) -> None:
    write(workspace / "text", "one\n")
    write(workspace / "clean", "one\n")
    history.snapshot()
    write(workspace / "text", "two\n")
    write(workspace / "clean", "two\n")
    entry = history.snapshot("turn").entry
    write(workspace / "text", "three\n")
    history.snapshot("turn")
    before = read_tree(workspace)
    plan = history.plan_revert(entry)
    assert [(show_name(b"/".join(c.path)), c.reason) for c in plan.conflicts] == [
        ("workspace/text", "the same lines were changed later")
    ]
    with pytest.raises(FreeholdError, match="Nothing was written") as refused:
        history.revert(entry)
    assert refused.value.code == "history.conflicts"
    assert not differences(before, read_tree(workspace))
    history.revert(entry, {"workspace/text": "mine"})
    assert ((workspace / "text").read_text(), (workspace / "clean").read_text()) == ("three\n", "one\n")
    history.undo()
    history.revert(entry, {"": "old"})
    assert ((workspace / "text").read_text(), (workspace / "clean").read_text()) == ("one\n", "one\n")


def test_a_tree_being_written_to_ends_as_planned_or_says_what_differs(history: History, workspace: Path) -> None:
    for number in range(50):
        write(workspace / f"f{number}", "old")
    history.snapshot()
    for number in range(50):
        write(workspace / f"f{number}", "new")
    turn = history.snapshot("turn").entry
    stop = threading.Event()

    def keep_writing() -> None:
        count = 0
        while not stop.is_set():
            count += 1
            (workspace / "f7").write_text(f"busy {count}")

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        outcome = history.undo(turn)
    finally:
        stop.set()
        writer.join()
    told = {path for path, _ in outcome.unsettled}
    for number in range(50):
        if number != 7:
            assert (workspace / f"f{number}").read_text() == "old"
    assert told <= {b"workspace/f7", b"workspace"}
    version = history.version(outcome.entry.id, "workspace/f7")
    settled = version is not None and version.content is not None and history.read(version.content) == b"old"
    assert settled != (b"workspace/f7" in told)


def test_nothing_written_during_a_restore_is_lost(
    history: History, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write between the plan and the exchange is detected and recorded before the file is replaced."""
    write(workspace / "file", "old")
    history.snapshot()
    write(workspace / "file", "new")
    history.snapshot("turn")
    real = staging_area.exchange_names
    raced = threading.Event()

    def race(*args: object) -> None:
        if not raced.is_set():
            raced.set()
            (workspace / "file").write_text("written in the gap")
        real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr("freehold.history.file_writer.exchange_names", race)
    outcome = history.undo()
    assert outcome.unsettled == ()
    assert (workspace / "file").read_text() == "old"
    kept = [history.version(entry.id, "workspace/file") for entry in history.log()]
    assert b"written in the gap" in [history.read(version.content) for version in kept if version and version.content]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_root_restores_belongs_to_the_owner_of_the_folder(history: History, workspace: Path) -> None:
    os.chown(workspace, 1234, 2345)
    write(workspace / "a" / "b", "x")
    history.snapshot()
    shutil.rmtree(workspace / "a")
    history.undo()
    for path in (workspace / "a", workspace / "a" / "b"):
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


def test_undo_of_the_oldest_entry_and_of_an_unknown_one_is_explained(history: History) -> None:
    with pytest.raises(FreeholdError, match="oldest"):
        history.undo()
    with pytest.raises(FreeholdError, match="no entry 99"):
        history.undo(99)


def test_many_files_are_written_by_two_threads_and_each_is_right(history: History, workspace: Path) -> None:
    """Deleted, changed and added, in one undo; more files than one thread writes alone."""
    for number in range(1200):
        write(workspace / f"d{number % 7}" / str(number), f"old {number}\n" * (number % 5), 0o600 + number % 2 * 0o44)
    (workspace / "d3" / "link").symlink_to("3")
    before = read_tree(workspace)
    history.snapshot()
    for folder in ("d0", "d1", "d2"):
        shutil.rmtree(workspace / folder)
    for number in range(1200):
        if number % 7 > 2:
            write(workspace / f"d{number % 7}" / str(number), f"new {number}\n")
        write(workspace / "added" / str(number), "added\n")
    history.snapshot("turn")
    outcome = history.undo()
    assert outcome.unsettled == ()
    assert not differences(before, read_tree(workspace))
    assert not history.snapshot().changed


def test_memory_is_given_back_without_waiting_for_long_work(history: History) -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with history._lock:
            held.set()
            done.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert held.wait(30)
        history.release_memory()
        assert not done.is_set()
    finally:
        done.set()
        holder.join()
    history.release_memory()
    assert history.newest() == 1
