"""What the owner does not want kept is neither taken nor touched."""

import stat
from pathlib import Path

import pytest
from tests.history.tree import write

from freehold.history import History, Settings
from freehold.history.ignoring import compile_patterns

FILE, FOLDER = stat.S_IFREG, stat.S_IFDIR


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
def test_patterns_mean_what_they_mean_in_a_gitignore(pattern: str, path: str, mode: int, expected: bool) -> None:
    ignored = compile_patterns([pattern])
    assert ignored is not None
    assert ignored(tuple(path.encode().split(b"/")), mode) is expected


def test_the_last_pattern_that_matches_decides() -> None:
    ignored = compile_patterns(["*.log", "!keep.log"])
    assert ignored is not None
    assert ignored((b"workspace", b"a.log"), FILE)
    assert not ignored((b"workspace", b"keep.log"), FILE)
    assert compile_patterns(["", "# nothing"]) is None


@pytest.mark.parametrize("watched", [True, False])
def test_an_undo_leaves_what_is_ignored(tmp_path: Path, workspace: Path, watched: bool) -> None:
    settings = Settings(quiet=0, ignore=("*.iso", "workspace/.cache/"))
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
