"""Reads chosen events, from the database and from the archive. The cost depends on what is asked for, not on what is stored."""

import heapq
import itertools
import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from freehold.errors import FreeholdError
from freehold.timeline.archive import (
    ArchivedBlock,
    UnreadableBlock,
    archive_folder,
    find_archived_end,
    parse_line,
    read_lines,
    select_blocks,
)
from freehold.timeline.event import TimelineEvent, check_kind

MAX_SEQ = 2**62
_FETCH_ROWS = 500
_COLUMNS = "SELECT seq, at, kind, who, data, hash, previous FROM event"


@dataclass(frozen=True)
class EventSelection:
    """At most `limit` events with `after < seq <= until`. `kinds` holds exact kinds or patterns; `since` is an instant."""

    limit: int
    after: int = 0
    until: int = MAX_SEQ
    kinds: Sequence[str] = ()
    since: str = ""
    newest_first: bool = False

    @property
    def of_any_kind(self) -> bool:
        return not self.kinds or "*" in self.kinds


def select_events(connection: sqlite3.Connection, path: Path, wanted: EventSelection) -> list[TimelineEvent]:
    """In the order that is asked for. Call it in one read transaction, so that no event moves meanwhile."""
    archived = find_archived_end(connection)
    sources = [_archived_events(connection, path, wanted)] if wanted.after < archived else []
    live = _live_events(connection, path, wanted)
    sources.insert(0 if wanted.newest_first else len(sources), live)
    return list(itertools.islice(itertools.chain(*sources), wanted.limit))


def _live_events(connection: sqlite3.Connection, path: Path, wanted: EventSelection) -> Iterator[TimelineEvent]:
    order = "DESC" if wanted.newest_first else "ASC"
    where, given = "seq > ? AND seq <= ?", [wanted.after, wanted.until]  # type: tuple[str, list[Any]]
    if wanted.since:
        where += " AND at >= ?"
        given.append(wanted.since)
    if wanted.of_any_kind:
        sql = f"{_COLUMNS} WHERE {where} ORDER BY seq {order} LIMIT ?"
        yield from (_read_row(row, path) for row in connection.execute(sql, (*given, wanted.limit)))
        return
    # One ordered walk through the index for each kind: a range of kinds would have to be sorted as a whole.
    sql = f"SELECT seq FROM event WHERE kind = ? AND {where} ORDER BY seq {order} LIMIT ?"  # noqa: S608 - constant text only
    walks = [
        connection.execute(sql, (kind, *given, wanted.limit)) for kind in _expand(connection, "event", wanted.kinds)
    ]
    found = (row[0] for row in heapq.merge(*walks, reverse=wanted.newest_first))
    chosen = list(itertools.islice(found, wanted.limit))
    for start in range(0, len(chosen), _FETCH_ROWS):
        some = chosen[start : start + _FETCH_ROWS]
        marks = ", ".join("?" * len(some))
        for row in connection.execute(f"{_COLUMNS} WHERE seq IN ({marks}) ORDER BY seq {order}", some):
            yield _read_row(row, path)


def _archived_events(connection: sqlite3.Connection, path: Path, wanted: EventSelection) -> Iterator[TimelineEvent]:
    kinds = () if wanted.of_any_kind else _expand(connection, "archive_kind", wanted.kinds)
    if not kinds and not wanted.of_any_kind:
        return
    blocks = select_blocks(
        connection, wanted.after, wanted.until, kinds, wanted.since, newest_first=wanted.newest_first
    )
    for block in blocks:
        try:
            yield from _read_archived(archive_folder(path), block, replace(wanted, kinds=kinds))
        except UnreadableBlock as error:
            raise FreeholdError(
                "timeline.archive-damaged",
                f"Events {block.first} to {block.last} cannot be read: {error}",
                hint=f"Put the file back into {archive_folder(path)}, or read later events with --after {block.last}",
            ) from error


def _read_archived(folder: Path, block: ArchivedBlock, wanted: EventSelection) -> Iterator[TimelineEvent]:
    lines = read_lines(folder, block)
    numbers = range(max(block.first, wanted.after + 1), min(block.last, wanted.until) + 1)
    marks = [f'"kind":"{kind}"' for kind in wanted.kinds]
    for seq in reversed(numbers) if wanted.newest_first else numbers:
        line = lines[seq - block.first]
        if marks and not any(mark in line for mark in marks):
            continue  # not even in its data, so it need not be parsed
        found = parse_line(line, seq, block)
        if (wanted.kinds and found["kind"] not in wanted.kinds) or found["at"] < wanted.since:
            continue
        before = (
            block.previous if seq == block.first else parse_line(lines[seq - block.first - 1], seq - 1, block)["hash"]
        )
        yield TimelineEvent(seq, found["at"], found["kind"], found["who"], found["data"], found["hash"], before)


def _expand(connection: sqlite3.Connection, table: str, kinds: Sequence[str]) -> tuple[str, ...]:
    """The exact kinds that are stored. For a pattern such as `egress.*`, one step through the index for each."""
    found = set()
    for pattern in kinds:
        if not pattern.endswith(".*"):
            check_kind(pattern)
            found.add(pattern)
            continue
        # "/" is the character after ".".
        kind, end = pattern[:-1], pattern[:-2] + "/"
        sql = f"SELECT min(kind) FROM {table} WHERE kind > ? AND kind < ?"  # noqa: S608 - our own words
        while (kind := connection.execute(sql, (kind, end)).fetchone()[0]) is not None:
            found.add(kind)
    return tuple(sorted(found))


def _read_row(row: tuple[Any, ...], path: Path) -> TimelineEvent:
    seq, at, kind, who, text, chained, previous = row
    try:
        data = json.loads(text)
    except ValueError as error:
        raise FreeholdError(
            "timeline.tampered",
            f"Event {seq} of {path} was changed after it was written",
            hint="freehold timeline verify lists every event that was changed",
        ) from error
    return TimelineEvent(seq, at, kind, who, data, chained, previous)
