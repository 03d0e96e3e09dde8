"""Do many agents work at once on two cores, and does anything grow without end?

A whole Freehold with the built-in agent and a scripted model. First 10, 50 and 100 prompts at once, then a soak: turn
after turn in four sessions, with the memory and the open files of every process and the size of every file. The peer is
one prompt alone. What grows must level off: in the last third of the soak it grows by next to nothing a turn, or in a
short soak, in which caches of a fixed size still fill, clearly less than in the third before. Only what keeps the
conversation and what happened may grow, each by a known size a turn. Say the load of the machine with every figure: the agents share its cores
with everything else.
"""

import argparse
import asyncio
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.boot import Home, make_files
from bench.harness import Figure, report
from freehold.testing import ScriptedModel

FIRST_TOKEN_AIM = 1.5
SOAK_SESSIONS = 4
TURNS_A_SAMPLE = 3
TURNS_OF_A_SESSION = 200
"""Then another takes its place: a conversation is sent whole with each turn, so what it needs grows with it."""
MAX_GROWTH = 256.0
"""Bytes a turn that may still be added in the last third of a soak: less than the noise of an allocator."""
MAX_QUICK_GROWTH = 1024.0
"""In a short soak, whose last third has a few hundred turns."""
STILL_FILLING = 0.75
"""In a short soak, what levels off grows in the last third by at most this share of what it grew by in the one before."""

GROWS_BY_DESIGN = {
    "agent": 2048.0,
    "home/": 1024.0,
    "timeline.db": 4096.0,
    "usage.db": 1024.0,
    "history": 1024.0,
    "logs/": 1024.0,
}
"""What keeps the conversation or what happened, with the bytes a turn that this may take. Names begin so.

An agent holds its conversation until it summarises it. The timeline is archived and folded by its own rules.
"""

CACHED_CHANGES = 5_000
"""File changes that fill the keeper's buffer of recent ones before the soak, which else takes thousands of turns."""

QUICK_SOAK = 24.0


@dataclass
class Crowd:
    """What many prompts at once came to."""

    first_tokens: list[float]
    """Seconds from the common start to the first word of each session that answered."""
    failures: list[str]
    peak_memory: int

    @property
    def first_ten(self) -> float:
        return statistics.median(sorted(self.first_tokens)[:10]) if self.first_tokens else float("inf")


@dataclass
class Sample:
    """Sizes in bytes after so many turns."""

    turns: int
    sizes: dict[str, int] = field(default_factory=dict)
    at: float = field(default_factory=time.perf_counter)


