"""One piece of work on the repository, in a process of its own: `python -m freehold.backup.job --home HOME WORK`.

The program of backups starts it, and so does the command line. One runs at a time.
"""

import argparse
import contextlib
import fcntl
import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from freehold.backup.keys import KeyStore
from freehold.backup.lease import Lease
from freehold.backup.local_index import LocalIndex
from freehold.backup.place import StorePlace, open_store
from freehold.backup.prune import Prune, PruneResult
from freehold.backup.recovery_state import RecoveryKeyState, read_recovery_state
from freehold.backup.repository import PACKS, BackupRepository, check_format
from freehold.backup.retention import BackupRetention
from freehold.backup.run import BackupResult, BackupRun
from freehold.backup.section import BackupSection
from freehold.backup.status import (
    WORKS,
    BackupFailure,
    LastBackup,
    LastRehearsal,
    LastVerification,
    note_failure,
    read_status,
    update_status,
)
from freehold.backup.stores.contract import BackupStore
from freehold.backup.verification import VerifyResult, rehearse_restore, verify_packs
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.history.calls import RESTORE_TIMEOUT, TakeSnapshot
from freehold.home import Home, ensure_private_folder, find_home
from freehold.keeper.client import call_keeper
from freehold.manifest import require_manifest
from freehold.manifest.secret_text import parse_reference
from freehold.timeline import Timeline


def read_section(home: Home) -> BackupSection:
    return require_manifest(home.manifest, os.environ, home=home.root).manifest.section(BackupSection)


def read_place(home: Home, section: BackupSection) -> StorePlace:
    """Raises `backup.off` when no place is set, and `secret.not-found`."""
    section.require_place()
    reference = parse_reference(section.key) if section.key else None
    secret = Vault(home.vault).get(reference[1]).reveal() if reference is not None else None
    return StorePlace(
        section.to, section.endpoint, section.region, section.user, secret, ssh_key=_expand(section.ssh_key)
    )


def _expand(path: str | None) -> str | None:
    return str(Path(path).expanduser()) if path is not None else None


@dataclass(frozen=True)
class OpenRepository:
    repository: BackupRepository
    index: LocalIndex
    section: BackupSection


@contextlib.contextmanager
def lock_job(home: Home) -> Iterator[None]:
    """Raises `backup.busy` while another process works on the repository. The kernel ends the lock of a killed one."""
    folder = home.root / "backup"
    ensure_private_folder(folder)
    handle = os.open(folder / "job.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FreeholdError(
                "backup.busy", "A backup, a verification or a prune is running already", hint="Wait until it has ended"
            ) from None
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def open_repository(home: Home) -> Iterator[OpenRepository]:
    """The repository of this home, with the lock of the job. Raises `backup.no-recovery-key` before the set-up."""
    section = read_section(home)
    place = read_place(home, section)
    key = KeyStore(home).read()
    with lock_job(home), contextlib.closing(open_store(place, create=False)) as store:
        _check_repository(store, read_recovery_state(home))
        named = f"{place.endpoint or ''} {place.url} {key.identity.recipient}"
        with contextlib.closing(LocalIndex(home.root / "backup", named)) as index:
            yield OpenRepository(BackupRepository(store, key), index, section)


def _check_repository(store: BackupStore, state: RecoveryKeyState | None) -> None:
    """Never makes one by itself: the place may be a disk that is not mounted."""
    try:
        check_format(store)
    except FreeholdError as error:
        if error.code != "backup.no-repository" or state is None:
            raise
        raise FreeholdError(
            error.code,
            error.message,
            hint=f"Is it mounted? To begin anew there: freehold backup key --recipient {state.recipient}",
            kind="not-found",
        ) from None


def take_snapshot(home: Home) -> None:
    """Have history record what was written until now. When nothing runs, nothing but this process can write."""
    from freehold.history.database import read_tracked_folders

    try:
        call_keeper(home, TakeSnapshot(why="before a backup"), timeout=RESTORE_TIMEOUT)
    except FreeholdError as error:
        if error.code == "keeper.not-running":
            tracked = read_tracked_folders(home.history)
            if tracked is not None:
                _take_snapshot_here(home, *tracked)
        elif not error.code.startswith("history."):
            raise  # a history that cannot record now is backed up as it is; its own health says why


def _take_snapshot_here(home: Home, names: tuple[str, ...], ignore: tuple[str, ...]) -> None:
    from freehold.history import History, HistorySettings
    from freehold.keeper.lock import lock_home

    folders = {"workspace": home.workspace, "home": home.agent_home, "pods": home.pods}
    roots = {name: folders[name] for name in names if name in folders}
    with lock_home(home), History(home.history, roots, HistorySettings(ignore=ignore)) as history:
        history.snapshot(why="before a backup")


