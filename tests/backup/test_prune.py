"""Old backups go as the rule says, and with them what only they need."""

import os
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.backup_home import BackupHome, add_events, describe_tree

from freehold.backup.keys import KeyStore
from freehold.backup.lease import Lease
from freehold.backup.local_index import LocalIndex
from freehold.backup.prune import Prune, PruneResult
from freehold.backup.repository import BackupRepository
from freehold.backup.retention import BackupRetention, choose_kept
from freehold.backup.stores.folder import FolderStore
from freehold.errors import FreeholdError

NOW = datetime(2026, 3, 31, 12, 30, tzinfo=UTC)


def _every(step: timedelta, count: int) -> list[tuple[int, float]]:
    """Backups with the numbers 1 to `count`, the last one now."""
    return [(count - age, (NOW - step * age).timestamp()) for age in range(count)]


def test_the_last_of_each_hour_day_and_week_is_kept() -> None:
    snapshots = _every(timedelta(minutes=5), 12 * 24 * 60)
    kept = choose_kept(snapshots, BackupRetention(hourly=24, daily=14, weekly=26))
    times = [datetime.fromtimestamp(at, UTC) for number, at in snapshots if number in kept]
    assert max(times) == NOW
    assert len([time for time in times if NOW - time < timedelta(hours=24)]) == 24
    assert len([time for time in times if NOW - time < timedelta(days=14)]) == 24 + 12
    assert len(kept) == 24 + 12 + 7
    assert all(time.minute == 55 for time in times if time != NOW)


def test_the_newest_is_kept_by_any_rule() -> None:
    assert choose_kept(_every(timedelta(days=1), 10), BackupRetention(0, 0, 0)) == {10}


def test_a_clock_that_jumped_does_not_remove_the_newest() -> None:
    ahead = [(1, (NOW + timedelta(days=900)).timestamp()), (2, NOW.timestamp()), (3, NOW.timestamp() - 5)]
    assert 3 in choose_kept(ahead, BackupRetention(1, 0, 0))


def _prune(
    small_home: BackupHome, store: FolderStore, rule: BackupRetention, *, drop_damaged: bool = False
) -> PruneResult:
    with closing(LocalIndex(small_home.home.root / "backup", "tests")) as index:
        repository = BackupRepository(store, KeyStore(small_home.home).read())
        lease = Lease(repository, index.holder, "here")
        listing = repository.list_meta()
        lease.acquire(listing)
        index.synchronize(repository, listing)
        return Prune(repository, index, lease, rule, drop_damaged=drop_damaged).run()


def _measure(store: FolderStore) -> int:
    return sum(found.size for found in store.list_objects("packs/"))


def test_space_that_no_backup_needs_is_freed(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    small_home.set_up(store)
    state = small_home.home.agent_home / ".claude" / "projects" / "conversation.jsonl"
    for _ in range(4):
        state.write_bytes(os.urandom(500_000))
        small_home.back_up(store)
    before = _measure(store)
    result = _prune(small_home, store, BackupRetention(1, 1, 1))
    assert (result.forgotten, result.kept) == (3, 1)
    assert _measure(store) < before - 1_400_000
    assert result.freed == before - _measure(store)
    restored = small_home.restore(store, tmp_path / "restored")
    assert describe_tree(restored / "home") == describe_tree(small_home.home.agent_home)
    add_events(small_home.home, 1)
    assert small_home.back_up(store).number == 5


def test_many_small_packs_become_few(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    small_home.set_up(store)
    for number in range(12):
        (small_home.home.workspace / "run.sh").write_text(f"version {number}")
        small_home.back_up(store)
    before = len([*store.list_objects("packs/")])
    assert before > 16
    _prune(small_home, store, BackupRetention(24, 14, 26))
    assert len([*store.list_objects("packs/")]) <= 3
    assert len([*store.list_objects("meta/index/")]) == 1
    restored = small_home.restore(store, tmp_path / "restored")
    assert describe_tree(restored / "workspace") == describe_tree(small_home.home.workspace)


def test_nothing_is_removed_when_a_backup_cannot_be_read(small_home: BackupHome, store: FolderStore) -> None:
    """What it needs is unknown then."""
    small_home.set_up(store)
    for _ in range(2):
        add_events(small_home.home, 1)
        small_home.back_up(store)
    newest = max(found.name for found in store.list_objects("meta/snapshots/"))
    store.put(newest, store.get(newest)[:-1])
    before = {found.name for folder in ("packs/", "meta/snapshots/") for found in store.list_objects(folder)}
    for drop_damaged in (False, True):
        with pytest.raises(FreeholdError, match="cannot be read"):
            _prune(small_home, store, BackupRetention(1, 1, 1), drop_damaged=drop_damaged)
    after = {found.name for folder in ("packs/", "meta/snapshots/") for found in store.list_objects(folder)}
    assert after == before


def test_a_backup_that_cannot_be_read_goes_when_the_owner_says_so(
    small_home: BackupHome, store: FolderStore, tmp_path: Path
) -> None:
    """Else nothing would ever be removed again."""
    small_home.set_up(store)
    for _ in range(3):
        add_events(small_home.home, 1)
        small_home.back_up(store)
    name = "meta/snapshots/000000000002"
    store.put(name, store.get(name)[:-1])
    with pytest.raises(FreeholdError) as caught:
        _prune(small_home, store, BackupRetention(24, 14, 26))
    assert "freehold backup prune --damaged" in caught.value.hint
    _prune(small_home, store, BackupRetention(24, 14, 26), drop_damaged=True)
    left = sorted(found.name for found in store.list_objects("meta/snapshots/"))
    assert left[-1].endswith("3")
    assert name not in left
    restored = small_home.restore(store, tmp_path / "restored")
    assert describe_tree(restored / "workspace") == describe_tree(small_home.home.workspace)
