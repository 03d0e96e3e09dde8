"""Files of the computer. Every call runs in the guest, so a symbolic link can only lead to a place inside.

Relative paths are below /workspace. A path is a string as from `os.fsdecode`, or bytes; any name works.
Errors are `files.not-found`, `files.exists`, `files.not-a-folder`, `files.is-a-folder`, `files.not-empty`,
`files.permission`, `files.no-space`, `files.read-only`, `files.name-too-long`, `files.too-large`, `files.failed`.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, TypeVar

from freehold.computer.library import reply
from freehold.computer.library.batch import MAX_BYTES, MAX_ROWS, WINDOW, BatchCollector, ItemResult, send_batch
from freehold.computer.library.connection import ComputerConnection
from freehold.computer.library.file_entry import (
    FileEntry,
    FilePage,
    PathLike,
    SearchResult,
    path_to_text,
    read_entry,
    read_search_hit,
)
from freehold.computer.library.frames import encode_message
from freehold.computer.library.stream import ChannelStream
from freehold.errors import FreeholdError

_REQUEST = 128 * 1024

Item = dict[str, Any]
Name = TypeVar("Name", str, bytes, PurePath)
Contents = bytes | str | AsyncIterable[bytes]


# Named here because `Files` has a method called list.
Entries = list[FileEntry]
Errors = list[FreeholdError | None]
Items = list[Item]
Listings = list[list[FileEntry] | FreeholdError]
Outcomes = list[ItemResult]
Reads = list[bytes | FreeholdError]
Stats = list[FileEntry | FreeholdError]


class Files:
    def __init__(self, connection: ComputerConnection) -> None:
        self._connection = connection

    async def read(
        self, path: PathLike, *, offset: int = 0, length: int | None = None, limit: int = MAX_BYTES
    ) -> bytes:
        """The contents of a file, or of a range of it. More than `limit` bytes raise `files.too-large`."""
        item = {"do": "read", "path": path_to_text(path), "offset": offset, "length": length}
        outcome = await self._one(item, most_bytes=limit)
        outcome.value()
        return outcome.content

    async def read_text(self, path: PathLike, *, limit: int = MAX_BYTES) -> str:
        """A file as UTF-8; invalid bytes are replaced."""
        return (await self.read(path, limit=limit)).decode(errors="replace")

    async def stream(self, path: PathLike, *, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """A file of any size in pieces. The guest reads on as the caller iterates."""
        stream = ChannelStream()
        collector = BatchCollector(1, 0, 0, stream)
        item = {"do": "read", "path": path_to_text(path), "offset": offset, "length": length}
        channel = collector.channel = self._connection.link.open({"op": "files", "do": [item]}, collector, WINDOW)
        stream.attach(channel, 0)
        try:
            while piece := await stream.read():
                yield piece
        finally:
            channel.close()

    async def write(
        self,
        path: PathLike,
        contents: Contents,
        *,
        mode: int | None = None,
        parents: bool = False,
        exclusive: bool = False,
        durable: bool = False,
    ) -> int:
        """Replace a file atomically: a reader sees the old or the new contents. Returns the number of bytes written.

        An existing file keeps its mode if none is given. `exclusive` refuses to replace an existing file, `parents`
        creates missing folders, `durable` waits for the disk.
        """
        item = {
            "do": "write",
            "path": path_to_text(path),
            "mode": mode,
            "parents": parents,
            "exclusive": exclusive,
            "durable": durable,
        }
        return await self._put(item, contents)

    async def append(self, path: PathLike, contents: Contents) -> int:
        return await self._put({"do": "append", "path": path_to_text(path)}, contents)

    async def stat(self, path: PathLike, *, follow: bool = True) -> FileEntry:
        return read_entry((await self._one({"do": "stat", "path": path_to_text(path), "follow": follow})).value())

    async def exists(self, path: PathLike) -> bool:
        outcome = await self._one({"do": "stat", "path": path_to_text(path), "follow": False})
        if outcome.error is not None and outcome.error.code not in ("files.not-found", "files.not-a-folder"):
            raise outcome.error
        return outcome.error is None

    async def list(self, path: PathLike = ".", *, limit: int = MAX_ROWS) -> Entries:
        """The entries of a folder, in the order of the bytes of their names. At most `limit`."""
        return (await self.list_page(path, limit=limit)).entries

    async def list_page(self, path: PathLike = ".", *, after: PathLike = "", limit: int) -> FilePage:
        """The first `limit` entries whose names come after `after`."""
        item = {"do": "list", "path": path_to_text(path), "after": path_to_text(after), "most": limit}
        outcome = await self._one(item, most_rows=limit)
        answer = outcome.value()
        return FilePage(_entries(outcome)[:limit], isinstance(answer, dict) and answer.get("more") is True)

    async def walk(
        self, path: PathLike = ".", *, depth: int | None = None, skip: Iterable[str] = (), limit: int = MAX_ROWS
    ) -> Entries:
        """Everything below a folder, each folder before its contents. Names in `skip` are left out at any depth."""
        item = {"do": "walk", "path": path_to_text(path), "depth": depth, "skip": list(skip), "most": limit}
        outcome = await self._one(item, most_rows=limit)
        return await asyncio.to_thread(_entries, outcome)  # there may be hundreds of thousands

    async def glob(self, pattern: str, path: PathLike = ".", *, limit: int = MAX_ROWS) -> Entries:
        """The entries below a folder that match: `*`, `?`, `[...]`, and `**` for any depth. Hidden names need a dot in the pattern."""
        entries = _entries(
            await self._one(
                {"do": "glob", "path": path_to_text(path), "pattern": pattern, "most": limit}, most_rows=limit
            )
        )
        entries.sort(key=lambda entry: entry.name)
        return entries

    async def search(
        self,
        pattern: str,
        path: PathLike = ".",
        *,
        regex: bool = False,
        ignore_case: bool = False,
        glob: str | None = None,
        skip: Iterable[str] = (".git", "node_modules"),
        limit: int = 1000,
    ) -> SearchResult:
        """Lines of text files that contain `pattern`, one hit per line. Files with NUL bytes or above 64 MiB are skipped."""
        request = {
            "op": "search",
            "pattern": pattern,
            "path": path_to_text(path),
            "regex": regex,
            "ignore_case": ignore_case,
            "glob": glob,
        }
        (outcome,) = await send_batch(
            self._connection.link, {**request, "skip": list(skip), "most": limit}, 1, most_rows=limit
        )
        answer = outcome.value()
        return SearchResult(
            [read_search_hit(row) for row in outcome.rows], isinstance(answer, dict) and answer.get("more") is True
        )

    async def mkdir(self, path: PathLike, *, parents: bool = False, mode: int = 0o777) -> None:
        """With `parents`, missing folders on the path are created and an existing folder is no error."""
        (await self._one({"do": "mkdir", "path": path_to_text(path), "parents": parents, "mode": mode})).value()

    async def move(self, path: PathLike, to: PathLike, *, replace: bool = False) -> None:
        (
            await self._one({"do": "move", "path": path_to_text(path), "to": path_to_text(to), "replace": replace})
        ).value()

    async def copy(self, path: PathLike, to: PathLike, *, replace: bool = False) -> None:
        """Copy a file, a link, or a folder with its contents."""
        (
            await self._one({"do": "copy", "path": path_to_text(path), "to": path_to_text(to), "replace": replace})
        ).value()

    async def remove(self, path: PathLike, *, recursive: bool = False, missing_ok: bool = False) -> None:
        """Remove a file, a link (never its target), an empty folder, or with `recursive` any folder."""
        (
            await self._one({"do": "remove", "path": path_to_text(path), "recursive": recursive, "missing": missing_ok})
        ).value()

    async def chmod(self, path: PathLike, mode: int) -> None:
        (await self._one({"do": "chmod", "path": path_to_text(path), "mode": mode})).value()

    async def link_entries(self, base: PathLike, places: Mapping[str, str]) -> Errors:
        """Make folders below `base` have a link to each entry of another folder, and no other link into that one.

        Other entries stay, no link on the way is followed, and what stands in the way is moved to `.replaced` in `base`.
        """
        items = [
            {"do": "links", "base": path_to_text(base), "path": path, "to": source} for path, source in places.items()
        ]
        return _errors(await self.batch(items))

    async def read_many(self, paths: Sequence[PathLike], *, limit: int = MAX_BYTES) -> Reads:
        """Read many files with one message. A file that fails has its error in the list."""
        outcomes = await self.batch([{"do": "read", "path": path_to_text(path)} for path in paths], most_bytes=limit)
        return [outcome.error or outcome.content for outcome in outcomes]

    async def write_many(self, contents: Mapping[Name, bytes], *, parents: bool = True) -> Errors:
        items = [
            {"do": "write", "path": path_to_text(path), "size": len(data), "parents": parents}
            for path, data in contents.items()
        ]
        return [outcome.error for outcome in await self.batch(items, list(contents.values()))]

    async def append_many(self, contents: Mapping[Name, bytes]) -> Errors:
        items = [{"do": "append", "path": path_to_text(path), "size": len(data)} for path, data in contents.items()]
        return [outcome.error for outcome in await self.batch(items, list(contents.values()))]

    async def stat_many(self, paths: Sequence[PathLike], *, follow: bool = True) -> Stats:
        outcomes = await self.batch([{"do": "stat", "path": path_to_text(path), "follow": follow} for path in paths])
        return [outcome.error or read_entry(outcome.ok) for outcome in outcomes]

    async def list_many(self, paths: Sequence[PathLike], *, limit: int = MAX_ROWS) -> Listings:
        outcomes = await self.batch(
            [{"do": "list", "path": path_to_text(path), "most": limit} for path in paths], most_rows=limit
        )
        return [outcome.error or _entries(outcome) for outcome in outcomes]

    async def mkdir_many(self, paths: Sequence[PathLike], *, parents: bool = True) -> Errors:
        return _errors(
            await self.batch([{"do": "mkdir", "path": path_to_text(path), "parents": parents} for path in paths])
        )

    async def move_many(self, pairs: Mapping[Name, PathLike], *, replace: bool = False) -> Errors:
        items = [
            {"do": "move", "path": path_to_text(path), "to": path_to_text(to), "replace": replace}
            for path, to in pairs.items()
        ]
        return _errors(await self.batch(items))

    async def copy_many(self, pairs: Mapping[Name, PathLike], *, replace: bool = False) -> Errors:
        items = [
            {"do": "copy", "path": path_to_text(path), "to": path_to_text(to), "replace": replace}
            for path, to in pairs.items()
        ]
        return _errors(await self.batch(items))

    async def remove_many(
        self, paths: Sequence[PathLike], *, recursive: bool = False, missing_ok: bool = False
    ) -> Errors:
        items = [
            {"do": "remove", "path": path_to_text(path), "recursive": recursive, "missing": missing_ok}
            for path in paths
        ]
        return _errors(await self.batch(items))

    async def batch(
        self,
        items: Sequence[Item],
        contents: Sequence[bytes] = (),
        *,
        most_bytes: int = MAX_BYTES,
        most_rows: int = MAX_ROWS,
    ) -> Outcomes:
        """Run items in order; `contents` are for those that write. One message carries many items."""
        outcomes: Outcomes = []
        pending: Items = []
        supply = iter(contents)
        size = 0
        for item in items:
            length = len(encode_message(item))
            if pending and size + length > _REQUEST:
                outcomes += await self._send(pending, supply, most_bytes, most_rows)
                pending, size = [], 0
            pending.append(item)
            size += length
        if pending:
            outcomes += await self._send(pending, supply, most_bytes, most_rows)
        return outcomes

    async def _send(self, items: Items, supply: Any, most_bytes: int, most_rows: int) -> Outcomes:
        contents = [next(supply) for item in items if "size" in item]
        return await send_batch(
            self._connection.link,
            {"op": "files", "do": items},
            len(items),
            contents,
            most_bytes=most_bytes,
            most_rows=most_rows,
        )

    async def _one(self, item: Item, *, most_bytes: int = MAX_BYTES, most_rows: int = MAX_ROWS) -> ItemResult:
        (outcome,) = await send_batch(
            self._connection.link, {"op": "files", "do": [item]}, 1, most_bytes=most_bytes, most_rows=most_rows
        )
        return outcome

    async def _put(self, item: Item, contents: Contents) -> int:
        if isinstance(contents, str):
            contents = contents.encode()
        size = len(contents) if isinstance(contents, bytes | bytearray | memoryview) else None
        source: Sequence[bytes] | AsyncIterable[bytes] = (
            [contents] if isinstance(contents, bytes | bytearray | memoryview) else contents
        )
        (outcome,) = await send_batch(self._connection.link, {"op": "files", "do": [{**item, "size": size}]}, 1, source)
        return reply.read_int({"bytes": outcome.value().get("bytes")}, "bytes")


def _entries(outcome: ItemResult) -> list[FileEntry]:
    outcome.value()
    return [read_entry(row) for row in outcome.rows]


def _errors(outcomes: list[ItemResult]) -> list[FreeholdError | None]:
    return [outcome.error for outcome in outcomes]
