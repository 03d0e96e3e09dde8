"""Events through the Python client, async and sync."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.gateway.running_gateway import RunningGateway, running_gateway
from tests.support.condition import DEADLINE, until

from freehold.client import Freehold
from freehold.client.stream_position import StreamPosition

TYPE = "com.example.told"


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path, '[slots]\nevents = "local"\n') as running:
        await until(lambda: running.services.slots.get("events").status.state == "ok")
        yield running


async def test_a_program_publishes_reads_and_follows_events(gateway: RunningGateway) -> None:
    secret = gateway.token("events")["authorization"].removeprefix("Bearer ")
    async with asyncio.timeout(DEADLINE), Freehold(gateway.url, token=secret) as home:
        made = await home.events.publish(TYPE, {"n": 1}, subject="thing", key="k")
        assert await home.events.publish(TYPE, {"n": 1}, subject="thing", key="k") == made
        page = await home.events.read(types=[TYPE])
        assert [event.data for event in page.events] == [{"n": 1}]
        assert (await home.events.read(newest=True, limit=1)).events == page.events
        seen = []
        async for event in home.events.stream(0, types=[TYPE]):
            seen.append(event.data["n"])
            if len(seen) == 2:
                break
            await home.events.publish(TYPE, {"n": 2})
        assert seen == [1, 2]
        assert (await home.events.delivery()).state == "none"
        assert (await home.events.dead_letters()).letters == ()
        assert await home.events.resend() == 0
        assert await home.events.drop() == 0
        records = [record async for record in home.events.export()]
        assert (await home.events.import_records(records)).kept == len(records) == 2

    def use_sync() -> list[int]:
        with Freehold.sync(gateway.url, token=secret) as home:
            found = []
            for event in home.events.stream(0, types=[TYPE]):
                found.append(event.data["n"])
                if len(found) == 2:
                    return found
        return found

    assert await asyncio.to_thread(use_sync) == [1, 2]


def test_a_stream_goes_on_after_the_last_whole_message() -> None:
    position = StreamPosition(None)
    lines = ["event: position", "id: 5", "data: {}", "", ": still here", "", "id: 6", 'data: {"a":1}', "", "id: 7"]
    assert [found for line in lines if (found := position.receive(line)) is not None] == ['{"a":1}']
    assert position.after == 6
    waits = [position.next_wait() for _ in range(3)]
    assert waits[0] < waits[1] < waits[2]
    assert position.receive("") is None
    assert position.after == 6