class LoadClient:
    """Opens sessions and prompts them, through the API."""

    def __init__(self, home: Home) -> None:
        import httpx2

        from freehold.identity.tokens import ApiTokens

        with ApiTokens(home.home.identity, owner=None) as tokens:
            _, secret = tokens.create("bench", ("read", "prompt"), None)
        self._headers = {"authorization": f"Bearer {secret}"}
        self._port = home.ports[0]
        limits = httpx2.Limits(max_connections=200)
        self._http = httpx2.AsyncClient(
            base_url=f"http://localhost:{self._port}",
            headers=self._headers,
            trust_env=False,
            timeout=300,
            limits=limits,
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def post(self, path: str, **body: Any) -> Any:
        answer = await self._http.post(path, json=body)
        answer.raise_for_status()
        return answer.json()

    async def delete(self, session: str) -> None:
        (await self._http.delete(f"/v1/sessions/{session}")).raise_for_status()

    async def open(self) -> str:
        return str((await self.post("/v1/sessions"))["id"])

    async def prompt(self, session: str, text: str) -> None:
        await self.post(f"/v1/sessions/{session}/prompt", text=text, key=uuid.uuid4().hex)

    @asynccontextmanager
    async def watch(self, sessions: list[str]) -> AsyncIterator["LoadWatcher"]:
        from websockets.asyncio.client import connect

        address = f"ws://localhost:{self._port}/v1/socket"
        async with connect(address, additional_headers=self._headers, proxy=None, compression=None) as socket:
            for session in sessions:
                await socket.send(json.dumps({"type": "subscribe", "topic": f"session:{session}"}))
                await socket.recv()
            yield LoadWatcher(socket)


class LoadWatcher:
    """Notes when each session said its first word, and how its turn ended."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self.first: dict[str, float] = {}
        self.failures: list[str] = []
        self.ended = 0

    async def until_ended(self, count: int) -> None:
        while self.ended < count:
            message = json.loads(await self._socket.recv())
            session = str(message.get("topic", "")).removeprefix("session:")
            if message["type"] in ("delta", "event") and message["data"]["kind"] == "message":
                self.first.setdefault(session, time.perf_counter())
            elif message["type"] == "event" and message["data"]["kind"] == "turn.ended":
                self.ended += 1
                error = message["data"]["data"].get("error")
                if error is not None:
                    self.failures.append(f"{error.get('code')}: {error.get('message')}")


async def prompt_at_once(client: LoadClient, count: int, computer: "ComputerMemory") -> Crowd:
    """`count` new sessions, each prompted at the same moment."""
    sessions = [await client.open() for _ in range(count)]
    groups = [sessions[at : at + 25] for at in range(0, count, 25)]
    peak = 0

    async def follow(group: list[str], begun: float) -> tuple[list[float], list[str]]:
        async with client.watch(group) as watcher:
            async with asyncio.TaskGroup() as prompts:
                for session in group:
                    prompts.create_task(client.prompt(session, "SAY hello"))
            async with asyncio.timeout(280):
                await watcher.until_ended(len(group))
        return [at - begun for at in watcher.first.values()], watcher.failures

    async def measure_memory() -> None:
        nonlocal peak
        while True:
            peak = max(peak, await asyncio.to_thread(computer.read))
            await asyncio.sleep(0.25)

    measuring = asyncio.ensure_future(measure_memory())
    begun = time.perf_counter()
    try:
        results = await asyncio.gather(*(follow(group, begun) for group in groups))
    finally:
        measuring.cancel()
    firsts = [first for group, _ in results for first in group]
    return Crowd(firsts, [failure for _, failures in results for failure in failures], peak)


class ComputerMemory:
    """The memory of everything in the computer, shared pages counted once a process group as the kernel splits them."""

    def __init__(self, gateway: int) -> None:
        self._keeper = _parent_of(gateway)
        self._gateway = gateway

    def read(self) -> int:
        total = 0
        for pid in _descendants(self._keeper):
            if b"freehold.builtin" in _read(f"/proc/{pid}/cmdline"):
                total += _pss(pid)
        return total

    def sizes(self) -> dict[str, int]:
        """The resident bytes and open files of each process of ours, and the private bytes of each agent."""
        found = _describe("keeper", self._keeper)
        for pid in _descendants(self._keeper):
            line = _read(f"/proc/{pid}/cmdline").split(b"\0")
            if b"freehold.builtin" in line:
                found[f"agent {pid}"] = _private(pid)
            elif any(b"/opt/freehold/guest" in word for word in line) and b"--args" not in line:
                found |= _describe("guest", pid)
            else:
                names = [word.decode() for word in line if word.startswith(b"freehold.")]
                found |= _describe(names[0], pid) if names else {}
        return found


def _describe(name: str, pid: int) -> dict[str, int]:
    try:
        descriptors = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return {}
    return {f"memory of {name}": _resident(pid), f"open files of {name}": descriptors}


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _parent_of(pid: int) -> int:
    words = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return int(words[1]) if words else 0


def _descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            children.setdefault(_parent_of(int(entry.name)), []).append(int(entry.name))
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _resident(pid: int) -> int:
    words = _read(f"/proc/{pid}/statm").split()
    return int(words[1]) * os.sysconf("SC_PAGE_SIZE") if words else 0


def _pss(pid: int) -> int:
    return _sum_of(pid, b"Pss:")


def _private(pid: int) -> int:
    return _sum_of(pid, b"Private_Clean:", b"Private_Dirty:")


def _sum_of(pid: int, *fields: bytes) -> int:
    lines = _read(f"/proc/{pid}/smaps_rollup").splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(fields))


def file_sizes(root: Path) -> dict[str, int]:
    """The size of every file of the home outside of the agents' own folders."""
    sizes = {}
    for folder, _, names in os.walk(root):
        if "/agents" in folder:
            continue
        for name in names:
            path = Path(folder, name)
            try:
                sizes[str(path.relative_to(root))] = path.stat().st_size
            except OSError:
                continue
    return sizes


async def soak(client: LoadClient, computer: ComputerMemory, home: Path, seconds: float) -> list[Sample]:
    """Turns one after another in a few sessions, which come and go, with samples on the way."""
    samples: list[Sample] = []
    failures: list[str] = []
    turns = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sessions = [await client.open() for _ in range(SOAK_SESSIONS)]
        async with client.watch(sessions) as watcher:
            for number in range(TURNS_OF_A_SESSION):
                async with asyncio.TaskGroup() as group:
                    for session in sessions:
                        group.create_task(client.prompt(session, "SAY hello"))
                watcher.ended = 0
                await watcher.until_ended(len(sessions))
                turns += len(sessions)
                if number % TURNS_A_SAMPLE == TURNS_A_SAMPLE - 1:
                    samples.append(Sample(turns, await asyncio.to_thread(lambda: computer.sizes() | file_sizes(home))))
                if time.monotonic() > end:
                    break
        failures += watcher.failures
        for session in sessions:
            await client.delete(session)
    if failures:
        raise RuntimeError(f"turns failed in the soak: {failures[:3]}")
    return samples


def turn_cost(samples: list[Sample]) -> Figure:
    """How much longer a turn takes at the end of the soak than at its begin, for the same four sessions."""
    paces = [
        (after.at - before.at) / (after.turns - before.turns)
        for before, after in itertools.pairwise(samples)
        if after.turns > before.turns
    ]
    third = max(1, len(paces) // 3)
    early, late = statistics.median(paces[:third]), statistics.median(paces[-third:])
    ratio = late / early
    return Figure(
        "a turn at the end of the soak", late * 1000, "ms", "at its begin", early * 1000, "≤ 1.5 ×", ratio <= 1.5
    )


def growth(samples: list[Sample], name: str) -> float:
    """Bytes a turn: the median slope over all pairs (Theil and Sen), which one jump does not move."""
    sizes = [(sample.turns, sample.sizes[name]) for sample in samples if name in sample.sizes]
    slopes = [
        (later - earlier) / (after - before)
        for at, (before, earlier) in enumerate(sizes)
        for after, later in sizes[at + 1 :]
        if after > before
    ]
    return statistics.median(slopes) if slopes else 0.0


def judge_soak(samples: list[Sample], *, quick: bool) -> list[Figure]:
    """Every process, and every file that grows. One that ends before the soak does cannot grow without end."""
    third = len(samples) // 3
    middle, last = samples[third : 2 * third], samples[2 * third :]
    figures = []
    for name in sorted(last[-1].sizes):
        slope, before = growth(last, name), growth(middle, name)
        kept = next((limit for start, limit in GROWS_BY_DESIGN.items() if name.startswith(start)), None)
        limit = kept or (0.01 if name.startswith("open files") else MAX_QUICK_GROWTH if quick else MAX_GROWTH)
        met = slope <= limit or (quick and kept is None and slope <= STILL_FILLING * before)
        unit = "/turn" if name.startswith("open files") else "B/turn"
        if slope > limit or name.startswith(("memory", "open files")) or (kept and slope > 0):
            figures.append(
                Figure(f"growth of {name[-44:]}", slope, unit, "the third before", before, f"≤ {limit:g}", met)
            )
    return figures


async def fill_caches(home: Home) -> None:
    """So many files change that the keeper keeps no more of them. Returns when it has seen them all."""
    from freehold.history.calls import TakeSnapshot
    from freehold.keeper.client import call_keeper

    folder = home.home.workspace / "changed"
    for start in range(0, CACHED_CHANGES, 500):
        make_files(folder / str(start), 500)
        await asyncio.to_thread(call_keeper, home.home, TakeSnapshot())


async def measure_all(quick: bool, soak_seconds: float) -> AsyncIterator[Figure]:
    from freehold.keeper.calls import GetKeeperStatus
    from freehold.keeper.client import call_keeper

    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        home.home.root.mkdir(mode=0o700)
        async with ScriptedModel() as model:
            manifest = f'[ssh]\nenabled = false\n[models.scripted]\nbase_url = "{model.url}/v1"\nmodel = "scripted"\n'
            home.home.manifest.write_text(manifest)
            _install_builtin(home)
            # Starting and stopping waits for other processes, and the model must answer meanwhile.
            context = home.up()
            await asyncio.to_thread(context.__enter__)
            try:
                programs = (await asyncio.to_thread(call_keeper, home.home, GetKeeperStatus())).programs
                gateway = next(one.pid for one in programs if one.name == "gateway" and one.pid is not None)
                computer = ComputerMemory(gateway)
                client = LoadClient(home)
                alone = await prompt_at_once(client, 1, computer)
                one = alone.first_tokens[0]
                aim = FIRST_TOKEN_AIM
                for count in (10, 30) if quick else (10, 50, 100):
                    crowd = await prompt_at_once(client, count, computer)
                    first = crowd.first_ten
                    yield Figure(
                        f"{count} prompts at once: first token of the first ten",
                        first,
                        "s",
                        "one prompt alone",
                        one,
                        f"≤ {aim} s",
                        first <= aim,
                    )
                    last = max(crowd.first_tokens, default=float("inf"))
                    yield Figure(f"{count} prompts at once: first token of the last", last, "s")
                    failed = float(len(crowd.failures))
                    yield Figure(f"{count} prompts at once: failures", failed, "", aim="0", met=failed == 0)
                    memory = crowd.peak_memory / 1e6
                    yield Figure(
                        f"{count} prompts at once: memory of the agents",
                        memory,
                        "MB",
                        aim="≤ 4295 MB",
                        met=memory <= 4295,
                    )
                await fill_caches(home)
                samples = await soak(client, computer, home.home.root, soak_seconds)
                yield turn_cost(samples)
                for figure in judge_soak(samples, quick=quick):
                    yield figure
                await client.close()
            finally:
                await asyncio.to_thread(context.__exit__, None, None, None)


def _install_builtin(home: Home) -> None:
    from freehold.agents.catalogue.installation import install_agent
    from freehold.agents.catalogue.registry import find_agent
    from freehold.manifest.model import Manifest

    install_agent(home.home, find_agent(Manifest(), "builtin"))


async def collect(quick: bool, seconds: float) -> list[Figure]:
    return [figure async for figure in measure_all(quick, seconds)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10 and 30 at once, and a short soak, within 45 seconds")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long the soak runs (10)")
    options = parser.parse_args()
    sys.exit(
        report(
            __doc__ or "",
            asyncio.run(collect(options.quick, QUICK_SOAK if options.quick else options.minutes * 60)),
            as_json=options.json,
        )
    )
