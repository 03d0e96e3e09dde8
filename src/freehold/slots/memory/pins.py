"""Which memories of a neighbour are pinned here. Only the owner pins, and the neighbour is not told.

A pin holds the digest of what was pinned: a text that the neighbour changes later begins no conversation.
"""

import asyncio
import hashlib

from freehold.slots.errors import SlotError
from freehold.slots.memory.contract import Memory
from freehold.timeline import Timeline

ROOM = "memory_pin"
STEPS = (
    """
    CREATE TABLE memory_pin (
        place TEXT NOT NULL, id TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (place, id)
    ) STRICT;
    """,
)
MAX_PINS = 100


class NeighbourPins:
    """`place` is the address of the neighbour as the manifest has it."""

    def __init__(self, timeline: Timeline, place: str) -> None:
        self._timeline = timeline
        self._place = place
        self._known: dict[str, str] | None = None

    async def load(self) -> None:
        """Idempotent."""
        self._known = await asyncio.to_thread(self._read)

    @property
    def ids(self) -> list[str]:
        return sorted(self._known or ())

    def holds(self, memory: Memory) -> bool:
        return (self._known or {}).get(memory.id) == _digest(memory)

    async def set(self, memory: Memory, is_pinned: bool) -> None:
        """Raises `memory.conflict` when there are too many."""
        if is_pinned and len(self.ids) >= MAX_PINS and memory.id not in self.ids:
            raise SlotError("memory", "conflict", f"{MAX_PINS} memories are pinned", hint="Remove the pin of another")
        await asyncio.to_thread(self._store, memory, is_pinned)
        await self.load()

    def _read(self) -> dict[str, str]:
        self._timeline.ensure_schema(ROOM, *STEPS)
        return dict(self._timeline.query("SELECT id, digest FROM memory_pin WHERE place = ?", (self._place,)))

    def _store(self, memory: Memory, is_pinned: bool) -> None:
        with self._timeline.transaction() as tx:
            tx.execute("DELETE FROM memory_pin WHERE place = ? AND id = ?", (self._place, memory.id))
            if is_pinned:
                tx.execute("INSERT INTO memory_pin VALUES (?, ?, ?)", (self._place, memory.id, _digest(memory)))


def _digest(memory: Memory) -> str:
    return hashlib.sha256(f"{memory.namespace}\n{memory.text}".encode("utf-8", "surrogatepass")).hexdigest()
