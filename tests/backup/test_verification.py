"""Damage in the store is found, told, and repaired by the next backup as far as the contents are still here."""

import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.backup_home import BackupHome, add_events, describe_tree

from freehold.backup import verification
from freehold.backup.keys import KeyStore
from freehold.backup.lease import Lease
from freehold.backup.local_index import LocalIndex
from freehold.backup.prune import Prune
from freehold.backup.repository import BackupRepository
from freehold.backup.restore import HomeRestore, HomeRestoreResult, choose_snapshot
from freehold.backup.retention import BackupRetention
from freehold.backup.stores.folder import FolderStore
from freehold.backup.verification import VerifyResult, rehearse_restore, verify_packs
from freehold.errors import FreeholdError


def _verify(small_home: BackupHome, store: FolderStore, *, everything: bool = True) -> VerifyResult:
    repository = BackupRepository(store, KeyStore(small_home.home).read())
    with closing(LocalIndex(small_home.home.root / "backup", "tests")) as index:
        return verify_packs(repository, index, small_home.home, everything=everything, chance=random.Random(1))


def test_a_whole_store_has_no_problems(small_home: BackupHome, store: FolderStore) -> None:
    small_home.set_up(store)
    small_home.back_up(store)
    result = _verify(small_home, store)
    assert result.problems == ()
    assert result.packs == result.all_packs > 0


def test_a_sample_is_bounded(small_home: BackupHome, store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "SAMPLE_BYTES", 1)
    small_home.set_up(store)
    small_home.back_up(store)
    result = _verify(small_home, store, everything=False)
    assert (result.packs, result.problems) == (1, ())
    assert result.all_packs > 1


@pytest.mark.parametrize("damage", ["missing", "flipped", "cut"])
def test_what_is_damaged_is_found_and_stored_again(
    small_home: BackupHome, store: FolderStore, tmp_path: Path, damage: str
) -> None:
    small_home.set_up(store)
    small_home.back_up(store)
    names = [found.name for found in store.list_objects("packs/")]
    for name in names:
        content = store.get(name)
        if damage == "missing":
            store.delete(name)
        elif damage == "cut":
            store.put(name, content[:-5])
        else:
            store.put(name, content[:-5] + b"12345")
    assert len(_verify(small_home, store).problems) == len(names)
    assert small_home.back_up(store).changed, "the state is not taken as stored any more"
    restored = small_home.restore(store, tmp_path / "restored")
    assert describe_tree(restored / "workspace") == describe_tree(small_home.home.workspace)


