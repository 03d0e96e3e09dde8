"""A home from a repository: every file of a backup, written into a new folder and checked on the way."""

import ctypes
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from blake3 import blake3

from freehold.backup.comparison import compare_listed, compare_recorded
from freehold.backup.file_list import BadListing, ListedFile, can_be_reached, check_path, decode_listing
from freehold.backup.history_rebuild import BlobUses, HistoryRebuild, write_at
from freehold.backup.history_tables import TABLE_FOLDER
from freehold.backup.pack import MAX_BLOB
from freehold.backup.repository import BackupRepository, PackRecord
from freehold.backup.snapshot import BackupSnapshot
from freehold.backup.stores.contract import object_lost
from freehold.errors import FreeholdError
from freehold.history.contents import ContentReader
from freehold.history.database import open_reader
from freehold.history.names import show_name
from freehold.history.staging_area import remove_path

THREADS = 3
UNFINISHED = "unfinished-restore"
"""A file in the folder while it is not complete."""
MANIFEST = b"freehold.toml"
OTHER_MANIFEST = b"freehold.toml.restored"
"""The manifest of the backup, where the one of the folder cannot be replaced: in a container it is written outside."""


@dataclass(frozen=True)
class HomeRestoreResult:
    """`too_long` paths were left out: they are longer than a path can be in this folder. History may have them."""

    number: int
    files: int
    bytes: int
    too_long: int = 0


class PackFinder(Protocol):
    """`trouble` is why an index could not be read. It matters only when a blob is not found."""

    names: list[str]
    trouble: FreeholdError | None

    def find(self, digest: bytes, failed: set[int]) -> int | None: ...


class BlobPlaces:
    """Which pack has which blob, from all indexes of the repository. After a repair a blob is in several packs."""

    def __init__(self, repository: BackupRepository) -> None:
        self.names: list[str] = []
        self._packs: dict[bytes, int] = {}
        self._others: dict[bytes, list[int]] = {}
        self.trouble: FreeholdError | None = None
        """Why an index could not be read. It matters only when a blob is not found."""
        packs: dict[str, PackRecord] = {}
        for name in sorted(repository.list_meta().indexes):
            found, trouble = repository.find_index(name)
            packs |= {pack.name: pack for pack in found}
            self.trouble = trouble or self.trouble
        for number, pack in enumerate(packs.values()):
            self.names.append(pack.name)
            for digest, _ in pack.blobs:
                if self._packs.setdefault(digest, number) != number:
                    self._others.setdefault(digest, []).append(number)

    def find(self, digest: bytes, failed: set[int]) -> int | None:
        """A pack that has this blob and has not failed."""
        places = [self._packs[digest], *self._others.get(digest, ())] if digest in self._packs else []
        return next((place for place in places if place not in failed), None)


class BlobReader:
    """Reads blobs pack by pack, several packs at a time, and checks the hash of each."""

    def __init__(self, repository: BackupRepository, places: PackFinder | None = None) -> None:
        self._repository = repository
        self._places: PackFinder = BlobPlaces(repository) if places is None else places

    def read_each(self, wanted: set[bytes], use: Callable[[bytes, bytes], None]) -> None:
        """Call `use` once for each of these blobs, in the order of the packs. Raises `backup.lost`.

        Of a pack that is lost, the blobs are taken from another one that has them.
        """
        failed: set[int] = set()
        trouble = self._places.trouble
        while wanted:
            by_pack: dict[int, set[bytes]] = defaultdict(set)
            for digest in wanted:
                place = self._places.find(digest, failed)
                if place is None:
                    where = self._repository.where
                    raise trouble or object_lost(where, f"blob {digest.hex()[:16]}", "is in no index")
                by_pack[place].add(digest)
            wanted = set()
            with ThreadPoolExecutor(THREADS, "backup-read") as threads:
                for place, digests, result in _run_ahead(threads, self._read_pack, sorted(by_pack.items())):
                    try:
                        blobs = result()
                    except FreeholdError as error:
                        if error.code != "backup.lost":
                            raise
                        failed.add(place)
                        wanted |= digests
                        trouble = error
                        continue
                    for digest, content in blobs:
                        use(digest, content)

    def read(self, blobs: tuple[bytes, ...]) -> bytes:
        """These blobs, one after the other."""
        found: dict[bytes, bytes] = {}
        self.read_each(set(blobs), found.__setitem__)
        return b"".join(found[blob] for blob in blobs)

    def _read_pack(self, place: int, digests: set[bytes]) -> list[tuple[bytes, bytes]]:
        name = self._places.names[place]
        found = []
        for digest, content in self._repository.get_pack(name):
            if digest in digests:
                if len(content) > MAX_BLOB or blake3(content).digest() != digest:
                    raise object_lost(
                        self._repository.where, f"pack {name}", "has a blob that is not what its name says"
                    )
                found.append((digest, bytes(content)))
        if len(found) < len(digests):
            raise object_lost(self._repository.where, f"pack {name}", "lacks a blob that its index names")
        return found


