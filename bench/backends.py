"""What does each backend cost: from nothing to the first output, and a command in a computer that runs?

    python -m bench.backends [--quick] [--json]

An engine that does not answer is left out and named. Beside its start stands the floor: how long the same engine takes to
create and start a container without network, limits and filters that only sees /usr. SANDBOX_HOST is the address of the
docker engine, FREEHOLD_VM_SYSTEM a folder with QEMU, virtiofsd and a kernel. A virtual machine starts as a copy of a
template, which is made before the measurement; without KVM it is emulated.
"""

import asyncio
import os
import secrets
import statistics
import time
from collections.abc import Awaitable, Iterator

from bench.harness import Figure, main
from freehold.computer import Computer
from freehold.computer.engine.api import find_engine
from freehold.computer.engine.container import find_image
from freehold.computer.microvm.requirements import check_vm_requirements
from freehold.computer.registry import find_backend
from freehold.errors import FreeholdError

MAX_START = {"bubblewrap": 25, "docker": 100, "podman": 120, "microvm": 500}
"""Milliseconds."""
MAX_WAKE = {"microvm": 500}
"""Milliseconds. For the others see bench.sleep."""
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


def start_bare_container(name: str) -> float:
    """Milliseconds that the engine takes to create and start a container that only sees /usr."""
    api = find_engine(name, find_host(name))
    image, container = find_image(api, None), f"bench-{secrets.token_hex(6)}"
    host = {
        "NetworkMode": "none",
        "Binds": ["/usr:/usr:ro"],
        "LogConfig": {"Type": "none"},
        "SecurityOpt": ["seccomp=unconfined"],
    }
    began = time.perf_counter()
    try:
        api.create(container, {"Image": image, "Entrypoint": ["/usr/bin/sleep", "60"], "HostConfig": host})
        api.start(container)
        return (time.perf_counter() - began) * 1e3
    finally:
        api.remove(container)


async def measure_backend(name: str, rounds: int, commands: int) -> dict[str, float]:
    """Medians in milliseconds: start to first output, a warm command, fork, exec and wait on the host, sleep and wake.

    For an engine also the floor of a start.
    """
    backend = find_backend(name, find_host(name))
    found: dict[str, list[float]] = {"start": [], "warm": [], "bare": [], "sleep": [], "wake": [], "floor": []}

    async def timed(what: str, step: Awaitable[object]) -> None:
        began = time.perf_counter()
        await step
        found[what].append((time.perf_counter() - began) * 1e3)

    async with Computer.start(backend=backend) as computer:  # makes what is made once
        await computer.run([TRUE])
    for _ in range(rounds):
        if name in ("docker", "podman"):
            found["floor"].append(await asyncio.to_thread(start_bare_container, name))
        began = time.perf_counter()
        async with Computer.start(backend=backend) as computer:
            await computer.run([TRUE])
            found["start"].append((time.perf_counter() - began) * 1e3)
            for _ in range(commands):
                await timed("warm", computer.run([TRUE]))
                began = time.perf_counter()
                os.waitpid(os.posix_spawn(TRUE, [TRUE], os.environ), 0)  # noqa: ASYNC221, ASYNC222 - blocks on purpose
                found["bare"].append((time.perf_counter() - began) * 1e3)
            if name in MAX_WAKE and computer.machine is not None:
                await timed("sleep", computer.machine.sleep())
                await timed("wake", wake_and_run(computer))
    return {what: statistics.median(times) for what, times in found.items() if times}


async def wake_and_run(computer: Computer) -> None:
    if computer.machine is not None:
        await computer.machine.wake()
    await computer.run([TRUE])


def measure(quick: bool) -> Iterator[Figure]:
    for name, allowed in MAX_START.items():
        rounds, commands = (5, 20) if quick else (15, 60)
        reason = why_not(name)
        if reason:
            yield Figure(f"{name}: not run", 0, "", reason)
            continue
        try:
            found = asyncio.run(measure_backend(name, rounds, commands))
        except FreeholdError as error:
            yield Figure(f"{name}: not run", 0, "", error.message)
            continue
        start, warm, bare = found["start"], found["warm"], found["bare"]
        peer = "a bare container, created and started" if "floor" in found else ""
        floor, aim = found.get("floor"), f"<= {allowed} ms"
        yield Figure(f"{name}: start to first output", start, "ms", peer, floor, aim, start <= allowed)
        ratio = MAX_WARM_RATIO.get(name)
        aim, met = ("", None) if ratio is None else (f"<= {ratio} x", warm <= ratio * bare)
        yield Figure(f"{name}: warm command", warm, "ms", "fork, exec and wait", bare, aim, met)
        if "wake" in found:
            most = MAX_WAKE[name]
            yield Figure(f"{name}: fall asleep", found["sleep"], "ms")
            aim, met = f"<= {most} ms", found["wake"] <= most
            yield Figure(f"{name}: wake to first output", found["wake"], "ms", "start", start, aim, met)


if __name__ == "__main__":
    main(__doc__.splitlines()[0], measure)
