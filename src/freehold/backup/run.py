"""One backup: everything of a home at one moment, as far as the repository does not have it."""

import json
import os
import shutil
import socket
import stat
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from freehold import __version__
from freehold.backup.blob_writer import BlobWriter
from freehold.backup.file_list import MAX_INLINE_BLOBS, EntryType, ListedFile, encode_listing
from freehold.backup.history_tables import TABLE_FOLDER, HistoryCapture, iterate_contents_ahead
from freehold.backup.home_files import TRACKED, FoundFile, HomeFiles, describe_owner, list_installed_agents
from freehold.backup.home_state import check_anchor, read_home_state
from freehold.backup.lease import Lease
from freehold.backup.local_index import KnownFile, LocalIndex
from freehold.backup.repository import BackupRepository, RepositoryListing
from freehold.backup.snapshot import FORMAT, BackupSnapshot, TimelineAnchor, TrackedFolder
from freehold.backup.sqlite_file import MAX_COPIED, SqliteFile, is_database, read_raw_blocks
from freehold.backup.stores.contract import ObjectExists
from freehold.errors import FreeholdError
from freehold.history.database import read_tracked_folders
from freehold.home import Home
from freehold.strict_json import decode

FILE_BLOCK = 1 << 20
DATABASE_BLOCK = 64 << 10
LISTING_BLOCK = 256 << 10
MAX_NOTES = 20


@dataclass(frozen=True)
class BackupResult:
    """`number` is that of the new backup, or of the newest one when nothing had changed."""

    number: int
    changed: bool
    files: int
    read: int
    added: int
    seconds: float
    state: str
    """The state of the home that is in this backup; see `home_state`."""
    notes: tuple[str, ...] = ()


