"""The memory slot, kept in a PostgreSQL database with the extension pgvector, or by a paired Freehold: the address says which."""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from freehold.slots.contract import SlotCaller, SlotImplementation
from freehold.slots.host import SlotPlace
from freehold.slots.memory.calls import STEPS_OF_CALL
from freehold.slots.memory.checks import NamespaceReach
from freehold.slots.memory.contract import CONTRACT
from freehold.slots.memory.embedder import make_embedder
from freehold.slots.memory.lookup import FindNearest, NearEntry
from freehold.slots.memory.schema import POSTGRES_STEPS
from freehold.slots.memory.store import MemoryStore
from freehold.slots.neighbour import is_paired
from freehold.slots.postgres import PostgresTables
from freehold.slots.settings import ExternalSettings

if TYPE_CHECKING:
    from freehold.slots.memory.embedder import Floats

FREEHOLD = SlotCaller("freehold")
MAX_INDEXED = 2_000
"""Dimensions that an index of pgvector takes. Longer vectors are compared one by one."""


def make_external(place: SlotPlace, settings: ExternalSettings) -> SlotImplementation:
    if is_paired(settings.require("url")):
        from freehold.slots.memory.neighbour import NeighbourMemory

        return NeighbourMemory(settings, place.timeline)
    embedder = make_embedder(settings, place.embed)
    tables = PostgresTables(
        CONTRACT, settings, POSTGRES_STEPS, STEPS_OF_CALL, extension="vector", more_settings=("embedding",)
    )
    return MemoryStore(tables, DatabaseFinder(tables, embedder.name), embedder)


class DatabaseFinder:
    def __init__(self, tables: PostgresTables, model: str) -> None:
        self._tables = tables
        self._model = model

    def encode(self, vector: "Floats") -> bytes:
        return _text(vector).encode()

    async def prepare(self, dimensions: int, *, is_first: bool) -> None:
        """An index for the vectors of this model. Made before the first of them is stored, it costs nothing."""
        name = f"memory_vector_{hashlib.sha256(self._model.encode()).hexdigest()[:16]}"
        if is_first:
            # One from before takes only vectors of its own length.
            await self._tables.define(f"DROP INDEX IF EXISTS {name}")
        if dimensions <= MAX_INDEXED:
            model = self._model.replace("'", "''")
            await self._tables.define(
                f"CREATE INDEX IF NOT EXISTS {name} ON memory_vector"
                f" USING hnsw ((vector::vector({int(dimensions)})) vector_cosine_ops) WHERE model = '{model}'"
            )

    async def warm(self) -> None:
        """The database has its index."""

    async def find(
        self, vector: "Floats", reach: NamespaceReach, others: Sequence[str], limit: int
    ) -> Sequence[NearEntry]:
        request = FindNearest(self._model, len(vector), _text(vector), tuple(others), limit, reach)
        return (await self._tables.call(request, FREEHOLD)).entries


def _text(vector: "Floats") -> str:
    return "[" + ",".join(f"{value:.6g}" for value in vector.tolist()) + "]"
