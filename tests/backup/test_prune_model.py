"""A prune against a model: whatever packs, indexes, backups and losses there are, what is kept can be read as before."""

import random
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from blake3 import blake3

from freehold.backup.file_list import ListedFile, encode_listing
from freehold.backup.keys import RepositoryKey
from freehold.backup.lease import Lease
from freehold.backup.local_index import LocalIndex
from freehold.backup.prune import Prune
from freehold.backup.repository import BackupRepository, PackRecord, pack_path
from freehold.backup.retention import BackupRetention
from freehold.backup.snapshot import FORMAT, BackupSnapshot
from freehold.backup.stores.folder import FolderStore
from freehold.errors import FreeholdError

CASES = 60
CONTENTS = {blake3(content).digest(): content for content in (b"%d" % number * 2000 for number in range(30))}
HOUR = 3600.0
BLOCK = 512


@dataclass
class World:
    """A repository with packs at random. `gone` packs were found to be lost; `needs` has the blobs of each backup."""

    repository: BackupRepository
    chance: random.Random
    packs: dict[str, set[bytes]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    needs: dict[int, set[bytes]] = field(default_factory=dict)

    def fill(self, index: LocalIndex) -> None:
        """A blob is in several packs, a pack in several indexes, and some packs in none yet."""
        records = [self._put(self._choose(8)) for _ in range(self.chance.randrange(3, 16))]
        unlisted = set(self.chance.sample(records, self.chance.randrange(3)))
        listed = [record for record in records if record not in unlisted]
        self.gone = {record.name for record in listed if self.chance.random() < 0.25}
        for number in range(1, self.chance.randrange(2, 6)):
            self._add_snapshot(number)
        for _ in range(self.chance.randrange(3)):
            self.repository.put_index(self.chance.sample(listed, len(listed) // 2))
        self.repository.put_index(listed)
        with index.db:
            index.db.execute("BEGIN")
            for record in unlisted:
                index.add_pack(record, listed=None)
        for name in self.gone:
            index.mark_lost(name)
            self.repository.store.delete(pack_path(name))

    def _choose(self, most: int) -> set[bytes]:
        return set(self.chance.sample(sorted(CONTENTS), self.chance.randrange(1, most)))

    def _put(self, digests: Iterable[bytes]) -> PackRecord:
        record = self.repository.put_pack([(digest, CONTENTS[digest]) for digest in sorted(digests)])
        self.packs[record.name] = {digest for digest, _ in record.blobs}
        return record

    def _add_snapshot(self, number: int) -> None:
        """Of blobs that some pack has; its list of files is in a pack of its own."""
        stored = sorted(set().union(*self.packs.values()) & CONTENTS.keys())
        wanted = self.chance.sample(stored, self.chance.randrange(1, len(stored)))
        text = encode_listing(ListedFile(b"file-%d" % at, "file", 0o600, 0, 1, (one,)) for at, one in enumerate(wanted))
        digest = blake3(text).digest()
        record = self.repository.put_pack([(digest, text)])
        self.packs[record.name] = {digest}
        self.repository.put_index([record])
        self.needs[number] = {digest, *wanted}
        self.repository.create_snapshot(
            BackupSnapshot(FORMAT, number, "", number * HOUR, "", "", "", (digest.hex(),), 1, 1, 1, 1)
        )

    def read(self) -> tuple[set[str], set[bytes]]:
        """The packs that an index names, and the blobs that can be read by the indexes."""
        named = {
            pack.name: pack for name in self.repository.list_meta().indexes for pack in self.repository.get_index(name)
        }
        found: set[bytes] = set()
        for name, pack in named.items():
            if name not in self.gone:
                held = {digest for digest, content in self.repository.get_pack(name)}
                found |= held & {digest for digest, _ in pack.blobs}
        return set(named), found

    def stored(self) -> set[str]:
        return {found.name.rpartition("/")[2] for found in self.repository.store.list_objects("packs/")}


@pytest.mark.parametrize("seed", range(CASES))
def test_a_prune_keeps_every_blob_of_a_kept_backup_and_no_pack_that_none_needs(seed: int, tmp_path: Path) -> None:
    world = World(BackupRepository(FolderStore(tmp_path / "store"), RepositoryKey.generate()), random.Random(seed))
    with closing(LocalIndex(tmp_path / "backup", "tests")) as index:
        world.fill(index)
        lease = Lease(world.repository, index.holder, "here")
        listing = world.repository.list_meta()
        lease.acquire(listing)
        index.synchronize(world.repository, listing)
        rule = BackupRetention(hourly=world.chance.randrange(1, 4), daily=0, weekly=0)
        result = Prune(world.repository, index, lease, rule).run()

    numbers = sorted(world.needs)[-rule.hourly :]
    assert list(world.repository.list_meta().snapshots) == numbers
    used = set().union(*(world.needs[number] for number in numbers))
    sound = set().union(*(blobs for name, blobs in world.packs.items() if name not in world.gone))
    named, readable = world.read()
    assert readable & used == sound & used
    # What only a lost pack has stays named: that pack may come back.
    assert named & world.gone == {name for name in world.gone if (world.packs[name] & used) - sound}
    # A pack without a used blob is gone, and nothing is stored that no index names.
    assert world.stored() == named - world.gone
    assert all(world.packs[name] & used for name in named & world.packs.keys())
    assert (result.forgotten, result.kept) == (len(world.needs) - len(numbers), len(numbers))
    assert not (tmp_path / "backup" / "scratch").exists()


def test_nothing_is_removed_when_no_pack_has_a_blob_of_a_kept_backup(tmp_path: Path) -> None:
    repository = BackupRepository(FolderStore(tmp_path / "store"), RepositoryKey.generate())
    world = World(repository, random.Random(1))
    with closing(LocalIndex(tmp_path / "backup", "tests")) as index:
        world.fill(index)
        text = encode_listing([ListedFile(b"file", "file", 0o600, 0, 1, (bytes(32),))])
        digest = blake3(text).digest()
        repository.put_index([repository.put_pack([(digest, text)])])
        newest = max(world.needs) + 1
        repository.create_snapshot(
            BackupSnapshot(FORMAT, newest, "", newest * HOUR, "", "", "", (digest.hex(),), 1, 1, 1, 1)
        )
        lease = Lease(repository, index.holder, "here")
        lease.acquire(repository.list_meta())
        before = (world.stored(), repository.list_meta().snapshots)
        with pytest.raises(FreeholdError) as caught:
            Prune(repository, index, lease, BackupRetention(1, 0, 0)).run()
    assert caught.value.code == "backup.lost"
    assert (world.stored(), repository.list_meta().snapshots) == before


def test_what_a_long_table_of_history_names_is_kept(tmp_path: Path) -> None:
    """Its blocks lie in packs in any order, and its list names them by a blob of its own."""
    repository = BackupRepository(FolderStore(tmp_path / "store"), RepositoryKey.generate())
    contents = {blake3(content).digest(): content for content in (b"content %d" % number for number in range(3000))}
    path = tmp_path / "content.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE content (id INTEGER PRIMARY KEY, hash BLOB, size INTEGER, form INTEGER, data BLOB)")
        db.executemany("INSERT INTO content (hash, form) VALUES (?, 0)", ((digest,) for digest in contents))
        db.commit()
    table = path.read_bytes()
    blocks = [table[at : at + BLOCK] for at in range(0, len(table), BLOCK)]
    stored = {blake3(block).digest(): block for block in blocks}
    names = "".join(f"{blake3(block).hexdigest()}\n" for block in blocks).encode()
    listed = ListedFile(
        b"history/tables/content.sqlite", "table", 0o600, 0, len(table), (blake3(names).digest(),), b"", BLOCK, True
    )
    text = encode_listing([listed])
    described = {blake3(names).digest(): names, blake3(text).digest(): text}
    scattered = random.Random(3).sample(sorted(stored.items()), len(stored))
    halves = scattered[: len(scattered) // 2], scattered[len(scattered) // 2 :]
    unused = repository.put_pack([(blake3(b"unused").digest(), b"unused")])
    packs = [repository.put_pack(list(each)) for each in (contents.items(), described.items(), *halves)]
    repository.put_index([unused, *packs])
    repository.create_snapshot(BackupSnapshot(FORMAT, 1, "", HOUR, "", "", "", (blake3(text).hexdigest(),), 1, 1, 1, 1))
    with closing(LocalIndex(tmp_path / "backup", "tests")) as index:
        lease = Lease(repository, index.holder, "here")
        lease.acquire(repository.list_meta())
        result = Prune(repository, index, lease, BackupRetention()).run()
    assert result.removed_packs == 1
    _, readable = World(repository, random.Random()).read()
    assert readable == contents.keys() | stored.keys() | described.keys()
