"""Folders go to a node and their changes come back: only what is missing is sent, and nothing leaves the folder."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from freehold.errors import FreeholdError
from freehold.fleet.content_cache import MAX_CONTENT, ContentCache
from freehold.fleet.copy_writer import CopyWriter
from freehold.fleet.folder_copy import receive_changes, receive_folder, send_changes, send_folder
from freehold.fleet.folder_state import FolderEntry, StateLimits, decode_entries, encode_entries, read_folder
from freehold.fleet.wire import Stream, encode_message, read_value

LIMITS = StateLimits(entries=10_000, size=64 * 1024 * 1024)


@contextlib.asynccontextmanager
async def connected(serve: Callable[[Stream], Awaitable[object]], path: Path) -> AsyncIterator[Stream]:
    """A stream whose other end is served."""
    served: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            served.set_result(await serve((reader, writer)))
        except Exception as error:
            served.set_exception(error)
        finally:
            writer.close()

    server = await asyncio.start_unix_server(accept, str(path))
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        yield reader, writer
        await served
    finally:
        writer.close()
        server.close()
        path.unlink()


async def send(source: Path, target: Path, cache: ContentCache, path: Path) -> None:
    state = read_folder(source, None, LIMITS)
    async with connected(lambda stream: receive_folder(stream, target, LIMITS, cache), path) as stream:
        await send_folder(stream, source, state)


async def bring_back(there: Path, here: Path, base: dict[str, FolderEntry], path: Path) -> dict[str, FolderEntry]:
    async with connected(lambda stream: send_changes(stream, there, None, LIMITS), path) as stream:
        return (await receive_changes(stream, here, base, LIMITS))[0]


def describe(folder: Path) -> list[list[object]]:
    return encode_entries(read_folder(folder, None, LIMITS).entries)


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
    base = await bring_back(there, here, base, path)
    (here / "mine").unlink()
    assert describe(here) == describe(there)
    assert await bring_back(there, here, base, path) == base


async def test_contents_that_the_node_has_are_not_sent_again(folders: tuple[Path, Path, ContentCache, Path]) -> None:
    here, there, cache, path = folders
    (here / "a").write_bytes(b"known")
    await send(here, there, cache, path)
    again = there.with_name("again")
    again.mkdir()
    state = read_folder(here, None, LIMITS)
    (here / "a").unlink()  # it could not be sent
    async with connected(lambda stream: receive_folder(stream, again, LIMITS, cache), path) as stream:
        await send_folder(stream, here, state)
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
        decode_entries([["link", "link", 0o777, 0, 0, "/etc"], row], LIMITS)


async def test_a_content_with_another_hash_is_not_written(folders: tuple[Path, Path, ContentCache, Path]) -> None:
    """A node that lies about a file gets nothing into the folder."""
    here, there, _, path = folders

    async def lie(stream: Stream) -> None:
        stream[1].write(encode_message([["file", "file", 0o644, 0, 4, "ab" * 32]]))
        assert await read_value(stream[0]) == [0]
        stream[1].write(encode_message([[0, 1, 4]]) + (4).to_bytes(8, "big") + b"evil" + encode_message([]))
        await stream[1].drain()

    async with connected(lie, path) as stream:
        found, _ = await receive_changes(stream, here, {}, LIMITS)
    assert found == {}
    assert list(here.iterdir()) == []
    assert list(there.iterdir()) == []


def test_a_link_in_the_folder_is_never_followed(tmp_path: Path) -> None:
    """Whoever is inside puts a link where a folder was: nothing is written or removed behind it."""
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "file").write_text("untouched")
    (folder / "deep").symlink_to(outside)
    with CopyWriter(folder) as writer:
        with pytest.raises(OSError, match="directory"):
            writer.write_file(FolderEntry("deep/file", "file", 0o644, 0, 1, ""), b"x")
        with pytest.raises(OSError, match="directory"):
            writer.remove("deep/file")
        writer.remove("deep")
    assert (outside / "file").read_text() == "untouched"
    assert not (folder / "deep").is_symlink()


def test_a_scan_never_reads_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "etc").symlink_to("/etc")
    (tmp_path / "fifo-is-skipped").touch()
    os.mkfifo(tmp_path / "fifo")
    state = read_folder(tmp_path, None, LIMITS)
    assert [entry.path for entry in state.entries.values()] == ["etc", "fifo-is-skipped"]
    assert state.skipped == ["fifo: neither a file nor a folder nor a link"]


def test_a_folder_that_is_too_big_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(100))
    with pytest.raises(FreeholdError, match="more than"):
        read_folder(tmp_path, None, StateLimits(entries=10, size=99))
