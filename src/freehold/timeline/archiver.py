"""Moves old events from the database to the archive, in slices, so that no other writer waits long."""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from freehold.errors import FreeholdError
from freehold.timeline.anchor import InvalidAnchor
from freehold.timeline.archive import (
    BLOCK_EVENTS,
    ArchivedBlock,
    ArchiveWriter,
    EventRow,
    archive_folder,
    encode_canonical,
    find_last_block,
)
from freehold.timeline.errors import explain_open_error
from freehold.timeline.event import GENESIS, digest
from freehold.timeline.timeline import Timeline, Transaction, format_instant

log = logging.getLogger(__name__)

MIN_LIVE = 1024
"""The newest events stay in the database, however old they are."""
SLICE_BLOCKS = 4
SLICE_PAUSE = 0.05
FIRST_DELAY = 120.0
INTERVAL = 86_400.0
_VACUUM_PAGES = 500
_SPARE_PAGES = 2000


@dataclass(frozen=True)
class ArchivedRange:
    """The events that one run moved; `count` is 0 when none was old enough."""

    first: int
    last: int
    count: int


class _Slices:
    """The slices of one run. Every method blocks."""

    def __init__(self, timeline: Timeline, before: datetime) -> None:
        self._timeline = timeline
        self._before = format_instant(before)
        self._writer = ArchiveWriter(archive_folder(timeline.path))
        self._first = self._last = self._count = 0

    def archive_next(self) -> bool:
        """Moves a few blocks in one transaction, and returns whether there may be more. All or nothing of it is done.

        Raises `timeline.tampered` when an event was changed: then everything stays as it is, for `verify`.
        """
        moved = 0
        with self._timeline.transaction() as tx:
            limit = self._find_limit(tx)
            for _ in range(SLICE_BLOCKS):
                moved += self._move_block(tx, limit)
        return moved == SLICE_BLOCKS

    def finish(self) -> ArchivedRange:
        """Gives the freed pages back, and records what was moved."""
        if self._count:
            self._timeline.append(
                "timeline.events_archived", {"first": self._first, "last": self._last, "count": self._count}
            )
        while self._timeline.shrink(_VACUUM_PAGES, _SPARE_PAGES):
            pass
        return ArchivedRange(self._first, self._last, self._count)

    def _find_limit(self, tx: Transaction) -> int:
        """No event after this one is moved: not the newest ones, and none that the anchor in the vault still needs."""
        ((head,),) = tx.execute("SELECT seq FROM head").fetchall()
        try:
            anchored = self._timeline.read_anchor()
        except InvalidAnchor as error:
            raise _tampered(str(error)) from error
        newest = int(head) - MIN_LIVE
        return newest if anchored is None else min(newest, anchored.seq)

    def _move_block(self, tx: Transaction, limit: int) -> bool:
        rows: Sequence[EventRow] = tx.execute(
            "SELECT seq, at, kind, who, data, previous, hash FROM event ORDER BY seq LIMIT ?", (BLOCK_EVENTS,)
        ).fetchall()
        # The middle one: a clock that jumped for a while moves nothing early and holds nothing back.
        if len(rows) < BLOCK_EVENTS or rows[-1][0] > limit or _find_middle(rows) >= self._before:
            return False
        last = find_last_block(tx)
        _check_chain(rows, last)
        try:
            block = self._writer.write_block(rows, last)
        except OSError as error:
            raise explain_open_error(error, archive_folder(self._timeline.path)) from error
        tx.execute(
            "INSERT INTO archive (first, last, latest, hash, previous, file, offset, size) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                block.first, block.last, max(row[1] for row in rows), block.hash, block.previous, block.file,
                block.offset, block.size,
            ),
        )  # fmt: skip
        for kind in {row[2] for row in rows}:
            tx.execute("INSERT INTO archive_kind (kind, first) VALUES (?, ?)", (kind, block.first))
        tx.execute("DELETE FROM event WHERE seq <= ?", (block.last,))
        self._first = self._first or block.first
        self._last = block.last
        self._count += len(rows)
        return True


def archive_events(timeline: Timeline, before: datetime) -> ArchivedRange:
    """Moves the events from before that time to the archive. Blocking and idempotent."""
    slices = _Slices(timeline, before)
    while slices.archive_next():
        pass
    return slices.finish()


async def archive_daily(timeline: Timeline, after: float) -> None:
    """Until cancelled: moves events that are older than `after` seconds, a first time soon after the start."""
    await asyncio.sleep(FIRST_DELAY)
    while True:
        slices = _Slices(timeline, datetime.now(UTC) - timedelta(seconds=after))
        try:
            while await asyncio.to_thread(slices.archive_next):  # noqa: ASYNC110 - not a wait: others write meanwhile
                await asyncio.sleep(SLICE_PAUSE)
            await asyncio.to_thread(slices.finish)
        except FreeholdError as error:
            log.warning("old timeline events cannot be archived now: %s", error)
        await asyncio.sleep(INTERVAL)


def _find_middle(rows: Sequence[EventRow]) -> str:
    """The lower of the two middle moments."""
    return sorted(row[1] for row in rows)[(len(rows) - 1) // 2]


def _check_chain(rows: Sequence[EventRow], last: ArchivedBlock | None) -> None:
    """What was changed is not compressed: the evidence stays where it is."""
    expected, link = (last.last + 1, last.hash) if last is not None else (1, GENESIS)
    for seq, at, kind, who, data, previous, chained in rows:
        if seq != expected or previous != link or digest(previous, seq, at, kind, who, data) != chained:
            raise _tampered(f"Event {expected} was changed or is missing, so older events are not archived")
        try:
            canonical = encode_canonical(json.loads(data)) == data
        except ValueError:
            canonical = False
        if not canonical:
            raise _tampered(f"Event {seq} was not written by the timeline, so older events are not archived")
        expected, link = seq + 1, chained


def _tampered(message: str) -> FreeholdError:
    return FreeholdError(
        "timeline.tampered", message, hint="freehold timeline verify lists every event that was changed"
    )
