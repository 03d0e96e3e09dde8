"""Read-only folders on a node that many computers see, such as the installed agents: one copy for each state."""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from freehold.computer.library.removal import remove_tree
from freehold.fleet.content_cache import ContentCache
from freehold.fleet.folder_copy import receive_folder
from freehold.fleet.remote_spec import MAX_SHOWN
from freehold.fleet.wire import Stream

MAX_UNUSED = 4
"""Folders that no computer sees any more and that are kept for the next one."""


class ShownFolders:
    def __init__(self, folder: Path, cache: ContentCache) -> None:
        self._folder = folder
        self._cache = cache
        self._uses: OrderedDict[str, int] = OrderedDict()
        self._lock = asyncio.Lock()
        remove_tree(folder)
        folder.mkdir(parents=True, mode=0o755)

    def __contains__(self, digest: str) -> bool:
        return digest in self._uses

    def find(self, digest: str) -> Path:
        return self._folder / digest

    async def receive(self, stream: Stream, digest: str) -> None:
        """Complete or not at all."""
        async with self._lock:
            draft = self._folder / f"{digest}.new"
            await asyncio.to_thread(remove_tree, draft)
            draft.mkdir(mode=0o755)
            await receive_folder(stream, draft, MAX_SHOWN, self._cache)
            if digest not in self._uses:
                draft.rename(self.find(digest))
                self._uses[digest] = 0

    @contextlib.contextmanager
    def held(self, digests: list[str]) -> Iterator[None]:
        """They stay while a computer sees them."""
        for digest in digests:
            self._uses[digest] += 1
        try:
            yield
        finally:
            for digest in digests:
                self._uses[digest] -= 1
                self._uses.move_to_end(digest)

    async def remove_unused(self) -> None:
        unused = [digest for digest, uses in self._uses.items() if not uses]
        for digest in unused[: max(0, len(unused) - MAX_UNUSED)]:
            del self._uses[digest]
            await asyncio.to_thread(remove_tree, self.find(digest))
