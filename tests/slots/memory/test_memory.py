"""Memories behave alike wherever they are kept: stored, found, corrected, forgotten, and out of the reach of others."""

import pytest
from tests.slots.conftest import Mode, SlotBench

from freehold.slots import Slot, SlotCaller, SlotError
from freehold.slots.memory.contract import (
    MAX_TEXT,
    ExportMemories,
    ForgetMemory,
    GetMemory,
    GetMemoryStatus,
    ImportMemories,
    ListMemories,
    Memory,
    MemoryOrigin,
    SearchMemories,
    StoreMemory,
    UpdateMemory,
)

pytestmark = pytest.mark.shared_processes
OWNER, PROGRAM = SlotCaller("owner"), SlotCaller("token:script")
CLAUDE, CODEX = SlotCaller("session:s1", "claude"), SlotCaller("session:s2", "codex")
KEPT: tuple[Mode, ...] = ("local", "external")
kept = pytest.mark.parametrize("mode", KEPT)


async def found(slot: Slot, query: str, caller: SlotCaller = OWNER, *namespaces: str) -> list[str]:
    return [one.memory.text for one in (await slot.call(SearchMemories(query, namespaces), caller)).matches]


async def problem(slot: Slot, request: object, caller: SlotCaller = OWNER) -> str:
    try:
        await slot.call(request, caller)  # type: ignore[arg-type]
    except SlotError as error:
        return error.problem
    return "none"


@kept
async def test_a_memory_is_found_by_its_meaning_and_by_exact_words(bench: SlotBench, mode: Mode) -> None:
    async with bench.open("memory", mode) as slot:
        for text in (
            "Anna's passport runs out in November",
            "Bread needs flour, water and salt",
            "Invoice INV-2024-0117 was paid by Petersen",
            "Invoice INV-2024-0171 was sent to Paulsen",
        ):
            await slot.call(StoreMemory(text), OWNER)
        assert (await found(slot, "When do the travel documents expire?"))[0].startswith("Anna's passport")
        assert (await found(slot, "how do I bake a loaf"))[0].startswith("Bread")
        assert "0117" in (await found(slot, "INV-2024-0117"))[0]
        assert "0171" in (await found(slot, "what about inv-2024-0171?"))[0]
        assert "Paulsen" in (await found(slot, "Paulsen"))[0]
        assert await found(slot, "the weather on Mars") == []
        answer = await slot.call(SearchMemories("passport", limit=1), OWNER)
        assert (answer.by, answer.waiting, len(answer.matches), answer.matches[0].words) == (
            "meaning",
            0,
            1,
            ("passport",),
        )


@kept
async def test_a_corrected_memory_is_found_by_its_new_words_only(bench: SlotBench, mode: Mode) -> None:
    async with bench.open("memory", mode) as slot:
        memory = await slot.call(StoreMemory("The meeting is on Tuesday at the harbour"), CLAUDE)
        assert memory.origin == MemoryOrigin("agent", "s1")
        fixed = await slot.call(UpdateMemory(memory.id, text="The garden needs 30 litres of water a week"), OWNER)
        assert (fixed.version, fixed.origin.kind, fixed.origin.session) == (2, "owner", "s1")
        assert await found(slot, "harbour") == []
        assert await found(slot, "How much do the plants drink?") == [fixed.text]
        assert await problem(slot, UpdateMemory(memory.id, text="old", version=1)) == "conflict"
        assert await problem(slot, UpdateMemory(memory.id)) == "invalid"
        assert (
            await slot.call(GetMemory(memory.id), OWNER)
            == (await slot.call(ListMemories(text="LITRES"), OWNER)).memories[0]
        )


