"""Files that work has returned: kept as their archive until the owner decides, then one entry of history."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from freehold.gateway.run_engine import MAX_SHOWN, describe_change
from freehold.gateway.services import Services
from freehold.history.calls import RequestAuthor
from freehold.history.copy_calls import CheckOutFolder, CollectCopy, CompareChangeSet, DropCopy, MergeChangeSet
from freehold.home import ensure_private_folder
from freehold.mesh.archive import ArchiveFile, read_archive, unpack_files
from freehold.private_file import make_private_file
from freehold.slots.orchestrator.contract import RunChange

COPY_TIMEOUT = 300.0


class ReturnedFiles:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._folder = services.home.root / "mesh" / "returned"
        self._copying = asyncio.Lock()

    def keep(self, id: str, packed: bytes) -> None:
        """Blocks."""
        ensure_private_folder(self._folder.parent)
        ensure_private_folder(self._folder)
        self.forget(id)
        make_private_file(self._path(id), packed)

    def read(self, id: str) -> list[ArchiveFile]:
        """None after they were forgotten. Blocks."""
        path = self._path(id)
        return read_archive(path.read_bytes()) if path.is_file() else []

    def forget(self, id: str) -> None:
        """Idempotent. Blocks."""
        self._path(id).unlink(missing_ok=True)

    async def compare(self, id: str) -> tuple[tuple[RunChange, ...], int]:
        """The first files beside those of the workspace as they are now, and how many there are."""
        async with self._collected(id, ()) as name:
            found = await self._services.keeper.call(CompareChangeSet(name, MAX_SHOWN), timeout=COPY_TIMEOUT)
        conflicts = {one.path for one in found.conflicts}
        return tuple(describe_change(one, one.path in conflicts) for one in found.files), found.total

    async def merge(self, id: str, folder: Sequence[str], why: str, who: str, *, force: bool) -> int:
        """Into a folder of the workspace, as the entry of history whose number is returned."""
        session = who.removeprefix("session:") if who.startswith("session:") else None
        author = RequestAuthor(by="owner" if session is None else "agent", session=session)
        async with self._collected(id, tuple(folder)) as name:
            wanted = MergeChangeSet(name, force, why, who=author)
            return (await self._services.keeper.call(wanted, timeout=COPY_TIMEOUT)).entry

    @asynccontextmanager
    async def _collected(self, id: str, folder: tuple[str, ...]) -> AsyncIterator[str]:
        """The name of a change set that has the files."""
        keeper, name = self._services.keeper, f"mesh-{id}"
        files = await asyncio.to_thread(self.read, id)
        async with self._copying:
            await keeper.call(DropCopy(name), timeout=COPY_TIMEOUT)  # what an interrupted try has left
            await keeper.call(CheckOutFolder(name), timeout=COPY_TIMEOUT)
            try:
                await asyncio.to_thread(unpack_files, files, self._services.home.copies / name / "workspace", folder)
                await keeper.call(CollectCopy(name), timeout=COPY_TIMEOUT)
                yield name
            finally:
                await keeper.call(DropCopy(name), timeout=COPY_TIMEOUT)

    def _path(self, id: str) -> Path:
        return self._folder / f"{id}.tar"
