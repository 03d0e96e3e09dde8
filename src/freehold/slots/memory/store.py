"""The memory slot over tables: it makes vectors, compares them, and ranks what the tables find."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, cast

from freehold.errors import FreeholdError
from freehold.slots.contract import Reply, SlotCall, SlotCaller, SlotImplementation, TrialStore
from freehold.slots.errors import SlotError
from freehold.slots.memory.checks import NamespaceReach, check_page, check_reach, check_words, invalid
from freehold.slots.memory.contract import (
    MAX_MATCHES,
    MAX_QUERY,
    GetMemoryStatus,
    ImportMemories,
    MemoryMatch,
    MemoryMatches,
    MemoryStatus,
    SearchMemories,
    StoreMemory,
    UpdateMemory,
)
from freehold.slots.memory.embedder import Embedder
from freehold.slots.memory.lookup import FindWords, NearEntry, ReadFound
from freehold.slots.memory.parts import split_parts
from freehold.slots.memory.rank import rank_memories
from freehold.slots.memory.upkeep import (
    CountMemories,
    EmbeddedMemory,
    NoteUse,
    ReadVectorLength,
    ReadWaiting,
    RemoveExpired,
    SaveVectors,
    WaitingMemory,
)
from freehold.slots.memory.words import choose_query_terms

if TYPE_CHECKING:
    from freehold.slots.memory.embedder import Floats

log = logging.getLogger("freehold.slots")

FREEHOLD = SlotCaller("freehold")
BATCH = 8
"""Texts that are embedded at once."""
CANDIDATES = 60
MAX_INLINE, MAX_INLINE_TEXT = 8, 4_000
"""A search itself embeds what was stored just before it, unless more entries or characters than this wait."""
INLINE_TIMEOUT = 5.0
POLL_INTERVAL = 30.0
RETRY_INTERVAL = 30.0


class NearestFinder(Protocol):
    """Compares vectors: in memory, or in the database."""

    async def find(
        self, vector: "Floats", reach: NamespaceReach, others: Sequence[str], limit: int
    ) -> Sequence[NearEntry]: ...

    def encode(self, vector: "Floats") -> bytes:
        """As the tables store it."""
        ...

    async def prepare(self, dimensions: int, *, is_first: bool) -> None:
        """Called before vectors of this length are stored. `is_first`: none of the model are stored yet."""
        ...

    async def warm(self) -> None:
        """Does beforehand what the first search would wait for."""
        ...


class MemoryStore:
    """Entries are stored at once; their vectors follow, in the background or when the next search needs them."""

    def __init__(self, tables: SlotImplementation, finder: NearestFinder, embedder: Embedder) -> None:
        self.kind = tables.kind
        self.records_events = tables.records_events
        self.tables = tables
        self._finder = finder
        self._embedder = embedder
        self._embedding = asyncio.Lock()
        self._stored = asyncio.Event()
        self._connected = asyncio.Event()
        self._problem: str | None = None
        self._length: int | None = None
        """How many numbers the vectors of the model have, once that was compared with the stored ones."""

    async def connect(self) -> None:
        await self.tables.connect()
        self._connected.set()
        self._stored.set()

    async def health(self) -> str | None:
        await self.tables.health()
        return None if self._problem is None else f"memories are found by words only: {self._problem}"

    async def close(self) -> None:
        await self._embedder.close()
        await self.tables.close()

    async def drop_schema(self) -> None:
        """After a trial in a database."""
        if isinstance(self.tables, TrialStore):
            await self.tables.drop_schema()

    async def call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        if isinstance(request, SearchMemories):
            return cast("Reply", await self._search(request, caller))
        if isinstance(request, GetMemoryStatus):
            return cast("Reply", await self._status(caller))
        reply = await self.tables.call(request, caller)
        if isinstance(request, StoreMemory | UpdateMemory | ImportMemories):
            self._stored.set()
        return reply

    async def _status(self, caller: SlotCaller) -> MemoryStatus:
        reach = check_reach((), caller)
        counts = await self.tables.call(CountMemories(self._embedder.name), caller)
        names = tuple(one for one in counts.namespaces if reach.includes(one.name))
        return MemoryStatus(names, self._embedder.name, counts.waiting, self._problem)

    async def _search(self, request: SearchMemories, caller: SlotCaller) -> MemoryMatches:
        check_words("query", request.query, MAX_QUERY)
        if not request.query.strip():
            raise invalid("query is empty")
        limit, reach = check_page(request.limit, MAX_MATCHES), check_reach(request.namespaces, caller)
        waiting = await self._embed_recent()
        terms = tuple(choose_query_terms(request.query))
        counts = await self.tables.call(FindWords(terms, reach), caller)
        near = await self._find_near(request.query, reach, counts.found)
        cosines = {one.id: one.cosine for one in near or ()}
        ids = tuple(dict.fromkeys([*cosines, *counts.found]))
        found = (await self.tables.call(ReadFound(ids, terms, reach), caller)).entries if ids else ()
        matches = rank_memories(found, cosines if near is not None else None, counts, limit)
        if caller.session is not None and matches:
            await self._note_use(matches)
        return MemoryMatches(tuple(matches), "words" if near is None else "meaning", waiting)

    async def _find_near(self, query: str, reach: NamespaceReach, others: Sequence[str]) -> Sequence[NearEntry] | None:
        """None when meanings cannot be compared now."""
        try:
            rows = await self._embedder.embed([query])
            await self._require_length(rows.shape[1])
        except SlotError:
            raise
        except FreeholdError as error:
            self._note_problem(error)
            return None
        self._problem = None
        return await self._finder.find(rows[0], reach, others, CANDIDATES)

    async def _note_use(self, matches: Sequence[MemoryMatch]) -> None:
        await self.tables.call(NoteUse(tuple(one.memory.id for one in matches)), FREEHOLD)

    # Vectors

    async def work(self) -> None:
        """Makes vectors for what waits, after a change of the model for everything, and removes what has expired."""
        while True:
            await self._connected.wait()
            self._stored.clear()
            try:
                while (await self.tables.call(RemoveExpired(), FREEHOLD)).count:
                    pass
                while await self._embed_batch():
                    pass
                await self._finder.warm()
            except SlotError as error:
                # The slot itself says that it is lost. This goes on when it is connected again.
                log.info("vectors wait for the slot", extra={"error": error.message})
            except FreeholdError as error:
                self._note_problem(error)
                await asyncio.sleep(RETRY_INTERVAL)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_INTERVAL):
                    await self._stored.wait()

    async def _embed_recent(self) -> int:
        """Embeds the few entries that wait. Returns how many wait still."""
        some = await self.tables.call(ReadWaiting(self._embedder.name, MAX_INLINE + 1), FREEHOLD)
        if not some.entries:
            return 0
        is_little = len(some.entries) <= MAX_INLINE and sum(len(one.text) for one in some.entries) <= MAX_INLINE_TEXT
        if is_little and await self._embed_now():
            return 0
        counts = await self.tables.call(CountMemories(self._embedder.name, namespaces=False), FREEHOLD)
        return counts.waiting

    async def _embed_now(self) -> bool:
        """Whether all is embedded. Gives up soon when the background has much to do."""
        try:
            async with asyncio.timeout(INLINE_TIMEOUT):
                while await self._embed_batch():
                    pass
        except TimeoutError:
            return False
        except SlotError:
            raise
        except FreeholdError as error:
            self._note_problem(error)
            return False
        return True

    async def _embed_batch(self) -> bool:
        """Embeds some entries. Returns whether there may be more."""
        async with self._embedding:
            some = await self.tables.call(ReadWaiting(self._embedder.name, BATCH), FREEHOLD)
            if not some.entries:
                return False
            await self._embed_entries(some.entries)
            return len(some.entries) == BATCH

    async def _embed_entries(self, entries: Sequence[WaitingMemory]) -> None:
        parts = [split_parts(entry.text) for entry in entries]
        rows = await self._embedder.embed([text for texts in parts for text in texts])
        await self._require_length(rows.shape[1])
        self._problem = None
        done, place = [], 0
        for entry, texts in zip(entries, parts, strict=True):
            vectors = tuple(self._finder.encode(row) for row in rows[place : place + len(texts)])
            done.append(EmbeddedMemory(entry.id, entry.version, vectors))
            place += len(texts)
        await self.tables.call(SaveVectors(self._embedder.name, tuple(done)), FREEHOLD)

    async def _require_length(self, length: int) -> None:
        """Vectors of another length than those that are stored cannot be compared with them."""
        if length == self._length:
            return
        stored = (await self.tables.call(ReadVectorLength(self._embedder.name), FREEHOLD)).length
        if stored not in (None, length):
            raise FreeholdError(
                "memory.bad-embedding",
                f"{self._embedder.name} answered with vectors of {length} numbers, and its stored ones have {stored}",
                hint="Set slots.memory.settings.embedding to another model, which embeds all memories again",
            )
        await self._finder.prepare(length, is_first=stored is None)
        self._length = length

    def _note_problem(self, error: FreeholdError) -> None:
        if self._problem != error.message:
            log.warning("meanings cannot be compared", extra={"error": error.message})
        self._problem = error.message
