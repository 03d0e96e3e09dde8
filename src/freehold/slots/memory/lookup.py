"""The inner calls by which memories are found: by exact words, and by vectors that the database compares."""

from dataclasses import dataclass
from typing import ClassVar

from freehold.slots.contract import CallContext, SlotCall
from freehold.slots.memory.checks import NamespaceReach
from freehold.slots.memory.contract import Memory
from freehold.slots.memory.rows import ALIVE, COLUMNS, memory_of
from freehold.slots.memory.words import MAX_COUNTED
from freehold.slots.statement import Statement, Steps, ask, ask_one, places

MAX_BY_WORD = 100
"""How many entries one rare word brings in."""
RARE = 200
"""A word that more entries have brings none in; it still counts for those that were found otherwise."""


@dataclass(frozen=True)
class WordCounts:
    """`counts`: how many entries have each term, up to a limit. `found`: entries that have a rare one."""

    entries: int
    counts: dict[str, int]
    found: tuple[str, ...]


@dataclass(frozen=True)
class FindWords(SlotCall[WordCounts]):
    method: ClassVar[str] = "find_words"
    terms: tuple[str, ...]
    reach: NamespaceReach


def find_words(request: FindWords, context: CallContext) -> Steps[WordCounts]:
    row = yield from ask_one("SELECT count(*) FROM (SELECT 1 FROM memory_entry LIMIT ?) AS counted", MAX_COUNTED)
    entries: int = row[0] if row else 0
    counts: dict[str, int] = {}
    if request.terms:
        # One statement for all terms: each is counted up to the limit.
        parts = " UNION ALL ".join(
            ["SELECT CAST(? AS TEXT), count(*) FROM (SELECT 1 FROM memory_word WHERE term = ? LIMIT ?) AS counted"]
            * len(request.terms)
        )
        values = [value for term in request.terms for value in (term, term, MAX_COUNTED)]
        rows = yield from ask(parts, *values)
        counts = {row[0]: row[1] for row in rows}
    condition, parameters = request.reach.condition
    found: dict[str, None] = {}
    for term in sorted((term for term in counts if 0 < counts[term] <= RARE), key=lambda term: counts[term]):
        rows = yield from ask(
            "SELECT entry FROM memory_word JOIN memory_entry ON id = entry"  # noqa: S608 - known names
            f" WHERE term = ? AND {condition} AND {ALIVE} LIMIT ?",
            term,
            *parameters,
            context.now,
            MAX_BY_WORD,
        )
        found.update(dict.fromkeys(row[0] for row in rows))
    return WordCounts(entries, counts, tuple(found))


@dataclass(frozen=True)
class FoundMemory:
    """`terms`: those of the question that it has."""

    memory: Memory
    terms: tuple[str, ...]


@dataclass(frozen=True)
class FoundMemories:
    entries: tuple[FoundMemory, ...]


@dataclass(frozen=True)
class ReadFound(SlotCall[FoundMemories]):
    """These memories, as far as the caller may read them, with the terms that they have."""

    method: ClassVar[str] = "read_found"
    ids: tuple[str, ...]
    terms: tuple[str, ...]
    reach: NamespaceReach


def read_found(request: ReadFound, context: CallContext) -> Steps[FoundMemories]:
    condition, parameters = request.reach.condition
    rows = yield from ask(
        f"SELECT {COLUMNS} FROM memory_entry WHERE id IN {places(request.ids)} AND {condition} AND {ALIVE}",  # noqa: S608
        *request.ids,
        *parameters,
        context.now,
    )
    words: dict[str, list[str]] = {}
    if request.terms:
        matched = yield from ask(
            f"SELECT entry, term FROM memory_word WHERE term IN {places(request.terms)}"  # noqa: S608
            f" AND entry IN {places(request.ids)} ORDER BY term",
            *request.terms,
            *request.ids,
        )
        for entry, term in matched:
            words.setdefault(entry, []).append(term)
    return FoundMemories(tuple(FoundMemory(memory_of(row), tuple(words.get(row[0], ()))) for row in rows))


@dataclass(frozen=True)
class NearEntry:
    id: str
    cosine: float


@dataclass(frozen=True)
class NearEntries:
    entries: tuple[NearEntry, ...]


@dataclass(frozen=True)
class FindNearest(SlotCall[NearEntries]):
    """The entries whose vectors are nearest, and how near these others are. In PostgreSQL, with pgvector."""

    method: ClassVar[str] = "find_nearest"
    model: str
    dimensions: int
    vector: str
    others: tuple[str, ...]
    limit: int
    reach: NamespaceReach


def find_nearest(request: FindNearest, _context: CallContext) -> Steps[NearEntries]:
    condition, parameters = request.reach.condition
    # The cast is part of the index, which is for one model; its name was checked when it was made.
    vector = f"vector::vector({int(request.dimensions)})"
    model = request.model.replace("'", "''")
    near = yield Statement(
        f"SELECT entry, 1 - ({vector} <=> ?::vector) FROM memory_vector JOIN memory_entry ON id = entry"  # noqa: S608
        f" WHERE model = '{model}' AND {condition} ORDER BY {vector} <=> ?::vector LIMIT ?",
        (request.vector, *parameters, request.vector, request.limit),
        "postgres",
    )
    rest = yield Statement(
        f"SELECT entry, 1 - ({vector} <=> ?::vector) FROM memory_vector"  # noqa: S608
        f" WHERE model = '{model}' AND entry IN {places(request.others)}",
        (request.vector, *request.others),
        "postgres",
    )
    best: dict[str, float] = {}
    for entry, cosine in [*near, *rest]:
        best[entry] = max(best.get(entry, -1.0), float(cosine))
    return NearEntries(tuple(NearEntry(id, cosine) for id, cosine in best.items()))


@dataclass(frozen=True)
class VectorChange:
    entry: str
    part: int
    namespace: str
    vector: bytes


@dataclass(frozen=True)
class VectorChanges:
    """`gone`: entries that were removed. `stamp`: the number up to which all changes were read."""

    changed: tuple[VectorChange, ...]
    gone: tuple[str, ...]
    stamp: int
    more: bool


@dataclass(frozen=True)
class ReadVectorChanges(SlotCall[VectorChanges]):
    """What has changed after a number. In SQLite, for the index in memory."""

    method: ClassVar[str] = "read_vector_changes"
    model: str
    after: int
    limit: int


def read_vector_changes(request: ReadVectorChanges, _context: CallContext) -> Steps[VectorChanges]:
    now = yield Statement("SELECT stamp FROM memory_stamp WHERE id = 1", (), "sqlite")
    stamp = int(now[0][0])
    if stamp == request.after:
        return VectorChanges((), (), stamp, more=False)
    rows = yield Statement(
        "SELECT entry, part, namespace, vector, stamp FROM memory_vector JOIN memory_entry ON id = entry"
        " WHERE stamp > ? AND model = ? ORDER BY stamp LIMIT ?",
        (request.after, request.model, request.limit),
        "sqlite",
    )
    more = len(rows) == request.limit
    # A page ends with a whole change, so that the next begins after it.
    until = stamp if not more else int(rows[-1][4]) - 1
    if more and until <= request.after:
        raise AssertionError("one change of vectors is larger than a page")
    gone = yield Statement(
        "SELECT entry FROM memory_gone WHERE stamp > ? AND stamp <= ?", (request.after, until), "sqlite"
    )
    changed = tuple(VectorChange(*row[:4]) for row in rows if row[4] <= until)
    return VectorChanges(changed, tuple(row[0] for row in gone), until, more)