def test_a_damaged_index_is_found_and_written_anew(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    small_home.set_up(store)
    small_home.back_up(store)
    (name,) = (found.name for found in store.list_objects("meta/index/"))
    store.put(name, store.get(name)[:-1])
    (problem,) = _verify(small_home, store).problems
    assert name in problem
    assert small_home.back_up(store).changed
    restored = small_home.restore(store, tmp_path / "restored")
    assert describe_tree(restored / "workspace") == describe_tree(small_home.home.workspace)
    with closing(LocalIndex(small_home.home.root / "backup", "tests")) as index:
        repository = BackupRepository(store, KeyStore(small_home.home).read())
        lease = Lease(repository, index.holder, "here")
        lease.acquire(repository.list_meta())
        index.synchronize(repository, repository.list_meta())
        Prune(repository, index, lease, BackupRetention()).run()
    assert _verify(small_home, store).problems == ()


def test_a_damaged_backup_is_found_and_another_one_made(
    small_home: BackupHome, store: FolderStore, tmp_path: Path
) -> None:
    """Nothing has changed since, and yet the newest state is in no backup that can be opened."""
    repository = small_home.set_up(store)
    small_home.back_up(store)
    add_events(small_home.home, 1)
    small_home.back_up(store)
    name = "meta/snapshots/000000000002"
    store.put(name, store.get(name)[:-1])
    (problem,) = _verify(small_home, store).problems
    assert name in problem
    with pytest.raises(FreeholdError, match="cannot be read") as caught:
        choose_snapshot(repository, None)
    assert caught.value.hint == "To restore an older one: --number 1"
    with pytest.raises(FreeholdError, match="cannot be read"):
        choose_snapshot(repository, 1e12)
    assert choose_snapshot(repository, None, 1).number == 1
    assert small_home.back_up(store).number == 3
    restored = small_home.restore(store, tmp_path / "restored")
    assert describe_tree(restored / "workspace") == describe_tree(small_home.home.workspace)


def test_a_backup_of_nobody_is_not_built_upon(small_home: BackupHome, store: FolderStore) -> None:
    """A store can hold anything. What to do with it is the owner's decision."""
    small_home.set_up(store)
    small_home.back_up(store)
    store.put("meta/snapshots/999999999999", b"not ours")
    assert len(_verify(small_home, store).problems) == 1
    with pytest.raises(FreeholdError) as caught:
        small_home.back_up(store)
    assert caught.value.code == "backup.lost"
    assert "remove that object" in caught.value.hint
    store.delete("meta/snapshots/999999999999")
    assert small_home.back_up(store).number == 2


def test_a_rehearsal_restores_checks_and_leaves_nothing(
    small_home: BackupHome, store: FolderStore, tmp_path: Path
) -> None:
    repository = small_home.set_up(store)
    small_home.back_up(store)
    snapshot, problems = rehearse_restore(repository, tmp_path / "scratch")
    assert (snapshot.number, problems) == (1, ())
    assert not (tmp_path / "scratch").exists()
    store.delete(next(iter(store.list_objects("packs/"))).name)
    with pytest.raises(FreeholdError) as caught:
        rehearse_restore(repository, tmp_path / "scratch")
    assert caught.value.code == "backup.lost"
    assert not (tmp_path / "scratch").exists()


def _flip(path: Path) -> None:
    """The last byte only; its time and size stay."""
    seen = path.stat()
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(path, ns=(seen.st_mtime_ns, seen.st_mtime_ns))


def _relink(path: Path) -> None:
    seen = path.lstat()
    path.unlink()
    path.symlink_to("elsewhere")
    os.utime(path, ns=(seen.st_mtime_ns, seen.st_mtime_ns), follow_symlinks=False)


def _fill(path: Path) -> None:
    """A byte in the middle of a hole."""
    seen = path.stat()
    with path.open("r+b") as file:
        file.seek(2 << 20)
        file.write(b"x")
    os.utime(path, ns=(seen.st_mtime_ns, seen.st_mtime_ns))


@pytest.mark.parametrize(
    ("name", "damage", "told"),
    [
        ("workspace/large.bin", _flip, "has another content"),
        ("workspace/hole.bin", _fill, "has another content"),
        ("workspace/folder-1/file-1.txt", Path.unlink, "is not there"),
        ("workspace/run.sh", lambda path: path.chmod(0o644), "has mode 644 instead of 755"),
        ("workspace/link", _relink, "leads elsewhere"),
        ("workspace/empty", lambda path: os.utime(path, ns=(1, 1)), "has another time"),
        ("home/.claude/projects/conversation.jsonl", _flip, "has another content"),
        ("vault/ssh/authority", _flip, "has another content"),
        ("vault/ssh/authority", lambda path: path.chmod(0o644), "has mode 644 instead of 600"),
        ("timeline.db", _flip, "has another content"),
        ("freehold.toml", Path.unlink, "is not there"),
    ],
)
def test_a_rehearsal_compares_every_file_with_the_backup(
    small_home: BackupHome,
    store: FolderStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    damage: Callable[[Path], None],
    told: str,
) -> None:
    """What the disk has is read again: every blob may be right, and a file of it wrong."""
    repository = small_home.set_up(store)
    small_home.back_up(store)
    real = HomeRestore.run

    def run(restore: HomeRestore) -> HomeRestoreResult:
        result = real(restore)
        damage(tmp_path / "scratch" / name)
        return result

    monkeypatch.setattr(HomeRestore, "run", run)
    _, problems = rehearse_restore(repository, tmp_path / "scratch")
    assert f"{name} {told}" in [problem[: len(f"{name} {told}")] for problem in problems], problems
    assert not (tmp_path / "scratch").exists()


def test_a_rehearsal_finds_what_was_damaged_before_it_was_backed_up(
    small_home: BackupHome, store: FolderStore, tmp_path: Path
) -> None:
    """A backup of it is right byte for byte, and of no use."""
    with closing(sqlite3.connect(small_home.home.timeline)) as db:
        db.execute("DROP TRIGGER event_stays_same")
        db.execute("UPDATE event SET data = '{}' WHERE seq = 2")
        db.commit()
    repository = small_home.set_up(store)
    small_home.back_up(store)
    _, problems = rehearse_restore(repository, tmp_path / "scratch")
    assert [problem for problem in problems if problem.startswith("timeline: ")]
