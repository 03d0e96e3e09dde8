"""How fast do events pass our relay, beside a public one, and what do the heartbeats of 1,000 clients cost their host?"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx2
import nostr_sdk as sdk
from tests.mesh.freeholds import PEER, running_mesh
from tests.mesh.test_relay import Client
from tests.support.nostr import sdk_relay
from websockets.asyncio.client import connect

from bench.harness import Figure, main
from bench.slots import p95
from freehold.mesh.http_signature import sign_request
from freehold.mesh.nostr.event import read_event, sign_event
from freehold.mesh.nostr.keys import NostrKey, make_key

PASS_AIM = 25.0
CLIENTS, HEARTBEAT = 1_000, 30.0
CORE_AIM, MEMORY_AIM = 5.0, 50.0
"""Percent of a core, and MB."""
FACTS = {"version": "1", "contracts": {}, "capabilities": [], "load": 0.0}


@asynccontextmanager
async def client_at(url: str, key: NostrKey, *, asks: bool) -> AsyncIterator[Client]:
    """`asks`: the relay asks for authentication at the first request, and not at once."""
    async with connect(url, proxy=None, max_size=None) as socket:
        client = Client(socket, url)
        if asks:
            await client.send("REQ", "first", {"kinds": [9]})
        assert (await client.authenticate(key))[0]
        yield client


async def time_events(url: str, key: NostrKey, count: int, *, asks: bool) -> list[float]:
    """Milliseconds from publishing an event until another client has received and checked it."""
    durations = []
    async with client_at(url, key, asks=asks) as sender, client_at(url, key, asks=asks) as receiver:
        await receiver.find({"kinds": [1], "authors": [key.public]}, name="live")
        for number in range(count):
            event = sign_event(key, 1, f"event {number}")
            started = time.perf_counter()
            await sender.send("EVENT", event.as_json())
            found = read_event((await receiver.read("EVENT"))[2])
            assert found.is_signed
            durations.append((time.perf_counter() - started) * 1000)
            await sender.read("OK")
            await asyncio.sleep(0.01)
    return durations


async def measure_relay(quick: bool) -> Figure:
    count, key = 200 if quick else 450, make_key()
    sdk.nostr_sdk.uniffi_set_event_loop(asyncio.get_running_loop())
    async with sdk_relay() as url:
        peer = p95(await time_events(url, key, count, asks=True))
    with tempfile.TemporaryDirectory() as folder:
        async with running_mesh(Path(folder), PEER + "[mesh.relay]\nenabled = true\n") as home:
            url = f"ws://localhost:{home.gateway.port}/relay"
            found = p95(await time_events(url, home.mesh.key, count, asks=False))
    return Figure(
        "event through our relay, p95",
        found,
        "ms",
        "relay of nostr-sdk (keeps nothing on disk)",
        peer,
        f"at most {PASS_AIM:g} ms",
        found <= PASS_AIM,
    )


@contextmanager
def running_host(folder: Path, keys: list[NostrKey]) -> Iterator[tuple[str, int]]:
    """The address and the process id of a host that knows these clients."""
    command = [sys.executable, "-m", "tests.mesh.host_process", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(f"{key.public}\n" for key in keys) + "\n")
        process.stdin.flush()
        try:
            yield process.stdout.readline().strip(), process.pid
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
    with tempfile.TemporaryDirectory() as folder, running_host(Path(folder), keys) as (url, pid):
        async with httpx2.AsyncClient(trust_env=False, timeout=30) as http:
            await post(http, url, keys[0], "/v1/mesh/register", FACTS)  # the routes are loaded
            _, before = read_cost(pid)
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
