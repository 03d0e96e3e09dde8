"""A home that is restored from a backup is the home that was backed up. What is damaged or foreign is refused."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.backup_home import BackupHome, add_events, describe_tree, dump_database, read_history

from freehold.backup.age import AgeIdentity
from freehold.backup.file_list import BadListing, ListedFile, decode_listing, encode_listing
from freehold.backup.repository import open_with_recovery_key, pack_path
from freehold.backup.restore import UNFINISHED, HomeRestore, choose_snapshot
from freehold.backup.stores.folder import FolderStore
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.history import History, HistorySettings
from freehold.home import Home
from freehold.keeper.agent_state import IGNORED_PATTERNS
from freehold.timeline import Timeline


def test_everything_comes_back_byte_for_byte(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    """Files, history, timeline with the tables of all rooms, vault, identity, manifest, locks, agents' own state."""
    home = small_home.home
    small_home.set_up(store)
    assert small_home.back_up(store).changed
    restored = small_home.restore(store, tmp_path / "restored")

    for name in ("workspace", "home", "pods", "events"):
        assert describe_tree(restored / name) == describe_tree(home.root / name), name
    for name in ("timeline.db", "vault/identity.db", "vault/secrets.db"):
        assert dump_database(restored / name) == dump_database(home.root / name), name
    for name in ("freehold.toml", "freehold.lock", "vault/secrets.key", "vault/ssh/authority", "vault/timeline-head"):
        assert (restored / name).read_bytes() == (home.root / name).read_bytes(), name
        assert (restored / name).stat().st_mode == (home.root / name).stat().st_mode, name
    assert read_history(restored / "history") == read_history(home.history)
    assert not {"logs", "agents", "images", "backup", UNFINISHED} & {path.name for path in restored.iterdir()}


