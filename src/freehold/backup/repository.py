"""The objects of a repository in a store. docs/backup-format.md describes them for people and other programs."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import zstandard

from freehold.backup.age import AgeIdentity, AgeRecipient, CannotDecrypt
from freehold.backup.keys import RepositoryKey, unwrap_key, wrap_key
from freehold.backup.pack import DamagedPack, build_pack, read_pack
from freehold.backup.snapshot import FORMAT, BackupSnapshot, decode_snapshot
from freehold.backup.stores.contract import (
    BackupStore,
    ObjectExists,
    ObjectMissing,
    object_lost,
    store_without_conditions,
)
from freehold.errors import FreeholdError

FORMAT_FILE = "repository.json"
KEY_FILE = "key.age"
META = "meta/"
PACKS = "packs/"
_LEASES, _INDEXES, _SNAPSHOTS = "meta/lease/", "meta/index/", "meta/snapshots/"
_MAX_INDEX = 512 << 20
_DIGITS = 12


@dataclass(frozen=True)
class PackRecord:
    """A stored pack: its name, its stored size, and its blobs with their sizes."""

    name: str
    size: int
    blobs: tuple[tuple[bytes, int], ...]


@dataclass(frozen=True)
class RepositoryListing:
    """The numbers of leases and snapshots in ascending order, the names of the indexes, and when each lease was written."""

    leases: dict[int, float]
    indexes: frozenset[str]
    snapshots: tuple[int, ...]


class BackupRepository:
    """Reads and writes objects. Everything that is read is authenticated before it is used."""

    def __init__(self, store: BackupStore, key: RepositoryKey) -> None:
        self.store = store
        self.key = key
        self.where: str = getattr(store, "where", "")

    def list_meta(self) -> RepositoryListing:
        leases, indexes, snapshots = {}, [], []
        for found in self.store.list_objects(META):
            folder, _, last = found.name.rpartition("/")
            if folder + "/" == _LEASES and last.isdigit():
                leases[int(last)] = found.modified
            elif folder + "/" == _INDEXES:
                indexes.append(last)
            elif folder + "/" == _SNAPSHOTS and last.isdigit():
                snapshots.append(int(last))
        return RepositoryListing(dict(sorted(leases.items())), frozenset(indexes), tuple(sorted(snapshots)))

    def put_pack(self, blobs: list[tuple[bytes, bytes]]) -> PackRecord:
        """The contents are dropped from `blobs` when they are packed: several packs are on their way at once."""
        listed = tuple((digest, len(content)) for digest, content in blobs)
        data = build_pack(blobs)
        blobs.clear()
        name = self.key.name("pack", data)
        sealed = self.key.encrypt(data)
        del data
        self.store.put(pack_path(name), sealed)
        return PackRecord(name, len(sealed), listed)

    def get_pack(self, name: str) -> Iterator[tuple[bytes, memoryview]]:
        """Raises `backup.lost` when it is missing or not what was written."""
        data = self._get_named(pack_path(name), "pack", name)
        try:
            yield from read_pack(data)
        except DamagedPack as error:
            raise object_lost(self.where, pack_path(name), f"is damaged: {error}") from error

    def put_index(self, packs: Sequence[PackRecord]) -> str:
        content = {
            "format": FORMAT,
            "packs": [
                {"name": pack.name, "size": pack.size, "blobs": [[digest.hex(), size] for digest, size in pack.blobs]}
                for pack in packs
            ],
        }
        data = zstandard.ZstdCompressor(level=3).compress(json.dumps(content, separators=(",", ":")).encode())
        name = self.key.name("index", data)
        self.store.put(_INDEXES + name, self.key.encrypt(data))
        return name

    def get_index(self, name: str) -> list[PackRecord]:
        data = self._get_named(_INDEXES + name, "index", name)
        try:
            with zstandard.ZstdDecompressor().stream_reader(data) as reader:
                content = json.loads(reader.read(_MAX_INDEX))
            return [
                PackRecord(
                    str(pack["name"]),
                    int(pack["size"]),
                    tuple((bytes.fromhex(digest), int(size)) for digest, size in pack["blobs"]),
                )
                for pack in content["packs"]
            ]
        except (zstandard.ZstdError, ValueError, KeyError, TypeError) as error:
            raise object_lost(self.where, _INDEXES + name, f"has another format: {error}") from error

    def find_index(self, name: str) -> tuple[list[PackRecord], FreeholdError | None]:
        """As `get_index`; what is lost or damaged is returned instead of raised."""
        try:
            return self.get_index(name), None
        except FreeholdError as error:
            if error.code != "backup.lost":
                raise
            return [], error

    def delete_index(self, name: str) -> None:
        self.store.delete(_INDEXES + name)

    def create_snapshot(self, snapshot: BackupSnapshot) -> str:
        """Returns its digest. Raises ObjectExists when somebody else has written one of this number."""
        text = snapshot.encode()
        name = f"{_SNAPSHOTS}{snapshot.number:0{_DIGITS}d}"
        self.store.create(name, self.key.seal(name, text))
        return hashlib.sha256(text).hexdigest()

    def get_snapshot(self, number: int) -> BackupSnapshot:
        name = f"{_SNAPSHOTS}{number:0{_DIGITS}d}"
        snapshot = self._decode_snapshot(name)
        if snapshot.number != number or snapshot.format != FORMAT:
            raise object_lost(self.where, name, f"has format {snapshot.format} and number {snapshot.number}")
        return snapshot

    def _decode_snapshot(self, name: str) -> BackupSnapshot:
        try:
            return decode_snapshot(self.key.unseal(name, self._get(name)))
        except CannotDecrypt as error:
            raise object_lost(self.where, name, f"cannot be read: {error}") from error

    def find_snapshot(self, number: int) -> tuple[BackupSnapshot | None, FreeholdError | None]:
        """As `get_snapshot`; what is lost or damaged is returned instead of raised."""
        try:
            return self.get_snapshot(number), None
        except FreeholdError as error:
            if error.code != "backup.lost":
                raise
            return None, error

    def delete_snapshot(self, number: int) -> None:
        self.store.delete(f"{_SNAPSHOTS}{number:0{_DIGITS}d}")

    def create_lease(self, number: int, text: bytes) -> None:
        """Raises ObjectExists."""
        name = f"{_LEASES}{number:0{_DIGITS}d}"
        self.store.create(name, self.key.seal(name, text))

    def get_lease(self, number: int) -> bytes | None:
        """None when it is gone. Raises `backup.lost` when it was not written with our key."""
        name = f"{_LEASES}{number:0{_DIGITS}d}"
        try:
            return self.key.unseal(name, self.store.get(name))
        except ObjectMissing:
            return None
        except CannotDecrypt as error:
            raise object_lost(self.where, name, f"cannot be read: {error}") from error

    def delete_lease(self, number: int) -> None:
        self.store.delete(f"{_LEASES}{number:0{_DIGITS}d}")

    def _get(self, path: str) -> bytes:
        try:
            return self.store.get(path)
        except ObjectMissing:
            raise object_lost(self.where, path, "is missing") from None

    def _get_named(self, path: str, kind: str, name: str) -> bytes:
        try:
            data = self.key.decrypt(self._get(path))
        except CannotDecrypt as error:
            raise object_lost(self.where, path, f"is damaged: {error}") from error
        if self.key.name(kind, data) != name:
            raise object_lost(self.where, path, "has the content of another object")
        return data


def pack_path(name: str) -> str:
    return f"{PACKS}{name[:2]}/{name}"


def set_up_store(store: BackupStore, key: RepositoryKey, recovery: AgeRecipient) -> None:
    """Make a repository, or replace the recovery key of one that has this key. Idempotent.

    Raises `backup.no-conditions` when the store ignores conditions or refuses them, and `backup.other-key` when there is a repository
    of somebody else.
    """
    check_conditions(store)
    text = json.dumps({"format": FORMAT}).encode()
    try:
        store.create(FORMAT_FILE, text)
    except ObjectExists:
        check_format(store)
        if any(store.list_objects(META)) and not _is_ours(store, key):
            raise FreeholdError(
                "backup.other-key",
                f"{getattr(store, 'where', '')} has the backups of another Freehold, or of this one before it was set up anew",
                hint="Choose another folder or bucket in [backup] of freehold.toml",
                kind="conflict",
            ) from None
    store.put(KEY_FILE, wrap_key(key, recovery))


def _is_ours(store: BackupStore, key: RepositoryKey) -> bool:
    """Whether some object is encrypted with this key."""
    for found in store.list_objects(META):
        try:
            key.decrypt(store.get(found.name))
        except (CannotDecrypt, ObjectMissing):
            continue
        return True
    return False


def check_format(store: BackupStore) -> None:
    """Raises `backup.no-repository` or `backup.newer`."""
    where = getattr(store, "where", "")
    try:
        found = json.loads(store.get(FORMAT_FILE))["format"]
    except (ObjectMissing, ValueError, KeyError, TypeError):
        raise FreeholdError(
            "backup.no-repository",
            f"There is no backup of Freehold in {where}",
            hint="Check the address",
            kind="not-found",
        ) from None
    if found != FORMAT:
        raise FreeholdError(
            "backup.newer",
            f"The backup in {where} has format {found}; this Freehold knows format {FORMAT}",
            hint="Install the version of Freehold that wrote it",
        )


def check_conditions(store: BackupStore) -> None:
    """Two writers are kept apart by objects that only one can create. A store that overwrites them is not good enough.

    Hold the lock of the job. Raises `backup.no-conditions`.
    """
    name = "probe"
    store.delete(name)
    store.create(name, b"1")
    try:
        store.create(name, b"2")
    except ObjectExists:
        return
    finally:
        store.delete(name)
    raise store_without_conditions(getattr(store, "where", ""), "ignores conditional writes")


def open_with_recovery_key(store: BackupStore, recovery: AgeIdentity) -> BackupRepository:
    """Raises `backup.bad-key` or `backup.no-repository`."""
    check_format(store)
    try:
        wrapped = store.get(KEY_FILE)
    except ObjectMissing:
        raise object_lost(getattr(store, "where", ""), KEY_FILE, "is missing") from None
    return BackupRepository(store, unwrap_key(wrapped, recovery))
