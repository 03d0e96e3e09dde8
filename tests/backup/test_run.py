"""What a backup reads, stores and notices."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.backup_home import BackupHome, add_events, describe_tree
from tests.support.backup_stores import WatchedStore, copy_tree

from freehold.backup.file_list import decode_listing
from freehold.backup.home_files import LEFT_OUT
from freehold.backup.repository import BackupRepository, open_with_recovery_key, set_up_store
from freehold.backup.restore import BlobReader, choose_snapshot
from freehold.backup.stores.folder import FolderStore
from freehold.backup.verification import rehearse_restore
from freehold.errors import FreeholdError
from freehold.history import History, HistorySettings
from freehold.history.contents import ContentReader
from freehold.home import Home


def _paths(repository: BackupRepository) -> set[str]:
    snapshot = choose_snapshot(repository, None)
    text = BlobReader(repository).read(tuple(bytes.fromhex(blob) for blob in snapshot.listing))
    return {file.path.decode("utf-8", "replace") for file in decode_listing(text)}


def test_nothing_is_written_while_nothing_changes(small_home: BackupHome, store: FolderStore) -> None:
    small_home.set_up(store)
    first = small_home.back_up(store)
    steps: list[str] = []
    again = small_home.back_up(WatchedStore(store, steps.append))
    assert (again.number, again.changed) == (first.number, False)
    assert steps == ["before list meta/"]


def test_only_what_changed_is_read_and_stored(
    small_home: BackupHome, store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the files in history not one is opened, and of its contents only the new one."""
    small_home.set_up(store)
    small_home.back_up(store)
    (small_home.home.workspace / "new.txt").write_bytes(os.urandom(20_000))
    (small_home.home.workspace / "large.bin").write_bytes(os.urandom(300_000))
    small_home.snapshot()
    opened: list[str] = []
    real_open, real_chunk = os.open, ContentReader.read_chunk
    chunks: list[int] = []

    def watch_open(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        opened.append(str(path))
        return real_open(path, flags, mode, dir_fd=dir_fd)

    def watch_chunk(self: ContentReader, digest: bytes, size: int, stored: int) -> bytes:
        chunks.append(size)
        return real_chunk(self, digest, size, stored)

    monkeypatch.setattr(small_home, "snapshot", lambda: None)
    monkeypatch.setattr(os, "open", watch_open)
    monkeypatch.setattr(ContentReader, "read_chunk", watch_chunk)
    second = small_home.back_up(store)
    assert second.changed
    assert 320_000 < second.added < 420_000
    assert sum(chunks) == 300_000
    assert not [name for name in opened if "file-" in name or "large" in name or name == "conversation.jsonl"]


def test_files_that_history_could_not_store_are_in_the_backup(
    small_home: BackupHome, store: FolderStore, tmp_path: Path
) -> None:
    home = small_home.home
    (home.workspace / "too-big.bin").write_bytes(os.urandom(400_000))
    roots = {name: home.root / name for name in ("workspace", "home", "pods")}
    with History(home.history, roots, HistorySettings(quota=300_000)) as history:
        history.snapshot()
        assert history.version(history.newest(), "workspace/too-big.bin").content is None  # type: ignore[union-attr]
    repository = small_home.set_up(store)
    with closing(sqlite3.connect(home.history / "history.db")) as database:
        kept = database.execute("SELECT count(*) FROM version WHERE flag != 0").fetchone()[0]
    assert kept >= 1
    small_home.snapshot = lambda: None  # type: ignore[method-assign]
    small_home.back_up(store)
    restored = small_home.restore(store, tmp_path / "restored")
    assert (restored / "workspace" / "too-big.bin").read_bytes() == (home.workspace / "too-big.bin").read_bytes()
    assert describe_tree(restored / "workspace") == describe_tree(home.workspace)
    assert rehearse_restore(repository, tmp_path / "scratch")[1] == ()


def test_every_part_of_a_home_is_in_a_backup_or_left_out_on_purpose() -> None:
    """A new one must be decided upon. What is left out is made again, or is told in docs/guides/backup.md."""
    home = Home(Path("/home-of-freehold"), Path("/run-of-freehold"))
    places = [getattr(home, name) for name, kind in vars(Home).items() if isinstance(kind, property)]
    places.append(home.mount_cache(()))
    tops = {place.relative_to(home.root).parts[0] for place in places if place.is_relative_to(home.root)}
    assert tops - LEFT_OUT == {
        *("freehold.toml", "freehold.lock", "freehold-brain.lock", "skills.lock", "skills", "vault", "timeline.db"),
        *("workspace", "home", "pods", "mount-cache"),
    }


def test_agents_own_state_is_in_the_backup_and_caches_are_not(small_home: BackupHome, store: FolderStore) -> None:
    home = small_home.home.agent_home
    (home / ".cache" / "opencode").mkdir(parents=True)
    (home / ".cache" / "opencode" / "big").write_text("cache")
    (home / ".local" / "share" / "opencode").mkdir(parents=True)
    (home / ".local" / "share" / "opencode" / "session.json").write_text("{}")
    repository = small_home.set_up(store)
    small_home.back_up(store)
    paths = _paths(repository)
    assert {
        "home/.claude/projects/conversation.jsonl",
        "home/.claude.json",
        "home/.local/share/opencode/session.json",
    } <= paths
    assert "home/.claude/CLAUDE.md" not in paths, "history has it"
    assert not [path for path in paths if ".cache" in path or path.startswith(("logs", "agents", "images", "backup"))]


def test_a_link_planted_among_agents_state_is_not_followed(
    small_home: BackupHome, store: FolderStore, tmp_path: Path
) -> None:
    """Neither as a file nor as a folder on the way: the host's files do not get into the backup."""
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "secret").write_text("of the host")
    home = small_home.home.agent_home
    (home / ".claude" / "projects" / "planted").symlink_to(tmp_path / "host" / "secret")
    (home / ".claude" / "projects" / "planted-folder").symlink_to(tmp_path / "host")
    (home / ".freehold").symlink_to(tmp_path / "host")
    os.mkfifo(home / ".claude" / "projects" / "pipe")  # must not block
    small_home.set_up(store)
    small_home.back_up(store)
    restored = small_home.restore(store, tmp_path / "restored") / "home" / ".claude" / "projects"
    assert (restored / "planted").is_symlink()
    assert (restored / "planted-folder").is_symlink()
    assert not (restored / "pipe").exists()