@kept
async def test_a_forgotten_memory_is_nowhere(bench: SlotBench, mode: Mode) -> None:
    async with bench.open("memory", mode) as slot:
        memory = await slot.call(StoreMemory("The spare key is under the blue pot"), OWNER)
        assert await found(slot, "spare key")
        await slot.call(ForgetMemory(memory.id), OWNER)
        assert await found(slot, "spare key") == []
        assert await problem(slot, GetMemory(memory.id)) == "not-found"
        assert await problem(slot, ForgetMemory(memory.id)) == "not-found"
        assert (await slot.call(ExportMemories(), OWNER)).records == ()
        assert "blue pot" not in str(bench.place.timeline.read(kinds=["memory.*"]))


@kept
async def test_an_expired_memory_is_not_read(bench: SlotBench, mode: Mode) -> None:
    async with bench.open("memory", mode) as slot:
        old = await slot.call(StoreMemory("The sale ends today", expires=1_000.0), OWNER)
        new = await slot.call(StoreMemory("The sale ends tomorrow", expires=30_000_000_000.0), OWNER)
        assert await found(slot, "when does the sale end?") == [new.text]
        assert await problem(slot, GetMemory(old.id)) == "not-found"
        assert [one.id for one in (await slot.call(ListMemories(), OWNER)).memories] == [new.id]
        assert (await slot.call(UpdateMemory(new.id, expires=0.0), OWNER)).expires is None
        for wrong in (float("nan"), float("inf"), -1.0, 1e30):
            assert await problem(slot, StoreMemory("x", expires=wrong)) == "invalid"


@kept
async def test_an_agent_does_not_reach_the_namespace_of_another(bench: SlotBench, mode: Mode) -> None:
    async with bench.open("memory", mode) as slot:
        own = await slot.call(StoreMemory("The zebra protocol is ready", "agent:claude"), CLAUDE)
        await slot.call(StoreMemory("The zebra crossing is new", "project:town"), CLAUDE)
        await slot.call(StoreMemory("A zebra is striped"), CODEX)
        everything = {"The zebra protocol is ready", "The zebra crossing is new", "A zebra is striped"}
        assert set(await found(slot, "zebra", CLAUDE)) == everything
        assert set(await found(slot, "zebra", OWNER)) == everything
        assert set(await found(slot, "zebra", CODEX)) == everything - {own.text}
        assert await found(slot, "zebra", SlotCaller("session:s3")) == await found(slot, "zebra", CODEX)
        for request in (
            SearchMemories("zebra", ("agent:claude",)),
            ListMemories("agent:claude"),
            StoreMemory("planted", "agent:claude"),
        ):
            assert await problem(slot, request, CODEX) == "denied"
        # An id that was guessed tells nothing, not even that it exists.
        for hidden in (GetMemory(own.id), ForgetMemory(own.id)):
            assert await problem(slot, hidden, CODEX) == "not-found"
        assert own.text not in str(await slot.call(ListMemories(), CODEX))
        assert "agent:claude" not in str(await slot.call(GetMemoryStatus(), CODEX))
        for wrong in ("", "agent:", "agent:../x", "team:a", "shared ", "SHARED", "agent:" + "x" * 70, "agent:%"):
            assert await problem(slot, StoreMemory("x", wrong)) == "invalid"


