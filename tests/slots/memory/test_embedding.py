"""Vectors follow what is stored: in the background, after a change of the model, and after any interruption."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from tests.slots.conftest import Mode, SlotBench
from tests.support.condition import until, wait_until
from tests.support.postgres import PostgresServer

from freehold.errors import FreeholdError
from freehold.manifest.sections.slots import SlotSection
from freehold.slots import Slot, SlotCaller, SlotError
from freehold.slots.host import make_slot
from freehold.slots.memory import store as memory_store
from freehold.slots.memory.contract import (
    ExportMemories,
    ForgetMemory,
    GetMemoryStatus,
    ImportMemories,
    SearchMemories,
    StoreMemory,
)

pytestmark = pytest.mark.shared_processes
OWNER = SlotCaller("owner")
KEPT: tuple[Mode, ...] = ("local", "external")


def letters(text: str) -> list[float]:
    """A vector that tells how often each letter occurs: enough to find a text by its own letters."""
    return [text.lower().count(chr(97 + n)) + 0.001 for n in range(26)]


class FakeProvider:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.problem: FreeholdError | None = None
        self.length = 26

    async def embed(self, provider: str, model: str, texts: Sequence[str]) -> list[list[float]]:
        assert (provider, model) == ("ours", "letters")
        if self.problem is not None:
            raise self.problem
        self.asked += texts
        return [letters(text)[: self.length] for text in texts]


def with_provider(bench: SlotBench, mode: Mode, provider: FakeProvider | None) -> Slot:
    settings = {**(bench.settings_of("memory") if mode == "external" else {}), "embedding": "ours/letters"}
    place = replace(bench.place, embed=None if provider is None else provider.embed)
    return make_slot("memory", SlotSection(mode=mode, settings=settings), place)


@asynccontextmanager
async def running(slot: Slot) -> AsyncIterator[Slot]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(slot.run())
        try:
            await until(lambda: slot.status.state == "ok")
            yield slot
        finally:
            task.cancel()


def nothing_waits(slot: Slot) -> "Callable[[], asyncio.Future[bool]]":
    async def check() -> bool:
        return not (await slot.call(GetMemoryStatus(), OWNER)).waiting

    return check  # type: ignore[return-value]


@pytest.mark.parametrize("mode", KEPT)
async def test_changing_the_embedding_makes_all_vectors_again_in_the_background(bench: SlotBench, mode: Mode) -> None:
    async with running(bench.make("memory", mode)) as slot:
        for n in range(20):
            await slot.call(StoreMemory(f"note {n} about the garden"), OWNER)
        await until(nothing_waits(slot))
        assert (await slot.call(SearchMemories("plants outside"), OWNER)).matches
    provider = FakeProvider()
    async with running(with_provider(bench, mode, provider)) as slot:
        await until(nothing_waits(slot))
        assert len(provider.asked) == 20
        found = await slot.call(SearchMemories("garden"), OWNER)
        assert (found.by, found.waiting, len(found.matches)) == ("meaning", 0, 5)
        assert (await slot.call(GetMemoryStatus(), OWNER)).embedding == "ours/letters"
    async with bench.open("memory", mode) as slot:
        # And back: the vectors of the first model are gone. Until they are made again, words find everything.
        found = await slot.call(SearchMemories("garden"), OWNER)
        assert (found.waiting, len(found.matches)) == (20, 5)


@pytest.mark.parametrize("mode", KEPT)
async def test_the_end_of_a_long_memory_is_found_by_its_meaning(bench: SlotBench, mode: Mode) -> None:
    async with running(bench.make("memory", mode)) as slot:
        text = "filler words about nothing. " * 100 + "The vault is behind the clock."
        long = await slot.call(StoreMemory(text), OWNER)
        await until(nothing_waits(slot))
        found = await slot.call(SearchMemories("Where is the safe hidden?"), OWNER)
        assert [one.memory.id for one in found.matches] == [long.id]


@pytest.mark.parametrize("mode", KEPT)
async def test_a_provider_that_fails_leaves_words_and_says_so(bench: SlotBench, mode: Mode) -> None:
    provider = FakeProvider()
    provider.problem = FreeholdError("models.unreachable", "the provider is away")
    slot = with_provider(bench, mode, provider)
    await slot.connect()
    await slot.call(StoreMemory("The code of the gate is QX-4471"), OWNER)
    found = await slot.call(SearchMemories("QX-4471"), OWNER)
    assert (found.by, found.waiting, len(found.matches)) == ("words", 1, 1)
    assert (await slot.call(GetMemoryStatus(), OWNER)).problem == "the provider is away"
    health = await slot.probe()
    assert health is not None
    assert (health.state, "the provider is away" in (health.error or "")) == ("degraded", True)
    provider.problem = None
    found = await slot.call(SearchMemories("gate"), OWNER)
    assert (found.by, found.waiting) == ("meaning", 0)
    assert await slot.probe() is None
    await slot.close()


async def test_without_a_model_gateway_words_are_compared(bench: SlotBench) -> None:
    """As for the command line while Freehold does not run."""
    slot = with_provider(bench, "local", None)
    await slot.connect()
    await slot.call(StoreMemory("The code of the gate is QX-4471"), OWNER)
    assert (await slot.call(SearchMemories("gate code"), OWNER)).by == "words"
    await slot.close()


@pytest.mark.parametrize("wrong", ["", "ours", "ours/", "/letters", "a'b/c", "x" * 300])
async def test_a_wrong_embedding_is_named(bench: SlotBench, wrong: str) -> None:
    slot = make_slot("memory", SlotSection(mode="local", settings={"embedding": wrong}), bench.place)
    if wrong == "":
        return
    with pytest.raises(SlotError, match="embedding"):
        await slot.connect()


@pytest.mark.parametrize("mode", KEPT)
async def test_two_processes_see_each_others_memories(bench: SlotBench, mode: Mode) -> None:
    """The command line beside the gateway, for example."""
    async with bench.open("memory", mode) as one, bench.open("memory", mode) as other:
        first = await one.call(StoreMemory("The tent leaks at the seam"), OWNER)
        assert (await other.call(SearchMemories("camping gear"), OWNER)).matches[0].memory == first
        assert (await one.call(SearchMemories("camping gear"), OWNER)).matches[0].memory == first
        await other.call(ForgetMemory(first.id), OWNER)
        assert (await one.call(SearchMemories("camping gear"), OWNER)).matches == ()


async def test_expired_memories_are_removed_in_the_background(bench: SlotBench) -> None:
    slot = bench.make("memory", "local")
    async with running(slot):
        await slot.call(StoreMemory("The sale ends", expires=5.0), OWNER)
        await slot.call(StoreMemory("The sale goes on"), OWNER)

        async def removed() -> bool:
            return len((await slot.call(ExportMemories(), OWNER)).records) == 1

        await until(removed)


async def test_vectors_wait_for_a_server_that_was_killed(
    bench: SlotBench, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_store, "RETRY_INTERVAL", 0.2)
    provider = FakeProvider()
    async with running(with_provider(bench, "external", provider)) as slot:
        await slot.call(StoreMemory("before"), OWNER)
        await until(nothing_waits(slot))
        postgres.kill()
        try:
            with pytest.raises(SlotError) as lost:
                await slot.call(StoreMemory("lost"), OWNER)
            assert lost.value.problem == "unavailable"
        finally:
            postgres.start()
        await until(lambda: slot.status.state == "ok")
        await slot.call(StoreMemory("after"), OWNER)
        await until(nothing_waits(slot))
        assert {one.memory.text for one in (await slot.call(SearchMemories("after before"), OWNER)).matches} == {
            "before",
            "after",
        }


REEMBED = """\
import asyncio, json, sys
from pathlib import Path
from freehold.home import Home
from freehold.manifest.sections.slots import SlotSection
from freehold.slots.host import SlotPlace, make_slot
from freehold.timeline import Timeline
folder, mode, settings = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])

