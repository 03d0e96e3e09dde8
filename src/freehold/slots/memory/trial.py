"""What `freehold slots try memory` does to a database."""

from freehold.slots.contract import SlotCaller, SlotImplementation
from freehold.slots.errors import SlotError
from freehold.slots.memory.contract import (
    ExportMemories,
    ForgetMemory,
    ListMemories,
    SearchMemories,
    StoreMemory,
)
from freehold.slots.trial import TrialPart

FIRST = SlotCaller("owner")


def _expect(holds: bool, words: str) -> None:
    if not holds:
        raise SlotError("memory", "conflict", words, hint="This database cannot be used for memories")


async def _store(store: SlotImplementation) -> None:
    made = [await store.call(StoreMemory("The roof was mended in May", key="once"), FIRST) for _ in range(2)]
    _expect(made[0] == made[1], "The same request with the same key made two memories")
    listed = (await store.call(ListMemories(), FIRST)).memories
    _expect(listed == (made[0],), "A memory that was stored is not listed as it was stored")


async def _search(store: SlotImplementation) -> None:
    await store.call(StoreMemory("The door code is QX-4471"), FIRST)
    by_meaning = await store.call(SearchMemories("When did we repair the top of the house?"), FIRST)
    _expect(by_meaning.by == "meaning", "Meanings could not be compared")
    _expect(bool(by_meaning.matches), "A question in other words did not find a memory")
    _expect("roof" in by_meaning.matches[0].memory.text, "A question in other words found another memory")
    by_word = (await store.call(SearchMemories("QX-4471"), FIRST)).matches
    _expect(bool(by_word) and "QX-4471" in by_word[0].memory.text, "An exact code was not found")


async def _forget(store: SlotImplementation) -> None:
    for memory in (await store.call(ListMemories(text="QX-4471"), FIRST)).memories:
        await store.call(ForgetMemory(memory.id), FIRST)
    _expect(not (await store.call(SearchMemories("QX-4471"), FIRST)).matches, "A forgotten memory was found")


async def _export(store: SlotImplementation) -> None:
    _expect(len((await store.call(ExportMemories(), FIRST)).records) == 1, "An export does not have all memories")


PARTS: tuple[TrialPart, ...] = (
    ("Store a memory, once for one key", _store),
    ("Find it by its meaning and by an exact code", _search),
    ("Forget a memory", _forget),
    ("Export all memories", _export),
)
