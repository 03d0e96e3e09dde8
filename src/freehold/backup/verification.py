"""Reads a backup back: a sample of its packs, or all of it restored into a scratch folder."""

import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from blake3 import blake3

from freehold.backup.home_state import check_anchor
from freehold.backup.local_index import LocalIndex
from freehold.backup.repository import PACKS, BackupRepository, pack_path
from freehold.backup.restore import HomeRestore, choose_snapshot
from freehold.backup.snapshot import BackupSnapshot
from freehold.errors import FreeholdError
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
    problems: list[str] = []
    listing = repository.list_meta()
    number, _ = index.newest
    if max(listing.snapshots, default=0) < number:
        problems.append(f"backup {number} is missing: the store shows an older state")
    elif listing.snapshots:
        newest = repository.get_snapshot(max(listing.snapshots))
        if newest.timeline is not None:
            try:
                check_anchor(home, newest.timeline)
            except FreeholdError as error:
                problems.append(error.message)
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
    """Restore the newest backup into this folder, check what came of it, and remove it. Returns the problems."""
    from freehold.history.database import open_reader
    from freehold.history.verification import verify_store
    from freehold.timeline import Timeline

    snapshot = choose_snapshot(repository, None)
    shutil.rmtree(folder, ignore_errors=True)
    _check_space(folder.parent, snapshot)
    problems = []
    try:
        HomeRestore(repository, snapshot, folder).run()
        for path in sorted(folder.rglob("*.db")):
            if path.relative_to(folder).parts[0] in ("workspace", "home", "pods"):
                continue
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
        shutil.rmtree(folder, ignore_errors=True)
    return snapshot, tuple(problems[:_MAX_PROBLEMS])


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
