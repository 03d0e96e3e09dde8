"""Read-only folders and files that computers on nodes see: read here once, and sent to each node once."""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from freehold.fleet.computer_lease import send_part
from freehold.fleet.folder_state import FolderState, read_folder
from freehold.fleet.node_link import NodeLink
from freehold.fleet.remote_spec import MAX_SHOWN, ShownPart


class ShownParts:
    """Remembers what each source was, so that an unchanged one is not read again."""

    def __init__(self) -> None:
        self._states: dict[Path, FolderState] = {}

    async def describe(self, sources: Sequence[Path], targets: Sequence[str]) -> tuple[ShownPart, ...]:
        found: list[ShownPart] = []
        for source, target in zip(sources, targets, strict=True):
            async with _as_folder(source) as folder:
                state = await asyncio.to_thread(read_folder, folder, self._states.get(source), MAX_SHOWN)
            self._states[source] = state
            found.append(ShownPart(target, state.digest, source.is_file()))
        return tuple(found)

    async def send(
        self, node: NodeLink, sources: Sequence[Path], parts: Sequence[ShownPart], missing: Sequence[str]
    ) -> None:
        for source, part in zip(sources, parts, strict=True):
            if part.digest in missing:
                async with _as_folder(source) as folder:
                    opening = {"open": "show", "digest": part.digest}
                    await send_part(node, opening, folder, self._states[source])


@contextlib.asynccontextmanager
async def _as_folder(source: Path) -> AsyncIterator[Path]:
    """A single file becomes a folder with it."""
    if source.is_dir():
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="freehold-") as folder:
        await asyncio.to_thread(shutil.copy2, source, Path(folder) / "file")
        yield Path(folder)
