"""Working copies of older states: they are what an entry has, and what came later is neither lost nor taken back."""

from pathlib import Path

import pytest
from tests.history.tree import differences, read_tree, write

from freehold.errors import FreeholdError
from freehold.history import History, HistorySettings
from freehold.history.copy_calls import CheckOutFolder, FindFolder
from freehold.history.garbage_collection import GarbageCollector
from freehold.history.service import HistoryService

LINES = "".join(f"line {number}\n" for number in range(20))


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    return tmp_path / "copies"


def copy_of(copies: Path, name: str = "run-a") -> Path:
    return copies / name / "workspace"


def changed(history: History, name: str = "run-a") -> list[tuple[str, str]]:
    return [(change.path.decode(), change.word) for change in history.read_change_set(name)[1]]


def record(history: History, path: Path, text: str | None) -> int:
    """The entry right after this change."""
    if text is None:
        path.unlink()
    else:
        write(path, text)
    return history.snapshot().entry


def test_a_copy_is_the_folder_right_after_the_entry(history: History, workspace: Path, copies: Path) -> None:
    record(history, workspace / "site" / "a.txt", "first")
    old = record(history, workspace / "site" / "key.pem", "deleted later")
    then = read_tree(workspace / "site")
    record(history, workspace / "site" / "key.pem", None)
    newest = record(history, workspace / "site" / "a.txt", "second")
    made = HistoryService(history).answer(CheckOutFolder("run-a", "workspace/site", old))
    assert made.entry == old
    assert not differences(then, read_tree(copy_of(copies) / "site"))
    # Nothing was recorded for it, and the files of the owner are as they were.
    assert history.newest() == newest
    assert (workspace / "site" / "a.txt").read_text() == "second"
    history.collect_copy("run-a")
    assert changed(history) == []


def test_what_was_changed_in_it_is_merged_and_what_came_later_stays(
    history: History, workspace: Path, copies: Path
) -> None:
    for name in ("both.txt", "same.txt", "gone.txt", "untouched.txt"):
        old = record(history, workspace / "site" / name, LINES)
    history.check_out("run-a", "workspace/site", old)
    record(history, workspace / "site" / "both.txt", LINES.replace("line 15\n", "owner 15\n"))
    record(history, workspace / "site" / "untouched.txt", None)
    record(history, workspace / "site" / "later.txt", "later")
    site = copy_of(copies) / "site"
    write(site / "both.txt", LINES.replace("line 3\n", "run 3\n"))
    write(site / "new.txt", "new")
    history.collect_copy("run-a")
    assert changed(history) == [("workspace/site/both.txt", "changed"), ("workspace/site/new.txt", "added")]
    assert history.merge("run-a") is not None
    merged = LINES.replace("line 3\n", "run 3\n").replace("line 15\n", "owner 15\n")
    assert {path.name: path.read_text() for path in (workspace / "site").iterdir()} == {
        "both.txt": merged,
        "same.txt": LINES,
        "gone.txt": LINES,
        "later.txt": "later",
        "new.txt": "new",
    }
    # The same lines, and a file that is gone by now, are conflicts.
    history.check_out("run-b", "workspace/site", old)
    record(history, workspace / "site" / "same.txt", LINES.replace("line 3\n", "owner 3\n"))
    record(history, workspace / "site" / "gone.txt", None)
    for name in ("same.txt", "gone.txt"):
        write(copy_of(copies, "run-b") / "site" / name, LINES.replace("line 3\n", "run 3\n"))
    history.collect_copy("run-b")
    assert [one.path[-1] for one in history.plan_merge("run-b").conflicts] == [b"gone.txt", b"same.txt"]
    with pytest.raises(FreeholdError) as refused:
        history.merge("run-b")
    assert refused.value.code == "history.conflicts"
    assert not (workspace / "site" / "gone.txt").exists()


def test_a_file_in_a_folder_that_is_gone_by_now_gets_its_folder_back(
    history: History, workspace: Path, copies: Path
) -> None:
    old = record(history, workspace / "site" / "deep" / "a.txt", "a")
    record(history, workspace / "site" / "deep" / "a.txt", None)
    (workspace / "site" / "deep").rmdir()
    history.snapshot()
    history.check_out("run-a", "workspace/site", old)
    write(copy_of(copies) / "site" / "deep" / "b.txt", "b")
    history.collect_copy("run-a")
    assert history.merge("run-a") is not None
    assert [path.name for path in (workspace / "site" / "deep").iterdir()] == ["b.txt"]


