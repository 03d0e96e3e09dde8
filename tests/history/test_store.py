"""Contents are deduplicated, split into chunks, and checked on every read."""

import os
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.history.tree import differences, read_tree, write

from freehold.history import History, HistorySettings
from freehold.history.chunks import MAX_CHUNK_BYTES, find_cut
from freehold.history.contents import DamagedContent


def split_chunks(data: bytes) -> Iterator[bytes]:
    while data:
        length = find_cut(data[:MAX_CHUNK_BYTES])
        yield data[:length]
        data = data[length:]


def test_chunks_add_up_and_stay_the_same_after_an_insert() -> None:
    random.seed(7)
    for data in (random.randbytes(6 << 20), b"line of a log %d\n" * (6 << 16), bytes(5 << 20), b",=" * (1 << 20)):
        pieces = list(split_chunks(data))
        assert b"".join(pieces) == data
        assert max(map(len, pieces)) <= MAX_CHUNK_BYTES
    data = random.randbytes(8 << 20)
    before = set(split_chunks(data))
    after = list(split_chunks(data[: 3 << 20] + b"inserted" + data[3 << 20 :]))
    new = sum(len(piece) for piece in after if piece not in before)
    assert new < 2 * MAX_CHUNK_BYTES


def test_a_small_change_of_a_large_file_needs_little_space(history: History, workspace: Path) -> None:
    random.seed(3)
    data = random.randbytes(12 << 20)
    write(workspace / "large", data)
    history.snapshot()
    first = history.size().used
    write(workspace / "large", data[: 5 << 20] + b"!" + data[5 << 20 :])
    history.snapshot()
    assert history.size().used - first < 3 << 20
    history.undo()
    assert (workspace / "large").read_bytes() == data


def test_the_same_bytes_are_stored_once(history: History, workspace: Path) -> None:
    data = os.urandom(40_000)
    for number in range(50):
        write(workspace / str(number), data)
    history.snapshot()
    assert history.size().contents <= 2
    assert history.size().used < 1 << 20


def test_contents_are_compressed(history: History, workspace: Path) -> None:
    for number in range(50):
        write(workspace / str(number), f"{number} " * 10_000)
    history.snapshot()
    assert history.size().used < history.size().kept_bytes / 3


def test_damage_is_reported_with_its_entries_and_everything_else_stays_usable(tmp_path: Path, workspace: Path) -> None:
    with History(tmp_path / "history", {"workspace": workspace}, HistorySettings(quiet=0)) as history:
        write(workspace / "small", "precious " * 100)
        write(workspace / "large", os.urandom(300_000))
        write(workspace / "fine", "fine")
        history.snapshot()
        for name in ("small", "large", "fine"):
            (workspace / name).unlink()
        history.snapshot("turn")
        assert history.verify().damages == ()
    database = sqlite3.connect(tmp_path / "history" / "history.db")
    with database:
        (content,) = database.execute(
            "SELECT content FROM version JOIN place ON place.id = version.place WHERE name = ?", (b"small",)
        ).fetchone()
        database.execute("UPDATE content SET data = zeroblob(length(data)) WHERE id = ?", (content,))
    database.close()
    chunk = next(path for path in (tmp_path / "history" / "chunks").rglob("*") if path.is_file())
    chunk.write_bytes(b"rot" + chunk.read_bytes()[3:])
    with History(tmp_path / "history", {"workspace": workspace}, HistorySettings(quiet=0)) as history:
        found = history.verify()
        assert {(each.path, each.first, each.last) for damage in found.damages for each in damage.touches} == {
            (b"workspace/small", 1, 1),
            (b"workspace/large", 1, 1),
        }
        with pytest.raises(DamagedContent):
            history.read(content)
        outcome = history.undo()
        assert {path for path, _ in outcome.unsettled} >= {b"workspace/small", b"workspace/large"}
        assert (workspace / "fine").read_text() == "fine"
        assert not (workspace / "small").exists()


def test_a_history_of_another_schema_is_refused_and_untouched(tmp_path: Path, workspace: Path) -> None:
    with History(tmp_path / "history", {"workspace": workspace}) as history:
        history.snapshot()
    database = sqlite3.connect(tmp_path / "history" / "history.db")
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(Exception, match="schema 99"):
        History(tmp_path / "history", {"workspace": workspace})


def test_a_second_process_continues_where_the_first_ended(tmp_path: Path, workspace: Path) -> None:
    write(workspace / "file", "one")
    before = read_tree(workspace)
    with History(tmp_path / "history", {"workspace": workspace}) as history:
        history.snapshot()
    write(workspace / "file", "written while nobody watched")
    with History(tmp_path / "history", {"workspace": workspace}) as history:
        history.start()
        assert history.snapshot().changed
        history.undo()
        assert not differences(before, read_tree(workspace))
