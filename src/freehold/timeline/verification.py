"""Checks the whole hash chain, and reports every event that was changed, moved or removed."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from freehold.errors import FreeholdError
from freehold.timeline import database
from freehold.timeline.anchor import AnchoredHead, HeadAnchor, InvalidAnchor
from freehold.timeline.archive import (
    ArchivedBlock,
    UnreadableBlock,
    archive_folder,
    find_archived_end,
    list_blocks,
    read_block,
)
from freehold.timeline.errors import explain_sqlite_error
from freehold.timeline.event import GENESIS, digest

PROBLEM_LIMIT = 1000
"""Further problems are only counted; the last problem gives their number."""

MAX_MOVES_TRIED = 200
PAGE_ROWS = 500

Fault = Literal["changed", "missing", "reordered", "unreadable", "rewritten"]


@dataclass(frozen=True)
class ChainProblem:
    """One problem, with the events `seq` to `last`."""

    fault: Fault
    seq: int
    last: int
    detail: str


@dataclass(frozen=True)
class _Row:
    seq: int
    at: str
    kind: str
    who: str
    data: str
    previous: str
    hash: str

    def fits(self, seq: int) -> bool:
        return digest(self.previous, seq, self.at, self.kind, self.who, self.data) == self.hash


def verify_chain(
    path: Path,
    progress: Callable[[int, int], None] | None = None,
    known: tuple[int, str] | None = None,
    anchor: HeadAnchor | None = None,
) -> list[ChainProblem]:
    walk = _ChainWalk(known)
    try:
        # Before the events: those that are written meanwhile are behind the anchor then.
        walk.anchored = anchor.read() if anchor is not None else None
    except (InvalidAnchor, FreeholdError) as error:
        walk.note("changed", 0, 0, f"the anchor of the last event cannot be used: {error}")
    try:
        connection = database.open_reader(path)
    except sqlite3.Error as error:
        explained = explain_sqlite_error(error, path)
        if explained is None:
            raise
        raise explained from error
    try:
        # Bytes that are not text are reported; they do not end the check.
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        connection.execute("BEGIN")  # one read transaction, so that new events do not disturb the check
        walk.run(connection, archive_folder(path), progress)
    except sqlite3.Error as error:
        walk.note("unreadable", walk.expected, walk.expected, f"the file cannot be read after this point: {error}")
    finally:
        connection.close()
    return walk.result()


class _ChainWalk:
    def __init__(self, known: tuple[int, str] | None) -> None:
        self.known = known
        self.anchored: AnchoredHead | None = None
        self.expected = 1
        self._link: str | None = GENESIS
        self._first_live = 1
        self._known_seen = known is None
        self._broken: list[_Row] = []
        self._problems: list[ChainProblem] = []
        self._more = 0

    def note(self, fault: Fault, seq: int, last: int, detail: str) -> None:
        if len(self._problems) < PROBLEM_LIMIT:
            self._problems.append(ChainProblem(fault, seq, last, detail))
        else:
            self._more += 1

    def run(self, connection: sqlite3.Connection, archive: Path, progress: Callable[[int, int], None] | None) -> None:
        head = connection.execute("SELECT seq, hash FROM head WHERE only = 1").fetchone()
        archived = find_archived_end(connection)
        (total,) = connection.execute("SELECT count(*) + ? FROM event", (archived,)).fetchone()
        for block in list_blocks(connection):
            self._step_through(archive, block)
            if progress is not None:
                progress(block.last, total)
        self._first_live = self.expected
        rows = connection.execute("SELECT seq, at, kind, who, data, previous, hash FROM event ORDER BY seq")
        for done, raw in enumerate(_pages(rows), start=archived + 1):
            self._step(raw)
            if progress is not None and done % PAGE_ROWS == 0:
                progress(done, total)
        if progress is not None:
            progress(total, total)
        self._end(head)
        for (line,) in connection.execute("PRAGMA integrity_check(20)"):
            if line != "ok":
                self.note("unreadable", 0, 0, f"the file is damaged: {line}")

    def _step_through(self, archive: Path, block: ArchivedBlock) -> None:
        if block.first != self.expected:
            self.note("changed", block.first, block.last, f"the record of the archived event {block.first} was changed")
            self._link = None
        try:
            rows = read_block(archive, block)
        except UnreadableBlock as error:
            fault: Fault = "unreadable" if (archive / block.file).exists() else "missing"
            self.note(fault, block.first, block.last, f"events {block.first} to {block.last} are lost: {error}")
            self.expected, self._link = block.last + 1, None
            return
        self.expected = block.first
        for raw in rows:
            self._step(raw)
        if rows[-1][6] != block.hash:
            what = f"event {block.last} in {block.file} is not the one that was archived"
            self.note("changed", block.last, block.last, what)

    def _step(self, raw: tuple[Any, ...]) -> None:
        seq = raw[0]
        if seq < self.expected:
            self.note("changed", seq, seq, f"event {seq} is not valid: numbers start at {self._first_live}")
            return
        if seq > self.expected:
            self._missing(self.expected, seq - 1)
            self._link = None
        self.expected = seq + 1
        if not all(type(value) is str for value in raw[1:]):
            self.note("changed", seq, seq, f"event {seq} has a field that is not text")
            self._link = None
            return
        row = _Row(*raw)
        if row.fits(seq):
            if self._link is not None and row.previous != self._link:
                before = seq - 1
                what = f"event {before} is not the one that event {seq} was written after"
                self.note("changed", before, before, what if before else "event 1 does not begin the chain")
            self._link = row.hash
        else:
            self._broken.append(row)
            self._link = None
        if self.anchored is not None and seq == self.anchored.seq and row.hash != self.anchored.hash:
            self.note("rewritten", seq, seq, f"event {seq} is not the one that is anchored in the vault")
        if self.known is not None and seq == self.known[0]:
            self._known_seen = True
            if row.hash != self.known[1]:
                self.note("rewritten", seq, seq, f"event {seq} has the hash {row.hash}, not the known one")

    def _missing(self, first: int, last: int) -> None:
        what = f"event {first} is missing" if first == last else f"events {first} to {last} are missing"
        self.note("missing", first, last, what)

    def _end(self, head: tuple[Any, ...] | None) -> None:
        last = self.expected - 1
        if head is None or type(head[0]) is not int:
            self.note(
                "changed",
                last,
                last,
                "the record of the last event is missing, so events may have been removed from the end",
            )
        elif head[0] > last:
            self._missing(self.expected, head[0])
        elif head[0] < last:
            self.note("changed", head[0] + 1, last, f"events after {head[0]} were not written by the timeline")
        elif self._link is not None and head[1] != self._link:
            self.note("changed", last, last, f"event {last} is not the one that was written last")
        anchored = self.anchored
        if anchored is not None and anchored.seq > max(last, head[0] if head and type(head[0]) is int else 0):
            what = f"events after {last} are missing: event {anchored.seq} is anchored in the vault"
            self.note("missing", self.expected, anchored.seq, what)
        if not self._known_seen and self.known is not None:
            self.note(
                "rewritten", self.known[0], self.known[0], f"event {self.known[0]}, whose hash is known, is missing"
            )

    def result(self) -> list[ChainProblem]:
        places = [row.seq for row in self._broken[:MAX_MOVES_TRIED]]
        places += [p.seq for p in self._problems if p.fault == "missing" and p.seq == p.last]
        for row in self._broken:
            origin = _origin(row, places) if len(self._broken) <= MAX_MOVES_TRIED else _origin(row, ())
            if origin is None:
                self.note("changed", row.seq, row.seq, f"event {row.seq} was changed")
            else:
                self.note("reordered", row.seq, row.seq, f"event {row.seq} was written as event {origin}")
        found = sorted(self._problems, key=lambda problem: problem.seq)
        if self._more:
            found.append(ChainProblem("changed", self.expected, self.expected, f"and {self._more} more problems"))
        return found


def _origin(row: _Row, places: Iterable[int]) -> int | None:
    """The number under which this event was written, when it was only moved."""
    candidates = dict.fromkeys((row.seq + 1, row.seq - 1, *places))
    return next((place for place in candidates if row.fits(place)), None)


def _pages(rows: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
    while page := rows.fetchmany(PAGE_ROWS):
        yield from page
