"""Folders go to a node and their changes come back: only what is missing is sent, and nothing leaves the folder."""

import contextlib
import itertools
import os
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from tests.fleet.two_folders import LIMITS, bring_back, connected, describe, send, send_state

from freehold.errors import FreeholdError
from freehold.fleet import folder_copy
from freehold.fleet.change_writer import ChangeWriter
from freehold.fleet.content_cache import MAX_CONTENT, ContentCache
from freehold.fleet.copy_writer import CopyWriter
from freehold.fleet.folder_copy import SentState, TakenChanges, receive_changes
from freehold.fleet.folder_state import FolderEntry, FolderState, SentEntries, StateLimits, read_folder
from freehold.fleet.wire import MAX_MESSAGE, Stream, encode_message, read_rows, write_rows


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path, ContentCache, Path]:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    return here, there, ContentCache(tmp_path / "cache", 64 * 1024 * 1024), tmp_path / "s"


def fill(folder: Path) -> None:
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "a").write_bytes(b"same")
    (folder / "b").write_bytes(b"same")
    (folder / "run").write_bytes(b"#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    (folder / "long").write_bytes(os.urandom(3 * MAX_CONTENT + 17))
    (folder / "exact").write_bytes(b"x" * MAX_CONTENT)
    (folder / "empty").touch()
    (folder / "link").symlink_to("deep/er/a")
    (folder / os.fsdecode(b"odd-\xff-name")).write_bytes(b"odd")


async def test_a_folder_arrives_as_it_is_and_its_changes_come_back(
    folders: tuple[Path, Path, ContentCache, Path],
) -> None:
    here, there, cache, path = folders
    fill(here)
    await send(here, there, cache, path)
    assert describe(there) == describe(here)
    base = read_folder(here, None, LIMITS).entries
    (there / "b").write_bytes(b"changed")
    (there / "deep" / "er" / "a").unlink()
    (there / "new").mkdir()
    (there / "new" / "file").write_bytes(b"made")
    (there / "link").unlink()
    (there / "link").mkdir()
    (here / "mine").write_bytes(b"written here meanwhile")
    base = (await bring_back(there, here, base, path)).base
    (here / "mine").unlink()
    assert describe(here) == describe(there)
    assert await bring_back(there, here, base, path) == TakenChanges(base, 0, ())


async def test_the_next_head_takes_what_was_changed_there_and_nothing_else(
    folders: tuple[Path, Path, ContentCache, Path],
) -> None:
    """It knows nothing of the folder but what the node has sent to the one before it."""
    here, there, _, path = folders
    for name in ("taken", "removed", "mine", "both"):
        (here / name).write_text("at first")
        (there / name).write_text("at first")
    sent = SentState()
    await bring_back(there, here, {}, path, sent)
    (there / "removed").unlink()
    (there / "taken").write_text("changed there")
    (there / "both").write_text("changed there")
    for name in ("mine", "both"):
        (here / name).write_text("changed here")
    taken = await bring_back(there, here, None, path, sent)
    assert {one.name: one.read_text() for one in here.iterdir()} == {
        "taken": "changed there",
        "mine": "changed here",
        "both": "changed there",
    }
    assert taken.count == 3
    assert taken.base == sent.settled


async def test_a_content_that_did_not_arrive_is_taken_by_the_next_head(
    folders: tuple[Path, Path, ContentCache, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there, _, path = folders
    (there / "busy").write_text("the same again")

    def look_too_early(*arguments: Any) -> FolderState:
        state = read_folder(*arguments)
        (there / "busy").write_text("other in between")
        return state

    sent = SentState()
    with monkeypatch.context() as patch:
        patch.setattr(folder_copy, "read_folder", look_too_early)
        assert (await bring_back(there, here, {}, path, sent)).base == sent.settled == {}
    (there / "busy").write_text("the same again")
    assert (await bring_back(there, here, None, path, sent)).count == 1
    assert (here / "busy").read_text() == "the same again"


@pytest.mark.parametrize("name", ["plain", "folder"])
async def test_what_cannot_be_copied_stays_as_it_was(
    folders: tuple[Path, Path, ContentCache, Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A file that the node may not read, or a pipe that is in its place, was not removed there."""
    here, there, cache, path = folders
    (here / "plain").write_text("of the owner")
    (here / "folder").mkdir()
    (here / "folder" / "file").write_text("of the owner")
    await send(here, there, cache, path)
    before, open_file = describe(here), os.open

    def refuse(where: Any, *more: Any, **named: Any) -> int:
        if where == name:
            raise PermissionError(13, "Permission denied")
        return open_file(where, *more, **named)

    base = read_folder(here, None, LIMITS).entries
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        state = read_folder(there, None, LIMITS)
    assert state.skipped == {name: "Permission denied"}
    (there / "plain").unlink()
    os.mkfifo(there / "plain")
    taken = await bring_back(there, here, base, path)
    assert (taken.skipped, taken.count, taken.base) == (("plain",), 0, base)
    assert describe(here) == before
    (there / "plain").unlink()
    assert (await bring_back(there, here, taken.base, path)).count == 1
    assert not (here / "plain").exists()


async def test_contents_that_the_node_has_are_not_sent_again(folders: tuple[Path, Path, ContentCache, Path]) -> None:
    here, there, cache, path = folders
    (here / "a").write_bytes(b"known")
    await send(here, there, cache, path)
    again = there.with_name("again")
    again.mkdir()
    state = read_folder(here, None, LIMITS)
    (here / "a").unlink()  # it could not be sent
    await send_state(state, here, again, cache, path)
    assert (again / "a").read_bytes() == b"known"


def test_the_cache_of_a_node_is_bounded_and_forgets_the_oldest(tmp_path: Path) -> None:
    with ContentCache(tmp_path, 8 * MAX_CONTENT) as cache:
        for number in range(40):
            cache.add(f"{number:064}", bytes(MAX_CONTENT))
        assert cache.size <= 8 * MAX_CONTENT
        assert f"{0:064}" not in cache
        assert cache.get(f"{39:064}") == bytes(MAX_CONTENT)
        assert list(tmp_path.iterdir()) == []  # its files end with it


@pytest.mark.parametrize(
    "row",
    [
        ["../out", "file", 0o644, 0, 1, "00"],
        ["/etc/cron.d/x", "file", 0o644, 0, 1, "00"],
        ["a/../../b", "file", 0o644, 0, 1, "00"],
        ["link/x", "file", 0o644, 0, 1, "00"],
        ["missing/x", "file", 0o644, 0, 1, "00"],
        ["x", "device", 0o644, 0, 1, "00"],
        ["x", "file", 0o4755, 0, 1, "00"],
        ["x", "file", 0o644, 0, -1, "00"],
        ["x", "file", 0o644, 0, 10**12, "00"],
        ["x\0y", "file", 0o644, 0, 1, "00"],
        "nonsense",
    ],
)
def test_entries_that_lead_elsewhere_are_refused(row: object) -> None:
    with pytest.raises(FreeholdError):
        SentEntries(LIMITS).add([["link", "link", 0o777, 0, 0, "/etc"], row])


async def hear(stream: Stream) -> list[object]:
    return [row async for rows in read_rows(stream[0], 10) for row in rows]


EVIL = blake3(b"evil").hexdigest()


@pytest.mark.parametrize(
    ("size", "content"), [(4, "ab" * 32), (0, EVIL), (10**6, EVIL)], ids=["another-hash", "longer", "shorter"]
)
async def test_a_content_that_is_not_what_was_said_is_not_written(
    folders: tuple[Path, Path, ContentCache, Path], size: int, content: str
) -> None:
    """A node that lies about a file gets nothing into the folder: what it says is what the limit counts."""
    here, there, _, path = folders

    async def lie(stream: Stream) -> None:
        await write_rows(stream[1], [["file", "file", 0o644, 0, size, content]])
        await write_rows(stream[1], [])
        assert await hear(stream) == [0]
        stream[1].write(encode_message([[0, 1, 4]]) + (4).to_bytes(8, "big") + b"evil" + encode_message([]))
        assert await hear(stream) == [content]

    async with connected(lie, path) as stream:
        taken = await receive_changes(stream, here, {}, LIMITS)
    assert taken.base == {}
    assert list(here.iterdir()) == []
    assert list(there.iterdir()) == []


@pytest.mark.parametrize("pieces", [[(0, 1), (0, 1)], [(1, 1), (0, 1)], [(0, 0), (1, 1)]])
async def test_contents_in_another_order_are_refused(
    folders: tuple[Path, Path, ContentCache, Path], pieces: list[tuple[int, int]]
) -> None:
    """Else a node could send without end, and give one file the content of another."""
    here, _, _, path = folders
    contents = [blake3(bytes([number])).hexdigest() for number in range(2)]

    async def lie(stream: Stream) -> None:
        await write_rows(stream[1], [[f"file-{n}", "file", 0o644, 0, 1, contents[n]] for n in range(2)])
        await write_rows(stream[1], [])
        assert await hear(stream) == [0, 1]
        listing = [[number, state, 1] for number, state in pieces]
        body = bytes(number for number, _ in pieces)
        stream[1].write(encode_message(listing) + len(body).to_bytes(8, "big") + body + encode_message([]))
        await stream[1].drain()

    async with connected(lie, path) as stream:
        with pytest.raises(FreeholdError, match="not in the order of their list"):
            await receive_changes(stream, here, {}, LIMITS)


async def test_a_list_without_end_is_refused_before_it_is_read(
    folders: tuple[Path, Path, ContentCache, Path],
) -> None:
    here, _, _, path = folders

    async def lie(stream: Stream) -> None:
        with contextlib.suppress(OSError):
            for number in itertools.count():
                stream[1].write(encode_message([[f"file-{number}", "file", 0o644, 0, 0, EVIL]]))
                await stream[1].drain()

    async with connected(lie, path) as stream:
        with pytest.raises(FreeholdError, match="more than 10000"):
            await receive_changes(stream, here, {}, LIMITS)
        stream[1].transport.abort()


@pytest.mark.parametrize(
    "rows", [[], ["x"], list(range(2500)), ["x" * 700_000] * 5], ids=["none", "one", "many", "long"]
)
async def test_a_list_of_any_length_arrives_in_short_messages(tmp_path: Path, rows: list[object]) -> None:
    sizes: list[int] = []

    async with connected(lambda stream: write_rows(stream[1], rows), tmp_path / "s") as (reader, _):
        found: list[object] = []
        async for part in read_rows(reader, len(rows)):
            sizes.append(len(encode_message(part)))
            found += part
    assert found == rows
    assert all(size <= MAX_MESSAGE for size in sizes)


def test_a_link_in_the_folder_is_never_followed(tmp_path: Path) -> None:
    """Whoever is inside puts a link where a folder was: nothing is written or removed behind it."""
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "file").write_text("untouched")
    (folder / "deep").symlink_to(outside)
    with CopyWriter(folder) as writer, pytest.raises(OSError, match="directory"):
        writer.write_file(FolderEntry("deep/file", "file", 0o644, 0, 1, ""), b"x")
    base = {path: FolderEntry(path, "file", 0o644, 0, 1, "") for path in ("deep", "deep/file")}
    with ChangeWriter(folder, base) as changes:
        changes.finish(list(base.values()), [], ())
    assert (outside / "file").read_text() == "untouched"
    assert not (folder / "deep").is_symlink()


def test_a_scan_never_reads_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "etc").symlink_to("/etc")
    (tmp_path / "fifo-is-skipped").touch()
    os.mkfifo(tmp_path / "fifo")
    state = read_folder(tmp_path, None, LIMITS)
    assert [entry.path for entry in state.entries.values()] == ["etc", "fifo-is-skipped"]
    assert state.skipped == {"fifo": "neither a file nor a folder nor a link"}


def test_a_folder_that_is_too_big_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(100))
    with pytest.raises(FreeholdError, match="more than"):
        read_folder(tmp_path, None, StateLimits(entries=10, size=99))
