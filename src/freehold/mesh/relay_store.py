"""The events that the relay of this Freehold keeps: bounded, and replaced as NIP-01 says."""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.home import ensure_private_folder
from freehold.mesh.nostr.event import NostrEvent, read_event
from freehold.mesh.nostr.filter import NostrFilter

VERSION = 2
MAX_ANSWER = 8 * 1024 * 1024
"""Characters of the events that are read at once. Who wants more asks for what is older."""
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
_STEP_2 = """
ALTER TABLE event ADD COLUMN publisher TEXT NOT NULL DEFAULT '';
CREATE INDEX event_publisher ON event (publisher, number);
"""
_STEPS = (_SCHEMA, _STEP_2)
"""A released step is never edited: add another."""
TAG_BYTES = 100
"""What a tag takes in the tables by which it is found."""
OWN = ""
"""The publisher of what this Freehold itself has sent."""


@dataclass
class _Use:
    """What the events of one publisher take."""

    count: int = 0
    size: int = 0


class RelayStore:
    """Thread-safe. Every call blocks. `list_known` names the publishers whose events are kept before those of strangers."""

    def __init__(
        self, path: Path, max_events: int, max_bytes: int, list_known: Callable[[], AbstractSet[str]] = frozenset
    ) -> None:
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._list_known = list_known
        self._lock = threading.Lock()
        ensure_private_folder(path.parent)
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode = WAL").fetchall()
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.execute("PRAGMA foreign_keys = ON")
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            self._database.close()
            raise FreeholdError("mesh.newer", f"{path} was made by a newer Freehold", hint="Update this one")
        if version < VERSION:
            steps = " ".join(_STEPS[version:])
            self._database.executescript(f"BEGIN; {steps} PRAGMA user_version = {VERSION}; COMMIT;")
        rows = self._database.execute("SELECT publisher, count(*), sum(size) FROM event GROUP BY publisher")
        self._uses = {publisher: _Use(count, size) for publisher, count, size in rows}
        self._count = sum(one.count for one in self._uses.values())
        self._size = sum(one.size for one in self._uses.values())

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def add(self, event: NostrEvent, publisher: str = OWN) -> bool:
        """Whether it is new. One that is older than what replaces it is not. `publisher` is the key that sent it here:
        the author of a direct message is hidden."""
        body = json.dumps(event.as_json(), ensure_ascii=False, separators=(",", ":"))
        address, size = find_address(event), len(body.encode()) + TAG_BYTES * len(event.tags)
        with self._lock, self._database:
            self._database.execute("BEGIN IMMEDIATE")
            if self._database.execute("SELECT 1 FROM event WHERE id = ?", (event.id,)).fetchone():
                return False
            if address is not None and not self._replace(event, address):
                return False
            number = self._database.execute(
                "INSERT INTO event (id, pubkey, created_at, kind, address, size, body, publisher)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (event.id, event.pubkey, event.created_at, event.kind, address, size, body, publisher),
            ).lastrowid
            tags = {(tag[0], tag[1], number) for tag in event.tags if len(tag) > 1 and len(tag[0]) == 1}
            self._database.executemany("INSERT INTO tag VALUES (?, ?, ?)", tags)
            self._count_use(publisher, 1, size)
            self._make_place()
        return True

    def find(self, filters: Sequence[NostrFilter]) -> list[NostrEvent]:
        """What any of the filters matches, each event once, the newest first, and of each filter the newest at most."""
        found: dict[str, NostrEvent] = {}
        with self._lock:
            for one in filters:
                sql, given = _write_query(one)
                left = MAX_ANSWER // len(filters)
                for (body,) in self._database.execute(sql, given):
                    event = read_event(json.loads(body))
                    found[event.id] = event
                    left -= len(body)
                    if left <= 0:
                        break
        return sorted(found.values(), key=lambda event: (-event.created_at, event.id))

    def _replace(self, event: NostrEvent, address: str) -> bool:
        """Removes what it replaces. False when what is there is newer."""
        sql = "SELECT number, created_at, id, size, publisher FROM event WHERE address = ?"
        row = self._database.execute(sql, (address,)).fetchone()
        if row is None:
            return True
        number, at, id, size, publisher = row
        if (at, event.id) > (event.created_at, id):
            return False
        self._drop(number, size, publisher)
        return True

    def _make_place(self) -> None:
        """Strangers go first, however many keys they have. Among those who are alike, who takes most of the place loses
        its oldest first: one who floods pushes out nobody else's messages."""
        while self._count > self._max_events or self._size > self._max_bytes:
            strangers = self._uses.keys() - self._list_known() - {OWN}
            publisher = max(strangers or self._uses, key=lambda one: self._find_share(self._uses[one]))
            sql = "SELECT number, size FROM event WHERE publisher = ? ORDER BY number LIMIT 1"
            number, size = self._database.execute(sql, (publisher,)).fetchone()
            self._drop(number, size, publisher)

    def _find_share(self, use: _Use) -> float:
        return max(use.count / self._max_events, use.size / self._max_bytes)

    def _drop(self, number: int, size: int, publisher: str) -> None:
        self._database.execute("DELETE FROM event WHERE number = ?", (number,))
        self._count_use(publisher, -1, -size)

    def _count_use(self, publisher: str, count: int, size: int) -> None:
        self._count, self._size = self._count + count, self._size + size
        use = self._uses.setdefault(publisher, _Use())
        use.count, use.size = use.count + count, use.size + size
        if use.count == 0:
            del self._uses[publisher]


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
