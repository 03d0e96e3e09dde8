"""How fast a sealed computer is: start, commands, terminals, files, many at once, memory; compared with the host and docker."""

# The compared programs block on purpose: an event loop would only add to their figures.
# ruff: noqa: ASYNC220, ASYNC221, ASYNC222

import asyncio
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from bench.harness import Figure, main
from freehold.computer import Computer, ComputerPool
from freehold.computer.contract.backend import find_host_pid

TRUE = "/bin/true"
ECHO = ["/bin/echo", "hello"]
BWRAP = [
    "bwrap",
    "--unshare-all",
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/bin",
    "/bin",
    "--symlink",
    "usr/lib",
    "/lib",
]
BWRAP += ["--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--die-with-parent"]
SPAWNS_INSIDE = """
import os, statistics, sys, time
taken = []
for _ in range(int(sys.argv[1])):
    began = time.perf_counter()
    os.waitpid(os.posix_spawn("/bin/true", ["/bin/true"], os.environ), 0)
    taken.append(time.perf_counter() - began)
print(statistics.median(taken))
"""
MB = 1_000_000

Step = Callable[[], Awaitable[object]]


async def medians(rounds: int, *steps: Step) -> list[float]:
    """Median seconds of each step. The steps take turns, so that a disturbance affects all of them."""
    times: list[list[float]] = [[] for _ in steps]
    for _ in range(rounds):
        for step, taken in zip(steps, times, strict=True):
            began = time.perf_counter()
            await step()
            taken.append(time.perf_counter() - began)
    return [statistics.median(taken) for taken in times]


async def bare(*command: str) -> None:
    """fork, exec, wait: the minimum cost of a command."""
    os.waitpid(os.posix_spawn(command[0], command, os.environ), 0)


async def captured(command: str | list[str]) -> None:
    subprocess.run(command, shell=isinstance(command, str), stdout=subprocess.PIPE, check=True)


def docker_image() -> str | None:
    """An image to compare with, if a docker daemon runs."""
    if shutil.which("docker") is None:
        return None
    shown = subprocess.run(["docker", "images", "-q"], capture_output=True, text=True, check=False)
    return shown.stdout.split()[0] if shown.returncode == 0 and shown.stdout.split() else None


def measure(quick: bool) -> Iterator[Figure]:
    with asyncio.Runner() as runner:
        figures: list[Figure] = []
        for part in (starts, commands, terminals, files, crowds, memory):
            before = len(figures)
            runner.run(part(quick, figures))
            yield from figures[before:]


async def starts(quick: bool, figures: list[Figure]) -> None:
    async def start() -> None:
        async with Computer.start() as computer:
            await computer.run(ECHO)
            first.append(time.perf_counter() - began[0])

    first: list[float] = []
    began = [0.0]
    await start()
    first.clear()
    bubble: list[float] = []
    docked: list[float] = []
    image = docker_image()
    for _ in range(7 if quick else 25):
        began[0] = time.perf_counter()
        await start()
        began[0] = time.perf_counter()
        await captured([*BWRAP, *ECHO])
        bubble.append(time.perf_counter() - began[0])
        if image is not None:
            began[0] = time.perf_counter()
            await captured(["docker", "run", "--rm", "--network", "none", image, *ECHO])
            docked.append(time.perf_counter() - began[0])
    taken = statistics.median(first)
    figures.append(
        Figure(
            "start to first output",
            taken * 1000,
            "ms",
            "bubblewrap per command",
            statistics.median(bubble) * 1000,
            "<= 25 ms",
            taken <= 0.025,
        )
    )
    if image is None:
        figures.append(Figure("start beside docker run", taken * 1000, "ms", "no docker daemon here: skipped"))
    else:
        peer = statistics.median(docked)
        figures.append(
            Figure(
                "start beside docker run",
                taken * 1000,
                "ms",
                "docker run",
                peer * 1000,
                "<= 1/4 of docker run",
                taken <= peer / 4,
            )
        )

    async with Computer.pool(3) as pool:
        warm = [await checkout(pool) for _ in range(5 if quick else 20)]
    figures.append(
        Figure(
            "warm pool checkout to output",
            statistics.median(warm) * 1000,
            "ms",
            aim="<= 5 ms",
            met=statistics.median(warm) <= 0.005,
        )
    )


async def checkout(pool: ComputerPool) -> float:
    await pool.wait_ready()
    began = time.perf_counter()
    async with pool.checkout() as computer:
        await computer.run(ECHO)
        return time.perf_counter() - began