def back_up(home: Home, *, take_over: bool = False, accept_loss: bool = False) -> BackupResult:
    with noting_failure(home, "now"), open_repository(home) as opened:
        run = BackupRun(home, opened.repository, opened.index, lambda: take_snapshot(home))
        if accept_loss:
            opened.index.set_newest(0, "")
        result = run.run(take_over=take_over, accept_loss=accept_loss)
        now = time.time()
        known = read_status(home).last
        if result.changed or known is None or known.number != result.number:
            snapshot = opened.repository.get_snapshot(result.number)
            known = LastBackup(
                result.number,
                snapshot.at,
                now,
                snapshot.files,
                snapshot.total,
                snapshot.added,
                result.seconds,
                snapshot.notes,
            )
        update_status(home, last=replace(known, checked=now), pending=None, state=result.state)
        if result.changed:
            record_event(
                home, "backup.completed", {"number": result.number, "files": result.files, "added": result.added}
            )
        return result


def verify(home: Home, *, everything: bool = False) -> VerifyResult:
    with noting_failure(home, "verify"), open_repository(home) as opened:
        result = verify_packs(opened.repository, opened.index, home, everything=everything)
        stored = sum(found.size for found in opened.repository.store.list_objects(PACKS))
        done = LastVerification(time.time(), result.packs, result.all_packs, result.problems)
        update_status(home, verification=done, stored=stored)
        record_event(home, "backup.verified", {"packs": result.packs, "problems": list(result.problems[:5])})
        return result


def rehearse(home: Home) -> tuple[str, ...]:
    with noting_failure(home, "rehearse"), open_repository(home) as opened:
        snapshot, problems = rehearse_restore(opened.repository, home.root / "backup" / "rehearsal")
        update_status(home, rehearsal=LastRehearsal(time.time(), snapshot.number, problems))
        record_event(home, "backup.rehearsed", {"number": snapshot.number, "problems": list(problems[:5])})
        return problems


def prune(home: Home, *, drop_damaged: bool = False) -> PruneResult:
    with noting_failure(home, "prune"), open_repository(home) as opened:
        section = opened.section
        lease = Lease(opened.repository, opened.index.holder, str(home.root))
        listing = opened.repository.list_meta()
        lease.acquire(listing)
        opened.index.synchronize(opened.repository, listing)
        rule = BackupRetention(section.hourly, section.daily, section.weekly)
        result = Prune(opened.repository, opened.index, lease, rule, drop_damaged=drop_damaged).run()
        with contextlib.suppress(FreeholdError):
            lease.release()
        update_status(home, pruned=time.time())
        record_event(home, "backup.pruned", {"forgotten": result.forgotten, "kept": result.kept, "freed": result.freed})
        return result


@contextlib.contextmanager
def noting_failure(home: Home, work: str) -> Iterator[None]:
    """Note why the work failed, for the page and the health. The timeline gets the first failure of a row of this work."""
    try:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise FreeholdError(
                "backup.disk-error",
                f"The disk of this machine failed: {error}",
                hint="freehold status shows how full it is",
            ) from error
    except FreeholdError as error:
        if error.code != "backup.busy" and (home.root / "backup").is_dir():
            before = read_status(home).failures.get(work)
            note_failure(home, work, BackupFailure(time.time(), error.code, error.message, error.next_step))
            if before is None or before.code != error.code:
                record_event(home, "backup.failed", {"work": work, "code": error.code, "message": error.message})
        raise
    if work in read_status(home).failures:
        note_failure(home, work, None)


def record_event(home: Home, kind: str, data: dict[str, Any]) -> None:
    """A timeline that cannot be written makes no backup fail."""
    with contextlib.suppress(FreeholdError), Timeline(home.timeline) as timeline:
        timeline.append(kind, data)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m freehold.backup.job")
    parser.add_argument("--home", required=True)
    parser.add_argument("work", choices=WORKS)
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the keeper handles Ctrl-C
    with contextlib.suppress(OSError):
        os.nice(15)
    home = find_home(options.home)
    works: dict[str, Callable[[Home], Any]] = {"now": back_up, "verify": verify, "rehearse": rehearse, "prune": prune}
    try:
        result = works[options.work](home)
    except FreeholdError as error:
        print(error, file=sys.stderr)  # noqa: T201 - captured by the keeper
        sys.exit(1)
    shown = list(result) if isinstance(result, tuple) else asdict(result)
    print(json.dumps({"work": options.work, "result": shown}))  # noqa: T201 - captured by the keeper


if __name__ == "__main__":
    main()
