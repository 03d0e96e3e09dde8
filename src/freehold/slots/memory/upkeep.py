"""The inner calls of the memory slot: what waits for its vectors, the vectors, what was used, and what has expired."""

from dataclasses import dataclass
from typing import ClassVar

from freehold.slots.contract import CallContext, SlotCall, SlotUpkeep
from freehold.slots.memory.contract import MemoryNamespace
from freehold.slots.memory.rows import next_stamp, remove_memories
from freehold.slots.statement import Statement, Steps, ask, ask_one, places

MAX_EXPIRED = 500
MAX_WAITING_COUNTED = 100_000
GONE_SECONDS = 86_400.0
"""How long it is kept that an entry was removed. An index that is older is built anew."""


@dataclass(frozen=True)
class WaitingMemory:
    id: str
    version: int
    text: str


@dataclass(frozen=True)
class WaitingMemories:
    entries: tuple[WaitingMemory, ...]


@dataclass(frozen=True)
class ReadWaiting(SlotCall[WaitingMemories]):
    """Entries without vectors of this model."""

    method: ClassVar[str] = "read_waiting"
    model: str
    limit: int


def read_waiting(request: ReadWaiting, _context: CallContext) -> Steps[WaitingMemories]:
    found: list[WaitingMemory] = []
    for condition in ("embedded < ?", "embedded > ?"):
        rows = yield from ask(
            f"SELECT id, version, body FROM memory_entry WHERE {condition} ORDER BY embedded, id LIMIT ?",  # noqa: S608
            request.model,
            request.limit - len(found),
        )
        found += [WaitingMemory(*row) for row in rows]
        if len(found) >= request.limit:
            break
    return WaitingMemories(tuple(found))


@dataclass(frozen=True)
class VectorLength:
    """How many numbers the stored vectors have; None when there are none."""

    length: int | None


@dataclass(frozen=True)
class ReadVectorLength(SlotCall[VectorLength]):
    method: ClassVar[str] = "read_vector_length"
    model: str


def read_vector_length(request: ReadVectorLength, _context: CallContext) -> Steps[VectorLength]:
    some = "FROM memory_vector WHERE model = ? LIMIT 1"
    rows = yield Statement(f"SELECT length(vector) / 2 {some}", (request.model,), "sqlite")
    rows += yield Statement(f"SELECT vector_dims(vector) {some}", (request.model,), "postgres")
    return VectorLength(rows[0][0] if rows else None)


@dataclass(frozen=True)
class SlotCounts:
    namespaces: tuple[MemoryNamespace, ...]
    waiting: int


@dataclass(frozen=True)
class CountMemories(SlotCall[SlotCounts]):
    method: ClassVar[str] = "count"
    model: str
    namespaces: bool = True


def count_memories(request: CountMemories, context: CallContext) -> Steps[SlotCounts]:
    waiting = 0
    for condition in ("embedded < ?", "embedded > ?"):
        row = yield from ask_one(
            f"SELECT count(*) FROM (SELECT 1 FROM memory_entry WHERE {condition} LIMIT ?) AS counted",  # noqa: S608
            request.model,
            MAX_WAITING_COUNTED,
        )
        waiting += row[0] if row else 0
    if not request.namespaces:
        return SlotCounts((), waiting)
    rows = yield from ask(
        "SELECT namespace, count(*) FROM memory_entry WHERE expires IS NULL OR expires > ? GROUP BY namespace"
        " ORDER BY namespace",
        context.now,
    )
    return SlotCounts(tuple(MemoryNamespace(*row) for row in rows), waiting)


@dataclass(frozen=True)
class EmbeddedMemory:
    """The vectors of one entry in one version. An entry that has changed since is left for the next time."""

    id: str
    version: int
    vectors: tuple[bytes, ...]


@dataclass(frozen=True)
class DoneUpkeep:
    count: int


@dataclass(frozen=True)
class SaveVectors(SlotUpkeep[DoneUpkeep]):
    method: ClassVar[str] = "save_vectors"
    model: str
    entries: tuple[EmbeddedMemory, ...]


def save_vectors(request: SaveVectors, _context: CallContext) -> Steps[DoneUpkeep]:
    stamp = yield from next_stamp()
    count = 0
    for entry in request.entries:
        taken = yield from ask_one(
            "UPDATE memory_entry SET embedded = ? WHERE id = ? AND version = ? RETURNING id",
            *(request.model, entry.id, entry.version),
        )
        if taken is None:
            continue
        count += 1
        yield from ask("DELETE FROM memory_vector WHERE entry = ?", entry.id)
        for part, vector in enumerate(entry.vectors):
            yield Statement(
                "INSERT INTO memory_vector (entry, part, model, vector, stamp) VALUES (?, ?, ?, ?, ?)",
                (entry.id, part, request.model, vector, stamp),
                "sqlite",
            )
            yield Statement(
                "INSERT INTO memory_vector (entry, part, model, vector) VALUES (?, ?, ?, ?::vector)",
                (entry.id, part, request.model, vector.decode("ascii", "ignore")),
                "postgres",
            )
    return DoneUpkeep(count)


@dataclass(frozen=True)
class NoteUse(SlotUpkeep[DoneUpkeep]):
    """These memories were given to an agent."""

    method: ClassVar[str] = "note_use"
    ids: tuple[str, ...]


def note_use(request: NoteUse, context: CallContext) -> Steps[DoneUpkeep]:
    rows = yield from ask(
        f"UPDATE memory_entry SET used = used + 1, last_used = ? WHERE id IN {places(request.ids)} RETURNING id",  # noqa: S608
        context.now,
        *request.ids,
    )
    return DoneUpkeep(len(rows))


@dataclass(frozen=True)
class RemoveExpired(SlotUpkeep[DoneUpkeep]):
    """Expired entries become unreadable at their time; this removes them from the disk."""

    method: ClassVar[str] = "remove_expired"


def remove_expired(_request: RemoveExpired, context: CallContext) -> Steps[DoneUpkeep]:
    rows = yield from ask("SELECT id FROM memory_entry WHERE expires <= ? LIMIT ?", context.now, MAX_EXPIRED)
    yield from remove_memories([row[0] for row in rows], context.now)
    yield Statement("DELETE FROM memory_gone WHERE at < ?", (context.now - GONE_SECONDS,), "sqlite")
    return DoneUpkeep(len(rows))
