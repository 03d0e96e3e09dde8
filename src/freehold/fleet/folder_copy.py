"""Copies a folder to a node, and its changes back: only contents that the other side lacks are sent."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.fleet.content_cache import ContentCache
from freehold.fleet.copy_writer import CopyWriter
from freehold.fleet.folder_state import (
    FolderEntry,
    FolderState,
    StateLimits,
    decode_entries,
    encode_entries,
    read_folder,
)
from freehold.fleet.folder_transfer import ContentSink, list_wanted, receive_contents, send_contents
from freehold.fleet.wire import MAX_LISTING, Stream, encode_message, read_value


async def send_folder(stream: Stream, root: Path, state: FolderState) -> None:
    """The head's part: `receive_folder` is at the other end."""
    reader, writer = stream
    writer.write(encode_message(encode_entries(state.entries)))
    await writer.drain()
    numbers = await read_value(reader, MAX_LISTING)
    entries = list(state.entries.values())
    wanted = [entries[number] for number in _check_numbers(numbers, len(entries))]
    await send_contents(writer, root, wanted)


async def receive_folder(stream: Stream, root: Path, limits: StateLimits, cache: ContentCache) -> None:
    """The node's part, into an empty folder. Raises `fleet.cut-short` when a content did not arrive."""
    reader, writer = stream
    entries = decode_entries(await read_value(reader, MAX_LISTING), limits)
    with CopyWriter(root) as folder:
        lacking = await asyncio.to_thread(_lay_out, folder, list(entries.values()), cache)
        wanted, places = list_wanted(lacking)
        position = {path: number for number, path in enumerate(entries)}
        writer.write(encode_message([position[entry.path] for entry in wanted]))
        await writer.drain()
        sink = ContentSink(folder, places, cache)
        try:
            await receive_contents(reader, wanted, sink)
        finally:
            sink.close()
    if sink.missing:
        raise FreeholdError("fleet.cut-short", f"{len(sink.missing)} files changed while they were sent")


def _lay_out(folder: CopyWriter, entries: Sequence[FolderEntry], cache: ContentCache) -> list[FolderEntry]:
    """Everything that is here already. Returns the files whose content is not."""
    lacking: list[FolderEntry] = []
    for entry in entries:
        if entry.kind == "folder":
            folder.make_folder(entry)
        elif entry.kind == "link":
            folder.make_link(entry)
        elif (data := cache.get(entry.content)) is not None:
            folder.write_file(entry, data)
        else:
            lacking.append(entry)
    return lacking


async def send_changes(stream: Stream, root: Path, before: FolderState | None, limits: StateLimits) -> FolderState:
    """The node's part: what is in the folder now, and the contents that the head asks for."""
    reader, writer = stream
    state = await asyncio.to_thread(read_folder, root, before, limits)
    writer.write(encode_message(encode_entries(state.entries)))
    await writer.drain()
    entries = list(state.entries.values())
    numbers = await read_value(reader, MAX_LISTING)
    await send_contents(writer, root, [entries[number] for number in _check_numbers(numbers, len(entries))])
    return state


async def receive_changes(
    stream: Stream, root: Path, base: dict[str, FolderEntry], limits: StateLimits
) -> tuple[dict[str, FolderEntry], int]:
    """The head's part: the difference to `base`, what is known of the node's folder, is applied to the folder here.

    What was changed here only stays. Returns the new base and how many names have changed.
    """
    reader, writer = stream
    entries = decode_entries(await read_value(reader, MAX_LISTING), limits)
    changed = [entry for entry in entries.values() if not entry.is_same(base.get(entry.path))]
    removed = [path for path in base if path not in entries]
    files = [entry for entry in changed if entry.kind == "file"]
    wanted, places = list_wanted(files)
    position = {path: number for number, path in enumerate(entries)}
    writer.write(encode_message([position[entry.path] for entry in wanted]))
    await writer.drain()
    with CopyWriter(root) as folder:
        await asyncio.to_thread(_prepare_changes, folder, changed, removed)
        sink = ContentSink(folder, places, None)
        try:
            await receive_contents(reader, wanted, sink)
        finally:
            sink.close()
    found = {path: entry for path, entry in entries.items() if entry.content not in sink.missing}
    for path, entry in base.items():  # these are taken the next time
        if path in entries and path not in found:
            found[path] = entry
    return found, len(changed) + len(removed)


def _prepare_changes(folder: CopyWriter, changed: Sequence[FolderEntry], removed: Sequence[str]) -> None:
    for path in sorted(removed, reverse=True):
        _remove_quietly(folder, path)
    for entry in changed:
        if entry.kind == "folder":
            folder.make_folder(entry)
        elif entry.kind == "link":
            folder.make_link(entry)


def _remove_quietly(folder: CopyWriter, path: str) -> None:
    """Its folder may be gone with it, or may have become something else here."""
    try:
        folder.remove(path)
    except (FileNotFoundError, NotADirectoryError):
        return


def _check_numbers(numbers: object, count: int) -> list[int]:
    if not isinstance(numbers, list) or not all(isinstance(one, int) and 0 <= one < count for one in numbers):
        raise FreeholdError("fleet.bad-message", "The list of wanted files is not valid")
    return numbers
