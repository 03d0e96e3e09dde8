"""Files of the computer. Every call runs in the guest, so that a planted link leads nowhere but inside.

Relative paths are under /workspace. Names are text as `os.fsdecode` gives it, or bytes; any name works.
Errors are `files.not-found`, `files.exists`, `files.not-a-folder`, `files.is-a-folder`, `files.not-empty`,
`files.permission`, `files.no-space`, `files.read-only`, `files.name-too-long`, `files.too-large`, `files.failed`.
"""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, TypeVar

from freehold.computer import answers
from freehold.computer.batch import MAX_BYTES, MAX_ROWS, WINDOW, Collector, Outcome, ask
from freehold.computer.connection import Connection
from freehold.computer.entries import Entry, Found, PathLike, read_entry, read_hit, to_text
from freehold.computer.frames import encode_message
from freehold.computer.stream import Stream
from freehold.errors import FreeholdError

_REQUEST = 128 * 1024

Item = dict[str, Any]
Name = TypeVar("Name", str, bytes, PurePath)
Contents = bytes | str | AsyncIterable[bytes]


# Named here because `Files` has a method called list.
Entries = list[Entry]
Errors = list[FreeholdError | None]
Items = list[Item]
Listings = list[list[Entry] | FreeholdError]
Outcomes = list[Outcome]
Reads = list[bytes | FreeholdError]
Stats = list[Entry | FreeholdError]