def test_a_restored_home_works(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    """Its vault opens, its timeline verifies, its history finds nothing changed and can undo."""
    workspace = small_home.home.workspace
    (workspace / "folder-0" / "file-0.txt").write_text("second version")
    small_home.set_up(store)
    small_home.back_up(store)
    restored = small_home.restore(store, tmp_path / "restored")

    assert Vault(restored / "vault").get("openai").reveal() == "sk-the-real-key"
    with Timeline(restored / "timeline.db") as timeline:
        assert timeline.verify() == []
        timeline.append("test.noted", {"after": "the restore"})
        assert timeline.verify() == []
    roots = {name: restored / name for name in ("workspace", "home", "pods")}
    with History(restored / "history", roots, HistorySettings(ignore=IGNORED_PATTERNS)) as history:
        assert history.verify().damages == ()
        assert not history.snapshot().changed
        history.undo()
    assert (restored / "workspace" / "folder-0" / "file-0.txt").read_bytes() != b"second version"


def test_an_earlier_backup_can_be_chosen(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    small_home.set_up(store)
    first = small_home.back_up(store)
    before = describe_tree(small_home.home.workspace)
    (small_home.home.workspace / "run.sh").unlink()
    add_events(small_home.home, 1)
    small_home.back_up(store)

    assert describe_tree(small_home.restore(store, tmp_path / "old", first.number) / "workspace") == before
    assert not (small_home.restore(store, tmp_path / "new") / "workspace" / "run.sh").exists()
    repository = open_with_recovery_key(store, small_home.recovery)
    at = repository.get_snapshot(1).at
    assert choose_snapshot(repository, at).number == 1
    with pytest.raises(FreeholdError, match="as old as that"):
        choose_snapshot(repository, at - 1)


def test_a_wrong_key_opens_nothing(small_home: BackupHome, store: FolderStore) -> None:
    small_home.set_up(store)
    small_home.back_up(store)
    with pytest.raises(FreeholdError) as caught:
        open_with_recovery_key(store, AgeIdentity.generate())
    assert caught.value.code == "backup.bad-key"


def test_a_folder_that_is_not_empty_is_refused(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    small_home.set_up(store)
    small_home.back_up(store)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("precious")
    with pytest.raises(FreeholdError) as caught:
        small_home.restore(store, tmp_path / "mine")
    assert caught.value.code == "backup.not-empty"
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]


def test_an_interrupted_restore_begins_anew(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    small_home.set_up(store)
    small_home.back_up(store)
    folder = tmp_path / "half"
    (folder / "workspace").mkdir(parents=True)
    (folder / "workspace" / "half-written").write_text("…")
    (folder / UNFINISHED).write_text("")
    small_home.restore(store, folder)
    assert describe_tree(folder / "workspace") == describe_tree(small_home.home.workspace)
    assert not (folder / UNFINISHED).exists()


def _packs(store: FolderStore) -> list[str]:
    return sorted(found.name for found in store.list_objects("packs/"))


def _refuses(small_home: BackupHome, store: FolderStore, folder: Path) -> FreeholdError:
    with pytest.raises(FreeholdError) as caught:
        small_home.restore(store, folder)
    return caught.value


def test_a_missing_object_is_named(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    small_home.set_up(store)
    small_home.back_up(store)
    for number, name in enumerate(_packs(store)):
        kept = store.get(name)
        store.delete(name)
        error = _refuses(small_home, store, tmp_path / f"restored-{number}")
        assert error.code == "backup.lost"
        assert name in error.message
        store.put(name, kept)


def test_a_flipped_bit_anywhere_is_noticed(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    small_home.set_up(store)
    small_home.back_up(store)
    objects = [
        found.name for folder in ("packs/", "meta/index/", "meta/snapshots/") for found in store.list_objects(folder)
    ]
    for number, name in enumerate([*objects, "key.age"]):
        kept = store.get(name)
        for place in (3, 150, len(kept) // 2, len(kept) - 1):
            store.put(name, kept[:place] + bytes([kept[place] ^ 1]) + kept[place + 1 :])
            assert _refuses(small_home, store, tmp_path / f"{number}-{place}").code in ("backup.lost", "backup.bad-key")
        store.put(name, kept[: len(kept) // 2])
        assert _refuses(small_home, store, tmp_path / f"{number}-cut").code in ("backup.lost", "backup.bad-key")
        store.put(name, kept)


def test_a_store_that_swaps_objects_is_noticed(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    small_home.set_up(store)
    small_home.back_up(store)
    (small_home.home.workspace / "more.bin").write_bytes(os.urandom(50_000))
    small_home.back_up(store)
    one, other = _packs(store)[:2]
    first, second = store.get(one), store.get(other)
    store.put(one, second)
    store.put(other, first)
    error = _refuses(small_home, store, tmp_path / "restored")
    assert error.code == "backup.lost"
    assert "the content of another object" in error.message
    store.put(one, first)
    store.put(other, second)

    names = sorted(found.name for found in store.list_objects("meta/snapshots/"))
    old = store.get(names[0])
    store.put(names[1], old)  # an older backup under the name of the newer one
    assert _refuses(small_home, store, tmp_path / "restored-2").code == "backup.lost"


def test_a_path_that_leads_out_of_the_home_is_refused(
    small_home: BackupHome, store: FolderStore, tmp_path: Path
) -> None:
    """Even a list that was sealed with the right key writes nothing outside."""
    repository = small_home.set_up(store)
    small_home.back_up(store)
    snapshot = choose_snapshot(repository, None)
    for number, path in enumerate((b"../outside", b"vault/../../outside", b"/outside", b"a//b", b"vault/\0", b".")):
        text = encode_listing([ListedFile(path, "folder", 0o700, 0)])
        digest = _blake3(text)
        pack = repository.put_pack([(digest, text)])
        repository.put_index([pack])
        forged = replace(snapshot, number=snapshot.number + number + 1, listing=(digest.hex(),))
        repository.create_snapshot(forged)
        error = _refuses(small_home, store, tmp_path / "deep" / f"restored-{number}")
        assert error.code == "backup.bad-listing"
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "deep" / "outside").exists()


def test_nothing_is_written_through_a_link_of_the_list() -> None:
    files = [
        ListedFile(b"events", "link", 0o777, 0, target=b"/tmp"),
        ListedFile(b"events/file", "file", 0o600, 0),
    ]
    with pytest.raises(BadListing, match="goes through a link"):
        list(decode_listing(encode_listing(files)))


def test_names_in_the_store_tell_nothing_of_the_content(small_home: BackupHome, store: FolderStore) -> None:
    """The same content has another name in another repository, and no name is a plain hash of anything stored."""
    small_home.set_up(store)
    small_home.back_up(store)
    names = {found.name.rpartition("/")[2] for found in store.list_objects("packs/")}
    repository = open_with_recovery_key(store, small_home.recovery)
    for name in names:
        sealed = store.get(pack_path(name))
        plain = repository.key.decrypt(sealed)
        for data in (sealed, plain):
            assert not hashlib.sha256(data).hexdigest().startswith(name)
            assert not _blake3(data).hex().startswith(name)
    stored = b"".join(store.get(found.name) for folder in ("packs/", "meta/") for found in store.list_objects(folder))
    for secret in (b"file-0.txt", b"sk-the-real-key", b"large.bin", os.fsencode(small_home.home.root)):
        assert secret not in stored


def test_a_restored_home_is_closed_to_others(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    small_home.set_up(store)
    small_home.back_up(store)
    restored = Home(small_home.restore(store, tmp_path / "restored"), tmp_path / "run")
    for path in (restored.root, restored.vault, restored.history):
        assert path.stat().st_mode & 0o077 == 0, path


def test_restoring_twice_gives_the_same(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    repository = small_home.set_up(store)
    small_home.back_up(store)
    snapshot = choose_snapshot(repository, None)
    for name in ("one", "other"):
        HomeRestore(repository, snapshot, tmp_path / name).run()
    assert describe_tree(tmp_path / "one" / "workspace") == describe_tree(tmp_path / "other" / "workspace")


def _blake3(data: bytes) -> bytes:
    from blake3 import blake3

    return blake3(data).digest()