async def commands(quick: bool, figures: list[Figure]) -> None:
    rounds = 100 if quick else 400
    async with Computer.start() as computer:
        inside, outside, sandboxed = await medians(
            rounds, lambda: computer.run([TRUE]), lambda: bare(TRUE), lambda: captured([*BWRAP, TRUE])
        )
        figures.append(
            Figure(
                "a warm command",
                inside * 1000,
                "ms",
                "bare fork/exec",
                outside * 1000,
                "<= 1.25 x bare",
                inside <= 1.25 * outside,
            )
        )
        (asked,) = await medians(rounds, lambda: computer.files.exists("/"))
        spawned = float((await computer.run(["/usr/bin/python3", "-I", "-c", SPAWNS_INSIDE, str(rounds)])).check().text)
        floor = "a request on the link, and fork, exec and wait inside"
        figures.append(Figure("a warm command beside its floor", inside * 1000, "ms", floor, (asked + spawned) * 1000))
        figures.append(
            Figure(
                "a warm command beside bubblewrap for each",
                inside * 1000,
                "ms",
                "bubblewrap per command",
                sandboxed * 1000,
            )
        )
        pipeline = "seq 2000 | sort -n | tail -n 1"
        piped, locally = await medians(rounds // 4, lambda: computer.run(pipeline), lambda: captured(pipeline))
        figures.append(Figure("a pipeline of three", piped * 1000, "ms", "sh -c on the host", locally * 1000))
    image = docker_image()
    if image is None:
        figures.append(
            Figure("a warm command beside docker exec", inside * 1000, "ms", "no docker daemon here: skipped")
        )
        return
    name = f"freehold-bench-{os.getpid()}"
    subprocess.run(
        ["docker", "run", "-d", "--rm", "--name", name, image, "sleep", "600"], check=True, capture_output=True
    )
    try:
        (docked,) = await medians(7 if quick else 25, lambda: captured(["docker", "exec", name, TRUE]))
    finally:
        subprocess.run(["docker", "kill", name], check=True, capture_output=True)
    figures.append(
        Figure(
            "a warm command beside docker exec",
            inside * 1000,
            "ms",
            "docker exec",
            docked * 1000,
            "<= 1/20 of docker exec",
            inside <= docked / 20,
        )
    )


async def terminals(quick: bool, figures: list[Figure]) -> None:
    near, far = os.openpty()
    cat = subprocess.Popen(["cat"], stdin=far, stdout=far, start_new_session=True)
    try:
        async with Computer.start() as computer, await computer.terminal(["cat"]) as terminal:

            async def inside() -> None:
                await terminal.write(b"x")
                await terminal.read()

            async def locally() -> None:
                os.write(near, b"x")
                os.read(near, 100)

            echoed, peer = await medians(100 if quick else 500, inside, locally)
    finally:
        cat.kill()
        cat.wait()
        os.close(near)
        os.close(far)
    figures.append(Figure("a keystroke's echo", echoed * 1e6, "us", "a pty on the host", peer * 1e6))


async def files(quick: bool, figures: list[Figure]) -> None:
    rounds = 100 if quick else 500
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        content, small = os.urandom(100 * MB), b"x" * 1000
        (place / "large").write_bytes(content)
        async with Computer.start() as computer:
            await computer.files.write("large", content)
            await computer.run("mkdir many; cd many; seq 10000 | xargs touch")
            (place / "many").mkdir()
            for number in range(10_000):
                (place / "many" / str(number)).touch()

            async def locally_write() -> None:
                (place / "draft").write_bytes(small)
                (place / "draft").replace(place / "small")

            wrote, peer = await medians(rounds, lambda: computer.files.write("small", small), locally_write)
            figures.append(Figure("write 1 KB", wrote * 1e6, "us", "write and rename on the host", peer * 1e6))

            async def locally_read(name: str) -> None:
                (place / name).read_bytes()

            read, peer = await medians(rounds, lambda: computer.files.read("small"), lambda: locally_read("small"))
            figures.append(Figure("read 1 KB", read * 1e6, "us", "on the host", peer * 1e6))
            large, peer = await medians(
                3 if quick else 9, lambda: computer.files.read("large"), lambda: locally_read("large")
            )
            figures.append(
                Figure("read 100 MB", 100 / large, "MB/s", "on the host", 100 / peer, ">= 300 MB/s", 100 / large >= 300)
            )

            async def drink() -> None:
                async with await computer.spawn(["cat", "large"]) as process:
                    async for _ in process.stdout:
                        pass

            streamed, peer = await medians(3 if quick else 9, drink, lambda: captured(["cat", str(place / "large")]))
            figures.append(
                Figure(
                    "stream a process's 100 MB",
                    100 / streamed,
                    "MB/s",
                    "a pipe on the host",
                    100 / peer,
                    ">= 300 MB/s",
                    100 / streamed >= 300,
                )
            )

            async def locally_list() -> None:
                with os.scandir(place / "many") as entries:
                    sorted((entry.name, entry.stat().st_size) for entry in entries)

            listed, peer = await medians(3 if quick else 9, lambda: computer.files.list("many"), locally_list)
            figures.append(
                Figure("list 10,000 files", listed * 1000, "ms", "scandir and stat on the host", peer * 1000)
            )


async def crowds(quick: bool, figures: list[Figure]) -> None:
    async with Computer.start() as computer:
        for count in (1, 10, 100):

            async def inside(count: int = count) -> None:
                await asyncio.gather(*(computer.run(ECHO) for _ in range(count)))

            async def locally(count: int = count) -> None:
                running = [subprocess.Popen(ECHO, stdout=subprocess.PIPE) for _ in range(count)]
                for process in running:
                    process.communicate()

            taken, peer = await medians(5 if quick else 15, inside, locally)
            figures.append(Figure(f"{count} commands at once", taken * 1000, "ms", "on the host", peer * 1000))


async def memory(quick: bool, figures: list[Figure]) -> None:
    async with Computer.start() as computer:
        for _ in range(20):
            await computer.run(ECHO)
        await computer.files.list()
        pid = None if computer.machine is None else find_host_pid(computer.machine)
        if pid is not None:
            shares = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            sizes = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in shares if line.endswith("kB")}
            figures.append(
                Figure(
                    "guest's memory, idle (PSS)",
                    sizes["Pss"],
                    "MB",
                    "its RSS, shared pages in full",
                    sizes["Rss"],
                    "<= 12 MB",
                    sizes["Pss"] <= 12,
                )
            )


if __name__ == "__main__":
    main(__doc__ or "", measure)
