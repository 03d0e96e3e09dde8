"""SQLite errors as FreeholdErrors, with a hint for the owner."""

import errno
import os
import sqlite3
from pathlib import Path

from freehold.errors import FreeholdError

MIN_FREE_BYTES = 64 * 1024
"""With fewer free bytes than this, an I/O error is reported as a full disk."""


def explain_sqlite_error(error: sqlite3.Error, path: Path) -> FreeholdError | None:
    """The error for the owner; None when the SQL itself is wrong, which is a bug."""
    # The low byte is the primary result code; the others are details.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    known = {
        sqlite3.SQLITE_FULL: _full,
        sqlite3.SQLITE_IOERR: _io,
        sqlite3.SQLITE_READONLY: _read_only,
        sqlite3.SQLITE_PERM: _read_only,
        sqlite3.SQLITE_CANTOPEN: _cannot_open,
        sqlite3.SQLITE_CORRUPT: _corrupt,
        sqlite3.SQLITE_NOTADB: _corrupt,
        sqlite3.SQLITE_BUSY: _busy,
        sqlite3.SQLITE_LOCKED: _busy,
    }.get(code)
    return known(path, error) if known else None


def explain_open_error(error: OSError, path: Path) -> FreeholdError:
    """Why the file could not be opened or created."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _full(path, error)
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM) and path.exists():
        return _read_only(path, error)
    return _cannot_open(path, error)


def _full(path: Path, _error: Exception) -> FreeholdError:
    return FreeholdError(
        "timeline.disk-full",
        f"No space left to write to {path}",
        hint=f"Free some space (df -h {path.parent}). Earlier events are safe; this event was not recorded",
    )


def _io(path: Path, error: sqlite3.Error) -> FreeholdError:
    # A full disk causes different errors: a log that cannot grow, a lock file that cannot be created.
    space = os.statvfs(path.parent)
    if space.f_bavail * space.f_frsize < MIN_FREE_BYTES:
        return _full(path, error)
    name = getattr(error, "sqlite_errorname", "SQLITE_IOERR")
    return FreeholdError(
        "timeline.disk-error",
        f"Reading or writing {path} failed ({name})",
        hint=f"Check df -h {path.parent}, ulimit -f and the kernel's log (dmesg). Earlier events are safe",
    )


def _read_only(path: Path, _error: Exception) -> FreeholdError:
    return FreeholdError(
        "timeline.read-only",
        f"{path} can be read but not written",
        hint=f"Check its owner (ls -l {path}), and that its file system is not mounted read-only",
    )


def _cannot_open(path: Path, error: Exception) -> FreeholdError:
    return FreeholdError(
        "timeline.cannot-open",
        f"{path} cannot be opened: {error.strerror if isinstance(error, OSError) else error}",
        hint=f"Check that the folder exists and belongs to this user (ls -ld {path.parent})",
    )


def _corrupt(path: Path, error: sqlite3.Error) -> FreeholdError:
    return FreeholdError(
        "timeline.corrupt",
        f"{path} is damaged: {error}",
        hint=f"See what is left with freehold timeline verify. To start a new timeline, move it away with "
        f"its anchor: mv {path} {path}.damaged; mv {path.parent}/vault/timeline-head {path.parent}/vault/timeline-head.old",
    )


def _busy(path: Path, _error: Exception) -> FreeholdError:
    return FreeholdError(
        "timeline.busy",
        f"Another program has locked {path} for too long",
        hint=f"Find the program (fuser -v {path}), then try again",
    )
