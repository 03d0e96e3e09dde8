"""The watcher knows exactly which paths are dirty, and requires a full scan when it is not sure."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.history.tree import differences, read_tree, write
from tests.support.condition import DEADLINE, wait_until

from freehold.history import History, HistorySettings
from freehold.history.stream import MAX_BATCH_CHANGES, MAX_KEPT_CHANGES, ChangeStream
from freehold.history.tree_scan import TreeScan
from freehold.history.watcher import Watcher


def test_a_mark_records_everything_written_before_it_at_once(history: History, workspace: Path) -> None:
    for number in range(100):
        write(workspace / f"folder{number}" / "inner" / "file", str(number))
        mark = history.snapshot("turn")
        assert mark.changed
        version = history.version(mark.entry, f"workspace/folder{number}/inner/file")
        assert version is not None
        assert version.content is not None
        assert history.read(version.content) == str(number).encode()


def test_an_unchanged_tree_makes_no_entry(history: History, workspace: Path) -> None:
    write(workspace / "file", "x")
    first = history.snapshot()
    assert first.changed
    again = history.snapshot()
    assert (again.entry, again.changed) == (first.entry, False)


def test_a_write_through_one_name_is_known_for_all_names_of_the_file(history: History, workspace: Path) -> None:
    write(workspace / "a", "one")
    history.snapshot()
    os.link(workspace / "a", workspace / "b")
    history.snapshot()
    with (workspace / "b").open("a") as file:
        file.write(" two")
    before = read_tree(workspace)
    entry = history.snapshot().entry
    (workspace / "a").unlink()
    (workspace / "b").unlink()
    history.snapshot()
    history.restore(entry)
    assert not differences(before, read_tree(workspace))


def test_moved_folders_stay_watched_under_their_new_names(history: History, workspace: Path) -> None:
    write(workspace / "a" / "b" / "c" / "file", "1")
    history.snapshot()
    (workspace / "a").rename(workspace / "moved")
    write(workspace / "moved" / "b" / "c" / "file", "2")
    history.snapshot()
    write(workspace / "moved" / "b" / "c" / "file", "3")
    mark = history.snapshot()
    version = history.version(mark.entry, "workspace/moved/b/c/file")
    assert version is not None
    assert version.content is not None
    assert history.read(version.content) == b"3"
    assert history.version(mark.entry, "workspace/a/b/c/file") is None


def test_an_overflow_of_the_kernel_queue_causes_a_scan(tmp_path: Path, workspace: Path) -> None:
    (workspace / "busy").mkdir()
    watcher = Watcher({b"workspace": workspace}, ChangeStream())
    with watcher._lock:
        watcher._rebuild("first scan")
    try:
        watcher.drain_events()
        most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
        for number in range(most // 2 + 100):  # create and close, two events each, with nobody reading
            os.close(os.open(workspace / "busy" / str(number % 500), os.O_CREAT | os.O_WRONLY))
            os.utime(workspace / "busy" / str(number % 500))
        (workspace / "missed").mkdir()
        found = watcher.drain_events()
        assert found.everything is not None
        assert "overflow" in found.everything
        (workspace / "missed" / "later").write_text("x")
        assert (b"workspace", b"missed", b"later") in watcher.drain_events().paths
    finally:
        watcher._thread.start()
        watcher.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may lower the limit in a user namespace of its own")
def test_exhausted_watches_give_a_notice_and_changes_are_still_found(tmp_path: Path) -> None:
    script = f"""
import sys
from pathlib import Path
from freehold.history import History, HistorySettings
base = Path({str(tmp_path)!r})
for number in range(50):
    (base / "w" / str(number)).mkdir(parents=True)
told = []
with History(base / "h", {{"w": base / "w"}}, HistorySettings(quiet=0), on_notice=told.append) as history:
    history.start()
    assert [notice.code for notice in told] == ["history.no-watches"], told
    history.snapshot()
    (base / "w" / "7" / "file").write_text("x")
    assert history.snapshot().changed
    history.undo()
    assert not (base / "w" / "7" / "file").exists()
    assert "max_user_watches" in history.degraded
"""
    limit = "echo 20 > /proc/sys/user/max_inotify_watches && exec " + sys.executable + ' -c "$0"'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", limit, script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_snapshot_is_taken_once_the_writing_has_stopped(tmp_path: Path, workspace: Path) -> None:
    with History(tmp_path / "history", {"workspace": workspace}, HistorySettings(quiet=0.05)) as history:
        history.snapshot()
        history.start()
        write(workspace / "file", "x")
        wait_until(lambda: history.log()[0].kind == "quiet")


def test_a_removed_root_is_restored(history: History, workspace: Path) -> None:
    write(workspace / "a" / "b", "x")
    before = read_tree(workspace)
    history.snapshot()
    shutil.rmtree(workspace)
    assert history.undo().unsettled == ()
    assert not differences(before, read_tree(workspace))
    write(workspace / "a" / "b", "y")
    assert history.snapshot().changed


async def test_changes_arrive_as_a_stream_with_numbers(history: History, workspace: Path) -> None:
    follower = history.stream.follow()
    waiting = asyncio.ensure_future(anext(follower))
    await asyncio.sleep(0)
    write(workspace / "file", "x")
    changes = await asyncio.wait_for(waiting, DEADLINE)
    assert not changes.relist
    assert [item.path for item in changes.items] == [b"workspace/file"]
    assert changes.items[0].word == "added"
    write(workspace / "file", "y")
    later = await asyncio.wait_for(anext(follower), DEADLINE)
    assert later.sequence > changes.sequence
    await follower.aclose()  # type: ignore[attr-defined]


def test_files_in_a_new_folder_are_published_too(history: History, workspace: Path) -> None:
    before = history.stream.sequence
    write(workspace / "new" / "deep" / "file", "x")
    told: set[bytes] = set()
    at = before
    while b"workspace/new/deep/file" not in told:
        changes = history.stream.read(at, DEADLINE)
        assert changes.items, "nothing was told"
        told |= {item.path for item in changes.items}
        at = changes.sequence


def test_a_burst_or_a_slow_reader_causes_a_relist_and_uses_bounded_memory() -> None:
    stream = ChangeStream()
    stream.publish({b"a": "added"})
    assert [item.path for item in stream.since(0).items] == [b"a"]
    stream.publish({str(number).encode(): "added" for number in range(MAX_BATCH_CHANGES + 1)})
    assert stream.since(1).relist
    at = stream.sequence
    assert not stream.since(at).relist
    for number in range(MAX_KEPT_CHANGES + 1):
        stream.publish({str(number).encode(): "changed"})
    assert stream.since(at).relist
    assert stream.since(stream.sequence + 5).relist
    assert len(stream.since(stream.sequence - 10).items) == 10


def test_a_roots_own_mode_and_time_are_recorded_without_a_full_scan(
    history: History, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("everything was looked at")

    monkeypatch.setattr(TreeScan, "_scan_root", refuse)
    workspace.chmod(0o750)
    os.utime(workspace, ns=(5, 5))
    entry = history.snapshot().entry
    version = history.version(entry, "workspace")
    assert version is not None
    assert (version.mode & 0o777, version.mtime) == (0o750, 5)
    assert history.undo().unsettled == ()
    assert workspace.stat().st_mode & 0o777 != 0o750
