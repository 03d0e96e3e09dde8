"""An agent tries to defeat undo with files that history cannot store: the original always comes back, and nothing is lost."""

import fcntl
import os
import resource
import shutil
import signal
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.history.tree import differences, read_tree, write

from freehold.history import Author, History, HistorySettings, RestoreResult, file_writer, staging_area
from freehold.history.restore import Restorer

AGENT = Author("agent", agent="claude", session="8d1f", turn="1")


def open_history(base: Path, **settings: Any) -> History:
    return History(base / "history", {"workspace": base / "workspace"}, HistorySettings(quiet=0, **settings))


def kept_file(outcome: RestoreResult, path: bytes) -> Path:
    return Path(dict(outcome.set_aside)[path])


@contextmanager
def write_lease(path: Path) -> Iterator[None]:
    """Another process holds a write lease on the file and does not let go of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGIO, signal.SIG_IGN)
            handle = os.open(path, os.O_RDWR)
            fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            os.write(writing, b"x")
            signal.pause()
        finally:
            os._exit(1)
    try:
        os.close(writing)
        assert os.read(reading, 1) == b"x", "the file system has leases"
        yield
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def run_unprivileged(action: Callable[[Path], None]) -> None:
    """In a process that is not root: root may read everything."""
    base = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    child = os.fork()
    if child == 0:
        code = 70
        try:
            if os.geteuid() == 0:
                os.chown(base, 65534, 65534)
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            action(base)
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    shutil.rmtree(base, ignore_errors=True)
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.parametrize("limit", ["quota", "rate"])
def test_a_file_too_large_for_the_quota_or_the_rate_is_moved_aside_and_the_original_comes_back(
    tmp_path: Path, workspace: Path, limit: str
) -> None:
    write(workspace / "app.py", "the original")
    (workspace / "run").symlink_to("app.py")
    before = read_tree(workspace)
    with open_history(tmp_path, **{"quota": 1 << 30, "rate": 1 << 30, limit: 1 << 20}) as history:
        history.start()
        history.snapshot()
        flood = os.urandom(3 << 20)
        history.mark("before", who=AGENT)
        for name in ("app.py", "run", "planted"):
            (workspace / name).unlink(missing_ok=True)
            write(workspace / name, flood)
        history.mark("after", who=AGENT)
        details = {step.path[-1]: step.detail for step in history.plan_undo().steps}
        assert "which is kept" in details[b"app.py"]
        outcome = history.undo()
        assert outcome.unsettled == ()
        assert not differences(before, read_tree(workspace))
        for name in ("app.py", "run", "planted"):
            assert kept_file(outcome, f"workspace/{name}".encode()).read_bytes() == flood
        shown = {each.path: each.detail for each in outcome.fates}
        assert str(history.set_aside) in shown[b"workspace/app.py"]


def test_more_files_are_moved_aside_than_may_be_open(tmp_path: Path, workspace: Path) -> None:
    with open_history(tmp_path, quota=1 << 20) as history:
        history.snapshot()
        for number in range(120):
            write(workspace / "planted" / str(number), os.urandom(70 << 10))
        history.snapshot("turn")
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (len([*Path("/proc/self/fd").iterdir()]) + 60, hard))
        try:
            outcome = history.undo()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert outcome.unsettled == ()
        assert len(outcome.set_aside) > 90


def test_a_file_that_did_not_fit_is_stored_as_soon_as_it_fits(tmp_path: Path, workspace: Path) -> None:
    data = os.urandom(3 << 20)
    with open_history(tmp_path, quota=1 << 20) as history:
        history.snapshot()
        path = write(workspace / "large", data)
        os.utime(path, ns=(1, 1))
        history.snapshot("turn")
        history.snapshot()
        entries = [entry.id for entry in history.log()]
    with open_history(tmp_path, quota=1 << 30) as history:
        history.start()
        history.snapshot()
        history.retry_unstored()
        history.retry_unstored()
        assert [notice.code for notice in history.notices()] == []
        path.unlink()
        history.snapshot("turn")
        assert history.undo().unsettled == ()
        assert path.read_bytes() == data
        assert len(history.log()) <= len(entries) + 3


def test_a_write_lease_neither_blocks_nor_defeats_undo(tmp_path: Path, workspace: Path) -> None:
    write(workspace / "file", "the original")
    before = read_tree(workspace)
    with open_history(tmp_path) as history:
        history.start()
        history.snapshot()
        write(workspace / "file", "changed by the agent")
        with write_lease(workspace / "file"):
            history.snapshot("turn", AGENT)
            version = history.version(history.newest(), "workspace/file")
            assert version is not None
            assert version.content is None
            outcome = history.undo()
            assert outcome.unsettled == ()
            assert not differences(before, read_tree(workspace))
        assert kept_file(outcome, b"workspace/file").read_text() == "changed by the agent"


def test_a_leased_file_is_read_when_the_lease_is_gone(history: History, workspace: Path) -> None:
    path = write(workspace / "file", "one")
    with write_lease(path):
        history.snapshot()
    history.snapshot()
    version = history.version(history.newest(), "workspace/file")
    assert version is not None
    assert version.content is not None
    assert version.flag == 0


def test_a_mode_that_forbids_reading_does_not_stop_history_of_a_keeper_that_is_not_root() -> None:
    def action(base: Path) -> None:
        workspace = base / "workspace"
        write(workspace / "file", "the original")
        write(workspace / "folder" / "inner", "inner original")
        write(workspace / "deep" / "a" / "b", "deep original")
        before = read_tree(workspace)
        with open_history(base) as history:
            history.start()
            history.snapshot()
            write(workspace / "file", "changed")
            (workspace / "file").chmod(0)
            write(workspace / "folder" / "planted", "planted")
            (workspace / "folder" / "inner").unlink()
            (workspace / "folder").chmod(0o300)
            write(workspace / "deep" / "a" / "b", "deep changed")
            (workspace / "deep" / "a").chmod(0)
            (workspace / "deep").chmod(0)
            history.snapshot("turn", AGENT)
            assert stat.S_IMODE((workspace / "file").stat().st_mode) == 0, "put back"
            assert stat.S_IMODE((workspace / "deep").stat().st_mode) == 0
            assert stat.S_IMODE((workspace / "folder").stat().st_mode) == 0o300
            version = history.version(history.newest(), "workspace/file")
            assert version is not None
            assert version.content is not None
            assert history.read(version.content) == b"changed"
            assert history.version(history.newest(), "workspace/folder/planted") is not None
            entries = len(history.log())
            history.snapshot()
            assert len(history.log()) == entries, "to read it is not a change"
            outcome = history.undo()
            assert outcome.unsettled == (), outcome.unsettled
            assert not differences(before, read_tree(workspace)), differences(before, read_tree(workspace))
            assert history.redo().unsettled == ()
            assert stat.S_IMODE((workspace / "deep").stat().st_mode) == 0

    run_unprivileged(action)


def test_a_fifo_in_the_place_of_a_file_is_moved_aside(history: History, workspace: Path) -> None:
    write(workspace / "file", "the original")
    history.snapshot()
    (workspace / "file").unlink()
    os.mkfifo(workspace / "file")
    outcome = history.undo()
    assert outcome.unsettled == ()
    assert (workspace / "file").read_text() == "the original"
    assert stat.S_ISFIFO(kept_file(outcome, b"workspace/file").lstat().st_mode)


def test_a_file_whose_name_is_taken_again_is_kept_and_not_stranded_in_staging(
    history: History, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is changed before the exchange, and when it is to be put back, its name is gone, or a folder."""
    write(workspace / "file", "old")
    history.snapshot()
    write(workspace / "file", "new")
    history.snapshot("turn")
    real = staging_area.exchange_names
    calls = 0

    def race(*args: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            (workspace / "file").write_text("never recorded")
        if calls == 2:
            (workspace / "file").unlink()
            write(workspace / "file" / "in-the-way", "x")
            raise FileNotFoundError
        real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(file_writer, "exchange_names", race)
    outcome = history.undo()
    assert kept_file(outcome, b"workspace/file").read_text() == "never recorded"
    assert not [path for path in (history.folder / "staging").rglob("*") if path.is_file()]


def test_what_a_crash_leaves_in_staging_is_kept_when_history_does_not_have_it(tmp_path: Path, workspace: Path) -> None:
    write(workspace / "file", "old")
    with open_history(tmp_path) as history:
        history.snapshot()
        write(workspace / "file", "new")
        history.snapshot("turn")
        history._db.execute("INSERT INTO intent VALUES (1, 'undo', 0, 2, 1, 'abcdef', x'', '{}', '', NULL, NULL)")
    staged = tmp_path / "history" / "staging" / "abc"
    staged.mkdir(parents=True)
    (staged / ".freehold-restore-1-1").write_text("new")
    (staged / ".freehold-restore-1-2").write_text("never recorded")
    (staged / ".freehold-restore-1-3.part").write_text("half")
    with open_history(tmp_path) as history:
        kept = [path for path in history.set_aside.rglob("*") if path.is_file()]
        assert [path.read_text() for path in kept] == ["never recorded"]


def test_a_crash_while_files_are_prepared_leaves_nothing_to_keep(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the tree is in staging then, and what is there may be half written."""
    write(workspace / "file", "old")
    with open_history(tmp_path) as history:
        history.snapshot()
        write(workspace / "file", "new")
        history.snapshot("turn")

    monkeypatch.setattr(Restorer, "begin_changes", lambda restorer: os._exit(7))
    child = os.fork()
    if child == 0:
        with suppress(BaseException), open_history(tmp_path) as history:
            history.undo()
        os._exit(0)
    monkeypatch.undo()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert [path for path in (tmp_path / "history" / "staging").rglob("*") if path.is_file()]
    with open_history(tmp_path) as history:
        assert not history.set_aside.exists()
        assert (workspace / "file").read_text() == "new"
        history.undo()
        assert (workspace / "file").read_text() == "old"
