"""What is known of the backups of a home, in a file that every process of Freehold reads."""

import fcntl
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from freehold.home import Home
from freehold.private_file import replace_private_file
from freehold.strict_json import EpochSeconds, decode

STALE_AFTER = 6 * 3600.0
"""Seconds that a change may wait for its backup before that counts as a problem."""

WORKS = {
    "now": "The last backup failed",
    "verify": "The last verification failed",
    "rehearse": "The last trial of a restore failed",
    "prune": "The last removal of old backups failed",
}


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
    """Times are seconds since 1970. `pending` is when the first change was seen that is in no backup.

    `failures` has each work whose last attempt failed. `told` is the `pending` of which the owner was told that it waits
    too long.
    """

    last: LastBackup | None = None
    failures: dict[str, BackupFailure] = field(default_factory=dict)
    told: EpochSeconds | None = None
    pending: EpochSeconds | None = None
    verification: LastVerification | None = None
    rehearsal: LastRehearsal | None = None
    pruned: EpochSeconds | None = None
    state: str | None = None
    """The state of the home at the last backup; see `home_state`."""
    stored: int | None = None
    """The size of the repository, as of the last verification."""

    @property
    def failed_work(self) -> str | None:
        """The work whose failure matters most: that of a backup."""
        return next((work for work in WORKS if work in self.failures), None)

    @property
    def failure(self) -> BackupFailure | None:
        work = self.failed_work
        return self.failures[work] if work is not None else None


def status_path(home: Home) -> Path:
    return home.root / "backup" / "status.json"


def read_status(home: Home) -> BackupStatus:
    """Nothing is known when the file is missing or of another version."""
    try:
        found = json.loads(status_path(home).read_bytes())
        found.pop("failure", None)  # of 0.1.0: it did not say of which work
        return decode(BackupStatus, found)
    except (OSError, ValueError, TypeError, AttributeError):
        return BackupStatus()


def update_status(home: Home, **changes: object) -> BackupStatus:
    """Safe for several processes: the job and the program that watches for changes."""
    return change_status(home, lambda status: replace(status, **changes))  # type: ignore[arg-type]


def note_failure(home: Home, work: str, failure: BackupFailure | None) -> BackupStatus:
    """None: it succeeded. Other work keeps its failure."""

    def change(status: BackupStatus) -> BackupStatus:
        others = {name: one for name, one in status.failures.items() if name != work}
        return replace(status, failures=others if failure is None else {**others, work: failure})

    return change_status(home, change)


def change_status(home: Home, change: Callable[[BackupStatus], BackupStatus]) -> BackupStatus:
    path = status_path(home)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    handle = os.open(path.with_name("status.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        status = change(read_status(home))
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
    failure, work = status.failure, status.failed_work
    if failure is not None and work is not None:
        prefix = "" if work == "now" else f"{WORKS[work]}: "
        return f"{prefix}{failure.message}. {failure.hint}", is_stale(status, now)
    if is_stale(status, now):
        return "A change has been waiting for its backup for too long. See: freehold logs backup", True
    return None


def is_stale(status: BackupStatus, now: float) -> bool:
    return status.pending is not None and now - status.pending > STALE_AFTER
