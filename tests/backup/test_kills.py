"""Killed at any step, a backup or a prune leaves every earlier backup whole, and goes on at the next try."""

import os
from contextlib import closing
from pathlib import Path

from tests.support.backup_home import BackupHome, add_events, describe_home, describe_tree
from tests.support.backup_stores import DeathAt, WatchedStore, copy_tree, run_in_child

from freehold.backup.keys import KeyStore
from freehold.backup.lease import Lease
from freehold.backup.local_index import LocalIndex
from freehold.backup.prune import Prune
from freehold.backup.repository import BackupRepository, open_with_recovery_key
from freehold.backup.retention import BackupRetention
from freehold.backup.stores.folder import FolderStore

MAX_STEPS = 200


def test_a_backup_killed_at_any_step_loses_nothing_and_goes_on(small_home: BackupHome, tmp_path: Path) -> None:
    home, live = small_home.home, tmp_path / "store"
    small_home.set_up(FolderStore(live))
    small_home.back_up(FolderStore(live))
    first = describe_home(home.root)
    (home.workspace / "new.bin").write_bytes(os.urandom(200_000))
    (home.workspace / "run.sh").unlink()
    (home.pods / "profile.ttl").write_text("<> a <#Agent> .")
    (home.agent_home / ".claude" / "projects" / "conversation.jsonl").write_text('{"said": "more"}\n')
    add_events(home, 3)
    small_home.snapshot()
    second = describe_home(home.root)
    assert all(first[name] != second[name] for name in ("workspace", "home", "pods", "timeline.db", "history"))
    kept_store, kept_state = tmp_path / "kept-store", tmp_path / "kept-state"
    copy_tree(live, kept_store)
    copy_tree(home.root / "backup", kept_state)

    for step in range(MAX_STEPS):
        copy_tree(kept_store, live)
        copy_tree(kept_state, home.root / "backup")
        death = DeathAt(step)
        ended = run_in_child(lambda death=death: small_home.back_up(WatchedStore(FolderStore(live), death)))  # type: ignore[misc]
        newest = max(open_with_recovery_key(FolderStore(live), small_home.recovery).list_meta().snapshots)
        restored = small_home.restore(FolderStore(live), tmp_path / f"killed-{step}")
        assert describe_home(restored) == (first if newest == 1 else second)
        if ended:
            break
        assert small_home.back_up(FolderStore(live)).number in (1 + newest, newest)
        restored = small_home.restore(FolderStore(live), tmp_path / f"after-{step}")
        assert describe_home(restored) == second
    else:
        raise AssertionError("the backup never came to its end")
    assert step > 10, "too few steps were tried"


def test_what_an_interrupted_backup_has_stored_is_not_stored_again(small_home: BackupHome, store: FolderStore) -> None:
    """The packs are there and noted; only the index, the list and the backup itself were missing."""
    small_home.set_up(store)
    stored: list[str] = []

    class Interrupted(Exception):
        pass

    def watch(step: str) -> None:
        if step.startswith("before put meta/index"):
            raise Interrupted
        if step.startswith("after put packs"):
            stored.append(step)

    try:
        small_home.back_up(WatchedStore(store, watch))
    except Interrupted:
        pass
    else:
        raise AssertionError("it was not interrupted")
    assert stored
    again: list[str] = []
    small_home.back_up(WatchedStore(store, lambda step: again.append(step) if "packs" in step else None))
    contents = {found.name: found.size for found in store.list_objects("packs/")}
    assert sum(1 for step in again if step.startswith("after put")) <= 1, "only what describes the later state"
    assert len(contents) <= len(stored) + 1


def test_a_prune_killed_at_any_step_keeps_every_kept_backup(small_home: BackupHome, tmp_path: Path) -> None:
    home, live = small_home.home, tmp_path / "store"
    small_home.set_up(FolderStore(live))
    trees = {}
    for number in range(1, 5):
        (home.workspace / f"generation-{number}.bin").write_bytes(os.urandom(60_000))
        (home.workspace / f"generation-{number - 1}.bin").unlink(missing_ok=True)
        add_events(home, 2)
        assert small_home.back_up(FolderStore(live)).number == number
        trees[number] = describe_tree(home.workspace)
    kept_store, kept_state = tmp_path / "kept-store", tmp_path / "kept-state"
    copy_tree(live, kept_store)
    copy_tree(home.root / "backup", kept_state)

    def prune(store: WatchedStore) -> None:
        with closing(LocalIndex(home.root / "backup", "tests")) as index:
            repository = BackupRepository(store, KeyStore(home).read())
            lease = Lease(repository, index.holder, str(home.root))
            listing = repository.list_meta()
            lease.acquire(listing)
            index.synchronize(repository, listing)
            Prune(repository, index, lease, BackupRetention(hourly=1, daily=1, weekly=1)).run()
            lease.release()

    for step in range(MAX_STEPS):
        copy_tree(kept_store, live)
        copy_tree(kept_state, home.root / "backup")
        death = DeathAt(step)
        ended = run_in_child(lambda death=death: prune(WatchedStore(FolderStore(live), death)))  # type: ignore[misc]
        left = open_with_recovery_key(FolderStore(live), small_home.recovery).list_meta().snapshots
        assert 4 in left
        if ended:
            assert left == (4,)
        restored = small_home.restore(FolderStore(live), tmp_path / f"killed-{step}")
        assert describe_tree(restored / "workspace") == trees[4]
        if ended:
            break
        prune(WatchedStore(FolderStore(live), lambda step: None))
        assert not (home.root / "backup" / "scratch").exists(), "the next prune removes what a killed one has left"
        restored = small_home.restore(FolderStore(live), tmp_path / f"after-{step}")
        assert describe_tree(restored / "workspace") == trees[4]
        small_home.back_up(FolderStore(live), always=True)
    else:
        raise AssertionError("the prune never came to its end")
    assert step > 10, "too few steps were tried"
