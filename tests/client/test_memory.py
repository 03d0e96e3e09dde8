"""`home.memory` of both clients."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.gateway.running_gateway import RunningGateway, running_gateway
from tests.support.condition import until

from freehold.client import Freehold
from freehold.errors import FreeholdError


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path / "home", '[slots]\nmemory = "local"\n') as running:
        await until(lambda: running.services.slots.get("memory").status.state == "ok")
        yield running


def secret(gateway: RunningGateway) -> str:
    return gateway.token("memory")["authorization"].removeprefix("Bearer ")


async def test_a_program_remembers_and_forgets(gateway: RunningGateway) -> None:
    async with Freehold(gateway.url, token=secret(gateway)) as home:
        until_then = datetime(2990, 1, 1, tzinfo=UTC)
        made = await home.memory.store(
            "The spare key is with Ida", namespace="project:flat", expires=until_then, key="k"
        )
        assert (
            await home.memory.store("The spare key is with Ida", namespace="project:flat", expires=until_then, key="k")
            == made
        )
        found = await home.memory.search("Who has the extra key?", namespaces=["project:flat"])
        assert [one.memory.id for one in found.matches] == [made.id]
        assert (await home.memory.update(made.id, text="The spare key is with Tom", expires="never")).expires is None
        assert (await home.memory.list(text="Tom", pinned=False)).memories[0].origin.kind == "program"
        assert (await home.memory.status()).namespaces[0].name == "project:flat"
        records = [record async for record in home.memory.export()]
        await home.memory.forget(made.id)
        with pytest.raises(FreeholdError) as refused:
            await home.memory.get(made.id)
        assert refused.value.code == "memory.not-found"
        assert (await home.memory.import_records(records)).created == 1


async def test_the_synchronous_client_remembers(gateway: RunningGateway) -> None:
    def work() -> str:
        with Freehold.sync(gateway.url, token=secret(gateway)) as home:
            home.memory.store("Tea at four")
            return home.memory.search("when do we drink tea?").matches[0].memory.text

    assert await asyncio.to_thread(work) == "Tea at four"