def test_a_timeline_that_was_cut_is_noticed(small_home: BackupHome, store: FolderStore) -> None:
    """The head of the timeline is in each backup, out of reach of who can write the file."""
    repository = small_home.set_up(store)
    small_home.back_up(store)
    anchored = repository.get_snapshot(1).timeline
    assert anchored is not None
    with closing(sqlite3.connect(small_home.home.timeline)) as database:
        database.executescript(
            """DROP TRIGGER event_stays; DROP TRIGGER head_advances; DELETE FROM event WHERE seq > 2;
            UPDATE head SET seq = 2, hash = (SELECT hash FROM event WHERE seq = 2);"""
        )
    (small_home.home.vault / "timeline-head").unlink()
    with pytest.raises(FreeholdError) as caught:
        small_home.back_up(store)
    assert caught.value.code == "backup.timeline-cut"
    assert str(anchored.seq) in caught.value.message
    assert repository.list_meta().snapshots == (1,)


def test_a_store_that_shows_an_older_state_is_noticed(
    small_home: BackupHome, store: FolderStore, tmp_path: Path
) -> None:
    small_home.set_up(store)
    small_home.back_up(store)
    copy_tree(tmp_path / "store", tmp_path / "older")
    add_events(small_home.home, 1)
    small_home.back_up(store)
    copy_tree(tmp_path / "older", tmp_path / "store")
    add_events(small_home.home, 1)
    with pytest.raises(FreeholdError) as caught:
        small_home.back_up(store)
    assert caught.value.code == "backup.rolled-back"


def test_a_repository_of_somebody_else_is_left_alone(small_home: BackupHome, store: FolderStore) -> None:
    from freehold.backup.age import AgeIdentity
    from freehold.backup.keys import RepositoryKey

    small_home.set_up(store)
    small_home.back_up(store)
    wrapped = store.get("key.age")
    with pytest.raises(FreeholdError) as caught:
        set_up_store(store, RepositoryKey.generate(), AgeIdentity.generate().recipient)
    assert caught.value.code == "backup.other-key"
    assert store.get("key.age") == wrapped


def test_a_new_recovery_key_replaces_the_old_one(small_home: BackupHome, store: FolderStore) -> None:
    from freehold.backup.age import AgeIdentity

    repository = small_home.set_up(store)
    small_home.back_up(store)
    new = AgeIdentity.generate()
    set_up_store(store, repository.key, new.recipient)
    with pytest.raises(FreeholdError, match="does not open"):
        open_with_recovery_key(store, small_home.recovery)
    assert choose_snapshot(open_with_recovery_key(store, new), None).number == 1


def test_a_store_without_conditional_writes_is_refused(small_home: BackupHome, store: FolderStore) -> None:
    class Careless(WatchedStore):
        def create(self, name: str, data: bytes) -> None:
            self.put(name, data)

    with pytest.raises(FreeholdError) as caught:
        small_home.set_up(Careless(store, lambda step: None))
    assert caught.value.code == "backup.no-conditions"


def test_a_damaged_local_index_is_made_again(small_home: BackupHome, store: FolderStore) -> None:
    small_home.set_up(store)
    small_home.back_up(store)
    (small_home.home.root / "backup" / "index.db").write_bytes(b"no database" * 1000)
    add_events(small_home.home, 1)
    assert small_home.back_up(store, take_over=True).number == 2
