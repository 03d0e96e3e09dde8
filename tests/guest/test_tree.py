"""Folders as the guest lists, matches, copies and removes them, compared with what the file system holds."""

import os
import stat
from pathlib import Path

import pytest

from freehold.guest import tree


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path / "top"
    for name in ("a/b/c", "a/.hidden", "d"):
        (top / name).mkdir(parents=True)
    for name in ("one.txt", "a/two.txt", "a/b/three.py", "a/b/c/four.txt", "a/.hidden/five.txt", ".dot"):
        (top / name).write_text(name)
    (top / "link").symlink_to("a/two.txt")
    (top / "to-folder").symlink_to("a")
    (top / os.fsdecode(b"bytes-\xff")).write_bytes(b"x")
    return top


def names(rows: object) -> list[str]:
    return [row[0] for row in rows if row is not None]  # type: ignore[attr-defined]


def test_a_listing_shows_kinds_sizes_modes_and_targets(folder: Path) -> None:
    rows = {row[0]: row for row in tree.list_folder(os.fsencode(folder), b"", 1000) if row is not None}
    assert set(rows) == {entry.name for entry in folder.iterdir()}
    assert rows["one.txt"][1:3] == ["file", 7]
    assert rows["a"][1] == "folder"
    assert rows["link"][1] == "link"
    assert rows["link"][5] == "a/two.txt"
    assert rows["one.txt"][4] == stat.S_IMODE((folder / "one.txt").stat().st_mode)


def test_a_walk_shows_a_folder_before_its_contents_and_follows_no_link(folder: Path) -> None:
    walked = names(tree.walk_folder(os.fsencode(folder), 100, []))
    expected = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    assert set(walked) == expected
    assert len(walked) == len(expected)
    for name in walked:
        assert "/" not in name or walked.index(name.rpartition("/")[0]) < walked.index(name)
    assert not [name for name in walked if name.startswith("to-folder/")]


def test_a_walk_can_be_shallow_and_skip_names(folder: Path) -> None:
    assert all("/" not in name for name in names(tree.walk_folder(os.fsencode(folder), 1, [])))
    skipped = names(tree.walk_folder(os.fsencode(folder), 100, [b"b", b".hidden"]))
    assert not [name for name in skipped if "b" in name.split("/") or ".hidden" in name]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.txt", {"one.txt"}),
        ("a/*.txt", {"a/two.txt"}),
        ("**/*.txt", {"one.txt", "a/two.txt", "a/b/c/four.txt"}),
        ("a/**", {"a/two.txt", "a/b", "a/b/three.py", "a/b/c", "a/b/c/four.txt"}),
        (".*", {".dot"}),
        ("a/.hidden/*", {"a/.hidden/five.txt"}),
        ("[od]*", {"one.txt", "d"}),
        ("nothing/*", set()),
        ("", set()),
    ],
)
def test_patterns_match_as_in_a_shell(folder: Path, pattern: str, expected: set[str]) -> None:
    assert set(names(tree.match_glob(os.fsencode(folder), pattern.encode()))) == expected


def test_a_copy_has_contents_modes_times_and_links(folder: Path, tmp_path: Path) -> None:
    (folder / "a" / "two.txt").chmod(0o640)
    os.utime(folder / "a" / "two.txt", ns=(10**18, 10**18))
    list(tree.copy_tree(os.fsencode(folder), os.fsencode(tmp_path / "copy")))
    for path in folder.rglob("*"):
        copied = tmp_path / "copy" / path.relative_to(folder)
        assert copied.is_symlink() == path.is_symlink()
        if path.is_symlink():
            assert copied.readlink() == path.readlink()
        elif path.is_file():
            assert copied.read_bytes() == path.read_bytes()
            assert copied.stat().st_mode == path.stat().st_mode
            assert copied.stat().st_mtime_ns == path.stat().st_mtime_ns


@pytest.mark.parametrize("source", ["", "/", "/.", "/a/..", "/../folder", "/to-itself/", "/.."])
@pytest.mark.parametrize("target", ["copy", "a/copy", "a/../copy", "to-itself/copy"])
def test_a_folder_is_not_copied_into_itself_however_it_is_spelled(folder: Path, source: str, target: str) -> None:
    """It would copy its own copy, as deep as paths can be."""
    (folder / "to-itself").symlink_to(folder)
    named = os.fsencode(f"{folder}{source}".replace("../folder", f"../{folder.name}"))
    with pytest.raises(OSError, match="into itself"):
        list(tree.copy_tree(named, os.fsencode(f"{folder}/{target}")))
    assert not (folder / target).exists()


def test_proc_and_devices_are_not_copied(tmp_path: Path) -> None:
    """The guest may read more of /proc than programs inside."""
    for source in (b"/proc/self/environ", b"/dev/null"):
        with pytest.raises(PermissionError):
            list(tree.copy_tree(source, os.fsencode(tmp_path / "copy")))
    assert not (tmp_path / "copy").exists()


def test_removal_follows_no_link_and_opens_unreadable_folders(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    (folder / "escape").symlink_to(outside)
    (folder / "a").chmod(0o000)
    list(tree.remove_tree(os.fsencode(folder)))
    assert not folder.exists()
    assert (outside / "kept").read_text() == "x"


def test_an_abandoned_removal_closes_its_handles(folder: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    removal = tree.remove_tree(os.fsencode(folder))
    next(removal)
    removal.close()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
