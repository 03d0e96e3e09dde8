"""What do sessions cost the host: to the first word, in memory while they rest, with many watchers, with all at work?

A whole Freehold with an agent that says the time it speaks at; the peer speaks to the same program over a bare pipe.
What the model gateway adds is measured by bench/models.
"""

import asyncio
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.boot import Home
from bench.harness import Figure, main

AGENT = """
import json, sys, time
def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()
for line in sys.stdin:
    message = json.loads(line)
    method, result = message.get("method"), {}
    if method == "initialize":
        result = {"protocolVersion": 1, "agentCapabilities": {}}
    elif method == "session/new":
        result = {"sessionId": "s", "modes": {"currentModeId": "ask"}}
    elif method == "session/prompt":
        count, pause = json.loads(message["params"]["prompt"][0]["text"].rpartition("\\n")[2])
        for _ in range(count):
            said = {"type": "text", "text": "%d " % time.time_ns()}
            update = {"sessionUpdate": "agent_message_chunk", "content": said}
            send(method="session/update", params={"sessionId": "s", "update": update})
            time.sleep(pause)
        result = {"stopReason": "end_turn"}
    if message.get("id") is not None:
        send(id=message["id"], result=result)
"""
MANIFEST = (
    '[ssh]\nenabled = false\n[agents]\ndefault = "clock"\n[agents.clock]\ncommand = "python3 /workspace/clock.py"\n'
)


class Client:
    def __init__(self, home: Home) -> None:
        import httpx2

        from freehold.identity.tokens import ApiTokens

        with ApiTokens(home.home.identity, owner=None) as tokens:
            _, secret = tokens.create("bench", ("read", "prompt"), None)
        self.headers = {"authorization": f"Bearer {secret}"}
        self.port = home.ports[0]
        self.http = httpx2.AsyncClient(
            base_url=f"http://localhost:{self.port}", headers=self.headers, trust_env=False, timeout=120
        )

    async def post(self, path: str, **body: Any) -> Any:
        answer = await self.http.post(path, json=body)
        answer.raise_for_status()
        return answer.json()

    async def open(self) -> str:
        return str((await self.post("/v1/sessions"))["id"])

    async def prompt(self, session: str, count: int, pause: float = 0.0) -> None:
        await self.post(f"/v1/sessions/{session}/prompt", text=json.dumps([count, pause]), key=uuid.uuid4().hex)

    def watch(self, *sessions: str) -> "Watcher":
        return Watcher(self, sessions)


class Watcher:
    """Notes for every piece of text how long ago it was said, in seconds."""

    def __init__(self, client: Client, sessions: tuple[str, ...]) -> None:
        from websockets.asyncio.client import connect

        address = f"ws://localhost:{client.port}/v1/socket"
        self._connecting = connect(address, additional_headers=client.headers, proxy=None, compression=None)
        self._sessions = sessions
        self.ages: list[float] = []
        self.first = 0.0
        self.ended = 0

    async def __aenter__(self) -> "Watcher":
        self._socket = await self._connecting.__aenter__()
        for session in self._sessions:
            await self._socket.send(json.dumps({"type": "subscribe", "topic": f"session:{session}"}))
            await self._socket.recv()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._socket.close()

    async def until_ended(self, count: int = 1) -> None:
        self.first, self.ended = 0.0, 0
        while self.ended < count:
            message = json.loads(await self._socket.recv())
            now = time.time_ns()
            if message["type"] == "delta":
                self.first = self.first or time.perf_counter()
                self.ages += [(now - int(word)) / 1e9 for word in message["data"]["text"].split()]
            elif message["type"] == "event" and message["data"]["kind"] == "turn.ended":
                self.ended += 1