asked = 0

async def embed(provider, model, texts):
    global asked
    asked += len(texts)
    if asked > 200:
        (folder / "hangs").touch()
        await asyncio.Event().wait()
    return [[text.lower().count(chr(97 + n)) + 0.001 for n in range(26)] for text in texts]

async def main():
    with Timeline(folder / "timeline.db") as timeline:
        place = SlotPlace(Home(folder, folder), timeline, lambda name: None, {}, embed)
        section = SlotSection(mode=mode, settings={**settings, "embedding": "ours/letters"})
        await make_slot("memory", section, place).run()

asyncio.run(main())
"""


def kill_while_it_works(folder: Path, mode: Mode, settings: dict[str, str]) -> None:
    with subprocess.Popen([sys.executable, "-c", REEMBED, folder, mode, json.dumps(settings)]) as working:
        try:
            wait_until((folder / "hangs").exists)
        finally:
            working.kill()


@pytest.mark.parametrize("mode", KEPT)
async def test_making_vectors_again_goes_on_after_kill_9(bench: SlotBench, tmp_path: Path, mode: Mode) -> None:
    """Killed when it has stored some vectors and waits for others. What was stored is not asked for again."""
    provider = FakeProvider()
    slot = with_provider(bench, mode, provider)
    await slot.connect()
    for start in range(0, 600, 200):
        records = tuple({"id": f"m-{n:05}", "text": f"note {n}"} for n in range(start, start + 200))
        await slot.call(ImportMemories(records), OWNER)
    settings = bench.settings if mode == "external" else {}
    await asyncio.to_thread(kill_while_it_works, tmp_path, mode, settings)
    waiting = (await slot.call(GetMemoryStatus(), OWNER)).waiting
    assert 0 < waiting < 600
    async with asyncio.TaskGroup() as group:
        task = group.create_task(slot.run())
        await until(nothing_waits(slot))
        task.cancel()
    assert len(provider.asked) == waiting
    counted = "SELECT count(DISTINCT entry), count(*) FROM memory_vector WHERE model = 'ours/letters'"
    if mode == "local":
        assert bench.place.timeline.query(counted) == [(600, 600)]
    else:
        with psycopg.connect(settings["url"], options=f"-c search_path={settings['schema']}") as connection:
            assert connection.execute(counted).fetchall() == [(600, 600)]


def test_memories_move_to_a_database_and_back(bench: SlotBench, tmp_path: Path) -> None:
    from tests.slots.test_transfer import freehold

    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    settings = "\n".join(f"{name} = {json.dumps(value)}" for name, value in bench.settings.items())
    (home / "freehold.toml").write_text(f'[slots.memory]\nmode = "local"\n[slots.memory.settings]\n{settings}\n')
    made = json.loads(freehold(home, "memory", "add", "The tent leaks at the seam", "--pin", "--json"))
    freehold(home, "memory", "add", "Tea at four", "-n", "project:day", "--days", "30")
    before = freehold(home, "slots", "export", "memory")
    assert "2 entries are now kept by the external service" in freehold(
        home, "slots", "move", "memory", "--to", "external"
    )
    assert freehold(home, "slots", "export", "memory") == before
    assert made["id"] in freehold(home, "memory", "search", "camping gear")
    freehold(home, "memory", "correct", made["id"], "The tent is mended")
    assert "you" in freehold(home, "memory", "show", made["id"])
    after = freehold(home, "slots", "export", "memory")
    assert "2 entries are now kept here" in freehold(home, "slots", "move", "memory", "--to", "local")
    assert freehold(home, "slots", "export", "memory") == after
    assert made["id"] in freehold(home, "memory", "search", "tent")
    freehold(home, "memory", "pin", made["id"], "--remove")
    assert "Forgot" in freehold(home, "memory", "forget", made["id"])
    assert "project:day" in freehold(home, "memory", "status")
    assert "Tea at four" in freehold(home, "memory", "--text", "tea")
    assert freehold(home, "slots", "try", "memory").count("ok  ") == 6


@pytest.mark.parametrize("mode", KEPT)
async def test_a_provider_whose_vectors_change_their_length_leaves_words_and_says_so(
    bench: SlotBench, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_store, "RETRY_INTERVAL", 0.05)
    provider = FakeProvider()
    async with running(with_provider(bench, mode, provider)) as slot:
        await slot.call(StoreMemory("The tent leaks"), OWNER)
        await until(nothing_waits(slot))
    provider.length = 7
    async with running(with_provider(bench, mode, provider)) as slot:
        await slot.call(StoreMemory("The stove smokes"), OWNER)
        for question in ("tent", "stove"):
            found = await slot.call(SearchMemories(question), OWNER)
            assert (found.by, len(found.matches)) == ("words", 1)
        health = await slot.probe()
        assert health is not None
        assert "7 numbers" in (health.error or "")
        provider.length = 26
        await until(nothing_waits(slot))
        assert (await slot.call(SearchMemories("stove smokes"), OWNER)).by == "meaning"
