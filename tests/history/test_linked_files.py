"""Files with many names: their state is stored once, and a write or a removal through one name costs the same as without."""

import os
import shutil
import sqlite3
import tarfile
from pathlib import Path

from tests.history.tree import differences, read_tree, write

from freehold.history import History, HistorySettings

LINKS = 2000


def make_links(folder: Path, count: int) -> Path:
    first = write(folder / "0", "x" * 100)
    for number in range(1, count):
        os.link(first, folder / str(number))
    return first


def count_rows(history: History) -> int:
    return int(
        history._db.execute("SELECT (SELECT count(*) FROM version) + (SELECT count(*) FROM node_version)").fetchone()[0]
    )


def test_an_append_through_one_of_many_names_is_one_row_and_undo_restores_all_names(
    history: History, workspace: Path
) -> None:
    make_links(workspace / "many", LINKS)
    before = read_tree(workspace)
    history.snapshot()
    rows, used = count_rows(history), history.size().used
    for _ in range(3):
        with (workspace / "many" / "7").open("a") as file:
            file.write("8 bytes.")
        history.snapshot("turn")
    assert history.log()[0].changed == LINKS
    assert count_rows(history) - rows <= 3
    assert history.size().used - used < 64 << 10
    version = history.version(history.newest(), "workspace/many/1999")
    assert version is not None
    assert version.size == 124
    assert history.restore(2).unsettled == ()
    assert not differences(before, read_tree(workspace))


def test_the_removal_of_one_of_many_names_looks_at_one_other_name(history: History, workspace: Path) -> None:
    make_links(workspace / "many", LINKS)
    history.snapshot()
    rows = count_rows(history)
    (workspace / "many" / "3").unlink()
    history.snapshot("turn")
    assert (history.log()[0].removed, history.log()[0].changed) == (1, 0)
    assert count_rows(history) - rows <= 1, "the time of the folder"
    assert history.undo().unsettled == ()
    assert (workspace / "many" / "3").samefile(workspace / "many" / "0")


def test_a_folder_of_links_that_was_removed_comes_back_as_links(history: History, workspace: Path) -> None:
    make_links(workspace / "many", 20)
    write(workspace / "single", "y")
    before = read_tree(workspace)
    history.snapshot()
    shutil.rmtree(workspace / "many")
    history.snapshot("turn")
    assert history.undo().unsettled == ()
    assert not differences(before, read_tree(workspace))
    assert history.redo().unsettled == ()
    assert history.undo().unsettled == ()
    assert not differences(before, read_tree(workspace))


def test_the_last_name_is_a_file_like_any_other(history: History, workspace: Path) -> None:
    make_links(workspace / "many", 3)
    history.snapshot()
    (workspace / "many" / "1").unlink()
    (workspace / "many" / "2").unlink()
    history.snapshot("turn")
    version = history.version(history.newest(), "workspace/many/0")
    assert version is not None
    assert (version.node, version.nlink) == (0, 1)
    assert history._db.execute("SELECT count(*) FROM node_version WHERE died IS NULL").fetchone()[0] == 0
    assert history.undo().unsettled == ()
    assert len({path.stat().st_ino for path in (workspace / "many").iterdir()}) == 1


def test_the_links_of_a_history_of_version_0_1_0_are_links_afterwards(tmp_path: Path) -> None:
    with tarfile.open(Path(__file__).parent.parent / "golden" / "0.1.0" / "home.tar.gz") as tar:
        tar.extractall(tmp_path, filter="data")
    store = tmp_path / "home" / "history"
    db = sqlite3.connect(store / "history.db")
    assert db.execute("PRAGMA user_version").fetchone()[0] == 1
    newest = db.execute("SELECT max(id) FROM entry").fetchone()[0]
    root, content = db.execute(
        "SELECT place.parent, version.content FROM version JOIN place ON place.id = version.place "
        "WHERE mode & 61440 = 32768 AND content IS NOT NULL AND died IS NULL LIMIT 1"
    ).fetchone()
    size = db.execute("SELECT size FROM content WHERE id = ?", (content,)).fetchone()[0]
    with db:
        for name in (b"link-one", b"link-two"):
            place = db.execute("INSERT INTO place (parent, name) VALUES (?, ?)", (root, name)).lastrowid
            db.execute(
                "INSERT INTO version (place, born, mode, mtime, size, content, flag, ino, ctime, nlink) "
                "VALUES (?, ?, ?, 5, ?, ?, 0, 4711, 0, 2)",
                (place, newest, 0o100644, size, content),
            )
    db.close()
    folders = {"workspace": tmp_path / "home" / "workspace", "home": tmp_path / "home" / "home"}
    with History(store, folders, HistorySettings(quiet=0)) as history:
        assert history.restore(newest).unsettled == ()
        found = [path for folder in folders.values() for path in folder.rglob("link-*")]
        assert len(found) == 2
        assert found[0].samefile(found[1])
        assert history.verify().damages == ()
        assert history.size().entries >= newest
