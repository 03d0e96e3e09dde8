"""Ignored paths are not recorded and not changed by a restore."""

import os
import re
import shutil
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.history.tree import write

from freehold.history import History, HistorySettings
from freehold.history.ignore_rules import compile_ignore_rules

FILE, FOLDER = stat.S_IFREG, stat.S_IFDIR
PARTS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]", "[ab]": "[ab]", "a": "a", "b": "b", "/": "/"}


@pytest.mark.parametrize(
    ("pattern", "path", "mode", "expected"),
    [
        ("*.iso", "workspace/a/b.iso", FILE, True),
        ("*.iso", "workspace/b.iso.txt", FILE, False),
        ("workspace/.cache/", "workspace/.cache", FOLDER, True),
        ("workspace/.cache/", "workspace/.cache", FILE, False),
        ("workspace/.cache/", "workspace/a/.cache", FOLDER, False),
        ("workspace/**/tmp", "workspace/a/b/tmp", FOLDER, True),
        ("[ab]?", "workspace/b1", FILE, True),
        ("[!ab]?", "workspace/b1", FILE, False),
        ("*", "workspace", FOLDER, False),
    ],
)
def test_patterns_work_as_in_a_gitignore(pattern: str, path: str, mode: int, expected: bool) -> None:
    ignored = compile_ignore_rules([pattern])
    assert ignored is not None
    assert ignored(tuple(path.encode().split(b"/")), mode) is expected


@given(
    st.lists(st.sampled_from([*PARTS]), min_size=1, max_size=8).map("".join),
    st.lists(st.sampled_from(["a", "b", "aa", "ab", "ba", "aab"]), min_size=1, max_size=4),
)
def test_a_pattern_matches_what_the_plain_expression_of_it_matches(pattern: str, names: list[str]) -> None:
    """Against the form that tries everything, as git's documentation describes a pattern."""
    wanted = pattern.rstrip("/")
    anchored, plain = "/" in wanted, wanted.lstrip("/")
    expression = "".join(PARTS[one] for one in re.findall(r"\*\*/|\*\*|\[ab\]|.", plain))
    path = tuple(name.encode() for name in ["workspace", *names])
    subject = "/".join(["workspace", *names]) if anchored else names[-1]
    ignored = compile_ignore_rules([pattern])
    expected = wanted != "" and re.fullmatch(expression, subject) is not None
    assert (ignored is not None and ignored(path, FOLDER)) == expected


def test_a_name_made_to_be_slow_is_not() -> None:
    """Names of an agent against rules of the owner: tried in every way, each star would multiply the time by 255."""
    ignored = compile_ignore_rules(["*a*a*a*a*a*a*b", "workspace/*a*a*a*a*a*b"])
    assert ignored is not None
    assert not ignored((b"workspace", b"a" * 255), FILE)
    assert ignored((b"workspace", b"a" * 254 + b"b"), FILE)


def test_the_last_pattern_that_matches_decides() -> None:
    ignored = compile_ignore_rules(["*.log", "!keep.log"])
    assert ignored is not None
    assert ignored((b"workspace", b"a.log"), FILE)
    assert not ignored((b"workspace", b"keep.log"), FILE)
    assert compile_ignore_rules(["", "# nothing"]) is None


@pytest.mark.parametrize("watched", [True, False])
def test_an_undo_leaves_ignored_files_alone(tmp_path: Path, workspace: Path, watched: bool) -> None:
    settings = HistorySettings(quiet=0, ignore=("*.iso", "workspace/.cache/"))
    with History(tmp_path / "history", {"workspace": workspace}, settings) as history:
        if watched:
            history.start()
        write(workspace / "file", "one")
        history.snapshot()
        write(workspace / "big.iso", "image")
        write(workspace / ".cache" / "deep" / "x", "cached")
        write(workspace / "file", "two")
        history.snapshot("turn")
        assert {change.path for change in history.changes(2)} == {b"workspace", b"workspace/file"}
        assert history.undo().unsettled == ()
        assert (workspace / "file").read_text() == "one"
        assert (workspace / "big.iso").read_text() == "image"
        assert (workspace / ".cache" / "deep" / "x").read_text() == "cached"


@pytest.mark.parametrize("watched", [True, False])
def test_an_ignored_file_makes_no_entry_by_changing_the_time_of_its_folder(
    tmp_path: Path, workspace: Path, watched: bool
) -> None:
    """Together with another change, the time of the folder is recorded as well."""
    (workspace / "deep").mkdir()
    settings = HistorySettings(quiet=0, ignore=("workspace/deep/.state*", "*.iso"))
    with History(tmp_path / "history", {"workspace": workspace}, settings) as history:
        if watched:
            history.start()
        first = history.snapshot().entry
        write(workspace / "deep" / ".state", "one")
        write(workspace / "deep" / ".state.d" / "x", "two")
        write(workspace / "a.iso", "image")
        mark = history.snapshot("turn")
        assert (mark.entry, mark.changed) == (first, False)
        os.utime(workspace / "deep", ns=(5, 5))
        write(workspace / "a.iso", "image again")
        write(workspace / "kept", "kept")
        mark = history.snapshot("turn")
        assert {change.path for change in history.changes(mark.entry)} >= {b"workspace/kept", b"workspace/deep"}
        assert history.undo().unsettled == ()
        assert not (workspace / "kept").exists()
        assert (workspace / "deep" / ".state").read_text() == "one"
        (workspace / "deep" / ".state").unlink()
        assert history.redo().unsettled == ()
        assert (workspace / "deep").stat().st_mtime_ns == 5


def test_a_folder_with_ignored_files_can_be_removed_or_become_a_file(tmp_path: Path, workspace: Path) -> None:
    settings = HistorySettings(quiet=0, ignore=("*.iso",))
    with History(tmp_path / "history", {"workspace": workspace}, settings) as history:
        history.start()
        write(workspace / "a" / "kept", "1")
        write(workspace / "b" / "kept", "1")
        first = history.snapshot().entry
        for name in ("a", "b"):
            write(workspace / name / "x.iso", "image")
            shutil.rmtree(workspace / name)
        write(workspace / "b", "a file now")
        history.snapshot("turn")
        assert history.verify().damages == ()
        history.restore(first)
        assert (workspace / "b" / "kept").read_text() == "1"
        assert (workspace / "a" / "kept").read_text() == "1"


def test_a_pattern_is_tried_only_where_it_can_match() -> None:
    ignored = compile_ignore_rules(["home/.a/*", "!home/.a/keep", "home/*.json", "/home/b/", "w[/]x", "**/deep/x"])
    assert ignored is not None
    cases = {
        "home/.a": False,
        "home/.a/x": True,
        "home/.a/keep": False,
        "home/.a/keep/y": False,
        "home/c.json": True,
        "home/c/d.json": False,
        "home/b": True,
        "workspace/.a/x": False,
        "workspace/deep/x": True,
        "home/deep/x": True,
    }
    assert {path: ignored(tuple(path.encode().split(b"/")), FOLDER) for path in cases} == cases
