"""What does a computer cost that nobody uses, and how soon is it there again?

    python -m bench.sleep [--quick] [--json]

The computer holds 200 MB of memory and a server. It sleeps by the same socket as under the keeper. Beside it: what it
would take to start it anew.
"""

import asyncio
import contextlib
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from bench.harness import Figure, main
from freehold.computer import Computer, launch
from freehold.computer.contract.backend import Machine
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.contract.transport import listen_at
from freehold.computer.library.use import use_socket
from freehold.computer.library.use_server import UseServer

MEMORY = "import time\nx = bytearray(200 << 20)\nx[::4096] = b'1' * len(x[::4096])\nprint('ready', flush=True)\ntime.sleep(1e6)\n"
AT_ONCE = 100
ASLEEP_SECONDS = 2.0
SOON = 0.01


@contextlib.asynccontextmanager
async def sleeping_computer(folder: Path) -> AsyncIterator[tuple[Machine, UseServer, Computer]]:
    for part in ("workspace", "home"):
        (folder / part).mkdir()
    with contextlib.closing(listen_at(use_socket(folder / "link"))) as listener:
        machine = await launch(ComputerSpec(folder / "workspace", folder / "home"), folder / "link")
        try:
            server = UseServer(machine, SOON, lambda _: None, lambda *_: None)
            async with asyncio.TaskGroup() as group:
                serving = group.create_task(server.run(listener))
                async with Computer.connect(folder / "link") as computer:
                    yield machine, server, computer
                serving.cancel()
        finally:
            await machine.stop(0)


async def asleep(server: UseServer) -> None:
    while server.current is None:  # noqa: ASYNC110 - measured from outside
        await asyncio.sleep(0.001)


async def measure_sleep(rounds: int) -> dict[str, float]:
    found: dict[str, list[float]] = {"sleep": [], "wake": [], "many": [], "start": []}
    with tempfile.TemporaryDirectory(prefix="bench-sleep-") as name:
        async with sleeping_computer(Path(name)) as (machine, server, computer):
            with computer.hold_awake():  # a program in the background does not
                process = await computer.spawn(["/usr/bin/python3", "-c", MEMORY])
                await process.stdout.read()
            for _ in range(rounds):
                await asleep(server)
                began = time.perf_counter()
                await computer.run(["/bin/true"])
                found["wake"].append(time.perf_counter() - began)
                with computer.hold_awake():
                    began = time.perf_counter()
                    await machine.sleep()
                    found["sleep"].append(time.perf_counter() - began)
                    await machine.wake()
            await asleep(server)
            used = machine.usage().cpu_seconds or 0.0
            await asyncio.sleep(ASLEEP_SECONDS)
            found["processor"] = [(machine.usage().cpu_seconds or 0.0) - used]
            report = server.current.report if server.current is not None else None
            found["given back"] = [0.0 if report is None else report.given_back / 1e6]
            began = time.perf_counter()
            answers = await asyncio.gather(*(computer.run(["echo", str(number)]) for number in range(AT_ONCE)))
            found["many"].append(time.perf_counter() - began)
            found["lost"] = [float(sum(int(one.stdout) != number for number, one in enumerate(answers)))]
    for _ in range(rounds):
        began = time.perf_counter()
        async with Computer.start() as fresh:
            await fresh.run(["/bin/true"])
            found["start"].append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in found.items()}


def measure(quick: bool) -> Iterator[Figure]:
    found = asyncio.run(measure_sleep(10 if quick else 50))
    sleep, wake, start = found["sleep"] * 1e3, found["wake"] * 1e3, found["start"] * 1e3
    yield Figure("fall asleep", sleep, "ms", aim="<= 50 ms", met=sleep <= 50)
    yield Figure("wake to the end of a command", wake, "ms", "start a new one", start, "<= 20 ms", wake <= 20)
    processor = found["processor"]
    yield Figure(f"processor time in {ASLEEP_SECONDS:g} s asleep", processor, "s", aim="0 s", met=processor == 0)
    yield Figure(f"wake by {AT_ONCE} requests at once, all answered", found["many"] * 1e3, "ms")
    yield Figure("requests that were lost", found["lost"], "", aim="0", met=found["lost"] == 0)
    yield Figure("memory given back (0 without swap)", found["given back"], "MB")


if __name__ == "__main__":
    main(__doc__.splitlines()[0], measure)
