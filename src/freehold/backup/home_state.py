"""Whether anything in a home has changed since a backup, found without reading the files."""

import json
import sqlite3
import stat

from blake3 import blake3

from freehold.backup.home_files import HomeFiles
from freehold.backup.snapshot import TimelineAnchor
from freehold.backup.sqlite_file import begin_reading
from freehold.errors import FreeholdError
from freehold.history.database import read_tracked_folders
from freehold.home import Home

OWN_EVENTS = "backup.*"
_MAX_HASHED = 8 << 20


def read_home_state(home: Home) -> str:
    """A text that is the same while nothing changes. What backups themselves note does not count."""
    tracked = read_tracked_folders(home.history)
    files = []
    for found in HomeFiles(home, tracked[0] if tracked else ()).walk():
        if found.path in (b"timeline.db", b"vault/timeline-head"):
            continue
        seen: list[str | int] = [found.path.hex(), found.stat.st_mode]
        if not stat.S_ISDIR(found.stat.st_mode):  # SQLite makes and removes files in folders without a change of ours
            seen += [found.stat.st_size, found.stat.st_mtime_ns, found.stat.st_ino]
        if stat.S_ISREG(found.stat.st_mode) and found.path.startswith(b"vault/") and found.path.endswith(b".db"):
            seen = [found.path.hex(), _digest_database(home, found.path)]
        files.append(seen)
    state = [_last_event(home), _last_entry(home) if tracked else None, files]
    return blake3(json.dumps(state).encode()).hexdigest()


def _digest_database(home: Home, path: bytes) -> str:
    """A database in a journal changes without its file, and its file changes without the database."""
    place = home.root / path.decode()
    try:
        if place.stat().st_size > _MAX_HASHED:
            return str(place.stat().st_mtime_ns)
        connection = begin_reading(place)
        try:
            return blake3(connection.serialize()).hexdigest()
        finally:
            connection.close()
    except (sqlite3.Error, OSError):
        return "unreadable"


def _last_event(home: Home) -> int | None:
    if not home.timeline.exists():
        return None
    connection = begin_reading(home.timeline)
    try:
        row = connection.execute(
            "SELECT seq FROM event WHERE kind NOT GLOB ? ORDER BY seq DESC LIMIT 1", (OWN_EVENTS,)
        ).fetchone()
        return row[0] if row else None
    finally:
        connection.close()


def _last_entry(home: Home) -> list[int]:
    """The newest entry, and how often entries were dropped or marked: both change what a backup has."""
    connection = begin_reading(home.history / "history.db")
    try:
        row = connection.execute("SELECT coalesce(max(id), 0), count(*), coalesce(sum(good), 0) FROM entry").fetchone()
        return list(row)
    finally:
        connection.close()


def check_anchor(home: Home, anchor: TimelineAnchor) -> None:
    """Raises `backup.timeline-cut` unless the timeline still has the event that a backup saw last."""
    from freehold.timeline import Timeline

    found = []
    if home.timeline.exists():
        with Timeline(home.timeline, readonly=True) as timeline:
            found = timeline.read(after=anchor.seq - 1, limit=1) if anchor.seq else []
    if anchor.seq and (not found or found[0].seq != anchor.seq or found[0].hash != anchor.hash):
        raise FreeholdError(
            "backup.timeline-cut",
            f"The timeline does not have event {anchor.seq} as the last backup saw it: it was cut or changed",
            hint="If you restored an older backup: freehold backup now --accept-loss. Else see freehold timeline verify; older backups have the events: freehold restore-from … --into a folder beside",
            kind="damaged",
        )