class BackupRun:
    """Use it once, in a process of its own that holds the lock of the job; see `sqlite_file`.

    `take_snapshot` has history record the present state of the files.
    """

    def __init__(
        self,
        home: Home,
        repository: BackupRepository,
        index: LocalIndex,
        take_snapshot: Callable[[], None],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._home = home
        self._repository = repository
        self._index = index
        self._take_snapshot = take_snapshot
        self._clock = clock
        self._lease = Lease(repository, index.holder, str(home.root))
        self._files: list[ListedFile] = []
        self._known: dict[bytes, KnownFile] = {}
        self._bytes = 0

    def run(self, *, take_over: bool = False, always: bool = False, accept_loss: bool = False) -> BackupResult:
        """Raises `backup.leased`, `backup.rolled-back`, `backup.timeline-cut`, or what the store says.

        With `accept_loss` the present state of this home counts, whatever the newest backup saw of its timeline.
        """
        began = time.monotonic()
        self._take_snapshot()
        state = read_home_state(self._home)
        listing = self._repository.list_meta()
        self._check_store(listing)
        number = max(listing.snapshots, default=0)
        if not always and not take_over and not accept_loss and number and state == self._index.read_note("state"):
            return BackupResult(number, False, 0, 0, 0, time.monotonic() - began, state)
        self._lease.acquire(listing, take_over=take_over)
        self._index.synchronize(self._repository, listing)
        result = self._back_up(number, began, state, None if accept_loss else self._find_anchor(number))
        self._index.write_note("state", state)
        with suppress(FreeholdError):
            self._lease.release()
        return result

    def _check_store(self, listing: RepositoryListing) -> None:
        """A store that shows an older state than it had, lost something or deceives us."""
        number, _ = self._index.newest
        if max(listing.snapshots, default=0) < number:
            raise FreeholdError(
                "backup.rolled-back",
                f"{self._repository.where} has lost backups: number {number} was there, now the newest is {max(listing.snapshots, default=0)}",
                hint="Find out what happened there. To go on from its present state: freehold backup now --accept-loss",
                kind="conflict",
            )

    def _back_up(self, last: int, began: float, state: str, previous: TimelineAnchor | None) -> BackupResult:
        with ExitStack() as stack:
            scratch = self._home.root / "backup" / "scratch"
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(parents=True, mode=0o700)
            stack.callback(shutil.rmtree, scratch, ignore_errors=True)
            tracked = read_tracked_folders(self._home.history)
            files = HomeFiles(self._home, tracked[0] if tracked else ())
            writer = stack.enter_context(BlobWriter(self._repository, self._index, self._lease.renew))
            self._store_ahead(writer, files, tracked=tracked is not None)
            # In this order: what the timeline tells of is in every store that is read after it. The anchor is read
            # before it, because an anchor may be behind the timeline and not ahead of it.
            anchor = self._read_anchor()
            timeline = self._capture(stack, self._home.timeline)
            head = self._check_timeline(timeline, previous)
            history = HistoryCapture(self._home.history, self._index, scratch) if tracked else None
            if history is not None:
                stack.callback(history.close)
            if history is not None:
                for digest, content in history.iterate_new_contents(writer.waiting):
                    self._bytes += writer.add_known(digest, content)
            for found in files.walk():
                self._add_file(writer, stack, found, timeline, anchor)
            if history is not None:
                listed = {file.path for file in self._files}
                for path in history.list_unstored():
                    unstored = files.open_recorded(path) if path not in listed else None
                    if unstored is not None:
                        self._add_regular(writer, unstored)
                for name, table in history.dump_tables():
                    self._add_table(writer, name, table)
            snapshot = self._commit(writer, files, history, head, last)
            seconds = time.monotonic() - began
            return BackupResult(
                snapshot.number, True, snapshot.files, snapshot.read, snapshot.added, seconds, state, snapshot.notes
            )

    def _store_ahead(self, writer: BlobWriter, files: HomeFiles, *, tracked: bool) -> None:
        """Store most of it before the state is held: while it is, the journals of the databases only grow.

        Contents are known by their hash, so what is stored for nothing does no harm.
        """
        if tracked:
            for digest, content in iterate_contents_ahead(self._home.history, self._index):
                self._bytes += writer.add_known(digest, content)
        for found in files.walk():
            if not stat.S_ISREG(found.stat.st_mode):
                continue
            if not self._is_database(found):
                self._read_changed(writer, found)
            elif found.stat.st_size > MAX_COPIED:
                for block in read_raw_blocks(self._home.root / os.fsdecode(found.path), DATABASE_BLOCK):
                    writer.add(block)
        files.notes.clear()  # the second walk finds the same

    def _commit(
        self,
        writer: BlobWriter,
        files: HomeFiles,
        history: HistoryCapture | None,
        head: TimelineAnchor | None,
        last: int,
    ) -> BackupSnapshot:
        text = encode_listing(self._files)
        blobs = [writer.add(text[at : at + LISTING_BLOCK], describes=True) for at in range(0, len(text), LISTING_BLOCK)]
        writer.flush()
        unlisted = self._index.list_unlisted()
        if unlisted:
            self._index.mark_listed(self._repository.put_index(unlisted))
        self._lease.renew()
        folders = {name: describe_owner(self._home.root / name) for name in TRACKED}
        snapshot = BackupSnapshot(
            format=FORMAT,
            number=last + 1,
            previous=self._index.newest[1],
            at=self._clock(),
            host=socket.gethostname(),
            home=str(self._home.root),
            freehold=__version__,
            listing=tuple(blob.hex() for blob in blobs),
            files=len(self._files) + (history.files if history is not None else 0),
            total=sum(file.size for file in self._files) + (history.bytes if history is not None else 0),
            read=self._bytes,
            added=writer.added_bytes,
            history_entry=history.entry if history is not None else None,
            timeline=head,
            folders={name: TrackedFolder(*owner) for name, owner in folders.items() if owner is not None},
            agents=list_installed_agents(self._home),
            notes=tuple(files.notes[:MAX_NOTES]),
        )
        try:
            digest = self._repository.create_snapshot(snapshot)
        except ObjectExists:
            raise FreeholdError(
                "backup.leased",
                f"{self._repository.where} got a backup of another Freehold meanwhile",
                hint="See which one: freehold backup list",
                kind="conflict",
            ) from None
        self._index.set_newest(snapshot.number, digest)
        if head is not None:
            self._index.write_note("anchor", json.dumps(asdict(head)))
        self._index.save_files(self._known.items())
        return snapshot

    def _capture(self, stack: ExitStack, path: Path) -> SqliteFile | None:
        if not path.exists():
            return None
        found = SqliteFile(path)
        stack.callback(found.close)
        return found

    def _read_anchor(self) -> bytes | None:
        with suppress(FileNotFoundError):
            return (self._home.vault / "timeline-head").read_bytes()
        return None

    def _find_anchor(self, last: int) -> TimelineAnchor | None:
        """The head of the timeline in the newest backup. What this machine wrote itself need not be read again."""
        if not last:
            return None
        kept = self._index.read_note("anchor")
        if kept is not None and self._index.newest[0] == last:
            return decode(TimelineAnchor, json.loads(kept))
        snapshot, trouble = self._repository.find_snapshot(last)
        if snapshot is None:
            assert trouble is not None
            raise FreeholdError(
                "backup.lost",
                trouble.message,
                hint="If this Freehold did not write it, remove that object from the store. Else go on without it: freehold backup now --accept-loss",
            ) from trouble
        return snapshot.timeline

    def _check_timeline(self, timeline: SqliteFile | None, previous: TimelineAnchor | None) -> TimelineAnchor | None:
        """The head of the timeline. What the last backup saw must still be part of it."""
        row = timeline.connection.execute("SELECT seq, hash FROM head").fetchone() if timeline is not None else None
        if previous is not None:
            check_anchor(self._home, previous)
        return TimelineAnchor(int(row[0]), str(row[1])) if row is not None else None

    def _add_file(
        self, writer: BlobWriter, stack: ExitStack, found: FoundFile, timeline: SqliteFile | None, anchor: bytes | None
    ) -> None:
        mode = stat.S_IMODE(found.stat.st_mode)
        if stat.S_ISDIR(found.stat.st_mode):
            self._list(found, "folder", mode)
        elif stat.S_ISLNK(found.stat.st_mode):
            self._list(found, "link", mode)
        elif found.path == b"timeline.db":
            if timeline is not None:
                self._add_database(writer, found, timeline)
        elif found.path == b"vault/timeline-head":
            if anchor is not None:
                self._list(found, "file", mode, size=len(anchor), blobs=(writer.add(anchor),))
        elif self._is_database(found):
            database = self._capture(stack, self._home.root / os.fsdecode(found.path))
            if database is not None:
                self._add_database(writer, found, database)
        else:
            self._add_regular(writer, found)

    def _is_database(self, found: FoundFile) -> bool:
        """Databases of ours only: what agents write is copied as it is."""
        if found.path.split(b"/")[0] in {name.encode() for name in TRACKED} or not found.path.endswith(b".db"):
            return False
        return is_database(self._home.root / os.fsdecode(found.path))

    def _add_database(self, writer: BlobWriter, found: FoundFile, database: SqliteFile) -> None:
        blobs = [writer.add(block) for block in database.read_blocks(DATABASE_BLOCK)]
        self._bytes += database.size
        self._list_blobs(writer, found, database.size, blobs, DATABASE_BLOCK)

    def _add_regular(self, writer: BlobWriter, found: FoundFile) -> None:
        known = self._read_changed(writer, found)
        if known is not None:
            self._known[found.path] = known
            self._list_blobs(writer, found, known.size, list(known.blobs), FILE_BLOCK)

    def _read_changed(self, writer: BlobWriter, found: FoundFile) -> KnownFile | None:
        """The blobs of a file, which is read unless it is as it was. None when it is gone since it was listed."""
        stamp = f"{found.stat.st_ino} {found.stat.st_size} {found.stat.st_mtime_ns} {found.stat.st_ctime_ns}"
        known = self._known.get(found.path) or self._index.find_file(found.path)
        if known is None or known.stamp != stamp or not all(self._index.has(blob) for blob in known.blobs):
            try:
                known = self._known[found.path] = self._read_regular(writer, found, stamp)
            except OSError:
                return None
        return known

    def _read_regular(self, writer: BlobWriter, found: FoundFile, stamp: str) -> KnownFile:
        handle = found.open()
        blobs, size = [], 0
        with os.fdopen(handle, "rb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError("it is no regular file any more")
            while block := _read_block(file.fileno()):
                blobs.append(writer.add(block))
                size += len(block)
        self._bytes += size
        return KnownFile(stamp if size == found.stat.st_size else "", size, tuple(blobs))

    def _add_table(self, writer: BlobWriter, name: str, path: Path) -> None:
        blobs, size = [], 0
        with path.open("rb") as file:
            while block := file.read(DATABASE_BLOCK):
                blobs.append(writer.add(block, describes=True))
                size += len(block)
        listed = ListedFile(f"{TABLE_FOLDER}/{name}.sqlite".encode(), "table", 0o600, 0, size)
        self._files.append(_with_blobs(writer, listed, blobs, DATABASE_BLOCK))

    def _list_blobs(self, writer: BlobWriter, found: FoundFile, size: int, blobs: list[bytes], block: int) -> None:
        mode, owner = stat.S_IMODE(found.stat.st_mode), _owner(found)
        listed = ListedFile(found.path, "file", mode, found.stat.st_mtime_ns, size, uid=owner[0], gid=owner[1])
        self._files.append(_with_blobs(writer, listed, blobs, block))

    def _list(
        self, found: FoundFile, kind: EntryType, mode: int, *, size: int = 0, blobs: tuple[bytes, ...] = ()
    ) -> None:
        uid, gid = _owner(found)
        mtime = found.stat.st_mtime_ns
        self._files.append(ListedFile(found.path, kind, mode, mtime, size, blobs, found.target, uid=uid, gid=gid))


def _with_blobs(writer: BlobWriter, listed: ListedFile, blobs: list[bytes], block: int) -> ListedFile:
    listed = replace(listed, block=block)
    if len(blobs) <= MAX_INLINE_BLOBS:
        return replace(listed, blobs=tuple(blobs))
    names = "".join(f"{blob.hex()}\n" for blob in blobs).encode()
    lists = [writer.add(names[at : at + 65 * 4096], describes=True) for at in range(0, len(names), 65 * 4096)]
    return replace(listed, blobs=tuple(lists), indirect=True)


def _owner(found: FoundFile) -> tuple[int | None, int | None]:
    """The owner of what is below the computer's folders; all else belongs to who runs Freehold."""
    if found.path.split(b"/")[0] in (b"workspace", b"home"):
        return found.stat.st_uid, found.stat.st_gid
    return None, None


def _read_block(handle: int) -> bytes:
    parts, left = [], FILE_BLOCK
    while left and (part := os.read(handle, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
