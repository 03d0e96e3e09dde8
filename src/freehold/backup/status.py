"""What is known of the backups of a home, in a file that every process of Freehold reads."""

import fcntl
import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from freehold.home import Home
from freehold.private_file import replace_private_file
from freehold.strict_json import EpochSeconds, decode

STALE_AFTER = 6 * 3600.0
"""Seconds that a change may wait for its backup before that counts as a problem."""


@dataclass(frozen=True)
class BackupFailure:
    at: EpochSeconds
    code: str
    message: str
    hint: str


@dataclass(frozen=True)
class LastBackup:
    """`checked` is when it was last found that nothing has changed since."""

    number: int
    at: EpochSeconds
    checked: EpochSeconds
    files: int
    total: int
    added: int
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LastVerification:
    at: EpochSeconds
    packs: int
    all_packs: int
    problems: tuple[str, ...]


@dataclass(frozen=True)
class LastRehearsal:
    """The last restore into a scratch folder, of backup `number`."""

    at: EpochSeconds
    number: int
    problems: tuple[str, ...]


@dataclass(frozen=True)
class BackupStatus:
    """Times are seconds since 1970. `pending` is when the first change was seen that is in no backup."""

    last: LastBackup | None = None
    failure: BackupFailure | None = None
    pending: EpochSeconds | None = None
    verification: LastVerification | None = None
    rehearsal: LastRehearsal | None = None
    pruned: EpochSeconds | None = None
    state: str | None = None
    """The state of the home at the last backup; see `home_state`."""
    stored: int | None = None
    """The size of the repository, as of the last verification."""


def status_path(home: Home) -> Path:
    return home.root / "backup" / "status.json"


def read_status(home: Home) -> BackupStatus:
    """Nothing is known when the file is missing or of another version."""
    try:
        return decode(BackupStatus, json.loads(status_path(home).read_bytes()))
    except (OSError, ValueError, TypeError):
        return BackupStatus()


def update_status(home: Home, **changes: object) -> BackupStatus:
    """Safe for several processes: the job and the program that watches for changes."""
    path = status_path(home)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    handle = os.open(path.with_name("status.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        status = replace(read_status(home), **changes)  # type: ignore[arg-type]
        replace_private_file(path, json.dumps(asdict(status)).encode())
        return status
    finally:
        os.close(handle)


def describe_trouble(status: BackupStatus, *, has_key: bool, now: float) -> tuple[str, bool] | None:
    """What the owner should know, and whether backups fail altogether; None while all is well."""
    if not has_key:
        return "Backups are not set up. Run: freehold backup key", False
    if status.verification is not None and status.verification.problems:
        return f"The last verification found: {status.verification.problems[0]}", True
    if status.rehearsal is not None and status.rehearsal.problems:
        return f"The last trial of a restore found: {status.rehearsal.problems[0]}", True
    if status.failure is not None:
        return f"{status.failure.message}. {status.failure.hint}", _is_stale(status, now)
    if _is_stale(status, now):
        return "A change has been waiting for its backup for too long. See: freehold logs backup", True
    return None


def _is_stale(status: BackupStatus, now: float) -> bool:
    return status.pending is not None and now - status.pending > STALE_AFTER
