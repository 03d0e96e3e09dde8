"""Every store keeps the same contract: a folder, S3, SFTP, and an archive as far as it is written once."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.backup_home import BackupHome, describe_tree
from tests.support.s3 import S3Server

from freehold.backup.place import StorePlace, open_store
from freehold.backup.recovery_key import make_recovery_key
from freehold.backup.stores.archive import ArchiveStore
from freehold.backup.stores.contract import BackupStore, ObjectExists, ObjectMissing
from freehold.backup.stores.folder import FolderStore
from freehold.backup.stores.s3 import S3Store
from freehold.backup.stores.sftp import SftpPlace, SftpStore
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError

pytestmark = pytest.mark.shared_processes
MakeStore = Callable[[], BackupStore]


@pytest.fixture(params=["folder", "s3", "sftp"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeStore]:
    """Makes further clients of one and the same empty store."""
    with contextlib.ExitStack() as stack:

        def make() -> BackupStore:
            store: Any
            if request.param == "folder":
                store = FolderStore(tmp_path / "store")
            elif request.param == "s3":
                store = S3Store(request.getfixturevalue("s3").place(tmp_path.name))
            else:
                place = request.getfixturevalue("sftp")
                store = SftpStore(replace(place, folder=f"{place.folder}/{tmp_path.name}"))
            stack.callback(store.close)
            return store  # type: ignore[no-any-return]

        yield make


def test_what_was_put_is_there(make_store: MakeStore) -> None:
    store, other = make_store(), make_store()
    for data in (b"", b"one", bytes(300_000)):
        store.put("packs/ab/abc", data)
        assert other.get("packs/ab/abc") == data
    found = {one.name: one for one in other.list_objects("packs/")}
    assert list(found) == ["packs/ab/abc"]
    assert found["packs/ab/abc"].size == 300_000
    assert abs(found["packs/ab/abc"].modified - store.read_clock()) < 300


def test_what_is_not_there_is_missing(make_store: MakeStore) -> None:
    store = make_store()
    with pytest.raises(ObjectMissing):
        store.get("meta/lease/1")
    assert list(store.list_objects("meta/")) == []
    store.delete("meta/lease/1")
    store.put("meta/lease/1", b"x")
    store.delete("meta/lease/1")
    store.delete("meta/lease/1")
    assert list(store.list_objects("meta/")) == []


def test_a_name_is_created_once(make_store: MakeStore) -> None:
    store = make_store()
    store.create("meta/lease/1", b"first")
    with pytest.raises(ObjectExists):
        make_store().create("meta/lease/1", b"second")
    assert store.get("meta/lease/1") == b"first"
    assert [found.name for found in store.list_objects("meta/")] == ["meta/lease/1"]


def test_of_many_creators_at_once_one_succeeds(make_store: MakeStore) -> None:
    stores = [make_store() for _ in range(4)]
    begin = threading.Barrier(len(stores))
    won: list[int] = []

    def create(number: int) -> None:
        begin.wait()
        with contextlib.suppress(ObjectExists):
            stores[number].create("meta/lease/7", b"%d" % number)
            won.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(len(stores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert stores[0].get("meta/lease/7") == b"%d" % won[0]


@pytest.mark.parametrize("make_store", ["folder", "sftp"], indirect=True)
def test_what_a_killed_writer_left_half_written_is_removed_after_a_day(
    make_store: MakeStore, sftp: SftpPlace, tmp_path: Path
) -> None:
    """Else each one would take the space of a pack for ever. A young one may be in use."""
    store = make_store()
    store.put("packs/ab/abc", b"whole")
    local = tmp_path / "store" if isinstance(store, FolderStore) else Path(sftp.folder, tmp_path.name)
    old, young = local / "packs/ab/.draft-0123456789abcdef", local / "packs/ab/.draft-fedcba9876543210"
    for draft in (old, young):
        draft.write_bytes(b"half")
    day_ago = time.time() - 86_500
    os.utime(old, (day_ago, day_ago))
    assert [found.name for found in store.list_objects("packs/")] == ["packs/ab/abc"]
    assert (old.exists(), young.exists()) == (False, True)
    assert sorted(path.name for path in local.iterdir()) == ["packs"]


@pytest.mark.parametrize(
    "name", ["../outside", "/etc/passwd", "a/../b", "", "a//b", "A", "a/b/c/d/e", ".hidden", "a\n"]
)
def test_odd_names_are_refused(make_store: MakeStore, name: str) -> None:
    store = make_store()
    for act in (store.get, store.delete, lambda name: store.put(name, b"")):
        with pytest.raises(ValueError):
            act(name)


def test_a_listing_has_more_than_a_thousand_objects(s3: S3Server) -> None:
    """S3 answers in pages."""
    with contextlib.closing(S3Store(s3.place("many"))) as store:

        def put_some(part: int) -> None:
            for number in range(part, 1010, 5):
                store.put(f"packs/{number:05d}", b"")

        threads = [threading.Thread(target=put_some, args=(part,)) for part in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({found.name for found in store.list_objects("packs/")}) == 1010


def test_a_home_goes_there_and_back(small_home: BackupHome, make_store: MakeStore, tmp_path: Path) -> None:
    small_home.set_up(make_store())
    assert small_home.back_up(make_store()).changed
    restored = small_home.restore(make_store(), tmp_path / "restored")
    assert describe_tree(restored / "workspace") == describe_tree(small_home.home.workspace)


def test_an_archive_is_a_repository_in_one_file(small_home: BackupHome, tmp_path: Path) -> None:
    """And unpacked with tar it is one in a folder."""
    import tarfile

    with contextlib.closing(ArchiveStore(tmp_path / "export.tar", write=True)) as archive:
        small_home.set_up(archive)
        small_home.back_up(archive)
    with pytest.raises(FreeholdError, match="exists already"):
        ArchiveStore(tmp_path / "export.tar", write=True)
    with contextlib.closing(ArchiveStore(tmp_path / "export.tar")) as archive:
        restored = small_home.restore(archive, tmp_path / "restored")
        with pytest.raises(FreeholdError, match="never changed"):
            archive.put("packs/ab", b"")
    assert describe_tree(restored / "workspace") == describe_tree(small_home.home.workspace)
    with tarfile.open(tmp_path / "export.tar") as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")
    unpacked = small_home.restore(FolderStore(tmp_path / "unpacked"), tmp_path / "restored-2")
    assert describe_tree(unpacked / "workspace") == describe_tree(small_home.home.workspace)


def test_a_server_whose_key_is_not_known_is_refused(sftp: SftpPlace, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    unknown = SftpStore(replace(sftp, known_hosts=str(tmp_path / "empty")))
    with contextlib.closing(unknown) as store, pytest.raises(FreeholdError) as caught:
        store.get("key.age")
    assert caught.value.code == "backup.refused"
    assert "is not known here" in caught.value.message


def test_a_wrong_key_for_s3_is_refused(s3: S3Server) -> None:
    place = StorePlace("s3://backups/x", s3.endpoint, None, "AKIAFREEHOLDTEST", "another-secret")
    with contextlib.closing(open_store(place)) as store, pytest.raises(FreeholdError) as caught:
        store.get("key.age")
    assert caught.value.code == "backup.refused"


def test_no_recovery_key_is_shown_when_s3_refuses_our_key(s3: S3Server, small_home: BackupHome) -> None:
    home = small_home.home
    home.manifest.write_text(
        f'[backup]\nto = "s3://backups/x"\nendpoint = "{s3.endpoint}"\nuser = "AKIAFREEHOLDTEST"\nkey = "secret:backup"\n'
    )
    home.vault.mkdir(mode=0o700, exist_ok=True)
    Vault(home.vault).set("backup", "another-secret")
    shown: list[str] = []
    with pytest.raises(FreeholdError) as caught:
        make_recovery_key(home, lambda key: shown.append(key))
    assert caught.value.code == "backup.refused"
    assert shown == []


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("ftp://host/x", "backup.bad-address"),
        ("relative/folder", "backup.bad-address"),
        ("s3://", "backup.bad-address"),
        ("s3://bucket/x", "backup.no-key"),
        ("sftp://host", "backup.bad-address"),
        ("sftp://me:password@host/x", "backup.bad-address"),
    ],
)
def test_an_address_that_cannot_be_used_is_explained(url: str, code: str) -> None:
    with pytest.raises(FreeholdError) as caught:
        open_store(StorePlace(url))
    assert caught.value.code == code
