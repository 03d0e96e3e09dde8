"""One Freehold writes a repository. A second one is told who has it."""

import itertools
import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.backup_home import BackupHome, add_events, describe_tree
from tests.support.backup_stores import WatchedStore

from freehold.backup import lease as leases
from freehold.backup.keys import KeyStore
from freehold.backup.lease import LEASE_SECONDS, Lease
from freehold.backup.local_index import LocalIndex
from freehold.backup.prune import Prune
from freehold.backup.recovery_state import is_set_up
from freehold.backup.repository import BackupRepository
from freehold.backup.retention import BackupRetention
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


def test_a_backup_that_takes_long_keeps_its_lease(
    small_home: BackupHome, store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a slow store. Nobody takes it over meanwhile, however often it is tried."""
    small_home.set_up(store)
    clock = itertools.count(step=LEASE_SECONDS / 2)
    monkeypatch.setattr(leases, "_read_clock", lambda: next(clock))
    tried: list[str] = []

    def try_to_take_over(step: str) -> None:
        if step.startswith("after put packs"):
            repository = BackupRepository(store, KeyStore(small_home.home).read())
            with pytest.raises(FreeholdError) as caught:
                _lease(repository, None, "second").acquire(repository.list_meta(), take_over=True)
            tried.append(caught.value.code)

    assert small_home.back_up(WatchedStore(store, try_to_take_over)).number == 1
    assert set(tried) == {"backup.leased"}
    listed = BackupRepository(store, KeyStore(small_home.home).read()).list_meta().leases
    assert max(listed) > 3, "it was renewed"


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


class TakenOver:
    """At the first of these steps its writer sleeps so long that a restored home takes the repository over."""

    def __init__(self, small_home: BackupHome, store: FolderStore, folder: Path, step: str) -> None:
        self.moved = BackupHome(Home(folder, folder.with_name("other-run")), small_home.recovery)
        self._small_home, self._store, self._step = small_home, store, step
        self.happened = False

    def __call__(self, step: str) -> None:
        if self.happened or not step.startswith(self._step):
            return
        self.happened = True
        folder = self._small_home.restore(self._store, self.moved.home.root)
        (folder / "workspace" / "after-the-move.bin").write_bytes(os.urandom(70_000))
        self.moved.back_up(ShiftedStore(self._store, later=LEASE_SECONDS + 1), take_over=True)


def _sleep_in(patch: pytest.MonkeyPatch, taken: TakenOver) -> None:
    """The clock of the machine that slept shows it afterwards."""
    real = time.monotonic
    patch.setattr(leases, "_read_clock", lambda: real() + (LEASE_SECONDS + 1) * taken.happened)


@pytest.mark.parametrize("step", ["before put meta/index", "before list packs", "before delete packs"])
def test_a_prune_that_slept_removes_nothing_of_the_writer_that_took_over(
    small_home: BackupHome, store: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    small_home.set_up(store)
    for _ in range(3):
        (small_home.home.agent_home / ".claude.json").write_bytes(os.urandom(60_000))
        small_home.back_up(store)
    taken = TakenOver(small_home, store, tmp_path / "moved", step)
    _sleep_in(monkeypatch, taken)
    with closing(LocalIndex(small_home.home.root / "backup", "tests")) as index:
        repository = BackupRepository(WatchedStore(store, taken), KeyStore(small_home.home).read())
        lease = Lease(repository, index.holder, "here")
        listing = repository.list_meta()
        lease.acquire(listing)
        index.synchronize(repository, listing)
        with pytest.raises(FreeholdError) as caught:
            Prune(repository, index, lease, BackupRetention(1, 1, 1)).run()
    assert caught.value.code == "backup.leased"
    assert str(taken.moved.home.root) in caught.value.message
    restored = small_home.restore(store, tmp_path / "restored")
    assert describe_tree(restored / "workspace") == describe_tree(taken.moved.home.workspace)


def test_the_clock_of_a_lease_goes_on_while_the_machine_sleeps() -> None:
    """`time.monotonic` stands still then, so a lease would seem younger than it is."""
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= leases._read_clock() <= time.clock_gettime(time.CLOCK_BOOTTIME)


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
