"""What does each backend cost: from nothing to the first output, and a command in a computer that runs?

    python -m bench.backends [--quick] [--json]

An engine that does not answer is left out and named. SANDBOX_HOST is the address of the docker engine.
"""

import asyncio
import os
import statistics
import time
from collections.abc import Iterator

from bench.harness import Figure, main
from freehold.computer import Computer
from freehold.computer.engine.api import find_engine
from freehold.computer.microvm.requirements import check_vm_requirements
from freehold.computer.registry import find_backend
from freehold.errors import FreeholdError

MAX_START = {"bubblewrap": 25, "docker": 100, "podman": 120, "microvm": 6000}
"""Milliseconds. A virtual machine boots; most of that is emulation where there is no KVM."""
MAX_WARM_RATIO = {"bubblewrap": 1.25, "docker": 1.25, "podman": 1.25}
TRUE = "/bin/true"


def find_host(name: str) -> str | None:
    return os.environ.get("SANDBOX_HOST") if name == "docker" else None


def why_not(name: str) -> str:
    if name == "bubblewrap":
        return ""
    try:
        if name == "microvm":
            check_vm_requirements()
            return ""
        find_engine(name, find_host(name)).version()
    except FreeholdError as error:
        return error.message
    return ""


async def measure_backend(name: str, rounds: int, commands: int) -> tuple[float, float, float]:
    """Medians in milliseconds: start to first output, a warm command, and fork, exec and wait on the host."""
    backend = find_backend(name, find_host(name))
    starts: list[float] = []
    warm: list[float] = []
    bare: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        async with Computer.start(backend=backend) as computer:
            await computer.run([TRUE])
            starts.append(time.perf_counter() - began)
            for _ in range(commands):
                began = time.perf_counter()
                await computer.run([TRUE])
                warm.append(time.perf_counter() - began)
                began = time.perf_counter()
                os.waitpid(os.posix_spawn(TRUE, [TRUE], os.environ), 0)  # noqa: ASYNC221, ASYNC222 - blocks on purpose
                bare.append(time.perf_counter() - began)
    return tuple(statistics.median(each) * 1e3 for each in (starts, warm, bare))  # type: ignore[return-value]


def measure(quick: bool) -> Iterator[Figure]:
    rounds, commands = (5, 20) if quick else (15, 60)
    for name, allowed in MAX_START.items():
        reason = why_not(name)
        if reason:
            yield Figure(f"{name}: not run", 0, "", reason)
            continue
        try:
            started, warm, bare = asyncio.run(measure_backend(name, rounds, commands))
        except FreeholdError as error:
            yield Figure(f"{name}: not run", 0, "", error.message)
            continue
        yield Figure(f"{name}: start to first output", started, "ms", aim=f"<= {allowed} ms", met=started <= allowed)
        ratio = MAX_WARM_RATIO.get(name)
        aim, met = ("", None) if ratio is None else (f"<= {ratio} x", warm <= ratio * bare)
        yield Figure(f"{name}: warm command", warm, "ms", "fork, exec and wait", bare, aim, met)


if __name__ == "__main__":
    main(__doc__.splitlines()[0], measure)
