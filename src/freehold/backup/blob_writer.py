"""Stores blobs that the repository does not have, in packs. Packs are compressed, encrypted and sent in threads."""

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from blake3 import blake3

from freehold.backup.local_index import LocalIndex
from freehold.backup.pack import PACK_BYTES
from freehold.backup.repository import BackupRepository, PackRecord

THREADS = 2


class BlobWriter:
    """Contents and what describes them go into different packs, so that a list of files can be had without the contents.

    Every stored pack is noted at once: a backup that was interrupted goes on behind it. `check` is called before each
    pack is sent, and may raise.
    """

    def __init__(self, repository: BackupRepository, index: LocalIndex, check: Callable[[], None]) -> None:
        self._repository = repository
        self._index = index
        self._check = check
        self._blobs: dict[bool, list[tuple[bytes, bytes]]] = {True: [], False: []}
        self._sizes = {True: 0, False: 0}
        self.waiting: set[bytes] = set()
        """The hashes of what is added and not noted as stored yet."""
        self._threads = ThreadPoolExecutor(THREADS, "backup-pack")
        self._room = threading.Semaphore(THREADS)
        self._sent: list[Future[PackRecord]] = []
        self.added_bytes = 0
        self.packs = 0

    def __enter__(self) -> "BlobWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
        if kind is not None:
            with contextlib.suppress(Exception):  # the first error is the one to tell; what was stored is noted
                self._collect(all_of_them=False)

    def add(self, content: bytes, *, describes: bool = False) -> bytes:
        """The hash of this content, which is stored after `flush` at the latest."""
        digest = blake3(content).digest()
        if not self._index.has(digest):
            self.add_known(digest, content, describes=describes)
        return digest

    def add_known(self, digest: bytes, content: bytes, *, describes: bool = False) -> int:
        """A content whose hash is known, and which the repository does not have. Returns its size, or 0 when it is added already."""
        if digest in self.waiting:
            return 0
        self.waiting.add(digest)
        self._blobs[describes].append((digest, content))
        self._sizes[describes] += len(content) + 512
        if self._sizes[describes] >= PACK_BYTES:
            self._send(describes)
        return len(content)

    def flush(self) -> None:
        """Everything is stored and noted when this returns. Raises what any of the packs raised."""
        for describes in (False, True):
            if self._blobs[describes]:
                self._send(describes)
        self._collect(all_of_them=True)

    def _send(self, describes: bool) -> None:
        self._check()
        blobs, self._blobs[describes], self._sizes[describes] = self._blobs[describes], [], 0
        while not self._room.acquire(timeout=1.0):
            self._collect(all_of_them=False)
        self._collect(all_of_them=False)
        self._sent.append(self._threads.submit(self._store, blobs))

    def _store(self, blobs: list[tuple[bytes, bytes]]) -> PackRecord:
        try:
            return self._repository.put_pack(blobs)
        finally:
            self._room.release()

    def _collect(self, *, all_of_them: bool) -> None:
        left = []
        for future in self._sent:
            if not all_of_them and not future.done():
                left.append(future)
                continue
            if future.cancelled():
                continue
            pack = future.result()
            with self._index.db:
                self._index.db.execute("BEGIN")
                self._index.add_pack(pack, listed=None)
            self.waiting.difference_update(digest for digest, _ in pack.blobs)
            self.added_bytes += pack.size
            self.packs += 1
        self._sent = left
