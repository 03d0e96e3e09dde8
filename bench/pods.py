"""How fast are personal documents? Kept here beside their aims, on a Solid server beside a bare client."""

import asyncio
import json
import statistics
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
from tests.support.solid import SolidPod, running_solid

from bench.harness import Figure, main
from bench.slots import OWNER, no_secret, p95, time_calls
from freehold.home import Home
from freehold.manifest.sections.slots import SlotSection
from freehold.observe.secrets import Secret
from freehold.slots.host import SlotPlace, make_slot
from freehold.slots.pods.contract import FindDocuments, GetDocument, PutDocument
from freehold.slots.pods.solid_sign_in import SolidSignIn
from freehold.timeline import Timeline

WRITE_AIM, READ_AIM = 10.0, 5.0
"""Milliseconds at the 95th percentile."""
CONTENT = json.dumps({"words": "x" * 1000})
MEDIA = "application/json"


async def measure_local(place: SlotPlace, quick: bool) -> AsyncIterator[Figure]:
    slot = make_slot("pods", SlotSection(mode="local"), place)
    await slot.connect()
    count, times = (300, 200) if quick else (2_000, 1_000)
    for number in range(count):
        await slot.call(PutDocument(f"many/{number % 50}/{number}.json", MEDIA, CONTENT), OWNER)
    appended = p95(await time_calls(lambda _: asyncio.to_thread(place.timeline.append, "bench.done"), times))
    written = p95(await time_calls(lambda n: slot.call(PutDocument(f"new/{n}.json", MEDIA, CONTENT), OWNER), times))
    read = p95(await time_calls(lambda n: slot.call(GetDocument(f"new/{n}.json"), OWNER), times))
    found = await time_calls(lambda _: slot.call(FindDocuments(MEDIA, limit=100), OWNER), 10)
    peer = ("append to the timeline", appended)
    yield Figure("pods write, p95, local", written, "ms", *peer, f"at most {WRITE_AIM:g} ms", written <= WRITE_AIM)
    yield Figure("pods read, p95, local", read, "ms", "", None, f"at most {READ_AIM:g} ms", read <= READ_AIM)
    yield Figure(f"pods search by type, median, {count} documents", statistics.median(found), "ms")
    await slot.close()


async def measure_solid(place: SlotPlace, pod: SolidPod, quick: bool) -> AsyncIterator[Figure]:
    """In turn with a bare client with the same sign-in, which writes and asks for the new ETag, and reads."""
    slot = make_slot("pods", SlotSection(mode="external", settings=pod.settings("ours")), place)
    await slot.connect()
    sign_in = SolidSignIn(pod.base, pod.client_id, Secret(pod.client_secret))
    address = f"{pod.pod}bare/one.json"
    async with httpx2.AsyncClient(auth=sign_in, trust_env=False, timeout=30) as bare:

        async def bare_write(_: int) -> None:
            headers = {"content-type": MEDIA}
            (await bare.put(address, content=CONTENT.encode(), headers=headers)).raise_for_status()
            (await bare.head(address)).raise_for_status()

        async def bare_read(_: int) -> None:
            (await bare.get(address)).raise_for_status()

        acts = (
            ("write", bare_write, lambda _: slot.call(PutDocument("one.json", MEDIA, CONTENT), OWNER)),
            ("read", bare_read, lambda _: slot.call(GetDocument("one.json"), OWNER)),
        )
        for name, their_act, our_act in acts:
            theirs: list[float] = []
            ours: list[float] = []
            for _ in range(40 if quick else 200):
                theirs += await time_calls(their_act, 1)
                ours += await time_calls(our_act, 1)
            found, peer = p95(ours), p95(theirs)
            yield Figure(
                f"pods {name}, p95, solid", found, "ms", "bare client", peer, "at most 3 times", found <= 3 * peer
            )
    await slot.close()


def measure(quick: bool) -> list[Figure]:
    async def run() -> list[Figure]:
        with tempfile.TemporaryDirectory() as folder, Timeline(Path(folder) / "timeline.db") as timeline:
            home = Home(Path(folder), Path(folder))
            figures = [figure async for figure in measure_local(SlotPlace(home, timeline, no_secret, {}), quick)]
            with running_solid() as pod:
                place = SlotPlace(home, timeline, no_secret, {"SOLID_SECRET": pod.client_secret})
                figures += [figure async for figure in measure_solid(place, pod, quick)]
            return figures

    return asyncio.run(run())


if __name__ == "__main__":
    main(__doc__ or "", measure)
