"""How fast do events pass our relay, beside a public one, and what do the heartbeats of 1,000 clients cost their host?"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import httpx2
import nostr_sdk as sdk
from tests.mesh.freeholds import PEER, MeshFreehold, pair, running_mesh
from tests.support.condition import until
from tests.support.nostr import sdk_relay

from bench.harness import Figure, main
from bench.slots import p95
from freehold.mesh.http_signature import sign_request
from freehold.mesh.messages import MessageKind
from freehold.mesh.nostr.direct_message import Rumor
from freehold.mesh.nostr.keys import NostrKey, make_key

PASS_AIM = 25.0
PAUSE = 0.06
"""Seconds between two events: each comes alone. Many at once are a burst, which who follows reads every 32 ms."""
WARM_UP = 5
"""Events that are not counted."""
CLIENTS, HEARTBEAT = 1_000, 30.0
CORE_AIM, MEMORY_AIM = 5.0, 50.0
"""Percent of a core, and MB."""
FACTS = {"version": "1", "contracts": {}, "capabilities": [], "load": 0.0}


class Arrivals:
    """When a Freehold has stored each event that was told to it: opened, checked and there for who asks."""

    def __init__(self, home: MeshFreehold) -> None:
        self._waiting: dict[int, asyncio.Future[float]] = {}
        self._add = home.mesh.relays.messages.add
        self._loop = asyncio.get_running_loop()
        home.mesh.relays.messages.add = self._note  # type: ignore[method-assign]

    def expect(self, number: int) -> asyncio.Future[float]:
        self._waiting[number] = self._loop.create_future()
        return self._waiting[number]

    def _note(self, rumor: Rumor, kind: MessageKind) -> bool:
        """In a thread, as the store is called."""
        is_new = self._add(rumor, kind)
        waiting = self._waiting.pop(json.loads(rumor.content)["data"]["turn"], None)
        if waiting is not None:
            self._loop.call_soon_threadsafe(waiting.set_result, time.perf_counter())
        return is_new


async def is_connected(home: MeshFreehold) -> bool:
    return all(one.state == "ok" for one in await asyncio.to_thread(home.mesh.relays.states))


async def time_events(sender: MeshFreehold, receiver: MeshFreehold, count: int) -> list[float]:
    """Milliseconds from an event of the timeline at one Freehold until its neighbour has it. Some twelve a second."""
    arrivals, durations, timeline = Arrivals(receiver), list[float](), sender.gateway.services.timeline
    for number in range(-WARM_UP, count):
        arrived = arrivals.expect(number)
        started = time.perf_counter()
        await asyncio.to_thread(timeline.append, "turn.started", {"turn": number})
        async with asyncio.timeout(60):
            duration = (await arrived - started) * 1000
        if number >= 0:
            durations.append(duration)
        await asyncio.sleep(PAUSE)
    return durations


@asynccontextmanager
async def paired_at(url: str, *others: MeshFreehold) -> AsyncIterator[tuple[MeshFreehold, MeshFreehold]]:
    """Two Freeholds that know each other and reach each other by this relay only."""
    manifest = f'{PEER}relays = ["{url}"]\npublish = ["turn.started"]\n'
    async with AsyncExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2)]
        first, second = [await stack.enter_async_context(running_mesh(one, manifest)) for one in folders]
        for one in (first, second):
            for other in others:
                await pair(other, one)
        await pair(first, second)
        for one in (first, second):
            await until(partial(is_connected, one))
        yield first, second


async def measure_relay(quick: bool) -> Figure:
    count = 120 if quick else 450
    sdk.nostr_sdk.uniffi_set_event_loop(asyncio.get_running_loop())
    async with sdk_relay() as url, paired_at(url) as (sender, receiver):
        peer = p95(await time_events(sender, receiver, count))
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        home = await stack.enter_async_context(running_mesh(folder, PEER + "[mesh.relay]\nenabled = true\n"))
        own = f"ws://localhost:{home.gateway.port}/relay"
        sender, receiver = await stack.enter_async_context(paired_at(own, home))
        found = p95(await time_events(sender, receiver, count))
    return Figure(
        "event from one Freehold to another through our relay, p95",
        found,
        "ms",
        "through the relay of nostr-sdk (keeps nothing on disk)",
        peer,
        f"at most {PASS_AIM:g} ms",
        found <= PASS_AIM,
    )


@contextmanager
def running_host(folder: Path, keys: list[NostrKey]) -> Iterator[tuple[str, int, Callable[[], None]]]:
    """The address and the process id of a host, and what introduces these clients to it."""
    command = [sys.executable, "-m", "tests.mesh.host_process", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def introduce() -> None:
            stdin.write("".join(f"{key.public}\n" for key in keys) + "\n")
            stdin.flush()
            stdout.readline()

        try:
            yield stdout.readline().strip(), process.pid, introduce
        finally:
            process.stdin.close()
            process.wait(30)


def read_cost(pid: int) -> tuple[float, float]:
    """Seconds of processor, and MB of memory."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def post(http: httpx2.AsyncClient, url: str, key: NostrKey, path: str, body: object) -> dict[str, str]:
    content = json.dumps(body).encode()
    headers = {"authorization": sign_request(key, "POST", url + path, content), "content-type": "application/json"}
    answer = await http.post(url + path, content=content, headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, str] = answer.json()
    return found


async def measure_heartbeats(quick: bool) -> list[Figure]:
    keys = [make_key() for _ in range(CLIENTS)]
    seconds = 8.0 if quick else HEARTBEAT
    with tempfile.TemporaryDirectory() as folder, running_host(Path(folder), keys) as (url, pid, introduce):
        async with httpx2.AsyncClient(trust_env=False, timeout=30) as http:
            await http.get(url + "/livez")
            _, before = read_cost(pid)
            await asyncio.to_thread(introduce)
            sessions = [(await post(http, url, key, "/v1/mesh/register", FACTS))["session"] for key in keys]
            idle_begin = read_cost(pid)[0]
            await asyncio.sleep(seconds / 2)
            idle = (read_cost(pid)[0] - idle_begin) / (seconds / 2) * 100
            begun, started = time.perf_counter(), read_cost(pid)[0]
            sent = 0
            while (elapsed := time.perf_counter() - begun) < seconds:
                due = sent * HEARTBEAT / CLIENTS
                await asyncio.sleep(max(0.0, due - elapsed))
                one = sent % CLIENTS
                await post(http, url, keys[one], "/v1/mesh/heartbeat", {"session": sessions[one]})
                sent += 1
            used, after = read_cost(pid)
            busy = (used - started) / (time.perf_counter() - begun) * 100
    core, memory = max(0.0, busy - idle), max(0.0, after - before)
    name = f"heartbeats of {CLIENTS} clients, {sent / seconds:.0f}/s"
    return [
        Figure(
            f"{name}: processor",
            core,
            "% core",
            "the same host, idle",
            idle,
            f"at most {CORE_AIM:g} %",
            core <= CORE_AIM,
        ),
        Figure(
            f"{name}: memory",
            memory,
            "MB",
            "the host without them",
            before,
            f"at most {MEMORY_AIM:g} MB",
            memory <= MEMORY_AIM,
        ),
    ]


def measure(quick: bool) -> Iterator[Figure]:
    yield asyncio.run(measure_relay(quick))
    yield from asyncio.run(measure_heartbeats(quick))


if __name__ == "__main__":
    main(__doc__ or "", measure)
