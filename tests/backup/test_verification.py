"""Damage in the store is found, told, and repaired by the next backup as far as the contents are still here."""

import random
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.backup_home import BackupHome, describe_tree

from freehold.backup import verification
from freehold.backup.keys import KeyStore
from freehold.backup.lease import Lease
from freehold.backup.local_index import LocalIndex
from freehold.backup.prune import Prune
from freehold.backup.repository import BackupRepository
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
