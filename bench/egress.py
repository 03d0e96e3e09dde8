"""The cost of egress: a program inside, through the link and the proxy, compared with the same program on the host."""

import asyncio
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv4Address
from pathlib import Path

from bench.harness import Figure, main
from freehold.computer import Computer
from freehold.egress import EgressPolicy, EgressRule, EgressService, EgressSettings, parse_pattern
from freehold.egress.names import IPAddress, parse_host
from freehold.timeline import Timeline

HERE = IPv4Address("127.0.0.1")
SERVER = """
import asyncio, sys
size = int(sys.argv[1])
async def answer(reader, writer):
    try:
        head = await reader.readuntil(b"\\r\\n\\r\\n")
        count = size if b"GET /big" in head else 5
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % count)
        piece = bytes(262144)
        while count > 0:
            writer.write(piece[:count])
            count -= len(piece)
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    writer.close()
async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


@asynccontextmanager
async def server(size: int) -> AsyncIterator[int]:
    """A server in a process of its own; its port."""
    process = await asyncio.create_subprocess_exec("python3", "-c", SERVER, str(size), stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield int(await process.stdout.readline())
    finally:
        process.terminate()
        await process.wait()


async def here(_name: str) -> Sequence[IPAddress]:
    return [HERE]


def fetch(host: str, port: int, path: str, tunnel: bool) -> list[str]:
    command = ["curl", "-sS", "--fail", "-o", "/dev/null", "-w", "%{time_total} %{speed_download}"]
    return [*command, *(["--proxytunnel"] if tunnel else []), f"http://{host}:{port}{path}"]


async def on_host(port: int, path: str) -> tuple[float, float]:
    process = await asyncio.create_subprocess_exec(
        *fetch("127.0.0.1", port, path, False), stdout=asyncio.subprocess.PIPE, env={"PATH": "/usr/bin:/bin"}
    )
    output, _ = await process.communicate()
    seconds, speed = output.split()
    return float(seconds), float(speed)


async def inside(computer: Computer, port: int, path: str, tunnel: bool) -> tuple[float, float]:
    result = await computer.run(fetch("bench.example", port, path, tunnel))
    assert result.exit_code == 0, result.stderr
    seconds, speed = result.stdout.split()
    return float(seconds), float(speed)


async def travel(quick: bool) -> list[Figure]:
    size, rounds, big_rounds = (50_000_000, 20, 2) if quick else (400_000_000, 100, 5)
    figures = []
    folder = Path(tempfile.mkdtemp(prefix="freehold-bench-"))
    try:
        with Timeline(folder / "timeline.db") as timeline:
            async with server(size) as port:
                settings = EgressSettings("deny", (f"bench.example:{port}",))
                async with (
                    EgressService(timeline, settings, resolve=here, check=lambda _address: None) as egress,
                    Computer.start() as computer,
                ):
                    await computer.listen(3128, egress.handle)
                    small = [(await inside(computer, port, "/", False))[0] for _ in range(rounds)]
                    direct = [(await on_host(port, "/"))[0] for _ in range(rounds)]
                    figures.append(
                        Figure(
                            "a plain request from inside",
                            statistics.median(small) * 1000,
                            "ms",
                            "on the host",
                            statistics.median(direct) * 1000,
                        )
                    )
                    host_speed = statistics.median([(await on_host(port, "/big"))[1] for _ in range(big_rounds)]) / 1e6
                    for name, tunnel in (("plain", False), ("tunnel", True)):
                        speeds = [(await inside(computer, port, "/big", tunnel))[1] for _ in range(big_rounds)]
                        speed = statistics.median(speeds) / 1e6
                        figures.append(
                            Figure(f"download from inside, {name}", speed, "MB/s", "on the host", host_speed)
                        )
    finally:
        shutil.rmtree(folder)
    return figures


def decisions() -> Figure:
    rules = tuple(EgressRule("allow", parse_pattern(f"*.host{number}.example")) for number in range(10_000))
    policy = EgressPolicy("deny", rules)
    host = parse_host("a.b.host9999.example")
    policy.decide(host, 443)
    start = time.perf_counter()
    for _ in range(10_000):
        policy.decide(host, 443)
    return Figure("a decision among 10,000 rules", (time.perf_counter() - start) * 100, "µs")


def measure(quick: bool) -> Iterable[Figure]:
    yield from asyncio.run(travel(quick))
    yield decisions()


if __name__ == "__main__":
    main(__doc__ or "", measure)
