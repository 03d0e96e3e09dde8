"""One Freehold writes a repository. A second one is told who has it."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.backup_home import BackupHome, add_events
from tests.support.backup_stores import WatchedStore

from freehold.backup.lease import LEASE_SECONDS, Lease
from freehold.backup.local_index import LocalIndex
from freehold.backup.recovery_state import is_set_up
from freehold.backup.repository import BackupRepository
from freehold.backup.stores.contract import StoredObject
from freehold.backup.stores.folder import FolderStore
from freehold.errors import FreeholdError
from freehold.home import Home


class ShiftedStore(WatchedStore):
    """A store whose clock is ahead, or behind, of ours by this many seconds, and which is asked so much later."""

    def __init__(self, store: FolderStore, ahead: float = 0.0, later: float = 0.0) -> None:
        super().__init__(store, lambda step: None)
        self._ahead, self._later = ahead, later

    def list_objects(self, folder: str) -> Iterator[StoredObject]:
        for found in super().list_objects(folder):
            yield StoredObject(found.name, found.size, found.modified + self._ahead)

    def read_clock(self) -> float:
        return super().read_clock() + self._ahead + self._later


@pytest.fixture
def repository(small_home: BackupHome, store: FolderStore) -> BackupRepository:
    return small_home.set_up(store)


def _lease(repository: BackupRepository, store: WatchedStore | None, holder: str) -> Lease:
    return Lease(BackupRepository(store or repository.store, repository.key), holder, f"/home/{holder}")


def test_a_second_writer_is_told_who_has_it(repository: BackupRepository) -> None:
    _lease(repository, None, "first").acquire(repository.list_meta())
    with pytest.raises(FreeholdError) as caught:
        _lease(repository, None, "second").acquire(repository.list_meta())
    assert caught.value.code == "backup.leased"
    assert "/home/first" in caught.value.message


def test_a_take_over_waits_until_the_holder_is_silent(repository: BackupRepository, store: FolderStore) -> None:
    _lease(repository, None, "first").acquire(repository.list_meta())
    with pytest.raises(FreeholdError, match="/home/first"):
        _lease(repository, None, "second").acquire(repository.list_meta(), take_over=True)
    late = ShiftedStore(store, later=LEASE_SECONDS + 1)
    with pytest.raises(FreeholdError, match="/home/first"):
        _lease(repository, late, "second").acquire(repository.list_meta())  # never without being asked
    _lease(repository, late, "second").acquire(repository.list_meta(), take_over=True)


@pytest.mark.parametrize("ahead", [-86_400.0, 86_400.0])
def test_a_wrong_clock_here_changes_nothing(repository: BackupRepository, store: FolderStore, ahead: float) -> None:
    """Whether a lease is old is decided by the clock of the store alone."""
    _lease(repository, None, "first").acquire(repository.list_meta())
    shifted = ShiftedStore(store, ahead=ahead)
    listing = BackupRepository(shifted, repository.key).list_meta()
    with pytest.raises(FreeholdError, match="/home/first"):
        _lease(repository, shifted, "second").acquire(listing, take_over=True)


def test_a_lease_that_was_left_by_a_killed_job_does_not_hold_up_its_own_home(repository: BackupRepository) -> None:
    _lease(repository, None, "first").acquire(repository.list_meta())
    _lease(repository, None, "first").acquire(repository.list_meta())


def test_a_writer_that_was_away_cannot_go_on(repository: BackupRepository, store: FolderStore) -> None:
    first = _lease(repository, None, "first")
    first.acquire(repository.list_meta())
    late = ShiftedStore(store, later=LEASE_SECONDS + 1)
    _lease(repository, late, "second").acquire(repository.list_meta(), take_over=True)
    with pytest.raises(FreeholdError) as caught:
        first.renew(-1)
    assert caught.value.code == "backup.leased"


def test_of_many_writers_at_once_one_gets_it(repository: BackupRepository) -> None:
    listing = repository.list_meta()
    begin = threading.Barrier(8)
    won: list[str] = []

    def try_it(name: str) -> None:
        begin.wait()
        try:
            _lease(repository, None, name).acquire(listing)
        except FreeholdError:
            return
        won.append(name)

    threads = [threading.Thread(target=try_it, args=(f"writer-{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1


def test_a_restored_home_does_not_write_beside_the_old_one(
    small_home: BackupHome, store: FolderStore, tmp_path: Path
) -> None:
    """Both have the same keys. Only the old one may write until the owner says otherwise."""
    small_home.set_up(store)
    small_home.back_up(store)
    folder = small_home.restore(store, tmp_path / "restored")
    moved = BackupHome(Home(folder, tmp_path / "other-run"), small_home.recovery)
    add_events(moved.home, 1)
    with pytest.raises(FreeholdError) as caught:
        moved.back_up(store)
    assert caught.value.code == "backup.leased"
    assert str(small_home.home.root) in caught.value.message
    assert moved.back_up(store, take_over=True).number == 2

    add_events(small_home.home, 1)
    with pytest.raises(FreeholdError) as caught:
        small_home.back_up(store)
    assert str(folder) in caught.value.message


def test_two_backups_of_one_number_are_impossible(small_home: BackupHome, store: FolderStore) -> None:
    """Even when the lease is lost at the last moment: the object of a backup is created once."""
    repository = small_home.set_up(store)
    small_home.back_up(store)
    snapshot = repository.get_snapshot(1)
    add_events(small_home.home, 1)

    def write_another(step: str) -> None:
        if step.startswith("before create meta/snapshots"):
            repository.create_snapshot(type(snapshot)(**vars(snapshot) | {"number": 2}))

    with pytest.raises(FreeholdError) as caught:
        small_home.back_up(WatchedStore(store, write_another))
    assert caught.value.code == "backup.leased"


def test_the_local_index_can_be_lost(small_home: BackupHome, store: FolderStore) -> None:
    """Then this home is another writer, and says so; the blobs are known again from the repository."""
    small_home.set_up(store)
    small_home.back_up(store)
    shutil.rmtree(small_home.home.root / "backup")
    add_events(small_home.home, 1)
    with pytest.raises(FreeholdError, match=str(small_home.home.root)):
        small_home.back_up(store)
    result = small_home.back_up(store, take_over=True)
    assert result.added < 60_000, "nothing but what describes the new state is stored again"
    with closing(LocalIndex(small_home.home.root / "backup", "tests")) as index:
        assert index.newest[0] == result.number
    assert is_set_up(small_home.home)
