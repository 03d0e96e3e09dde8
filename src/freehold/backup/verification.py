"""Reads a backup back: a sample of its packs, or all of it restored into a scratch folder."""

import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from blake3 import blake3

from freehold.backup.home_files import TRACKED
from freehold.backup.home_state import check_anchor
from freehold.backup.local_index import LocalIndex
from freehold.backup.repository import PACKS, BackupRepository, pack_path
from freehold.backup.restore import HomeRestore, choose_snapshot
from freehold.backup.snapshot import BackupSnapshot
from freehold.errors import FreeholdError
from freehold.history.staging_area import remove_path
from freehold.home import Home

SAMPLE_BYTES = 64 << 20
_MAX_PROBLEMS = 50


@dataclass(frozen=True)
class VerifyResult:
    """`packs` were read of `all_packs`; `problems` say what is lost or damaged."""

    packs: int
    all_packs: int
    bytes: int
    problems: tuple[str, ...]


def verify_packs(
    repository: BackupRepository,
    index: LocalIndex,
    home: Home,
    *,
    everything: bool = False,
    chance: random.Random | None = None,
) -> VerifyResult:
    """Check that every pack is there, and read a sample or all of them. What is lost is stored again by the next backup."""
    listing = repository.list_meta()
    problems = _check_snapshots(repository, index, home, listing.snapshots)
    problems += _check_indexes(repository, index, listing.indexes)
    index.synchronize(repository, listing)
    known = {name: (pack, size) for pack, name, size in index.db.execute("SELECT id, name, size FROM pack").fetchall()}
    stored = {found.name: found.size for found in repository.store.list_objects(PACKS)}
    lost = {}
    for name, (_, size) in known.items():
        found = stored.get(pack_path(name))
        if found != size:
            lost[name] = "is missing" if found is None else f"has {found:,} bytes instead of {size:,}"
    names = [name for name in known if name not in lost]
    (chance or random.SystemRandom()).shuffle(names)
    read = read_bytes = 0
    for name in names:
        if not everything and read_bytes > SAMPLE_BYTES:
            break
        trouble = _read_pack(repository, name)
        if trouble is not None:
            lost[name] = trouble
        read += 1
        read_bytes += known[name][1]
    for name, why in sorted(lost.items()):
        problems.append(f"pack {name[:16]}… {why}")
        index.mark_lost(name)
    return VerifyResult(read, len(known), read_bytes, tuple(problems[:_MAX_PROBLEMS]))


def _check_snapshots(
    repository: BackupRepository, index: LocalIndex, home: Home, numbers: tuple[int, ...]
) -> list[str]:
    """Every backup can be opened, and the timeline still has what the newest one saw of it."""
    problems = []
    last, _ = index.newest
    if max(numbers, default=0) < last:
        problems.append(f"backup {last} is missing: the store shows an older state")
    for number in numbers:
        snapshot, trouble = repository.find_snapshot(number)
        if trouble is not None:
            problems.append(trouble.message)
        if number != max(numbers):
            continue
        if trouble is not None:
            index.forget_state()
        elif snapshot is not None and snapshot.timeline is not None and number >= last:
            try:
                check_anchor(home, snapshot.timeline)
            except FreeholdError as error:
                problems.append(error.message)
    return problems


def _check_indexes(repository: BackupRepository, index: LocalIndex, names: frozenset[str]) -> list[str]:
    """Every index is read: without it nothing that it names can be found. What a damaged one named is listed anew."""
    problems = []
    for name in sorted(names):
        _, trouble = repository.find_index(name)
        if trouble is not None:
            problems.append(trouble.message)
            index.unlist(name)
    return problems


def _read_pack(repository: BackupRepository, name: str) -> str | None:
    """What is wrong with it."""
    try:
        for digest, content in repository.get_pack(name):
            if blake3(content).digest() != digest:
                return "has a blob that is not what its name says"
    except FreeholdError as error:
        if error.code != "backup.lost":
            raise
        return error.message
    return None


def rehearse_restore(repository: BackupRepository, folder: Path) -> tuple[BackupSnapshot, tuple[str, ...]]:
    """Restore the newest backup into this folder, compare what came of it, and remove it. Returns the problems.

    Each file is read again from the disk and compared with the backup; then the databases, history and the timeline are
    checked as a Freehold would find them there.
    """
    from freehold.history.database import open_reader
    from freehold.history.verification import verify_store
    from freehold.timeline import Timeline

    snapshot = choose_snapshot(repository, None)
    remove_path(str(folder))
    _check_space(folder.parent, snapshot)
    problems = []
    try:
        restore = HomeRestore(repository, snapshot, folder)
        restore.run()
        problems += list(islice(restore.compare(), _MAX_PROBLEMS))
        for path in sorted(one for top in folder.iterdir() if top.name not in TRACKED for one in _list_databases(top)):
            with closing(sqlite3.connect(path)) as db:
                verdict = db.execute("PRAGMA integrity_check").fetchone()[0]
            if verdict != "ok":
                problems.append(f"{path.relative_to(folder)}: {verdict}")
        if (folder / "history" / "history.db").exists():
            with closing(open_reader(folder / "history" / "history.db")) as db:
                found = verify_store(db, folder / "history" / "chunks")
            problems += [f"history: content {damage.content}: {damage.reason}" for damage in found.damages]
        if (folder / "timeline.db").exists():
            with Timeline(folder / "timeline.db", readonly=True) as timeline:
                problems += [f"timeline: {problem}" for problem in timeline.verify()]
    finally:
        remove_path(str(folder))
    return snapshot, tuple(problems[:_MAX_PROBLEMS])


def _list_databases(top: Path) -> Iterator[Path]:
    if top.is_dir():
        yield from top.rglob("*.db")
    elif top.suffix == ".db":
        yield top


def _check_space(folder: Path, snapshot: BackupSnapshot) -> None:
    """Twice: the files, and their contents in history."""
    needed = 2 * snapshot.total + (256 << 20)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise FreeholdError(
            "backup.no-room",
            f"To try a restore needs about {needed >> 20:,} MiB in {folder}, and {free >> 20:,} MiB are free",
            hint="Free some disk space",
            kind="no-space",
        )
