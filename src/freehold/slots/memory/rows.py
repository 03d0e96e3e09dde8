"""Reading and writing entries in the tables of the memory slot, with the words that find them."""

from collections.abc import Sequence
from typing import Any

from freehold.slots.contract import CallContext
from freehold.slots.memory.checks import not_found
from freehold.slots.memory.contract import Memory, MemoryOrigin
from freehold.slots.memory.words import find_terms
from freehold.slots.statement import Row, Statement, Steps, ask, ask_one, places

COLUMNS = (
    "id, namespace, body, origin, session, turn, note, created, created_by, updated, expires, pinned, used, last_used,"
    " version"
)
ALIVE = "(expires IS NULL OR expires > ?)"
_WORDS_A_STATEMENT = 200


def memory_of(row: Row) -> Memory:
    return Memory(
        id=row[0],
        namespace=row[1],
        text=row[2],
        origin=MemoryOrigin(row[3], row[4], row[5], row[6]),
        created=row[7],
        created_by=row[8],
        updated=row[9],
        expires=row[10],
        pinned=bool(row[11]),
        used=row[12],
        last_used=row[13],
        version=row[14],
    )


def read_memory(id: str, context: CallContext) -> Steps[Memory]:
    """Raises `memory.not-found`, also for one that has expired."""
    row = yield from ask_one(f"SELECT {COLUMNS} FROM memory_entry WHERE id = ? AND {ALIVE}", id, context.now)  # noqa: S608
    if row is None:
        raise not_found(id)
    return memory_of(row)


def write_memory(memory: Memory, *, is_new: bool = False) -> Steps[None]:
    """Stores the entry with its words, new or in the place of an older one. Its meaning is to be found out again."""
    columns: dict[str, Any] = {
        "id": memory.id,
        "namespace": memory.namespace,
        "body": memory.text,
        "search": memory.text.casefold(),
        "origin": memory.origin.kind,
        "session": memory.origin.session,
        "turn": memory.origin.turn,
        "note": memory.origin.note,
        "created": memory.created,
        "created_by": memory.created_by,
        "updated": memory.updated,
        "expires": memory.expires,
        "pinned": int(memory.pinned),
        "used": memory.used,
        "last_used": memory.last_used,
        "version": memory.version,
        "embedded": "",
    }
    names = ", ".join(columns)
    updates = ", ".join(f"{name} = excluded.{name}" for name in columns if name != "id")
    yield from ask(
        f"INSERT INTO memory_entry ({names}) VALUES {places(list(columns.values()))}"  # noqa: S608 - known names
        f" ON CONFLICT (id) DO UPDATE SET {updates}",
        *columns.values(),
    )
    if not is_new:
        yield from ask("DELETE FROM memory_word WHERE entry = ?", memory.id)
    yield from _write_words(memory.id, memory.text)


def _write_words(id: str, text: str) -> Steps[None]:
    terms = sorted(find_terms(text))
    for start in range(0, len(terms), _WORDS_A_STATEMENT):
        some = terms[start : start + _WORDS_A_STATEMENT]
        values = ", ".join(["(?, ?)"] * len(some))
        yield from ask(
            f"INSERT INTO memory_word (term, entry) VALUES {values}",  # noqa: S608 - question marks
            *(value for term in some for value in (term, id)),
        )


def remove_memories(ids: Sequence[str], now: float) -> Steps[None]:
    """Entries, their words and their vectors. The index in memory is told."""
    if not ids:
        return
    for table, column in (("memory_entry", "id"), ("memory_word", "entry"), ("memory_vector", "entry")):
        yield from ask(f"DELETE FROM {table} WHERE {column} IN {places(ids)}", *ids)  # noqa: S608 - known names
    stamp = yield from next_stamp()
    if stamp is not None:
        for id in ids:
            yield from ask(
                "INSERT INTO memory_gone (entry, stamp, at) VALUES (?, ?, ?)"
                " ON CONFLICT (entry) DO UPDATE SET stamp = excluded.stamp, at = excluded.at",
                *(id, stamp, now),
            )


def next_stamp() -> Steps[int | None]:
    """The number of this change for the index in memory; None in PostgreSQL, which needs no such index."""
    rows = yield Statement("UPDATE memory_stamp SET stamp = stamp + 1 WHERE id = 1 RETURNING stamp", (), "sqlite")
    return int(rows[0][0]) if rows else None
