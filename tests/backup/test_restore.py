"""A home that is restored from a backup is the home that was backed up. What is damaged or foreign is refused."""

import errno
import hashlib
import os
import sqlite3
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.backup_home import BackupHome, add_events, describe_home, describe_tree, read_history

from freehold.backup.age import AgeIdentity
from freehold.backup.file_list import BadListing, ListedFile, decode_listing, encode_listing
from freehold.backup.history_rebuild import HistoryRebuild
from freehold.backup.repository import open_with_recovery_key, pack_path
from freehold.backup.restore import UNFINISHED, HomeRestore, choose_snapshot
from freehold.backup.snapshot import BackupSnapshot
from freehold.backup.stores.folder import FolderStore
from freehold.backup.verification import rehearse_restore
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.history import History, HistorySettings
from freehold.history.staging_area import remove_path
from freehold.home import Home
from freehold.keeper.agent_state import IGNORED_PATTERNS
from freehold.timeline import Timeline


def test_everything_comes_back_byte_for_byte(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    """Files, history, timeline with the tables of all rooms, vault, identity, manifest, locks, agents' own state."""
    home = small_home.home
    small_home.set_up(store)
    assert small_home.back_up(store).changed
    restored = small_home.restore(store, tmp_path / "restored")

    before, after = describe_home(home.root), describe_home(restored)
    for name, found in before.items():
        assert after[name] == found, name
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


def test_a_container_gets_it_into_its_empty_volumes_and_keeps_its_manifest(
    small_home: BackupHome, store: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are there before the first start, and the manifest is written outside. No volume may have something in it."""
    small_home.set_up(store)
    small_home.back_up(store)
    folder = tmp_path / "restored"
    for name in ("workspace", "home", "agents", "lost+found"):
        (folder / name).mkdir(parents=True)
    (folder / "lost+found" / "#12").touch()
    manifest = folder / "freehold.toml"
    manifest.write_text("# of the container\n")
    assert _refuses(small_home, store, folder).code == "backup.not-empty", "a manifest that could be replaced"
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != manifest and real(path, mode))
    (folder / "agents" / "one").touch()
    assert _refuses(small_home, store, folder).code == "backup.not-empty"
    (folder / "agents" / "one").unlink()
    for unfinished in (False, True):
        if unfinished:
            (folder / UNFINISHED).touch()
            (folder / "vault" / "half").touch()
        small_home.restore(store, folder)
        for name in ("workspace", "home"):
            assert describe_tree(folder / name) == describe_tree(small_home.home.root / name)
        assert manifest.read_text() == "# of the container\n"
        assert (folder / "freehold.toml.restored").read_text() == "# the manifest\n"
        assert not (folder / "vault" / "half").exists()
        assert (folder / "lost+found" / "#12").exists()


def test_names_of_one_file_on_two_volumes_become_files_of_their_own(
    small_home: BackupHome, store: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, target: Path) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    small_home.set_up(store)
    small_home.back_up(store)
    monkeypatch.setattr(Path, "hardlink_to", refuse)
    restored = small_home.restore(store, tmp_path / "restored")
    found, expected = describe_tree(restored / "workspace"), describe_tree(small_home.home.workspace)
    assert found.keys() == expected.keys()
    for name, seen in expected.items():
        alone = (*seen[:4], 1, *seen[5:]) if seen[0] == "file" else seen
        assert found[name] == alone, name


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


def _make_deep(folder: Path, depth: int, name: str) -> None:
    """Folder by folder, as a program in the computer can: the whole path may be longer than the kernel takes."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=handle)
        handle, left = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=handle), handle
        os.close(left)
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
    os.close(handle)


def test_no_depth_of_folders_prevents_a_restore(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    """Their rows come in any order: those above were changed after those below."""
    _make_deep(small_home.home.workspace, 1200, "d")
    repository = small_home.set_up(store)
    small_home.back_up(store)
    path = small_home.home.workspace
    for _ in range(1150):
        path /= "d"
        path.chmod(0o711)
    assert small_home.back_up(store).changed
    restored = small_home.restore(store, tmp_path / "restored")
    deep = restored / "workspace" / "/".join(["d"] * 1200) / "file"
    assert deep.exists()
    _, problems = rehearse_restore(repository, tmp_path / "scratch")
    assert problems == ()
    assert not (tmp_path / "scratch").exists(), "it is removed, however deep it is"
    for folder in (restored, small_home.home.workspace):
        remove_path(str(folder))


def test_a_path_that_is_too_long_prevents_nothing(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    """It is left out and told. History has it, and brings it back folder by folder."""
    home = small_home.home
    _make_deep(home.workspace, 30, "long" * 50)
    _make_deep(home.agent_home / ".claude" / "projects", 30, "long" * 50)
    repository = small_home.set_up(store)
    result = small_home.back_up(store)
    assert any("is longer than 4,000 bytes" in note for note in result.notes)
    done = HomeRestore(repository, choose_snapshot(repository, None), tmp_path / "restored").run()
    assert done.too_long > 5
    assert (tmp_path / "restored" / "workspace" / "run.sh").read_text() == "#!/bin/sh\n"
    roots = {name: tmp_path / "restored" / name for name in ("workspace", "home", "pods")}
    with History(tmp_path / "restored" / "history", roots, HistorySettings(ignore=IGNORED_PATTERNS)) as history:
        assert history.snapshot().changed, "it is gone from the folder"
        history.undo()
    handle = os.open(roots["workspace"], os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(30):
        handle, left = os.open("long" * 50, os.O_RDONLY | os.O_DIRECTORY, dir_fd=handle), handle
        os.close(left)
    with os.scandir(handle) as entries:
        assert [one.name for one in entries] == ["file"]
    os.close(handle)
    for folder in (tmp_path / "restored", home.root):
        remove_path(str(folder))


def test_names_that_agents_chose_are_shown_harmless(small_home: BackupHome, store: FolderStore) -> None:
    folder = os.fsencode(small_home.home.agent_home / ".claude" / "projects") + b"/\x1b]0;title\x07\xff"
    Path(os.fsdecode(folder)).mkdir()
    _make_deep(Path(os.fsdecode(folder)), 120, "d")
    small_home.set_up(store)
    (note,) = small_home.back_up(store).notes
    assert note.startswith("home/.claude/projects/\\x1b]0;title\\x07\\xff/d/")
    assert note.isprintable()


@pytest.mark.parametrize(
    ("kind", "name", "sql"),
    [
        ("table", "entry", "ATTACH '/tmp/elsewhere' AS other"),
        ("index", "entry", "PRAGMA journal_mode = DELETE"),
        ("table", "../../x", "CREATE TABLE x (y)"),
        ("trigger", "t", "CREATE TRIGGER t AFTER INSERT ON entry BEGIN SELECT 1; END"),
        ("table", "t SELECT 1; --", "CREATE TABLE t (x)"),
    ],
)
def test_a_forged_list_of_tables_runs_no_other_statement(tmp_path: Path, kind: str, name: str, sql: str) -> None:
    """Whoever gives away an archive with its key has written all of it."""
    with sqlite3.connect(tmp_path / "forged") as forged:
        forged.execute("CREATE TABLE schema (kind TEXT, name TEXT, sql TEXT)")
        forged.execute("INSERT INTO schema VALUES (?, ?, ?)", (kind, name, sql))
    forged.close()
    snapshot = BackupSnapshot(1, 1, "", 0.0, "host", "home", "1", (), 0, 0, 0, 0)
    rebuild = HistoryRebuild(tmp_path / "history", tmp_path, snapshot)
    rebuild.add_table("schema", (tmp_path / "forged").read_bytes())
    with pytest.raises(FreeholdError) as caught:
        rebuild.collect_uses(defaultdict(list))
    assert caught.value.code == "backup.bad-listing"
    rebuild._db.close()
