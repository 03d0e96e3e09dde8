"""A folder here and its copy on a node, without a fleet between them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from freehold.fleet.content_cache import ContentCache
from freehold.fleet.folder_copy import (
    SentState,
    TakenChanges,
    receive_changes,
    receive_folder,
    send_changes,
    send_folder,
)
from freehold.fleet.folder_state import FolderEntry, FolderState, StateLimits, read_folder
from freehold.fleet.wire import Stream, encode_message

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
    await send_state(read_folder(source, None, LIMITS), source, target, cache, path)


async def send_state(state: FolderState, source: Path, target: Path, cache: ContentCache, path: Path) -> None:
    async def receive(stream: Stream) -> None:
        await receive_folder(stream, target, LIMITS, cache)
        stream[1].write(encode_message({"done": True}))

    async with connected(receive, path) as stream:
        await send_folder(stream, source, state)


async def bring_back(
    there: Path, here: Path, base: dict[str, FolderEntry] | None, path: Path, sent: SentState | None = None
) -> TakenChanges:
    """Without `base` the node is asked for what it has `sent`."""
    known = sent or SentState()

    async def serve(stream: Stream) -> None:
        await send_changes(stream, there, known, LIMITS, is_base_wanted=base is None)

    async with connected(serve, path) as stream:
        return await receive_changes(stream, here, base, LIMITS)


def describe(folder: Path) -> list[FolderEntry]:
    return list(read_folder(folder, None, LIMITS).entries.values())
