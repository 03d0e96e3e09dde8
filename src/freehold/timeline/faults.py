"""What SQLite complains about, in words for the owner."""

import errno
import os
import sqlite3
from pathlib import Path

from freehold.errors import FreeholdError

NEEDED = 64 * 1024
"""Free bytes below which a refusing disk is called full."""


def explain(error: sqlite3.Error, path: Path) -> FreeholdError | None:
    """The explained error, or None for a mistake in our own SQL (which is a bug and stays as it is)."""
    # The low byte is the primary result code; the rest says more about the same thing.
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


def explain_open(error: OSError, path: Path) -> FreeholdError:
    """Why the file could not be opened or made."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _full(path, error)
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM) and path.exists():
        return _read_only(path, error)
    return _cannot_open(path, error)


def _full(path: Path, _error: Exception) -> FreeholdError:
    return FreeholdError(
        "timeline.disk-full",
        f"There is no room left to write to {path}",
        hint=f"Free some space (df -h {path.parent}); what was recorded before is safe, what failed was not recorded",
    )


def _io(path: Path, error: sqlite3.Error) -> FreeholdError:
    # A full disk comes in many disguises: a log that cannot grow, a lock file that cannot be made.
    space = os.statvfs(path.parent)
    if space.f_bavail * space.f_frsize < NEEDED:
        return _full(path, error)
    name = getattr(error, "sqlite_errorname", "SQLITE_IOERR")
    return FreeholdError(
        "timeline.disk-error",
        f"The disk refused to read or write {path} ({name})",
        hint=f"Look at df -h {path.parent}, ulimit -f and the kernel's log (dmesg); what was recorded before is safe",
    )


def _read_only(path: Path, _error: Exception) -> FreeholdError:
    return FreeholdError(
        "timeline.read-only",
        f"{path} can be read but not written",
        hint=f"Check who owns it (ls -l {path}) and that its file system is not mounted read-only",
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
        hint=f"Run freehold timeline verify to see what is left; to start a new one: mv {path} {path}.damaged",
    )


def _busy(path: Path, _error: Exception) -> FreeholdError:
    return FreeholdError(
        "timeline.busy",
        f"Another program has kept {path} locked for too long",
        hint=f"See who has it open (fuser -v {path}) and try again",
    )
