"""Personal documents through the Python client, async and sync."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.gateway.running_gateway import RunningGateway, running_gateway
from tests.support.condition import until

from freehold.client import Freehold
from freehold.errors import FreeholdError


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path, '[slots]\npods = "local"\n') as running:
        await until(lambda: running.services.slots.get("pods").status.state == "ok")
        yield running


@pytest.mark.parametrize("path", ["../../../me", "notes/../../../../me", "./a", "a/.."])
async def test_a_path_that_goes_up_reaches_no_other_address(gateway: RunningGateway, path: str) -> None:
    """`DELETE /v1/me` would revoke the token."""
    secret = gateway.token("pods", "read")["authorization"].removeprefix("Bearer ")
    async with Freehold(gateway.url, token=secret) as home:
        for call in (home.pods.delete(path), home.pods.read(path), home.pods.write(path, b"x")):
            with pytest.raises(FreeholdError) as refused:
                await call
            assert refused.value.code == "pods.invalid"
        assert (await home.me()).scopes == ("pods", "read")


async def test_a_program_reads_writes_and_grants(gateway: RunningGateway) -> None:
    secret = gateway.token("pods", "admin")["authorization"].removeprefix("Bearer ")
    async with Freehold(gateway.url, token=secret) as home:
        made = await home.pods.write("notes/ü 1.json", '{"n": 1}', media="application/json", is_new=True, key="k")
        assert (
            await home.pods.write("notes/ü 1.json", '{"n": 1}', media="application/json", is_new=True, key="k") == made
        )
        with pytest.raises(FreeholdError) as stale:
            await home.pods.write("notes/ü 1.json", b"x", if_match='"old"')
        assert stale.value.code == "pods.conflict"
        await home.pods.patch("notes/ü 1.json", json.dumps([{"op": "add", "path": "/m", "value": 2}]))
        found = await home.pods.read("notes/ü 1.json")
        assert json.loads(found.content) == {"n": 1, "m": 2}
        await home.pods.create_folder("empty")
        assert [one.path for one in (await home.pods.list()).entries] == ["empty/", "notes/"]
        assert [one.path for one in (await home.pods.list(media="application/*")).entries] == ["notes/ü 1.json"]
        assert [one.folder for one in await home.pods.grant("claude", "notes", "write")] == ["notes/"]
        assert [one.mode for one in await home.pods.grants()] == ["write"]
        assert await home.pods.revoke("claude", "notes") == ()
        assert (await home.pods.access(limit=1)).entries[0].who == "token:script"
        records = [record async for record in home.pods.export()]
        assert (await home.pods.import_records(records)).kept == len(records) == 3
        await home.pods.delete("empty/")

    def use_sync() -> bytes:
        with Freehold.sync(gateway.url, token=secret) as home:
            return home.pods.read("notes/ü 1.json").content

    assert json.loads(await asyncio.to_thread(use_sync)) == {"n": 1, "m": 2}
