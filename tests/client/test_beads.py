"""`home.beads` of both clients."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.gateway.running_gateway import RunningGateway, running_gateway
from tests.support.condition import until

from freehold.client import Freehold
from freehold.errors import FreeholdError


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path / "home", '[slots]\nbeads = "local"\n') as running:
        await until(lambda: running.services.slots.beads.status.state == "ok")
        yield running


def secret(gateway: RunningGateway, name: str) -> str:
    return gateway.token("beads", name=name)["authorization"].removeprefix("Bearer ")


async def test_a_program_works_on_items(gateway: RunningGateway) -> None:
    async with (
        Freehold(gateway.url, token=secret(gateway, "one")) as home,
        Freehold(gateway.url, token=secret(gateway, "two")) as other,
    ):
        first = await home.beads.create("first", labels=["x"], key="k")
        assert await home.beads.create("first", labels=["x"], key="k") == first
        second = await home.beads.create("second", needs=[first.id])
        assert [one.id for one in (await home.beads.list(ready=True)).beads] == [first.id]
        assert (await home.beads.claim(first.id)).holder == "token:one"
        with pytest.raises(FreeholdError) as refused:
            await other.beads.claim(first.id)
        assert refused.value.code == "beads.claimed"
        await home.beads.update(first.id, priority=0)
        await home.beads.comment(first.id, "so far")
        await home.beads.close(first.id, "done")
        assert not (await home.beads.get(second.id)).bead.blocked
        await home.beads.reopen(first.id)
        await home.beads.remove_need(second.id, first.id)
        await home.beads.add_need(first.id, second.id)
        await home.beads.claim(second.id)
        await home.beads.release(second.id)
        records = [record async for record in home.beads.export()]
        assert {record["id"] for record in records} == {first.id, second.id}
        assert (await home.beads.import_records(records)).kept == 2


async def test_the_synchronous_client_works_on_items(gateway: RunningGateway) -> None:
    def work() -> str:
        with Freehold.sync(gateway.url, token=secret(gateway, "sync")) as home:
            item = home.beads.create("a title")
            home.beads.claim(item.id)
            assert [record["id"] for record in home.beads.export()] == [item.id]
            return home.beads.close(item.id, "done").status

    assert await asyncio.to_thread(work) == "closed"
