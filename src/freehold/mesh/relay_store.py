"""The events that the relay of this Freehold keeps: bounded, and replaced as NIP-01 says."""

import json
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.home import ensure_private_folder
from freehold.mesh.nostr.event import NostrEvent, read_event
from freehold.mesh.nostr.filter import NostrFilter

VERSION = 1
_SCHEMA = """
CREATE TABLE event (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, pubkey TEXT NOT NULL, created_at INTEGER NOT NULL,
  kind INTEGER NOT NULL, address TEXT UNIQUE, size INTEGER NOT NULL, body TEXT NOT NULL
) STRICT;
CREATE INDEX event_time ON event (created_at DESC, id);
CREATE TABLE tag (
  name TEXT NOT NULL, value TEXT NOT NULL, event INTEGER NOT NULL REFERENCES event ON DELETE CASCADE,
  PRIMARY KEY (name, value, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX tag_event ON tag (event);
"""


class RelayStore:
    """Thread-safe. Every call blocks."""

    def __init__(self, path: Path, max_events: int, max_bytes: int) -> None:
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        ensure_private_folder(path.parent)
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode = WAL").fetchall()
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.execute("PRAGMA foreign_keys = ON")
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if version == 0:
            self._database.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
        elif version != VERSION:
            self._database.close()
            raise FreeholdError("mesh.newer", f"{path} was made by a newer Freehold", hint="Update this one")
        count, size = self._database.execute("SELECT count(*), coalesce(sum(size), 0) FROM event").fetchone()
        self._count, self._size = int(count), int(size)

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def add(self, event: NostrEvent) -> bool:
        """Whether it is new. One that is older than what replaces it is not."""
        body = json.dumps(event.as_json(), ensure_ascii=False, separators=(",", ":"))
        address = find_address(event)
        with self._lock, self._database:
            self._database.execute("BEGIN IMMEDIATE")
            if self._database.execute("SELECT 1 FROM event WHERE id = ?", (event.id,)).fetchone():
                return False
            if address is not None and not self._replace(event, address):
                return False
            number = self._database.execute(
                "INSERT INTO event (id, pubkey, created_at, kind, address, size, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (event.id, event.pubkey, event.created_at, event.kind, address, len(body), body),
            ).lastrowid
            tags = {(tag[0], tag[1], number) for tag in event.tags if len(tag) > 1 and len(tag[0]) == 1}
            self._database.executemany("INSERT INTO tag VALUES (?, ?, ?)", tags)
            self._count, self._size = self._count + 1, self._size + len(body)
            self._drop_oldest()
        return True

    def find(self, filters: Sequence[NostrFilter]) -> list[NostrEvent]:
        """What any of the filters matches, each event once, the newest first."""
        found: dict[str, NostrEvent] = {}
        with self._lock:
            for one in filters:
                sql, given = _write_query(one)
                for (body,) in self._database.execute(sql, given):
                    event = read_event(json.loads(body))
                    found[event.id] = event
        return sorted(found.values(), key=lambda event: (-event.created_at, event.id))

    def _replace(self, event: NostrEvent, address: str) -> bool:
        """Removes what it replaces. False when what is there is newer."""
        sql = "SELECT number, created_at, id, size FROM event WHERE address = ?"
        row = self._database.execute(sql, (address,)).fetchone()
        if row is None:
            return True
        number, at, id, size = row
        if (at, event.id) > (event.created_at, id):
            return False
        self._database.execute("DELETE FROM event WHERE number = ?", (number,))
        self._count, self._size = self._count - 1, self._size - size
        return True

    def _drop_oldest(self) -> None:
        """What came first goes first, whatever time it names."""
        while self._count > self._max_events or self._size > self._max_bytes:
            number, size = self._database.execute("SELECT number, size FROM event ORDER BY number LIMIT 1").fetchone()
            self._database.execute("DELETE FROM event WHERE number = ?", (number,))
            self._count, self._size = self._count - 1, self._size - size


def find_address(event: NostrEvent) -> str | None:
    """What an event replaces: all others with the same address."""
    if event.is_replaceable:
        return f"{event.kind}:{event.pubkey}:"
    if event.is_addressable:
        return f"{event.kind}:{event.pubkey}:{event.tag('d') or ''}"
    return None


def _write_query(one: NostrFilter) -> tuple[str, list[object]]:
    where: list[str] = []
    given: list[object] = []

    def add(column: str, values: Iterable[object] | None) -> None:
        if values is not None:
            wanted = list(values)
            where.append(f"{column} IN ({', '.join('?' * len(wanted))})")
            given.extend(wanted)

    add("id", one.ids)
    add("pubkey", one.authors)
    add("kind", one.kinds)
    for name, values in one.tags.items():
        places = ", ".join("?" * len(values))
        where.append(f"number IN (SELECT event FROM tag WHERE name = ? AND value IN ({places}))")  # noqa: S608
        given.extend([name, *values])
    for compare, moment in ((">=", one.since), ("<=", one.until)):
        if moment is not None:
            where.append(f"created_at {compare} ?")
            given.append(moment)
    clause = f"WHERE {' AND '.join(where)}" if where else ""
    return f"SELECT body FROM event {clause} ORDER BY created_at DESC, id LIMIT ?", [*given, one.limit]  # noqa: S608
