"""How fast are events told? Published here beside the aim, and sent to NATS and to a webhook beside a bare client.

Publishing is measured as the gateway runs the slot: what is published is brought into the log meanwhile.
"""

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import nats
from standardwebhooks.webhooks import Webhook
from tests.support.condition import until
from tests.support.nats import TOKEN, running_nats
from tests.support.webhook import SECRET as HOOK_SECRET
from tests.support.webhook import WebhookReceiver, running_webhook

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
SECRETS = {"NATS_TOKEN": TOKEN, "HOOK_SECRET": HOOK_SECRET}


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
    async with asyncio.TaskGroup() as group:
        running = group.create_task(slot.run())
        for figure in await measure_publishing(slot, place.timeline, quick):
            yield figure
        running.cancel()
    await slot.connect()
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


async def measure_publishing(slot: Slot, timeline: Timeline, quick: bool) -> list[Figure]:
    times = 200 if quick else 1_000
    appended = p95(await time_calls(lambda _: asyncio.to_thread(timeline.append, "bench.done"), times))
    alone = p95(await time_calls(lambda n: slot.call(PublishEvent(TYPE, {"n": n}), OWNER), times))
    durations, rate = await publish_at_rate(slot, 2.0 if quick else 10.0)
    found, aim = p95(durations), f"at most {AIM:g} ms"
    least = f"at least {RATE * 0.95:g}/s"
    return [
        Figure("publish, p95, one caller", alone, "ms", "append to the timeline", appended, aim, alone <= AIM),
        Figure(f"publish, p95, {RATE}/s offered", found, "ms", "one caller", alone, aim, found <= AIM),
        Figure("publish, accepted", rate, "1/s", "offered", float(RATE), least, rate >= RATE * 0.95),
    ]


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
    client = await nats.connect(url, token=TOKEN)
    stream = client.jetstream()
    await stream.add_stream(name="bare", subjects=["bare.>"])
    bare = await time_calls(
        lambda n: stream.publish("bare.told", body, headers={"Nats-Msg-Id": str(n)}, stream="bare"), times
    )
    await client.close()
    took = await time_delivery(slot, times)
    theirs = statistics.mean(bare)
    yield Figure("deliver one event, nats", took, "ms", "bare client", theirs, "at most 3 times", took <= 3 * theirs)


async def measure_webhook(place: SlotPlace, receiver: WebhookReceiver, quick: bool) -> AsyncIterator[Figure]:
    """Delivery of events that wait, beside a bare client that signs and sends the same bytes over one connection."""
    times = 200 if quick else 1_000
    settings = {"url": receiver.url, "secret": "env:HOOK_SECRET", "kinds": "bench.*"}
    slot = make_slot("events", SlotSection(mode="external", settings=settings), place)
    await slot.connect()
    for start in range(0, times, WRITERS):
        wanted = [PublishEvent(TYPE, {"n": n}) for n in range(start, min(times, start + WRITERS))]
        await asyncio.gather(*(slot.call(one, OWNER) for one in wanted))
    (event, *_) = (await slot.call(ReadEvents(limit=1, newest=True), OWNER)).events
    body = json.dumps(event.as_json(), separators=(",", ":")).encode()
    signer = Webhook(HOOK_SECRET)
    async with httpx2.AsyncClient(trust_env=False) as client:

        async def send(number: int) -> None:
            now = datetime.now(UTC)
            headers = {
                "webhook-id": str(number),
                "webhook-timestamp": str(int(now.timestamp())),
                "webhook-signature": signer.sign(str(number), now, body.decode()),
            }
            (await client.post(receiver.url, content=body, headers=headers)).raise_for_status()

        theirs = statistics.mean(await time_calls(send, times))
    took = await time_delivery(slot, times)
    yield Figure("deliver one event, webhook", took, "ms", "bare client", theirs, "at most 3 times", took <= 3 * theirs)


async def time_delivery(slot: Slot, count: int) -> float:
    """Milliseconds for each of the events that wait."""

    async def is_done() -> bool:
        return (await slot.call(GetDelivery(), OWNER)).waiting == 0

    begin = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(slot.run())
        await until(is_done)
        took = (time.perf_counter() - begin) * 1000 / count
        running.cancel()
    return took


def measure(quick: bool) -> list[Figure]:
    async def run() -> list[Figure]:
        figures: list[Figure] = []
        for name in ("local", "nats", "webhook"):
            with tempfile.TemporaryDirectory() as folder, Timeline(Path(folder) / "timeline.db") as timeline:
                place = SlotPlace(Home(Path(folder), Path(folder)), timeline, no_secret, SECRETS)
                if name == "local":
                    figures += [figure async for figure in measure_local(place, quick)]
                elif name == "webhook":
                    with running_webhook() as receiver:
                        figures += [figure async for figure in measure_webhook(place, receiver, quick)]
                else:
                    with running_nats() as server:
                        figures += [figure async for figure in measure_nats(place, server.url, quick)]
        return figures

    return asyncio.run(run())


if __name__ == "__main__":
    main(__doc__ or "", measure)
