"""Removes backups that are not kept any more, and what only they need.

Nothing that a remaining backup needs is ever missing, wherever this ends: first the new packs are stored, then an index
of all that remains, then the old indexes go, and then the packs that no index names.
"""

import sqlite3
import tempfile
from dataclasses import dataclass
from pathlib import Path

from freehold.backup.blob_writer import BlobWriter
from freehold.backup.file_list import BadListing, decode_listing
from freehold.backup.history_tables import TABLE_FOLDER
from freehold.backup.lease import Lease
from freehold.backup.local_index import LocalIndex
from freehold.backup.pack import PACK_BYTES
from freehold.backup.repository import PACKS, BackupRepository, PackRecord, pack_path
from freehold.backup.restore import BlobReader
from freehold.backup.retention import BackupRetention, choose_kept
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

    def __init__(self, repository: BackupRepository, index: LocalIndex, lease: Lease, rule: BackupRetention) -> None:
        self._repository = repository
        self._index = index
        self._lease = lease
        self._rule = rule

    def run(self) -> PruneResult:
        listing = self._repository.list_meta()
        snapshots = [self._repository.get_snapshot(number) for number in listing.snapshots]
        kept = choose_kept([(snapshot.number, snapshot.at) for snapshot in snapshots], self._rule)
        used = self._find_used([snapshot.listing for snapshot in snapshots if snapshot.number in kept])
        packs = self._read_packs(listing.indexes)
        self._check_complete(used, packs)
        self._lease.renew(0.1)
        forgotten = [snapshot.number for snapshot in snapshots if snapshot.number not in kept]
        for number in forgotten:
            self._repository.delete_snapshot(number)
        rewritten, dead = self._sort_packs(packs, used)
        fresh = self._rewrite(rewritten, used, {name: pack for name, pack in packs.items() if name not in dead})
        remaining = [pack for name, pack in packs.items() if name not in dead and name not in rewritten] + fresh
        new = {self._repository.put_index(part) for part in _split(remaining)}
        self._lease.renew(0.1)
        for name in listing.indexes - new:
            self._repository.delete_index(name)
        freed, removed = self._sweep({pack.name for pack in remaining})
        self._index.forget_packs()
        self._index.db.execute("DELETE FROM blob")
        self._index.db.execute("DELETE FROM pack")
        self._index.synchronize(self._repository, self._repository.list_meta())
        return PruneResult(len(forgotten), len(kept), removed, len(rewritten), freed - sum(pack.size for pack in fresh))

    def _read_packs(self, indexes: frozenset[str]) -> dict[str, PackRecord]:
        """All packs that are named by an index that can be read, or that this machine has just stored."""
        packs = {pack.name: pack for name in sorted(indexes) for pack in self._repository.find_index(name)[0]}
        return packs | {pack.name: pack for pack in self._index.list_unlisted()}

    def _check_complete(self, used: set[bytes], packs: dict[str, PackRecord]) -> None:
        """Raises when a kept backup needs a blob that no pack has: then the damage is looked at first."""
        known = {digest for pack in packs.values() for digest, _ in pack.blobs}
        missing = used - known
        if missing:
            raise object_lost(self._repository.where, f"{len(missing)} blobs", "are in no index")

    def _sort_packs(self, packs: dict[str, PackRecord], used: set[bytes]) -> tuple[set[str], set[str]]:
        """The packs to write anew because less than half of them is used, or they are many and small; and the unused."""
        rewritten, dead, small = set(), set(), set()
        lost: set[str] = self._index.list_lost() & packs.keys()
        safe = {digest for name, pack in packs.items() if name not in lost for digest, _ in pack.blobs}
        for name, pack in packs.items():
            if name in lost:
                if all(digest in safe for digest, _ in pack.blobs if digest in used):
                    dead.add(name)
                continue
            total = sum(size + 512 for _, size in pack.blobs)
            live = sum(size + 512 for digest, size in pack.blobs if digest in used)
            if not live:
                dead.add(name)
            elif live * 2 < total:
                rewritten.add(name)
            elif total < SMALL_PACK:
                small.add(name)
        return (rewritten | small if len(small) > MAX_SMALL else rewritten), dead

    def _rewrite(self, names: set[str], used: set[bytes], packs: dict[str, PackRecord]) -> list[PackRecord]:
        """New packs with the used blobs of these, unless another pack has them."""
        elsewhere = {digest for name, pack in packs.items() if name not in names for digest, _ in pack.blobs}
        with tempfile.TemporaryDirectory(prefix="freehold-prune-", dir=self._index.path.parent) as folder:
            index = LocalIndex(Path(folder), "prune")
            try:
                with BlobWriter(self._repository, index, self._lease.renew) as writer:
                    for name in sorted(names):
                        for digest, content in self._repository.get_pack(name):
                            if digest in used and digest not in elsewhere:
                                writer.add_known(digest, bytes(content))
                    writer.flush()
                return index.list_unlisted()
            finally:
                index.close()

    def _sweep(self, named: set[str]) -> tuple[int, int]:
        """Delete the packs that no index names. Nobody else writes packs while we have the lease."""
        freed = count = 0
        for found in list(self._repository.store.list_objects(PACKS)):
            name = found.name.rpartition("/")[2]
            if name not in named and found.name == pack_path(name):
                self._repository.store.delete(found.name)
                freed += found.size
                count += 1
        return freed, count

    def _find_used(self, listings: list[tuple[str, ...]]) -> set[bytes]:
        """Every blob that one of these backups needs. Raises when one cannot be read: then nothing is removed."""
        reader = BlobReader(self._repository)
        used: set[bytes] = set()
        tables: set[tuple[bytes, ...]] = set()
        for listing in listings:
            blobs = tuple(bytes.fromhex(blob) for blob in listing)
            used.update(blobs)
            try:
                for file in decode_listing(reader.read(blobs)):
                    used.update(file.blobs)
                    names = file.blobs
                    if file.indirect:
                        names = tuple(bytes.fromhex(name.decode("ascii")) for name in reader.read(file.blobs).split())
                        used.update(names)
                    if file.type == "table" and file.path in (_CONTENT, _CHUNK) and (file.path, *names) not in tables:
                        tables.add((file.path, *names))
                        used |= self._read_hashes(file.path, reader.read(names))
            except BadListing as error:
                raise FreeholdError(
                    "backup.bad-listing", f"A list of files is not valid: {error}", kind="damaged"
                ) from error
        return used

    def _read_hashes(self, path: bytes, table: bytes) -> set[bytes]:
        with tempfile.NamedTemporaryFile(dir=self._index.path.parent) as file:
            file.write(table)
            file.flush()
            db = sqlite3.connect(file.name)
            try:
                if path == _CHUNK:
                    return {bytes(row[0]) for row in db.execute("SELECT hash FROM chunk")}
                rows = db.execute("SELECT hash FROM content WHERE form != ?", (CHUNKED,))
                return {bytes(row[0]) for row in rows}
            finally:
                db.close()


_CONTENT = f"{TABLE_FOLDER}/content.sqlite".encode()
_CHUNK = f"{TABLE_FOLDER}/chunk.sqlite".encode()


def _split(packs: list[PackRecord]) -> list[list[PackRecord]]:
    """Parts with a bounded number of blobs, so that reading one index needs little memory. At least one part."""
    parts: list[list[PackRecord]] = [[]]
    count = 0
    for pack in packs:
        if count > INDEX_BLOBS:
            parts.append([])
            count = 0
        parts[-1].append(pack)
        count += len(pack.blobs)
    return parts