def test_a_state_that_is_not_there_makes_no_copy(history: History, workspace: Path, copies: Path) -> None:
    service = HistoryService(history)
    before = record(history, workspace / "file", "x")
    newest = record(history, workspace / "site" / "a.txt", "a")
    for folder, entry, code in (
        ("workspace/site", newest + 1, "history.no-such-entry"),
        ("workspace/site", 2**53, "history.no-such-entry"),
        ("workspace/site", 0, "history.no-such-entry"),
        ("workspace/site", -1, "history.no-such-entry"),
        ("workspace/site", before, "history.no-folder"),
        ("workspace/file", before, "history.no-folder"),
        ("workspace/../..", newest, "history.bad-path"),
        ("workspace/\\x2e\\x2e/history", newest, "history.bad-path"),
        ("elsewhere", newest, "history.unknown-path"),
    ):
        for call in (CheckOutFolder("run-a", folder, entry), FindFolder(folder, entry)):
            with pytest.raises(FreeholdError) as refused:
                service.answer(call)
            assert (refused.value.code, bool(refused.value.next_step)) == (code, True)
    assert not copies.exists() or list(copies.iterdir()) == []
    assert history.newest() == newest
    with pytest.raises(FreeholdError, match="no copy"):
        history.collect_copy("run-a")
    assert service.answer(FindFolder("workspace/site", newest)).entry.id == newest


def test_a_state_that_was_dropped_says_so(history: History, workspace: Path, copies: Path) -> None:
    old = record(history, workspace / "site" / "a.txt", "a")
    for text in ("b", "c"):
        record(history, workspace / "site" / "a.txt", text)
    history.collect(now=10e9)
    with pytest.raises(FreeholdError, match=f"Entry {old} is no longer kept") as refused:
        history.check_out("run-a", "workspace/site", old)
    assert refused.value.code == "history.no-such-entry"
    assert not (copies / "run-a").exists()


def test_a_state_that_was_copied_a_moment_ago_is_not_dropped(
    history: History, workspace: Path, copies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its entry was found to be one that may be dropped before the copy was asked for."""
    old = record(history, workspace / "site" / "a.txt", "a")
    for text in ("b", "c"):
        record(history, workspace / "site" / "a.txt", text)
    keep = GarbageCollector.find_protected

    def copy_after_it(collector: GarbageCollector) -> set[int]:
        found = keep(collector)
        monkeypatch.undo()
        history.check_out("run-a", "workspace/site", old)
        return found

    monkeypatch.setattr(GarbageCollector, "find_protected", copy_after_it)
    history.collect(now=10e9)
    write(copy_of(copies) / "site" / "b.txt", "b")
    history.collect_copy("run-a")
    history.collect(now=10e9)
    assert history.entry(old).id == old
    assert changed(history) == [("workspace/site/b.txt", "added")]
    history.drop_copy("run-a")
    history.collect(now=10e9)
    with pytest.raises(FreeholdError, match="no longer kept"):
        history.entry(old)


def test_what_is_ignored_now_is_left_out_although_the_entry_has_it(
    tmp_path: Path, workspace: Path, copies: Path
) -> None:
    """Also when the rule is gone again before the changes are collected: nobody has removed the files."""

    def open_with(*ignore: str) -> History:
        return History(tmp_path / "history", {"workspace": workspace}, HistorySettings(quiet=0, ignore=ignore))

    with open_with() as history:
        write(workspace / "cache" / "x", "x")
        write(workspace / ".env", "TOKEN=1")
        old = record(history, workspace / "a", "a")
    with open_with("cache/", ".env") as history:
        for name in ("run-a", "run-b"):
            history.check_out(name, "workspace/.", old)
            assert [path.name for path in copy_of(copies, name).iterdir()] == ["a"]
        with pytest.raises(FreeholdError) as refused:
            history.check_out("run-c", "workspace/cache", old)
        assert refused.value.code == "history.no-folder"
        history.collect_copy("run-a")
        assert changed(history) == []
    with open_with() as history:
        history.collect_copy("run-b")
        assert changed(history, "run-b") == []


def test_a_rule_that_is_newer_than_a_copy_removes_nothing(tmp_path: Path, workspace: Path, copies: Path) -> None:
    with History(tmp_path / "history", {"workspace": workspace}, HistorySettings(quiet=0)) as history:
        write(workspace / "cache" / "x", "x")
        write(workspace / "a", "a")
        history.check_out("run-a", "workspace/.")
        (copy_of(copies) / "a").unlink()
    settings = HistorySettings(quiet=0, ignore=("cache/",))
    with History(tmp_path / "history", {"workspace": workspace}, settings) as history:
        history.collect_copy("run-a")
        assert changed(history) == [("workspace/a", "removed")]
