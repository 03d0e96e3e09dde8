"""Working copies: what was changed in a copy is kept, merged line by line, asked about or dropped, and never lost."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.history.tree import differences, read_tree, write

from freehold.errors import FreeholdError
from freehold.history import Author, History, HistorySettings
from freehold.history import working_copy as working_copy_module
from freehold.history.copy_calls import CompareChangeSet
from freehold.history.service import HistoryService


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    return tmp_path / "copies"


def copy_of(copies: Path, name: str = "run-a") -> Path:
    return copies / name / "workspace"


def changed(history: History, name: str = "run-a") -> list[tuple[str, str]]:
    return [(change.path.decode(), change.word) for change in history.read_change_set(name)[1]]


def test_a_copy_is_the_folder_as_it_is_now_and_shares_nothing_with_it(
    history: History, workspace: Path, copies: Path
) -> None:
    write(workspace / "site" / "a.py", "print()\n", 0o755)
    write(workspace / "site" / ".git" / "HEAD", "ref\n")
    (workspace / "site" / "empty").mkdir()
    (workspace / "site" / "link").symlink_to("../../etc/passwd")
    os.link(workspace / "site" / "a.py", workspace / "site" / "same.py")
    write(workspace / "site" / "large", os.urandom(200_000))
    write(workspace / "other", "not copied")
    history.check_out("run-a", "workspace/site")
    there = copy_of(copies)
    assert [path.name for path in there.iterdir()] == ["site"]
    assert not differences(read_tree(workspace / "site"), read_tree(there / "site")).keys() - {b"a.py", b"same.py"}
    for path in ("a.py", "same.py", "large"):
        ours, theirs = workspace / "site" / path, there / "site" / path
        assert ours.read_bytes() == theirs.read_bytes()
        assert not ours.samefile(theirs)
        assert theirs.stat().st_nlink == 1
    assert (there / "site" / "a.py").stat().st_mode == (workspace / "site" / "a.py").stat().st_mode
    assert history.collect_copy("run-a").skipped == ()
    assert changed(history) == []
    assert not (copies / "run-a").exists()


def test_changes_of_a_copy_are_merged_as_one_entry_that_can_be_undone(
    history: History, workspace: Path, copies: Path
) -> None:
    write(workspace / "site" / "a.txt", "one\ntwo\nthree\n")
    write(workspace / "site" / "gone.txt", "x")
    write(workspace / "site" / "kept.txt", "x")
    history.check_out("run-a", "workspace/site")
    site = copy_of(copies) / "site"
    write(site / "a.txt", "one\ntwo\nTHREE\n")
    (site / "gone.txt").unlink()
    write(site / "new" / "deep" / "b.txt", "b", 0o755)
    (site / "link").symlink_to("a.txt")
    before = read_tree(workspace)
    history.collect_copy("run-a")
    assert changed(history) == [
        ("workspace/site/a.txt", "changed"),
        ("workspace/site/gone.txt", "removed"),
        ("workspace/site/link", "added"),
        ("workspace/site/new", "added"),
        ("workspace/site/new/deep", "added"),
        ("workspace/site/new/deep/b.txt", "added"),
    ]
    assert not differences(before, read_tree(workspace))
    done = history.merge("run-a", Author("owner"), "changes of A")
    assert done is not None
    assert (done.entry.kind, done.entry.why, done.unsettled) == ("merge", "changes of A", ())
    site = workspace / "site"
    assert (site / "a.txt").read_text() == "one\ntwo\nTHREE\n"
    assert not (site / "gone.txt").exists()
    assert (site / "new" / "deep" / "b.txt").stat().st_mode & 0o777 == 0o755
    assert (site / "link").readlink() == Path("a.txt")
    # A second time changes nothing.
    write(site / "a.txt", "of the owner")
    assert history.merge("run-a") is None
    assert (site / "a.txt").read_text() == "of the owner"
    history.undo()
    history.undo()
    assert (site / "gone.txt").read_text() == "x"
    assert (site / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_changes_of_two_sides_in_one_file_are_both_kept_and_the_same_lines_are_a_conflict(
    history: History, workspace: Path, copies: Path
) -> None:
    lines = "".join(f"line {number}\n" for number in range(20))
    write(workspace / "a.txt", lines)
    write(workspace / "b.txt", lines)
    write(workspace / "c.txt", "c")
    history.check_out("run-a", "workspace/.")
    there = copy_of(copies)
    for name in ("a.txt", "b.txt"):
        write(there / name, lines.replace("line 3\n", "run 3\n"))
    (there / "c.txt").unlink()
    history.collect_copy("run-a")
    write(workspace / "a.txt", lines.replace("line 15\n", "owner 15\n"))
    plan = history.plan_merge("run-a")
    assert plan.conflicts == ()
    write(workspace / "b.txt", lines.replace("line 3\n", "owner 3\n"))
    write(workspace / "c.txt", "c of the owner")
    with pytest.raises(FreeholdError) as refused:
        history.merge("run-a")
    assert refused.value.code == "history.conflicts"
    assert "b.txt, c.txt" in refused.value.message
    # Nothing was written.
    assert "run 3" not in (workspace / "a.txt").read_text()
    found = HistoryService(history).answer(CompareChangeSet("run-a"))
    assert [one.path for one in found.conflicts] == ["workspace/b.txt", "workspace/c.txt"]
    assert [one.path for one in found.files] == ["workspace/a.txt", "workspace/b.txt", "workspace/c.txt"]
    assert history.merge("run-a", force=True) is not None
    merged = lines.replace("line 3\n", "run 3\n")
    assert (workspace / "a.txt").read_text() == merged.replace("line 15\n", "owner 15\n")
    assert (workspace / "b.txt").read_text() == merged
    assert not (workspace / "c.txt").exists()


def test_an_empty_copy_brings_new_files_and_does_not_overwrite(history: History, workspace: Path, copies: Path) -> None:
    (workspace / "docs").mkdir(mode=0o700)
    write(workspace / "docs" / "same.txt", "of the owner")
    history.check_out("run-a", None)
    write(copy_of(copies) / "docs" / "new.txt", "new")
    write(copy_of(copies) / "docs" / "same.txt", "of the run")
    history.collect_copy("run-a")
    assert [one.path[-1] for one in history.plan_merge("run-a").conflicts] == [b"same.txt"]
    history.drop_copy("run-a")
    with pytest.raises(FreeholdError, match="no changes"):
        history.merge("run-a")


def test_a_change_that_hides_behind_the_old_size_and_time_is_found(
    history: History, workspace: Path, copies: Path
) -> None:
    write(workspace / "a.txt", "old")
    history.check_out("run-a", "workspace/.")
    path = copy_of(copies) / "a.txt"
    found = path.stat()
    path.write_text("new")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    history.collect_copy("run-a")
    assert changed(history) == [("workspace/a.txt", "changed")]


def test_what_a_copy_links_to_is_never_read(history: History, workspace: Path, copies: Path, tmp_path: Path) -> None:
    """A link to a file of the host, and a folder replaced by a link to one."""
    write(tmp_path / "secret" / "key", "hunter2")
    write(workspace / "folder" / "key", "mine")
    history.check_out("run-a", "workspace/.")
    there = copy_of(copies)
    shutil.rmtree(there / "folder")
    (there / "folder").symlink_to(tmp_path / "secret")
    (there / "file").symlink_to(tmp_path / "secret" / "key")
    os.mkfifo(there / "pipe")
    done = history.collect_copy("run-a")
    assert [one.partition(":")[0] for one in done.skipped] == ["workspace/pipe"]
    assert history.merge("run-a") is not None
    assert (workspace / "file").readlink() == tmp_path / "secret" / "key"
    database = (tmp_path / "history" / "history.db").read_bytes() + (
        tmp_path / "history" / "history.db-wal"
    ).read_bytes()
    assert b"hunter2" not in database
    assert (tmp_path / "secret" / "key").read_text() == "hunter2"


def test_a_copy_and_its_changes_survive_the_death_of_the_process(tmp_path: Path, workspace: Path, copies: Path) -> None:
    write(workspace / "a.txt", "old")
    settings = HistorySettings(quiet=0)
    with History(tmp_path / "history", {"workspace": workspace}, settings) as first:
        base = first.check_out("run-a", "workspace/.").base
        write(copy_of(copies) / "a.txt", "new")
        (copies / "run-stray").mkdir()
    with History(tmp_path / "history", {"workspace": workspace}, settings) as second:
        assert not (copies / "run-stray").exists()
        second.collect_copy("run-a")
        second.collect_copy("run-a")
    with History(tmp_path / "history", {"workspace": workspace}, settings) as third:
        # What the changes need is not collected as garbage, however old it is.
        for text in ("x", "y"):
            write(workspace / "a.txt", text)
            third.snapshot()
        third.collect(now=10e9)
        assert third.entry(base).id == base
        assert changed(third) == [("workspace/a.txt", "changed")]
        assert third.verify().damages == ()
        with pytest.raises(FreeholdError, match=r"a\.txt"):
            third.merge("run-a")
        assert third.merge("run-a", force=True) is not None
    assert (workspace / "a.txt").read_text() == "new"


def test_a_merge_that_was_interrupted_is_finished_by_asking_again(
    history: History, workspace: Path, copies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from freehold.history.restore_runner import RestoreRunner

    for name in ("a", "b", "c"):
        write(workspace / name, "old")
    history.check_out("run-a", "workspace/.")
    for name in ("a", "b", "c"):
        write(copy_of(copies) / name, "new")
    history.collect_copy("run-a")

    def cut(*_: object, **__: object) -> int:
        raise sqlite3.OperationalError("the machine stopped")

    with monkeypatch.context() as patch:
        patch.setattr(RestoreRunner, "_close", cut)
        with pytest.raises(FreeholdError) as stopped:
            history.merge("run-a")
        assert stopped.value.code == "history.restore-interrupted"
    assert history.interrupted() is not None
    assert history.merge("run-a") is not None
    assert history.interrupted() is None
    assert [(workspace / name).read_text() for name in ("a", "b", "c")] == ["new"] * 3
    assert history.merge("run-a") is None


@pytest.mark.parametrize(
    ("folder", "code"),
    [
        ("workspace/none", "history.no-folder"),
        ("workspace/file", "history.no-folder"),
        ("workspace/link", "history.no-folder"),
        ("workspace/../..", "history.bad-path"),
        ("elsewhere", "history.unknown-path"),
    ],
)
def test_what_is_no_folder_of_the_workspace_is_not_copied(
    history: History, workspace: Path, copies: Path, folder: str, code: str
) -> None:
    write(workspace / "file", "x")
    (workspace / "link").symlink_to("/etc")
    with pytest.raises(FreeholdError) as refused:
        history.check_out("run-a", folder)
    assert refused.value.code == code
    assert not (copies / "run-a").exists()
    history.check_out("run-a", None)
    with pytest.raises(FreeholdError) as refused:
        history.check_out("run-a", None)
    assert refused.value.code == "history.exists"
    with pytest.raises(FreeholdError) as refused:
        history.check_out("../x", None)
    assert refused.value.code == "history.bad-name"


@pytest.mark.parametrize("limit", ["MAX_PATHS", "MAX_COPY_BYTES"])
def test_a_folder_that_is_too_large_is_not_copied(
    history: History, workspace: Path, copies: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    for number in range(5):
        write(workspace / str(number), "x" * 100)
    monkeypatch.setattr(working_copy_module, limit, 4)
    with pytest.raises(FreeholdError) as refused:
        history.check_out("run-a", "workspace/.")
    assert refused.value.code == "history.too-big"
    assert not (copies / "run-a").exists()


def test_a_flood_of_files_in_a_copy_is_refused_and_the_copy_stays_until_it_is_dropped(
    history: History, copies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.check_out("run-a", None)
    for number in range(20):
        write(copy_of(copies) / str(number), "x")
    monkeypatch.setattr(working_copy_module, "MAX_CHANGES", 10)
    with pytest.raises(FreeholdError) as refused:
        history.collect_copy("run-a")
    assert refused.value.code == "history.too-big"
    assert copy_of(copies).exists()
    history.drop_copy("run-a")
    assert not (copies / "run-a").exists()


def test_ignored_files_are_neither_copied_nor_brought_back(tmp_path: Path, workspace: Path, copies: Path) -> None:
    settings = HistorySettings(quiet=0, ignore=("cache/",))
    with History(tmp_path / "history", {"workspace": workspace}, settings) as history:
        write(workspace / "cache" / "x", "x")
        write(workspace / "a", "a")
        history.check_out("run-a", "workspace/.")
        assert [path.name for path in copy_of(copies).iterdir()] == ["a"]
        write(copy_of(copies) / "cache" / "y", "y")
        history.collect_copy("run-a")
        assert changed(history) == []


def test_a_store_of_the_second_schema_gets_the_tables_of_copies(tmp_path: Path, workspace: Path) -> None:
    def change(act: Callable[[sqlite3.Connection], object]) -> None:
        db = sqlite3.connect(tmp_path / "history" / "history.db")
        with db:
            act(db)
        db.close()

    write(workspace / "a", "a")
    with History(tmp_path / "history", {"workspace": workspace}, HistorySettings(quiet=0)) as history:
        history.snapshot()
    old = "DROP TABLE working_copy; DROP TABLE change_set; DROP TABLE set_change; PRAGMA user_version = 2;"
    change(lambda db: db.executescript(old))
    with History(tmp_path / "history", {"workspace": workspace}, HistorySettings(quiet=0)) as history:
        history.check_out("run-a", "workspace/.")
        assert history.collect_copy("run-a").skipped == ()
    change(lambda db: db.execute("SELECT * FROM set_change"))
