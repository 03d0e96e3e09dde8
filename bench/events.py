"""How fast are events told? Published here beside the aim, and sent to NATS beside a bare client."""

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import nats
from tests.support.condition import until
from tests.support.nats import TOKEN, running_nats

from bench.harness import Figure, main
from bench.slots import OWNER, no_secret, p95, time_calls
from freehold.home import Home
from freehold.manifest.sections.slots import SlotSection
from freehold.slots import Slot
from freehold.slots.events.contract import GetDelivery, PublishEvent, ReadEvents
from freehold.slots.host import SlotPlace, make_slot
from freehold.timeline import Timeline

TYPE = "com.example.told"
AIM, RATE = 2.0, 2_000
"""Milliseconds at the 95th percentile, and events a second."""
WRITERS = 16


async def publish_at_rate(slot: Slot, seconds: float) -> tuple[list[float], float]:
    """How long each call took when `RATE` events a second are offered, and how many a second were accepted."""
    durations: list[float] = []
    begin = time.perf_counter()

    async def write(place: int) -> None:
        for number in range(int(RATE * seconds / WRITERS)):
            due = begin + (number * WRITERS + place) / RATE
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            started = time.perf_counter()
            await slot.call(PublishEvent(TYPE, {"n": number}), OWNER)
            durations.append((time.perf_counter() - started) * 1000)

    await asyncio.gather(*(write(place) for place in range(WRITERS)))
    return durations, len(durations) / (time.perf_counter() - begin)


async def measure_local(place: SlotPlace, quick: bool) -> AsyncIterator[Figure]:
    slot = make_slot("events", SlotSection(mode="local"), place)
    await slot.connect()
    times = 200 if quick else 1_000
    appended = p95(await time_calls(lambda _: asyncio.to_thread(place.timeline.append, "bench.done"), times))
    alone = p95(await time_calls(lambda n: slot.call(PublishEvent(TYPE, {"n": n}), OWNER), times))
    yield Figure(
        "publish, p95, one caller", alone, "ms", "append to the timeline", appended, f"at most {AIM:g} ms", alone <= AIM
    )
    durations, rate = await publish_at_rate(slot, 2.0 if quick else 10.0)
    found = p95(durations)
    yield Figure(
        f"publish, p95, {RATE}/s offered", found, "ms", "one caller", alone, f"at most {AIM:g} ms", found <= AIM
    )
    yield Figure(
        "publish, accepted", rate, "1/s", "offered", float(RATE), f"at least {RATE * 0.95:g}/s", rate >= RATE * 0.95
    )
    begin = time.perf_counter()
    cursor = count = 0
    while True:
        page = await slot.call(ReadEvents(cursor, limit=500), OWNER)
        count += len(page.events)
        if page.cursor == cursor:
            break
        cursor = page.cursor
    yield Figure("read the log", count / (time.perf_counter() - begin), "1/s")
    await slot.close()


async def measure_nats(place: SlotPlace, url: str, quick: bool) -> AsyncIterator[Figure]:
    """Delivery of events that wait, beside a bare client that publishes the same bytes one by one."""
    times = 300 if quick else 2_000
    settings = {"url": url, "token": "env:NATS_TOKEN", "kinds": "bench.*", "stream": "ours", "prefix": "ours"}
    slot = make_slot("events", SlotSection(mode="external", settings=settings), place)
    await slot.connect()
    for start in range(0, times, WRITERS):
        wanted = [PublishEvent(TYPE, {"n": n}) for n in range(start, min(times, start + WRITERS))]
        await asyncio.gather(*(slot.call(one, OWNER) for one in wanted))
    (event, *_) = (await slot.call(ReadEvents(limit=1, newest=True), OWNER)).events
    body = json.dumps(event.as_json(), separators=(",", ":")).encode()

    async def is_done() -> bool:
        return (await slot.call(GetDelivery(), OWNER)).waiting == 0

    client = await nats.connect(url, token=TOKEN)
    stream = client.jetstream()
    await stream.add_stream(name="bare", subjects=["bare.>"])
    bare = await time_calls(
        lambda n: stream.publish("bare.told", body, headers={"Nats-Msg-Id": str(n)}, stream="bare"), times
    )
    await client.close()
    begin = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(slot.run())
        await until(is_done)
        took = (time.perf_counter() - begin) * 1000 / times
        running.cancel()
    theirs = statistics.mean(bare)
    yield Figure("deliver one event, nats", took, "ms", "bare client", theirs, "at most 3 times", took <= 3 * theirs)


def measure(quick: bool) -> list[Figure]:
    async def run() -> list[Figure]:
        figures: list[Figure] = []
        for name in ("local", "nats"):
            with tempfile.TemporaryDirectory() as folder, Timeline(Path(folder) / "timeline.db") as timeline:
                place = SlotPlace(Home(Path(folder), Path(folder)), timeline, no_secret, {"NATS_TOKEN": TOKEN})
                if name == "local":
                    figures += [figure async for figure in measure_local(place, quick)]
                else:
                    with running_nats() as server:
                        figures += [figure async for figure in measure_nats(place, server.url, quick)]
        return figures

    return asyncio.run(run())


if __name__ == "__main__":
    main(__doc__ or "", measure)
