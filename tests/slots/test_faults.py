"""An external slot whose server is killed, hangs, or has wrong settings: it says so at once, and comes back by itself."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.slots.conftest import SlotBench
from tests.support.condition import until
from tests.support.postgres import PostgresServer

from freehold.manifest.sections.slots import SlotSection
from freehold.slots import Slot, SlotCaller, SlotError
from freehold.slots import postgres_connections as postgres_slot
from freehold.slots.beads.contract import CreateBead, ListBeads
from freehold.slots.host import make_slot

pytestmark = pytest.mark.shared_processes
OWNER = SlotCaller("owner")


@asynccontextmanager
async def running(slot: Slot) -> AsyncIterator[Slot]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(slot.run())
        try:
            await until(lambda: slot.status.state != "starting")
            yield slot
        finally:
            task.cancel()


async def problem_of(slot: Slot) -> str:
    try:
        await slot.call(ListBeads(), OWNER)
    except SlotError as error:
        return error.problem
    return "none"


def told(bench: SlotBench) -> list[str]:
    return [event.kind for event in bench.place.timeline.read(kinds=["slot.*"])]


async def test_a_slot_whose_server_was_killed_says_so_and_comes_back(
    bench: SlotBench, postgres: PostgresServer
) -> None:
    async with running(bench.make("beads", "external")) as slot:
        kept = await slot.call(CreateBead("before", key="k"), OWNER)
        postgres.kill()
        try:
            assert await problem_of(slot) == "unavailable"
            await until(lambda: told(bench) == ["slot.lost"])
            found = await slot.probe()
            assert found is not None
            assert found.state == "degraded"
            # The owner is told once, however often it is tried again.
            for _ in range(5):
                assert await problem_of(slot) == "unavailable"
        finally:
            postgres.start()
        await until(lambda: slot.status.state == "ok")
        await until(lambda: told(bench) == ["slot.lost", "slot.recovered"])
        assert (await slot.call(ListBeads(), OWNER)).beads == (kept,)
        assert await slot.call(CreateBead("before", key="k"), OWNER) == kept


async def test_a_call_of_a_server_that_hangs_ends(
    bench: SlotBench, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_slot, "CALL_TIMEOUT", 0.3)
    async with running(bench.make("beads", "external")) as slot:
        postgres.hang()
        try:
            outcomes = await asyncio.gather(*(problem_of(slot) for _ in range(10)))
            assert set(outcomes) == {"unavailable"}
        finally:
            postgres.resume()
        await until(lambda: slot.status.state == "ok")
        monkeypatch.setattr(postgres_slot, "CALL_TIMEOUT", 20.0)
        assert await problem_of(slot) == "none"


async def test_a_write_whose_answer_was_lost_happens_once(
    bench: SlotBench, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server may or may not have committed. The same key gives the one item in both cases."""
    async with running(bench.make("beads", "external")) as slot:
        await slot.call(ListBeads(), OWNER)
        monkeypatch.setattr(postgres_slot, "CALL_TIMEOUT", 0.3)
        postgres.hang()
        try:
            with pytest.raises(SlotError) as lost:
                await slot.call(CreateBead("once", key="k"), OWNER)
        finally:
            postgres.resume()
        assert lost.value.problem == "unavailable"
        monkeypatch.setattr(postgres_slot, "CALL_TIMEOUT", 20.0)
        await until(lambda: slot.status.state == "ok")
        made = await slot.call(CreateBead("once", key="k"), OWNER)
        assert (await slot.call(ListBeads(), OWNER)).beads == (made,)


async def test_a_call_that_is_cancelled_leaves_the_slot_usable(bench: SlotBench, postgres: PostgresServer) -> None:
    async with running(bench.make("beads", "external")) as slot:
        for _ in range(6):
            task = asyncio.ensure_future(slot.call(CreateBead("x"), OWNER))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
        assert await problem_of(slot) == "none"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "url is missing"),
        ({"url": "ftp://example.com"}, "not an address of a PostgreSQL database"),
        ({"url": "https://example.com"}, "token is missing"),
        ({"url": "postgresql://a:b@db/x"}, "not an address of a PostgreSQL database"),
        ({"url": "postgresql://db/x?sslmode=disable"}, "parameters that are not known: sslmode"),
        ({"url": "postgresql://db/x", "colour": "red"}, "has no colour"),
        ({"url": "postgresql://db/x", "password": "hunter2"}, "not a reference"),
        ({"url": "postgresql://db/x", "password": "env:NOT_SET"}, "NOT_SET is not set"),
        ({"url": "postgresql://db/x", "schema": "a; drop"}, "not a plain name"),
    ],
    ids=str,
)
async def test_wrong_settings_are_named_and_keep_nothing_else_from_starting(
    bench: SlotBench, settings: dict[str, str], words: str
) -> None:
    slot = make_slot("beads", SlotSection(mode="external", settings=settings), bench.place)
    async with running(slot):
        await until(lambda: slot.status.state == "unavailable")
        assert words in (slot.status.error or "")
        assert await problem_of(slot) == "unavailable"
        assert "hunter2" not in (slot.status.error or "")


def test_a_database_beyond_this_machine_must_prove_its_name(bench: SlotBench) -> None:
    from freehold.slots.settings import ExternalSettings

    def read(url: str, **more: str) -> dict[str, str | int]:
        values = {"url": url, **more}
        return postgres_slot.read_connection(ExternalSettings("beads", values, {}, bench.place.find_secret))

    away = read("postgresql://user@db.example.com:6543/freehold")
    assert (away["sslmode"], away["sslrootcert"], away["port"]) == ("verify-full", "system", 6543)
    assert read("postgresql://user@127.0.0.1/freehold")["sslmode"] == "prefer"
    assert read("postgresql://user@db/x", sslmode="require")["sslmode"] == "require"