Blobs = list[tuple[bytes, bytes]]


def _run_ahead(
    threads: ThreadPoolExecutor, read: Callable[[int, set[bytes]], Blobs], todo: list[tuple[int, set[bytes]]]
) -> Iterator[tuple[int, set[bytes], Callable[[], Blobs]]]:
    """Each result in order, while the next few are being read."""
    waiting: list[tuple[int, set[bytes], Future[Blobs]]] = []
    try:
        for place, digests in todo:
            waiting.append((place, digests, threads.submit(read, place, digests)))
            if len(waiting) > THREADS:
                first = waiting.pop(0)
                yield first[0], first[1], first[2].result
        for place, digests, future in waiting:
            yield place, digests, future.result
    finally:
        for _, _, future in waiting:
            future.cancel()


def _sync_file_system(folder: Path) -> None:
    """Everything that was written is on the disk when this returns."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(handle) != 0:
            raise OSError(ctypes.get_errno(), "syncfs")
    finally:
        os.close(handle)


def _is_given(path: Path) -> bool:
    """What a container has in its home before its first start: empty volumes, and a manifest that it cannot change.

    A disk of its own has `lost+found`, which only root may read.
    """
    if path.name == "lost+found":
        return True
    if path.is_dir() and not path.is_symlink():
        return not any(path.iterdir())
    return os.fsencode(path.name) == MANIFEST and not os.access(path, os.W_OK)


def choose_snapshot(repository: BackupRepository, at: float | None, number: int | None = None) -> BackupSnapshot:
    """The newest backup, or the newest one that is not later than `at`. Raises `backup.not-found` or `backup.lost`.

    One that cannot be read is not passed over: an older state is the owner's choice.
    """
    numbers = repository.list_meta().snapshots
    if number is not None:
        if number in numbers:
            return repository.get_snapshot(number)
        raise _not_found(repository, f"There is no backup {number}", numbers)
    for candidate in reversed(numbers):
        snapshot, trouble = repository.find_snapshot(candidate)
        if snapshot is None:
            assert trouble is not None
            older = [one for one in numbers if one < candidate]
            hint = f"To restore an older one: --number {older[-1]}" if older else "There is no older one"
            raise FreeholdError("backup.lost", trouble.message, hint=hint) from trouble
        if at is None or snapshot.at <= at:
            return snapshot
    raise _not_found(repository, "There is no backup" if at is None else "There is no backup as old as that", numbers)


def _not_found(repository: BackupRepository, what: str, numbers: tuple[int, ...]) -> FreeholdError:
    hint = f"There are the numbers {numbers[0]} to {numbers[-1]}: --number" if numbers else "Check the address"
    return FreeholdError("backup.not-found", f"{what} in {repository.where}", hint=hint)


class HomeRestore:
    """Restores one backup into a folder that is empty or does not exist. Empty folders in it do not count."""

    def __init__(self, repository: BackupRepository, snapshot: BackupSnapshot, folder: Path) -> None:
        self._repository = repository
        self._snapshot = snapshot
        self._folder = folder
        self._reader = BlobReader(repository)
        self._bytes = 0
        self._plain: list[ListedFile] = []
        self._history: HistoryRebuild | None = None
        self._keeps_manifest = False

    def run(self) -> HomeRestoreResult:
        """When it is interrupted, call it again: it begins anew. Raises `backup.not-empty`, `.lost` or `.bad-listing`."""
        self._prepare()
        files = self._read_listing()
        tables = [file for file in files if file.type == "table"]
        listed = [self._rename(file) for file in files if file.type != "table"]
        plain = [file for file in listed if can_be_reached(self._place(file))]
        too_long = len(listed) - len(plain)
        history = HistoryRebuild(self._folder / "history", self._folder, self._snapshot) if tables else None
        wants: BlobUses = defaultdict(list)
        if history is not None:
            self._restore_tables(tables, history)
            history.collect_uses(wants)
        self._collect_plain(plain, wants)
        self._reader.read_each(set(wants), lambda digest, content: self._use(wants.pop(digest), content))
        if history is not None:
            history.finish()
        self._finish_plain(plain)
        for top in (
            self._folder,
            *(path for path in self._folder.iterdir() if path.is_dir() and not path.is_symlink()),
        ):
            _sync_file_system(top)  # each may be a volume of its own
        (self._folder / UNFINISHED).unlink()
        count = len(files) - too_long
        if history is not None:
            count += history.files
            too_long += history.too_long
        self._plain, self._history = plain, history
        return HomeRestoreResult(self._snapshot.number, count, self._bytes, too_long)

    def compare(self) -> Iterator[str]:
        """What on the disk is not as the backup says, in words. Call it after `run`, before anything writes there."""
        for path, what in self._compare_paths():
            yield f"{show_name(os.fsencode(path.relative_to(self._folder)))} {what}"

    def _compare_paths(self) -> Iterator[tuple[Path, str]]:
        yield from compare_listed(self._folder, self._plain)
        if self._history is not None:
            listed = {self._place(file) for file in self._plain}
            place = self._folder / "history"
            with closing(open_reader(place / "history.db")) as db:
                live = (one for one in self._history.live if one.path not in listed)
                yield from compare_recorded(live, ContentReader(db, place / "chunks"))

    def _use(self, uses: list[Callable[[bytes], None]], content: bytes) -> None:
        for use in uses:
            use(content)
            self._bytes += len(content)

    def _prepare(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if (self._folder / UNFINISHED).exists():
            for path in self._folder.iterdir():
                if path.name != UNFINISHED and not _is_given(path):
                    remove_path(str(path))
        elif not all(map(_is_given, self._folder.iterdir())):
            raise FreeholdError(
                "backup.not-empty",
                f"{self._folder} is not empty",
                hint="Restore into a new folder with --into, and move it into place when you have looked at it",
            )
        self._folder.chmod(0o700)
        self._keeps_manifest = (self._folder / os.fsdecode(MANIFEST)).exists()
        (self._folder / UNFINISHED).write_text(f"backup {self._snapshot.number} of {self._snapshot.home}\n")

    def _rename(self, file: ListedFile) -> ListedFile:
        return replace(file, path=OTHER_MANIFEST) if self._keeps_manifest and file.path == MANIFEST else file

    def _read_listing(self) -> list[ListedFile]:
        text = self._reader.read(tuple(bytes.fromhex(blob) for blob in self._snapshot.listing))
        try:
            return [self._resolve(file) for file in decode_listing(text)]
        except BadListing as error:
            raise FreeholdError(
                "backup.bad-listing",
                f"The list of files of backup {self._snapshot.number} is not valid: {error}",
                kind="damaged",
            ) from error

    def _resolve(self, file: ListedFile) -> ListedFile:
        """With the blobs of the file itself."""
        if not file.indirect:
            return file
        names = self._reader.read(file.blobs).split()
        return replace(file, blobs=tuple(bytes.fromhex(name.decode("ascii")) for name in names), indirect=False)

    def _restore_tables(self, tables: list[ListedFile], history: HistoryRebuild) -> None:
        for table in tables:
            name = table.path.decode("ascii").removeprefix(f"{TABLE_FOLDER}/").removesuffix(".sqlite")
            history.add_table(name, self._reader.read(table.blobs))

    def _collect_plain(self, files: list[ListedFile], wants: BlobUses) -> None:
        for file in files:
            path = self._place(file)
            if file.type == "folder":
                path.mkdir(parents=True, exist_ok=True, mode=0o700)
            elif file.type == "file":
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                path.touch(0o600)
                for number, blob in enumerate(file.blobs):
                    wants[blob].append(partial(write_at, path, number * file.block))

    def _finish_plain(self, files: list[ListedFile]) -> None:
        """Links last, so that nothing is written through one; folders after what is in them."""
        for file in files:
            if file.type == "link":
                self._place(file).symlink_to(os.fsdecode(file.target))
        for file in reversed(files):
            path = self._place(file)
            if os.geteuid() == 0 and file.uid is not None and file.gid is not None:
                os.chown(path, file.uid, file.gid, follow_symlinks=False)
            if file.type == "file" and path.stat().st_size != file.size:
                raise object_lost(
                    self._repository.where, str(path), f"has {path.stat().st_size:,} bytes instead of {file.size:,}"
                )
            if file.type != "link":
                path.chmod(file.mode & 0o7777)
            os.utime(path, ns=(file.mtime, file.mtime), follow_symlinks=False)

    def _place(self, file: ListedFile) -> Path:
        return self._folder / os.fsdecode(check_path(file.path))
