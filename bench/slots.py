"""How fast are work items? Kept here beside their aims, elsewhere beside a bare client that does the same."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import httpx2
import psycopg
from tests.support.postgres import running_postgres
from tests.support.scripted_runs import Neighbour, running_neighbour

from bench.harness import Figure, main
from freehold.home import Home
from freehold.manifest.sections.slots import SlotSection
from freehold.observe.secrets import Secret
from freehold.slots import Slot, SlotCaller
from freehold.slots.beads.contract import ClaimBead, CreateBead, GetBead, ImportBeads, ListBeads, ReleaseBead
from freehold.slots.host import SlotPlace, make_slot
from freehold.timeline import Timeline

OWNER = SlotCaller("owner")
WRITE_AIM, READ_AIM = 5.0, 2.0
"""Milliseconds at the 95th percentile."""


def no_secret(name: str) -> Secret:
    raise AssertionError(name)


async def time_calls(act: Callable[[int], Awaitable[object]], times: int) -> list[float]:
    """How long each call took, in milliseconds."""
    found = []
    for number in range(times):
        begin = time.perf_counter()
        await act(number)
        found.append((time.perf_counter() - begin) * 1000)
    return found


def p95(durations: list[float]) -> float:
    return statistics.quantiles(durations, n=20)[-1]


async def fill(slot: Slot, count: int) -> None:
    """Items of which every tenth needs another one."""
    for start in range(0, count, 200):
        records = []
        for number in range(start, min(count, start + 200)):
            needs = [{"depends_on_id": f"bd-{number - 1:06}", "type": "blocks"}] if number % 10 == 1 else []
            records.append({"id": f"bd-{number:06}", "title": f"item {number}", "dependencies": needs})
        await slot.call(ImportBeads(tuple(records)), OWNER)


async def measure_local(place: SlotPlace, quick: bool) -> AsyncIterator[Figure]:
    slot = make_slot("beads", SlotSection(mode="local"), place)
    await slot.connect()
    count, times = (2_000, 200) if quick else (10_000, 1_000)
    await fill(slot, count)
    created = await time_calls(lambda n: slot.call(CreateBead(f"new {n}", key=f"k{n}"), OWNER), times)
    claimed = await time_calls(lambda n: slot.call(ClaimBead(f"bd-{n * 10:06}"), OWNER), times // 2)
    got = await time_calls(lambda n: slot.call(GetBead(f"bd-{n:06}"), OWNER), times)
    ready = await time_calls(lambda n: slot.call(ListBeads(ready=True, limit=20), OWNER), times // 4)
    appended = p95(await time_calls(lambda _: asyncio.to_thread(place.timeline.append, "bench.done"), times))
    aims = (
        ("create", created, WRITE_AIM),
        ("claim", claimed, WRITE_AIM),
        ("get", got, READ_AIM),
        ("ready", ready, None),
    )
    for name, durations, aim in aims:
        found = p95(durations)
        words = "" if aim is None else f"at most {aim:g} ms"
        met = None if aim is None else found <= aim
        yield Figure(
            f"beads {name}, p95, local, {count} items", found, "ms", "append to the timeline", appended, words, met
        )
    await slot.close()


async def measure_external(place: SlotPlace, url: str, quick: bool) -> AsyncIterator[Figure]:
    """Claim and release in turn with the peer, so that what disturbs one disturbs the other as well.

    The peer is the least that leaves the same rows and tells the same: one connection, one transaction for each change
    with three statements. It has no key, no types, no timeline. Both wait for the disk.
    """
    slot = make_slot("beads", SlotSection(mode="external", settings={"url": url, "schema": "bench"}), place)
    await slot.connect()
    times = 100 if quick else 500
    item = (await slot.call(CreateBead("one"), OWNER)).id
    other = (await slot.call(CreateBead("other"), OWNER)).id

    async def claim_and_release(_: int) -> None:
        await slot.call(ClaimBead(item), OWNER)
        await slot.call(ReleaseBead(item), OWNER)

    async with await psycopg.AsyncConnection.connect(url, autocommit=True, options="-c search_path=bench") as bare:

        async def bare_claim(number: int) -> None:
            for half, (holder, status) in enumerate((("me", "in_progress"), (None, "open"))):
                async with bare.transaction():
                    changed = await bare.execute(_BARE_UPDATE, (holder, status, number, other))
                    await changed.fetchall()
                    await (await bare.execute(_BARE_PARTS, (other, other, other, other))).fetchall()
                    change = (f"bare-{number}", half, 0.0, "me", "claimed", "{}")
                    await bare.execute("INSERT INTO beads_change VALUES (%s, %s, %s, %s, %s, %s)", change)

        for figure in await compare("postgres", claim_and_release, bare_claim, times):
            yield figure
    await slot.close()


async def measure_neighbour(place: SlotPlace, neighbour: Neighbour, quick: bool) -> AsyncIterator[Figure]:
    """The same changes at another Freehold. The peer sends the same requests over one connection, and reads the JSON.

    Both wait for the other Freehold, which does the same work for both; ours also for the timeline of this one.
    """
    settings = {"url": neighbour.url, "token": "env:TOKEN"}
    there = replace(place, environ={"TOKEN": neighbour.token})
    slot = make_slot("beads", SlotSection(mode="external", settings=settings), there)
    await slot.connect()
    item = (await slot.call(CreateBead("one"), OWNER)).id
    other = (await slot.call(CreateBead("other"), OWNER)).id

    async def claim_and_release(_: int) -> None:
        await slot.call(ClaimBead(item), OWNER)
        await slot.call(ReleaseBead(item), OWNER)

    headers = {"authorization": f"Bearer {neighbour.token}"}
    async with httpx2.AsyncClient(base_url=neighbour.url, headers=headers, trust_env=False) as bare:

        async def bare_claim(_: int) -> None:
            for act in ("claim", "release"):
                answer = await bare.post(f"/v1/slots/beads/items/{other}/{act}", json={})
                assert answer.is_success
                answer.json()

        for figure in await compare("another Freehold", claim_and_release, bare_claim, 100 if quick else 500):
            yield figure
    await slot.close()


async def compare(
    where: str, ours: Callable[[int], Awaitable[object]], theirs: Callable[[int], Awaitable[object]], times: int
) -> list[Figure]:
    """In turn."""
    our_times, their_times = [], []
    for number in range(times):
        their_times += await time_calls(lambda _, number=number: theirs(number), 1)  # type: ignore[misc]
        our_times += await time_calls(ours, 1)
    return [
        Figure(
            f"beads claim and release, {name}, {where}",
            measure(our_times),
            "ms",
            "bare client",
            measure(their_times),
            "at most 3 times",
            measure(our_times) <= 3 * measure(their_times),
        )
        for name, measure in (("median", statistics.median), ("p95", p95))
    ]


_BARE_UPDATE = (
    "UPDATE beads_item SET holder = %s, status = %s, updated = %s, version = version + 1 WHERE id = %s RETURNING *"
)
_BARE_PARTS = """
    SELECT 'label', label FROM beads_label WHERE item = %s
    UNION ALL SELECT kind, other FROM beads_link WHERE item = %s
    UNION ALL SELECT 'session', session FROM beads_session WHERE item = %s
    UNION ALL SELECT 'blocked', needed.id FROM beads_link link JOIN beads_item needed ON needed.id = link.other
        WHERE link.item = %s AND link.kind = 'blocks' AND needed.status <> 'closed'
"""


def measure(quick: bool) -> list[Figure]:
    async def run() -> list[Figure]:
        with tempfile.TemporaryDirectory() as folder, Timeline(Path(folder) / "timeline.db") as timeline:
            place = SlotPlace(Home(Path(folder), Path(folder)), timeline, no_secret, {})
            figures = [figure async for figure in measure_local(place, quick)]
            with running_postgres(durable=True) as server:
                figures += [figure async for figure in measure_external(place, server.url, quick)]
            (Path(folder) / "neighbour").mkdir(mode=0o700)
            with running_neighbour(Path(folder) / "neighbour") as neighbour:
                figures += [figure async for figure in measure_neighbour(place, neighbour, quick)]
            return figures

    return asyncio.run(run())


if __name__ == "__main__":
    main(__doc__ or "", measure)
