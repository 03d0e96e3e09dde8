"""Export, import and move everything in a slot. All of it can be interrupted and done again."""

import hashlib
import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path

from freehold.slots.contract import Record, SlotCaller, SlotTransfer
from freehold.slots.errors import SlotError
from freehold.slots.slot import Slot

OWNER = SlotCaller("owner")
MAX_LINE = 16 * 1024 * 1024


@dataclass(frozen=True)
class ContentDigest:
    """How many records a slot holds, and a sum over all of them that does not depend on their order."""

    count: int
    sum: str


@dataclass(frozen=True)
class MoveReport:
    """`resumed`: how many records an earlier, interrupted move had stored already."""

    moved: int
    resumed: int
    digest: ContentDigest


async def export_records(slot: Slot) -> AsyncIterator[Record]:
    """Every record of a slot."""
    calls = _transfer_of(slot)
    cursor: str | None = None
    while True:
        page = await slot.call(calls.export_page(cursor), OWNER)
        for record in page.records:
            yield record
        cursor = page.cursor
        if cursor is None:
            return


async def import_lines(slot: Slot, lines: Iterable[str]) -> int:
    """Store records, one JSON object a line. Returns how many lines were read. Idempotent."""
    calls = _transfer_of(slot)
    waiting: list[Record] = []
    count = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        waiting.append(_read_line(slot, number, line))
        count += 1
        if len(waiting) == calls.page_size:
            await slot.call(calls.import_page(tuple(waiting)), OWNER)
            waiting = []
    if waiting:
        await slot.call(calls.import_page(tuple(waiting)), OWNER)
    return count


async def move_records(source: Slot, target: Slot, checkpoint: Path) -> MoveReport:
    """Copy everything to another implementation of the same slot, and compare. The source is not changed.

    After an interruption it goes on where the checkpoint is. Raises `conflict` when the two differ at the end, which
    happens when the target has entries that the source does not have, or newer ones.
    """
    calls = _transfer_of(source)
    cursor, resumed = _read_checkpoint(checkpoint, target.implementation)
    moved = 0
    while True:
        page = await source.call(calls.export_page(cursor), OWNER)
        await target.call(calls.import_page(page.records), OWNER)
        moved += len(page.records)
        cursor = page.cursor
        if cursor is None:
            break
        _write_checkpoint(checkpoint, target.implementation, cursor, resumed + moved)
    there, here = await digest_records(target), await digest_records(source)
    if there != here:
        checkpoint.unlink(missing_ok=True)
        raise SlotError(
            source.name,
            "conflict",
            f"The two places differ: {here.count} entries here, {there.count} there, or some with other content",
            hint="Empty the target first, for example with another schema in the settings of the slot",
        )
    checkpoint.unlink(missing_ok=True)
    return MoveReport(moved, resumed, here)


async def digest_records(slot: Slot) -> ContentDigest:
    total = count = 0
    async for record in export_records(slot):
        text = json.dumps(record, sort_keys=True, separators=(",", ":"))
        total += int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
        count += 1
    return ContentDigest(count, f"{total % 2**256:064x}")


def _transfer_of(slot: Slot) -> SlotTransfer:
    if slot.contract.transfer is None:
        raise SlotError(slot.name, "invalid", f"The {slot.name} slot keeps nothing that can be moved")
    return slot.contract.transfer


def _read_line(slot: Slot, number: int, line: str) -> Record:
    try:
        found = json.loads(line) if len(line) <= MAX_LINE else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise SlotError(
            slot.name,
            "invalid",
            f"Line {number} is not a JSON object",
            hint="The file has one JSON object a line. What stands before this line is stored",
        )
    return found


def _read_checkpoint(path: Path, target: str) -> tuple[str | None, int]:
    try:
        found = json.loads(path.read_text())
        return (str(found["cursor"]), int(found["count"])) if found["to"] == target else (None, 0)
    except (OSError, ValueError, KeyError, TypeError):
        return None, 0


def _write_checkpoint(path: Path, target: str, cursor: str, count: int) -> None:
    """Replaced in one step. What it names is stored in the target already, so it need not reach the disk at once."""
    draft = path.with_name(f".{path.name}.new")
    draft.write_text(json.dumps({"to": target, "cursor": cursor, "count": count}))
    draft.replace(path)
