"""Removes backups that are not kept any more, and what only they need.

Nothing that a remaining backup needs is ever missing, wherever this ends: first the new packs are stored, then an index
of all that remains, then the old indexes go, and then the packs that no index names.
"""

import os
import shutil
import sqlite3
import tempfile
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass

from freehold.backup.blob_writer import BlobWriter
from freehold.backup.file_list import BadListing, ListedFile, decode_listing
from freehold.backup.history_tables import TABLE_FOLDER
from freehold.backup.lease import Lease
from freehold.backup.local_index import LocalIndex
from freehold.backup.pack import PACK_BYTES
from freehold.backup.prune_tables import PruneTables
from freehold.backup.repository import PACKS, BackupRepository, pack_path
from freehold.backup.restore import BlobReader
from freehold.backup.retention import BackupRetention, choose_kept
from freehold.backup.snapshot import BackupSnapshot
from freehold.backup.stores.contract import object_lost
from freehold.errors import FreeholdError
from freehold.history.contents import CHUNKED

SMALL_PACK = PACK_BYTES // 8
MAX_SMALL = 8
INDEX_BLOBS = 100_000


@dataclass(frozen=True)
class PruneResult:
    forgotten: int
    kept: int
    removed_packs: int
    rewritten_packs: int
    freed: int