class Files:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def read(
        self, path: PathLike, *, offset: int = 0, length: int | None = None, limit: int = MAX_BYTES
    ) -> bytes:
        """A file or a range of it. More than `limit` bytes is `files.too-large`."""
        item = {"do": "read", "path": to_text(path), "offset": offset, "length": length}
        outcome = await self._one(item, most_bytes=limit)
        outcome.value()
        return outcome.content

    async def read_text(self, path: PathLike, *, limit: int = MAX_BYTES) -> str:
        """A file as UTF-8, what is not being replaced."""
        return (await self.read(path, limit=limit)).decode(errors="replace")

    async def stream(self, path: PathLike, *, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """A file of any size in pieces, at the pace of whoever iterates."""
        stream = Stream()
        collector = Collector(1, 0, 0, stream)
        item = {"do": "read", "path": to_text(path), "offset": offset, "length": length}
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
        """Replace a file whole: whoever reads it sees the old or the new. Returns the bytes written.

        A file that is there keeps its mode unless one is given. `exclusive` refuses one that is there, `parents` makes
        missing folders, `durable` waits for the disk.
        """
        item = {
            "do": "write",
            "path": to_text(path),
            "mode": mode,
            "parents": parents,
            "exclusive": exclusive,
            "durable": durable,
        }
        return await self._put(item, contents)

    async def append(self, path: PathLike, contents: Contents) -> int:
        return await self._put({"do": "append", "path": to_text(path)}, contents)

    async def stat(self, path: PathLike, *, follow: bool = True) -> Entry:
        return read_entry((await self._one({"do": "stat", "path": to_text(path), "follow": follow})).value())

    async def exists(self, path: PathLike) -> bool:
        outcome = await self._one({"do": "stat", "path": to_text(path), "follow": False})
        if outcome.error is not None and outcome.error.code not in ("files.not-found", "files.not-a-folder"):
            raise outcome.error
        return outcome.error is None

    async def list(self, path: PathLike = ".", *, limit: int = MAX_ROWS) -> Entries:
        """What is in a folder, by name. At most `limit` entries."""
        entries = _entries(await self._one({"do": "list", "path": to_text(path), "most": limit}, most_rows=limit))
        entries.sort(key=lambda entry: entry.name)
        return entries

    async def walk(
        self, path: PathLike = ".", *, depth: int | None = None, skip: Iterable[str] = (), limit: int = MAX_ROWS
    ) -> Entries:
        """Everything below a folder, each folder before what is in it. Names in `skip` are left out wherever they are."""
        item = {"do": "walk", "path": to_text(path), "depth": depth, "skip": list(skip), "most": limit}
        return _entries(await self._one(item, most_rows=limit))

    async def glob(self, pattern: str, path: PathLike = ".", *, limit: int = MAX_ROWS) -> Entries:
        """What matches below a folder: `*`, `?`, `[...]`, and `**` for any depth. Hidden names need a dot in the pattern."""
        entries = _entries(
            await self._one({"do": "glob", "path": to_text(path), "pattern": pattern, "most": limit}, most_rows=limit)
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
    ) -> Found:
        """Lines of text files that hold `pattern`, one hit a line. Files with NUL bytes or above 64 MiB are passed over."""
        request = {
            "op": "search",
            "pattern": pattern,
            "path": to_text(path),
            "regex": regex,
            "ignore_case": ignore_case,
            "glob": glob,
        }
        (outcome,) = await ask(
            self._connection.link, {**request, "skip": list(skip), "most": limit}, 1, most_rows=limit
        )
        answer = outcome.value()
        return Found([read_hit(row) for row in outcome.rows], isinstance(answer, dict) and answer.get("more") is True)

    async def mkdir(self, path: PathLike, *, parents: bool = False, mode: int = 0o777) -> None:
        """With `parents`, missing folders on the way are made and one that is there is no error."""
        (await self._one({"do": "mkdir", "path": to_text(path), "parents": parents, "mode": mode})).value()

    async def move(self, path: PathLike, to: PathLike, *, replace: bool = False) -> None:
        (await self._one({"do": "move", "path": to_text(path), "to": to_text(to), "replace": replace})).value()

    async def copy(self, path: PathLike, to: PathLike, *, replace: bool = False) -> None:
        """A file, a link, or a folder with everything in it."""
        (await self._one({"do": "copy", "path": to_text(path), "to": to_text(to), "replace": replace})).value()

    async def remove(self, path: PathLike, *, recursive: bool = False, missing_ok: bool = False) -> None:
        """A file, a link (never what it points to), an empty folder, or with `recursive` any folder."""
        (
            await self._one({"do": "remove", "path": to_text(path), "recursive": recursive, "missing": missing_ok})
        ).value()

    async def chmod(self, path: PathLike, mode: int) -> None:
        (await self._one({"do": "chmod", "path": to_text(path), "mode": mode})).value()

    async def read_many(self, paths: Sequence[PathLike], *, limit: int = MAX_BYTES) -> Reads:
        """Many files at the price of one message; an error stands in the place of its file."""
        outcomes = await self.batch([{"do": "read", "path": to_text(path)} for path in paths], most_bytes=limit)
        return [outcome.error or outcome.content for outcome in outcomes]

    async def write_many(self, contents: Mapping[Name, bytes], *, parents: bool = True) -> Errors:
        items = [
            {"do": "write", "path": to_text(path), "size": len(data), "parents": parents}
            for path, data in contents.items()
        ]
        return [outcome.error for outcome in await self.batch(items, list(contents.values()))]

    async def append_many(self, contents: Mapping[Name, bytes]) -> Errors:
        items = [{"do": "append", "path": to_text(path), "size": len(data)} for path, data in contents.items()]
        return [outcome.error for outcome in await self.batch(items, list(contents.values()))]

    async def stat_many(self, paths: Sequence[PathLike], *, follow: bool = True) -> Stats:
        outcomes = await self.batch([{"do": "stat", "path": to_text(path), "follow": follow} for path in paths])
        return [outcome.error or read_entry(outcome.ok) for outcome in outcomes]

    async def list_many(self, paths: Sequence[PathLike], *, limit: int = MAX_ROWS) -> Listings:
        outcomes = await self.batch(
            [{"do": "list", "path": to_text(path), "most": limit} for path in paths], most_rows=limit
        )
        return [outcome.error or _entries(outcome) for outcome in outcomes]

    async def mkdir_many(self, paths: Sequence[PathLike], *, parents: bool = True) -> Errors:
        return _errors(await self.batch([{"do": "mkdir", "path": to_text(path), "parents": parents} for path in paths]))

    async def move_many(self, pairs: Mapping[Name, PathLike], *, replace: bool = False) -> Errors:
        items = [
            {"do": "move", "path": to_text(path), "to": to_text(to), "replace": replace} for path, to in pairs.items()
        ]
        return _errors(await self.batch(items))

    async def copy_many(self, pairs: Mapping[Name, PathLike], *, replace: bool = False) -> Errors:
        items = [
            {"do": "copy", "path": to_text(path), "to": to_text(to), "replace": replace} for path, to in pairs.items()
        ]
        return _errors(await self.batch(items))

    async def remove_many(
        self, paths: Sequence[PathLike], *, recursive: bool = False, missing_ok: bool = False
    ) -> Errors:
        items = [
            {"do": "remove", "path": to_text(path), "recursive": recursive, "missing": missing_ok} for path in paths
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
        """Items in order, `contents` for those that write. Sent in one message, or in few where one would be too large."""
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
        return await ask(
            self._connection.link,
            {"op": "files", "do": items},
            len(items),
            contents,
            most_bytes=most_bytes,
            most_rows=most_rows,
        )

    async def _one(self, item: Item, *, most_bytes: int = MAX_BYTES, most_rows: int = MAX_ROWS) -> Outcome:
        (outcome,) = await ask(
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
        (outcome,) = await ask(self._connection.link, {"op": "files", "do": [{**item, "size": size}]}, 1, source)
        return answers.whole({"bytes": outcome.value().get("bytes")}, "bytes")


def _entries(outcome: Outcome) -> list[Entry]:
    outcome.value()
    return [read_entry(row) for row in outcome.rows]


def _errors(outcomes: list[Outcome]) -> list[FreeholdError | None]:
    return [outcome.error for outcome in outcomes]
