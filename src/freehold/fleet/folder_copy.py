"""Copies a folder to a node, and its changes back: only contents that the other side lacks are sent."""

import asyncio
import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.fleet.change_writer import ChangeWriter
from freehold.fleet.content_cache import ContentCache
from freehold.fleet.copy_writer import CopyWriter
from freehold.fleet.folder_state import (
    FolderEntry,
    FolderState,
    SentEntries,
    StateLimits,
    is_skipped,
    read_folder,
    settle_base,
)
from freehold.fleet.folder_transfer import ContentSink, finish_thread, list_wanted, receive_contents, send_contents
from freehold.fleet.wire import Stream, read_error, read_message, read_rows, write_rows

SETTLE_TIMEOUT = 60.0
"""How long the head may take to write down the last contents that it was sent."""
MAX_TOLD = 5


@dataclass
class SentState:
    """What a node knows of a folder: `seen` when it last looked, and `settled`, what the head has of it."""

    seen: FolderState | None = None
    settled: dict[str, FolderEntry] = field(default_factory=dict)


@dataclass(frozen=True)
class TakenChanges:
    """`base` is what the node's folder and the one here have in common now. `skipped` could not be copied."""

    base: dict[str, FolderEntry]
    count: int
    skipped: tuple[str, ...]


async def send_folder(stream: Stream, root: Path, state: FolderState) -> None:
    """The head's part: `receive_folder` is at the other end. Until the node says that it is done, or why not."""
    reader, writer = stream
    entries = list(state.entries.values())
    await write_rows(writer, entries)
    wanted = [entries[number] for number in await _read_numbers(reader, len(entries))]
    sending = asyncio.ensure_future(send_contents(writer, root, wanted))
    answering = asyncio.ensure_future(read_message(reader))
    try:
        await asyncio.wait({sending, answering}, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            await sending
        answer = await answering
    finally:
        sending.cancel()
        answering.cancel()
        await asyncio.gather(sending, answering, return_exceptions=True)
    if "error" in answer:
        raise read_error(answer["error"])


async def receive_folder(
    stream: Stream, root: Path, limits: StateLimits, cache: ContentCache
) -> dict[str, FolderEntry]:
    """The node's part, into an empty folder. Raises `fleet.cut-short` when a content did not arrive."""
    reader, writer = stream
    entries = await _read_entries(reader, limits)
    with CopyWriter(root) as folder:
        lacking = await finish_thread(_lay_out, folder, list(entries.values()), cache)
        wanted, places = list_wanted(lacking)
        position = {path: number for number, path in enumerate(entries)}
        await write_rows(writer, [position[entry.path] for entry in wanted])
        sink = ContentSink(folder, places, cache)
        try:
            await receive_contents(reader, wanted, sink)
        finally:
            sink.close()
    if sink.missing:
        raise _cut_short(sorted(place.path for content in sink.missing for place in places[content]))
    return entries


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


async def send_changes(
    stream: Stream, root: Path, sent: SentState, limits: StateLimits, *, is_base_wanted: bool = False
) -> None:
    """The node's part: what is in the folder now, and the contents that the head asks for. `sent` is kept up to date."""
    reader, writer = stream
    if is_base_wanted:
        await write_rows(writer, sorted(sent.settled.values()))
    state = sent.seen = await asyncio.to_thread(read_folder, root, sent.seen, limits)
    entries = list(state.entries.values())
    await write_rows(writer, entries)
    await write_rows(writer, list(state.skipped))
    await send_contents(writer, root, [entries[number] for number in await _read_numbers(reader, len(entries))])
    async with asyncio.timeout(SETTLE_TIMEOUT):
        missing = await _read_words(reader, limits)
        kept = await _read_words(reader, limits)
    sent.settled = settle_base(sent.settled, state.entries, state.skipped, missing, kept)


async def receive_changes(
    stream: Stream, root: Path, base: Mapping[str, FolderEntry] | None, limits: StateLimits, mark: str = ""
) -> TakenChanges:
    """The head's part: the difference to `base` is applied to the folder here. None: the node is asked for it.

    What was changed here only stays, and so does what the node has and cannot copy. Nothing is removed or replaced
    before everything has arrived. `mark` names this computer.
    """
    reader, writer = stream
    if base is None:
        base = await _read_entries(reader, limits)
    entries = await _read_entries(reader, limits)
    skipped = await _read_words(reader, limits)
    plan = await asyncio.to_thread(_plan_changes, base, entries, skipped)
    await write_rows(writer, plan.numbers)
    with ChangeWriter(root, base, mark) as folder:
        await finish_thread(_make_folders, folder, entries, plan.changed)
        sink = ContentSink(folder, plan.places, None)
        try:
            await receive_contents(reader, plan.wanted, sink)
        finally:
            sink.close()
        links = [entry for entry in plan.changed if entry.kind == "link"]
        kept = await finish_thread(folder.finish, plan.removed, links, sink.missing)
    await write_rows(writer, sorted(sink.missing))  # these are taken the next time
    await write_rows(writer, sorted(kept))
    with contextlib.suppress(OSError):  # a timeout too
        async with asyncio.timeout(SETTLE_TIMEOUT):
            await reader.read(1)  # the node has read it, and ends the connection
    found = await asyncio.to_thread(settle_base, base, entries, skipped, sink.missing, kept)
    return TakenChanges(found, len(plan.changed) + len(plan.removed), tuple(sorted(skipped | folder.blocked)))


@dataclass(frozen=True)
class ChangePlan:
    """What must be done here, and which contents are `wanted` for it, by their numbers in the node's list."""

    changed: list[FolderEntry]
    removed: list[FolderEntry]
    wanted: list[FolderEntry]
    places: dict[str, list[FolderEntry]]
    numbers: list[int]


def _plan_changes(
    base: Mapping[str, FolderEntry], entries: Mapping[str, FolderEntry], skipped: Collection[str]
) -> ChangePlan:
    changed = [entry for entry in entries.values() if not entry.is_same(base.get(entry.path))]
    removed = [entry for path, entry in base.items() if path not in entries and not is_skipped(path, skipped)]
    wanted, places = list_wanted([entry for entry in changed if entry.kind == "file"])
    position = {path: number for number, path in enumerate(entries)}
    return ChangePlan(changed, removed, wanted, places, [position[entry.path] for entry in wanted])


def _make_folders(folder: ChangeWriter, entries: Mapping[str, FolderEntry], changed: Sequence[FolderEntry]) -> None:
    """Those that have changed, and those above what has changed, which may have been removed here."""
    known: set[str] = set()
    for entry in changed:
        _ensure_above(folder, entries, entry.path.rpartition("/")[0], known)
        if entry.kind == "folder" and entry.path not in known:
            folder.make_folder(entry)
            known.add(entry.path)


def _ensure_above(folder: ChangeWriter, entries: Mapping[str, FolderEntry], path: str, known: set[str]) -> None:
    if path and path not in known:
        _ensure_above(folder, entries, path.rpartition("/")[0], known)
        folder.ensure_folder(entries[path])
        known.add(path)


def _cut_short(paths: Sequence[str]) -> FreeholdError:
    more = f" and {len(paths) - MAX_TOLD} more" if len(paths) > MAX_TOLD else ""
    return FreeholdError(
        "fleet.cut-short",
        f"{', '.join(ascii(path[:200]) for path in paths[:MAX_TOLD])}{more} changed while it was sent",
        hint="Stop what writes there, or start the computer with a copy of the folder",
    )


async def _read_entries(reader: asyncio.StreamReader, limits: StateLimits) -> dict[str, FolderEntry]:
    found = SentEntries(limits)
    async for rows in read_rows(reader, limits.entries):
        found.add(rows)
    return found.entries


async def _read_words(reader: asyncio.StreamReader, limits: StateLimits) -> set[str]:
    found: set[str] = set()
    async for rows in read_rows(reader, limits.entries):
        if not all(isinstance(one, str) for one in rows):
            raise FreeholdError("fleet.bad-message", "A list of names is not valid")
        found.update(rows)
    return found


async def _read_numbers(reader: asyncio.StreamReader, count: int) -> list[int]:
    found: list[int] = []
    async for rows in read_rows(reader, count):
        if not all(isinstance(one, int) and 0 <= one < count for one in rows):
            raise FreeholdError("fleet.bad-message", "The list of wanted files is not valid")
        found += rows
    return found
