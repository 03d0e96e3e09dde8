"""The memory slot, kept in the home. Vectors are searched in memory."""

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from freehold.slots.contract import SlotCaller
from freehold.slots.host import SlotPlace
from freehold.slots.memory.calls import STEPS_OF_CALL
from freehold.slots.memory.checks import NamespaceReach
from freehold.slots.memory.contract import CONTRACT
from freehold.slots.memory.embedder import make_embedder
from freehold.slots.memory.lookup import NearEntry, ReadVectorChanges
from freehold.slots.memory.schema import SQLITE_STEPS
from freehold.slots.memory.store import MemoryStore
from freehold.slots.memory.upkeep import GONE_SECONDS
from freehold.slots.settings import ExternalSettings
from freehold.slots.timeline_tables import TimelineTables

if TYPE_CHECKING:
    from freehold.slots.memory.embedder import Floats
    from freehold.slots.memory.vectors import VectorIndex

PAGE = 4_000
"""Vectors that are read at once."""
FREEHOLD = SlotCaller("freehold")


def make_local(place: SlotPlace, settings: ExternalSettings) -> MemoryStore:
    embedder = make_embedder(settings, place.embed)
    tables = TimelineTables(CONTRACT, place.timeline, SQLITE_STEPS, STEPS_OF_CALL)
    return MemoryStore(tables, IndexFinder(tables, embedder.name), embedder)


class IndexFinder:
    """Follows the vectors in the tables, also those that another process stores, and compares in a thread."""

    def __init__(self, tables: TimelineTables, model: str) -> None:
        self._tables = tables
        self._model = model
        self._index: VectorIndex | None = None
        self._read_at = time.monotonic()
        self._using = asyncio.Lock()

    def encode(self, vector: "Floats") -> bytes:
        return vector.astype("<f2").tobytes()

    async def prepare(self, dimensions: int, *, is_first: bool) -> None:
        """Tables take vectors of any length."""

    async def warm(self) -> None:
        async with self._using:
            await self._follow(None)

    async def find(
        self, vector: "Floats", reach: NamespaceReach, others: Sequence[str], limit: int
    ) -> Sequence[NearEntry]:
        async with self._using:
            index = await self._follow(len(vector))
            if index is None:
                return ()
            return await asyncio.to_thread(index.nearest, vector, reach.includes, others, limit)

    async def _follow(self, dimensions: int | None) -> "VectorIndex | None":
        """The index with all vectors that are stored. None when there are none and their length is not known."""
        from freehold.slots.memory.vectors import VectorIndex

        now = time.monotonic()
        index = self._index if now - self._read_at <= GONE_SECONDS / 2 else None
        if index is not None and dimensions is not None and index.dimensions != dimensions:
            index = None
        more = True
        while more:
            changes = await self._tables.call(
                ReadVectorChanges(self._model, 0 if index is None else index.stamp, PAGE), FREEHOLD
            )
            if index is None:
                if dimensions is None and changes.changed:
                    dimensions = len(changes.changed[0].vector) // 2
                if dimensions is None:
                    return None
                index = VectorIndex(dimensions)
            if changes.stamp != index.stamp:
                await asyncio.to_thread(index.apply, changes.changed, changes.gone)
                index.stamp = changes.stamp
            more = changes.more
        self._index, self._read_at = index, now
        return index