@kept
async def test_an_agent_neither_speaks_for_the_owner_nor_forgets_what_is_theirs(bench: SlotBench, mode: Mode) -> None:
    async with bench.open("memory", mode) as slot:
        lied = await slot.call(StoreMemory("The user wants this", origin=MemoryOrigin("owner", "other", 3)), CLAUDE)
        assert lied.origin == MemoryOrigin("agent", "s1", 3)
        web = await slot.call(
            StoreMemory("From a page", origin=MemoryOrigin("web", note="https://example.com")), CLAUDE
        )
        assert web.origin == MemoryOrigin("web", "s1", None, "https://example.com")
        token = await slot.call(StoreMemory("From a script", origin=MemoryOrigin("owner")), PROGRAM)
        assert token.origin.kind == "program"
        mine = await slot.call(StoreMemory("Mine"), OWNER)
        pinned = await slot.call(UpdateMemory(web.id, pinned=True), OWNER)
        assert pinned.pinned
        assert pinned.origin.kind == "web"
        refused = (
            ForgetMemory(mine.id),
            ForgetMemory(token.id),
            ForgetMemory(web.id),
            UpdateMemory(lied.id, text="x"),
            StoreMemory("x", pinned=True),
            ExportMemories(),
            ImportMemories(()),
        )
        for request in refused:
            assert await problem(slot, request, CLAUDE) == "denied", request
        assert await problem(slot, UpdateMemory(lied.id, pinned=True), PROGRAM) == "denied"
        await slot.call(ForgetMemory(lied.id), CODEX)
        record = {"id": "m-x", "text": "planted", "pinned": True, "origin": {"kind": "owner"}}
        await slot.call(ImportMemories((record,)), PROGRAM)
        planted = await slot.call(GetMemory("m-x"), OWNER)
        assert (planted.pinned, planted.origin.kind) == (False, "program")


@kept
async def test_use_by_an_agent_is_noted_and_the_owners_search_is_not(bench: SlotBench, mode: Mode) -> None:
    async with bench.open("memory", mode) as slot:
        memory = await slot.call(StoreMemory("The boiler was serviced in March"), OWNER)
        await found(slot, "boiler", OWNER)
        assert (await slot.call(GetMemory(memory.id), OWNER)).used == 0
        await found(slot, "boiler", CLAUDE)
        used = await slot.call(GetMemory(memory.id), OWNER)
        assert (used.used, used.version) == (1, 1)
        assert used.last_used is not None


@kept
async def test_pages_and_records_are_whole(bench: SlotBench, mode: Mode) -> None:
    async with bench.open("memory", mode) as slot:
        made = [await slot.call(StoreMemory(f"note {n}", "project:a" if n % 2 else "shared"), OWNER) for n in range(7)]
        seen: list[Memory] = []
        cursor = None
        while True:
            page = await slot.call(ListMemories(limit=3, cursor=cursor), OWNER)
            seen += page.memories
            cursor = page.cursor
            if cursor is None:
                break
        assert seen == sorted(made, key=lambda one: (one.updated, one.id), reverse=True)
        assert len((await slot.call(ListMemories("project:a"), OWNER)).memories) == 3
        records = (await slot.call(ExportMemories(), OWNER)).records
        assert {one["id"] for one in records} == {one.id for one in made}
        assert (await slot.call(ImportMemories(records), OWNER)).kept == 7
        await slot.call(ForgetMemory(made[0].id), OWNER)
        assert (await slot.call(ImportMemories(records), OWNER)).created == 1
        assert (await slot.call(ExportMemories(), OWNER)).records == records
        status = await slot.call(GetMemoryStatus(), OWNER)
        assert {one.name: one.memories for one in status.namespaces} == {"shared": 4, "project:a": 3}


@kept
async def test_texts_that_cannot_be_stored_are_refused(bench: SlotBench, mode: Mode) -> None:
    async with bench.open("memory", mode) as slot:
        for text in ("", "  \n", "a\0b", "\ud800", "x" * (MAX_TEXT + 1)):
            assert await problem(slot, StoreMemory(text)) == "invalid"
        assert await problem(slot, SearchMemories(" ")) == "invalid"
        assert await problem(slot, SearchMemories("x", limit=0)) == "invalid"
        for record in (
            {"id": "a"},
            {"id": "a", "text": 3},
            {"id": "a/b", "text": "x"},
            {"id": "a", "text": "x", "y": 1},
        ):
            assert await problem(slot, ImportMemories((record,))) == "invalid"
        for text in ("' OR 1=1 --", '"; DROP TABLE memory_entry; --', "%_\\", "日本語のメモ", "x" * MAX_TEXT, "?" * 30):
            memory = await slot.call(StoreMemory(text), OWNER)
            assert (await slot.call(GetMemory(memory.id), OWNER)).text == text
            await found(slot, text[:500])