class Prune:
    """The caller holds the lease, and has synchronized the index."""

    def __init__(
        self,
        repository: BackupRepository,
        index: LocalIndex,
        lease: Lease,
        rule: BackupRetention,
        *,
        drop_damaged: bool = False,
    ) -> None:
        """With `drop_damaged`, a backup that cannot be read is removed. Else nothing is removed beside one."""
        self._repository = repository
        self._index = index
        self._lease = lease
        self._rule = rule
        self._drop_damaged = drop_damaged
        self._scratch = index.path.parent / "scratch"
        """As that of a backup: whichever comes next removes what a killed one has left."""

    def run(self) -> PruneResult:
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir(mode=0o700)
        try:
            with closing(PruneTables(self._scratch / "tables.db")) as tables:
                return self._run(tables)
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _run(self, tables: PruneTables) -> PruneResult:
        listing = self._repository.list_meta()
        snapshots, damaged = self._read_snapshots(listing.snapshots)
        kept = choose_kept([(snapshot.number, snapshot.at) for snapshot in snapshots], self._rule)
        self._read_packs(listing.indexes, tables)
        self._find_used([snapshot.listing for snapshot in snapshots if snapshot.number in kept], tables)
        self._check_complete(tables)
        forgotten = damaged + [snapshot.number for snapshot in snapshots if snapshot.number not in kept]
        for number in forgotten:
            self._lease.renew(0.1)
            self._repository.delete_snapshot(number)
        rewritten, dead = self._sort_packs(tables)
        tables.set_fate(rewritten, "rewritten")
        tables.set_fate(dead, "dead")
        stored = self._rewrite(rewritten, tables)
        new = set()
        for part in tables.list_kept(INDEX_BLOBS):
            self._lease.renew(0.1)
            new.add(self._repository.put_index(part))
        for name in listing.indexes - new:
            self._lease.renew(0.1)
            self._repository.delete_index(name)
        freed, removed = self._sweep(tables.list_kept_names())
        self._index.forget_packs()
        self._index.db.execute("DELETE FROM blob")
        self._index.db.execute("DELETE FROM pack")
        self._index.synchronize(self._repository, self._repository.list_meta())
        return PruneResult(len(forgotten), len(kept), removed, len(rewritten), freed - stored)

    def _read_snapshots(self, numbers: tuple[int, ...]) -> tuple[list[BackupSnapshot], list[int]]:
        """The backups, and the numbers of those that cannot be read. Raises `backup.lost` unless they may be dropped."""
        snapshots, damaged = [], []
        for number in numbers:
            snapshot, trouble = self._repository.find_snapshot(number)
            if snapshot is not None:
                snapshots.append(snapshot)
                continue
            assert trouble is not None
            if number == max(numbers):
                raise FreeholdError("backup.lost", trouble.message, hint="Make another one first: freehold backup now")
            if not self._drop_damaged:
                raise FreeholdError(
                    "backup.lost",
                    f"Nothing was removed: {trouble.message}",
                    hint="To remove that backup too: freehold backup prune --damaged",
                )
            damaged.append(number)
        return snapshots, damaged

    def _read_packs(self, indexes: frozenset[str], tables: PruneTables) -> None:
        """All packs that are named by an index that can be read, or that this machine has just stored."""
        for name in sorted(indexes):
            packs, trouble = self._repository.find_index(name)
            tables.add_packs(packs)
            tables.trouble = trouble or tables.trouble
        tables.add_packs(self._index.list_unlisted())
        tables.mark_lost(self._index.list_lost())

    def _check_complete(self, tables: PruneTables) -> None:
        """Raises when a kept backup needs a blob that no pack has: then the damage is looked at first."""
        missing = tables.count_missing()
        if missing:
            raise object_lost(self._repository.where, f"{missing} blobs", "are in no index")

    def _sort_packs(self, tables: PruneTables) -> tuple[set[str], set[str]]:
        """The packs to write anew because less than half of them is used, or they are many and small; and the unused."""
        rewritten, dead, small = set(), set(), set()
        for name, is_lost, total, live in tables.measure():
            if is_lost:
                if tables.is_safe(name):
                    dead.add(name)
            elif not live:
                dead.add(name)
            elif live * 2 < total:
                rewritten.add(name)
            elif total < SMALL_PACK:
                small.add(name)
        return (rewritten | small if len(small) > MAX_SMALL else rewritten), dead

    def _rewrite(self, names: set[str], tables: PruneTables) -> int:
        """New packs with the used blobs of these, unless a pack that stays has them. Returns their bytes."""
        with closing(LocalIndex(self._scratch / "index", "prune")) as index:
            with BlobWriter(self._repository, index, self._lease.renew) as writer:
                for name in sorted(names):
                    for digest, content in self._repository.get_pack(name):
                        if tables.must_move(digest):
                            writer.add_known(digest, bytes(content))
                writer.flush()
            fresh = index.list_unlisted()
        tables.add_packs(fresh)
        return sum(pack.size for pack in fresh)

    def _sweep(self, named: set[str]) -> tuple[int, int]:
        """Delete the packs that no index names. Nobody else writes packs while we have the lease.

        It is confirmed after they were listed: the packs of a writer that took it while this process was stopped, or its
        machine asleep, are not deleted.
        """
        freed = count = 0
        listed = list(self._repository.store.list_objects(PACKS))
        self._lease.confirm()
        for found in listed:
            name = found.name.rpartition("/")[2]
            if name not in named and found.name == pack_path(name):
                self._lease.renew(0.1)
                self._repository.store.delete(found.name)
                freed += found.size
                count += 1
        return freed, count

    def _find_used(self, listings: list[tuple[str, ...]], tables: PruneTables) -> None:
        """Note every blob that one of these backups needs. Raises when one cannot be read: then nothing is removed."""
        reader = BlobReader(self._repository, tables)
        seen: set[tuple[bytes, ...]] = set()
        for listing in listings:
            blobs = tuple(bytes.fromhex(blob) for blob in listing)
            tables.add_used(blobs)
            try:
                for file in decode_listing(reader.read(blobs)):
                    tables.add_used(file.blobs)
                    names = file.blobs
                    if file.indirect:
                        names = tuple(bytes.fromhex(name.decode("ascii")) for name in reader.read(file.blobs).split())
                        tables.add_used(names)
                    if file.type == "table" and file.path in (_CONTENT, _CHUNK) and (file.path, *names) not in seen:
                        seen.add((file.path, *names))
                        self._add_hashes(file, names, reader, tables)
            except BadListing as error:
                raise FreeholdError(
                    "backup.bad-listing", f"A list of files is not valid: {error}", kind="damaged"
                ) from error

    def _add_hashes(self, table: ListedFile, names: tuple[bytes, ...], reader: BlobReader, tables: PruneTables) -> None:
        """Note every content or chunk that this table of history names. It may be larger than memory."""
        places: dict[bytes, list[int]] = defaultdict(list)
        for number, name in enumerate(names):
            places[name].append(number * table.block)
        with tempfile.NamedTemporaryFile(dir=self._scratch) as file:

            def write(digest: bytes, content: bytes) -> None:
                for place in places[digest]:
                    file.seek(place)
                    file.write(content)

            reader.read_each(set(places), write)
            file.flush()
            size = os.fstat(file.fileno()).st_size
            if size != table.size:
                path = table.path.decode()
                raise object_lost(self._repository.where, path, f"has {size:,} bytes instead of {table.size:,}")
            with closing(sqlite3.connect(file.name)) as db:
                if table.path == _CHUNK:
                    rows = db.execute("SELECT hash FROM chunk")
                else:
                    rows = db.execute("SELECT hash FROM content WHERE form != ?", (CHUNKED,))
                tables.add_used(bytes(row[0]) for row in rows)


_CONTENT = f"{TABLE_FOLDER}/content.sqlite".encode()
_CHUNK = f"{TABLE_FOLDER}/chunk.sqlite".encode()