def bare_first_word(rounds: int) -> float:
    """Seconds from a prompt to the first word, over a pipe."""
    with subprocess.Popen([sys.executable, "-c", AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        times = []
        for number in range(rounds):
            prompt = {"id": number + 1, "method": "session/prompt", "params": {"prompt": [{"text": "[1, 0]"}]}}
            start = time.perf_counter()
            program.stdin.write(json.dumps(prompt).encode() + b"\n")
            program.stdin.flush()
            program.stdout.readline()
            times.append(time.perf_counter() - start)
            program.stdout.readline()
        program.stdin.close()
    return statistics.median(times)


async def first_word(client: Client, rounds: int) -> float:
    session = await client.open()
    times = []
    async with client.watch(session) as watcher:
        for _ in range(rounds + 1):
            start = time.perf_counter()
            await client.prompt(session, 1)
            await watcher.until_ended()
            times.append(watcher.first - start)
    return statistics.median(times[1:])  # the first starts the agent


async def rest(client: Client, count: int, memory: Any) -> float:
    """Bytes of the gateway for each of `count` sessions that have spoken and now rest."""
    sessions = [await client.open() for _ in range(5)]
    await converse(client, sessions)
    before = memory()
    sessions = [await client.open() for _ in range(count)]
    await converse(client, sessions)
    await asyncio.sleep(1.0)
    after: int = memory()
    return max(0.0, float(after - before)) / count


async def converse(client: Client, sessions: list[str]) -> None:
    for start in range(0, len(sessions), 10):
        some = sessions[start : start + 10]
        async with client.watch(*some) as watcher:
            for session in some:
                await client.prompt(session, 5)
            await watcher.until_ended(len(some))


async def fan_out(client: Client, watchers: int, pieces: int) -> list[float]:
    session = await client.open()
    await converse(client, [session])
    async with asyncio.TaskGroup() as group:
        crowd = [client.watch(session) for _ in range(watchers)]
        for each in crowd:
            await each.__aenter__()
        tasks = [group.create_task(each.until_ended()) for each in crowd]
        await client.prompt(session, pieces, 0.01)
        await asyncio.wait(tasks)
    for each in crowd:
        await each.__aexit__()
    return sorted(age for each in crowd for age in each.ages)


async def all_at_work(client: Client, count: int, seconds: float) -> list[float]:
    """How long the API takes to answer while `count` sessions stream 20 pieces a second each."""
    sessions = [await client.open() for _ in range(count)]
    times: list[float] = []
    async with client.watch(*sessions[:50]) as watcher:
        for session in sessions:
            await client.prompt(session, int(seconds * 20), 0.05)
        reading = asyncio.ensure_future(watcher.until_ended(min(50, count)))
        while not reading.done():
            start = time.perf_counter()
            (await client.http.get("/v1/sessions?limit=20")).raise_for_status()
            times.append(time.perf_counter() - start)
            await asyncio.sleep(0.02)
        await reading
    return sorted(times[len(times) // 4 :])  # the first quarter is the agents' own start


async def kill_switch(client: Client, gateway: int, count: int) -> float:
    """Seconds from the owner's word until the last of `count` agents at work is gone, as the kernel of the host tells it."""
    sessions = [await client.open() for _ in range(count)]
    async with client.watch(*sessions) as watcher:
        for session in sessions:
            await client.prompt(session, 100_000, 0.02)
        heard = 0
        while heard < 20 * count:  # all of them are well at work then
            message = json.loads(await watcher._socket.recv())
            heard += message["type"] == "delta"
    handles = [os.pidfd_open(pid) for pid in agents_of(gateway)]
    poll = select.poll()
    for handle in handles:
        poll.register(handle, select.POLLIN)
    living = set(handles)

    def wait() -> float:
        while living:
            for handle, _ in poll.poll(30_000):
                poll.unregister(handle)
                living.discard(handle)
        return time.perf_counter()

    waiting = asyncio.ensure_future(asyncio.to_thread(wait))
    start = time.perf_counter()
    await client.post("/v1/stop")
    took = await waiting - start
    for handle in handles:
        os.close(handle)
    if len(handles) < count:
        raise RuntimeError(f"{len(handles)} of {count} agents were at work")
    return took


def agents_of(gateway: int) -> list[int]:
    """The agents in the computer of the keeper that this gateway belongs to, by their numbers on the host."""
    parents: dict[int, int] = {}
    agents = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat, line = (entry / "stat").read_text(), (entry / "cmdline").read_bytes()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
            if b"/workspace/clock.py" in line:
                agents.append(int(entry.name))
    keeper = parents[gateway]

    def is_below(pid: int) -> bool:
        while pid in parents:
            pid = parents[pid]
            if pid == keeper:
                return True
        return False

    return [pid for pid in agents if is_below(pid)]


async def measure_all(quick: bool) -> list[Figure]:
    from freehold.keeper.calls import GetKeeperStatus
    from freehold.keeper.client import call_keeper
    from freehold.keeper.processes import read_resident_bytes

    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        home.home.root.mkdir(mode=0o700)
        home.home.manifest.write_text(MANIFEST)
        with home.up():
            (home.home.workspace / "clock.py").write_text(AGENT)
            (home.home.workspace / "clock.py").chmod(0o644)
            client = Client(home)
            programs = call_keeper(home.home, GetKeeperStatus()).programs
            pid = next(one.pid for one in programs if one.name == "gateway" and one.pid is not None)
            rounds = 10 if quick else 30
            bare = bare_first_word(rounds)
            ours = await first_word(client, rounds)
            figures.append(Figure("prompt to first word", ours * 1e3, "ms", "over a bare pipe", bare * 1e3))
            ages = await fan_out(client, 1, 100 if quick else 300)
            crowd = await fan_out(client, 20, 100 if quick else 300)
            one = statistics.median(ages) * 1e3
            figures.append(
                Figure("a word to 20 watchers, median", statistics.median(crowd) * 1e3, "ms", "to one watcher", one)
            )
            count = 30 if quick else 100
            each = await rest(client, count, lambda: read_resident_bytes(pid)) / 1e3
            figures.append(
                Figure(
                    f"gateway's memory a resting session, {count} of them",
                    each,
                    "kB",
                    aim="under 300 kB",
                    met=each < 300,
                )
            )
            count = 40 if quick else 100
            times = await all_at_work(client, count, 4.0 if quick else 8.0)
            p99 = times[int(len(times) * 0.99)] * 1e3
            aim = "under 50 ms with 100"
            figures.append(
                Figure(
                    f"API p99 while {count} sessions stream",
                    p99,
                    "ms",
                    "median",
                    statistics.median(times) * 1e3,
                    aim,
                    p99 < 50,
                )
            )
            ended = await kill_switch(client, pid, 10) * 1e3
            figures.append(Figure("kill switch, 10 agents at work", ended, "ms", aim="under 1000 ms", met=ended < 1000))
            await client.http.aclose()
    return figures


def measure(quick: bool) -> Iterable[Figure]:
    return asyncio.run(measure_all(quick))


if __name__ == "__main__":
    main(__doc__ or "", measure)
