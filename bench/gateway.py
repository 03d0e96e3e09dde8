"""What does the guard cost? Authenticated requests and a thousand sockets, beside the same application without it.

Server and load are processes of their own. For the cost of a request, one process serves both with and without the
guard, on two ports that are asked in turns: two processes differ by some percent even with the same code.
"""

import asyncio
import contextlib
import json
import os
import resource
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.harness import Figure, main

SOCKETS = 1_000
MESSAGES_A_SECOND = 10
CONNECTIONS = 16
PATIENCE = 120.0


# The server


def serve(folder: str) -> None:
    """Serve with and without the guard until stdin ends; prints {"ports", "token"} when ready."""
    asyncio.run(_serve(Path(folder)))


async def _serve(root: Path) -> None:
    import uvicorn
    from starlette.types import Receive, Scope, Send

    from freehold.gateway.app import build_app
    from freehold.gateway.principal import Principal
    from freehold.gateway.rate_limit import RateLimit
    from freehold.gateway.server import make_server_config
    from freehold.gateway.services import open_services
    from freehold.gateway.topic_publisher import TopicPublisher
    from freehold.gateway.topics import Topic
    from freehold.home import Home, ensure_private_folder
    from freehold.manifest import load_manifest

    _open_many_files()
    home = Home(root=root, run=root / "run")
    ensure_private_folder(home.run)
    with contextlib.closing(_free_socket()) as probe, contextlib.closing(_free_socket()) as other:
        port, plain_port = probe.getsockname()[1], other.getsockname()[1]
    home.manifest.write_text(f"[gateway]\nport = {port}\n")
    with open_services(home, load_manifest(home.manifest, {}, home=home.root)) as house:
        token, secret = house.tokens.create("bench", ["read"], None)
        feeds = TopicPublisher(house)
        ready = asyncio.Event()
        door = build_app(house, publisher=feeds, on_ready=ready.set)
        guard = await door.load()
        guard._owner_limit = RateLimit(rate=1e9, burst=1e9)
        topic = feeds.topics.add(Topic("bench"))
        known = Principal(token=token, address="127.0.0.1")

        async def unguarded(scope: Scope, receive: Receive, send: Send) -> None:
            scope.setdefault("state", {})["principal"] = known
            await guard._app(scope, receive, send)

        plain_config = make_server_config(unguarded, "127.0.0.1", plain_port)
        plain_config.lifespan = "off"  # the other server runs it for both
        servers = [
            uvicorn.Server(make_server_config(door, "127.0.0.1", port)),
            uvicorn.Server(plain_config),
        ]
        async with asyncio.TaskGroup() as group:
            for server in servers:
                group.create_task(server.serve())
            await ready.wait()
            while not all(server.started for server in servers):  # noqa: ASYNC110 - nothing tells that they listen
                await asyncio.sleep(0.01)
            publishing = group.create_task(_publish(topic))
            print(json.dumps({"ports": {"guarded": port, "plain": plain_port}, "token": secret}), flush=True)
            await asyncio.to_thread(sys.stdin.read)
            publishing.cancel()
            for server in servers:
                server.should_exit = True


async def _publish(topic: Any) -> None:
    """Ten messages a second, each with the moment it was said."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        topic.publish({"at": time.monotonic(), "text": "x" * 100})
        due = max(due + 1 / MESSAGES_A_SECOND, loop.time())  # what was late is not made up for in a burst
        await asyncio.sleep(max(0.0, due - loop.time()))


# The load


def request_load(port: int, token: str, seconds: float, rate: float) -> None:
    """Prints {"count", "latencies"}: as many as go (`rate` 0), or so many a second whatever the answers do."""
    print(json.dumps(asyncio.run(_request_load(port, token, seconds, rate))), flush=True)


async def _request_load(port: int, token: str, seconds: float, rate: float) -> dict[str, Any]:
    request = (
        f"GET /v1/me HTTP/1.1\r\nHost: localhost:{port}\r\nAuthorization: Bearer {token}\r\n"
        "Accept: application/json\r\nUser-Agent: bench\r\n\r\n"
    ).encode()
    latencies: list[float] = []
    loop = asyncio.get_running_loop()
    start = loop.time()
    turns = iter(range(int(rate * seconds)))

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, since: float) -> None:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head[:100].decode())
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        await reader.readexactly(length)
        latencies.append(loop.time() - since)

    async def connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if rate:
            for turn in turns:
                due = start + turn / rate
                if due > loop.time():
                    await asyncio.sleep(due - loop.time())
                await one(reader, writer, due)  # a late answer counts from when it was due
        else:
            while loop.time() < start + seconds:
                await one(reader, writer, loop.time())
        writer.close()
        await writer.wait_closed()

    async with asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(connection())
    return {"count": len(latencies), "latencies": sorted(latencies), "seconds": loop.time() - start}


def socket_load(port: int, token: str, seconds: float) -> None:
    """Opens the sockets, says so, reads for a while once told to, prints {"count", "latencies"}."""
    _open_many_files()
    asyncio.run(_socket_load(port, token, seconds))


class _Frames(asyncio.Protocol):
    """A WebSocket client that only listens."""

    def __init__(self, hello: bytes, latencies: list[float], said: set[bytes]) -> None:
        self._hello = hello
        self._said = said
        self._left = b""
        self._latencies = latencies
        self.subscribed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._hello)

    def data_received(self, data: bytes) -> None:
        left = self._left + data
        if not self._open:
            head, found, rest = left.partition(b"\r\n\r\n")
            if not found:
                self._left = left
                return
            if b" 101 " not in head:
                self.subscribed.set_exception(RuntimeError(head[:100].decode()))
                return
            self._open = True
            left = rest
            word = b'{"type":"subscribe","topic":"bench"}'
            self.transport.write(bytes([0x81, 0x80 | len(word), 0, 0, 0, 0]) + word)
        while len(left) >= 4:
            size, start = left[1], 2
            if size == 126:
                size, start = int.from_bytes(left[2:4], "big"), 4
            if len(left) < start + size:
                break
            self._message(left[start : start + size])
            left = left[start + size :]
        self._left = left

    def _message(self, text: bytes) -> None:
        if b'"event"' in text:
            said = text.partition(b'"at":')[2].partition(b",")[0]
            self._said.add(said)
            self._latencies.append(time.monotonic() - float(said))
        elif b'"subscribed"' in text and not self.subscribed.done():
            self.subscribed.set_result(None)


async def _socket_load(port: int, token: str, seconds: float) -> None:
    hello = (
        f"GET /v1/socket HTTP/1.1\r\nHost: localhost:{port}\r\nAuthorization: Bearer {token}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ).encode()
    latencies: list[float] = []
    said: set[bytes] = set()
    loop = asyncio.get_running_loop()
    opened: list[_Frames] = []
    for _ in range(SOCKETS // 50):
        batch = [
            (await loop.create_connection(lambda: _Frames(hello, latencies, said), "127.0.0.1", port))[1]
            for _ in range(50)
        ]
        await asyncio.gather(*(frames.subscribed for frames in batch))
        opened += batch
    print(json.dumps({"open": len(opened)}), flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    latencies.clear()
    said.clear()
    start = loop.time()
    await asyncio.sleep(seconds)
    took = loop.time() - start
    seen = {"count": len(latencies), "latencies": sorted(latencies), "seconds": took, "said": len(said)}
    print(json.dumps(seen), flush=True)
    for frames in opened:
        frames.transport.abort()


# The measurement


@dataclass(frozen=True)
class Server:
    kind: str
    process: "subprocess.Popen[str]"
    port: int
    token: str

    def cpu(self) -> float:
        """Seconds of all its threads. Its `stat` counts in hundredths only."""
        threads = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9

    def memory(self) -> int:
        """Resident bytes that are its own."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def _started(folder: Path) -> Iterator[tuple[Server, Server]]:
    """One process, as the server with the guard and as the one without."""
    with _program("serve", str(folder)) as process:
        ready = _line(process)
        guarded, plain = (Server(kind, process, ready["ports"][kind], ready["token"]) for kind in ("guarded", "plain"))
        yield guarded, plain


@contextlib.contextmanager
def _program(name: str, *arguments: object) -> Iterator["subprocess.Popen[str]"]:
    call = f"from bench import gateway; gateway.{name}(*{arguments!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", call], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _line(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], PATIENCE)[0]:
        raise TimeoutError("the other process said nothing")
    found: dict[str, Any] = json.loads(process.stdout.readline() or "{}")
    if not found:
        raise RuntimeError("the other process failed")
    return found


def _requests(server: Server, seconds: float, rate: float = 0.0) -> tuple[dict[str, Any], float]:
    """What the load saw, and the processor time of the server for each request."""
    before = server.cpu()
    with _program("request_load", server.port, server.token, seconds, rate) as load:
        seen = _line(load)
    return seen, (server.cpu() - before) / seen["count"]


def _sockets(server: Server, seconds: float) -> dict[str, float]:
    empty = server.memory()
    with _program("socket_load", server.port, server.token, seconds) as load:
        opened = _line(load)["open"]
        each = (server.memory() - empty) / opened
        before = server.cpu()
        assert load.stdin is not None
        print(file=load.stdin, flush=True)
        seen = _line(load)
        busy = (server.cpu() - before) / seen["seconds"]
    wanted = opened * seen["said"]
    return {
        "each": each,
        "busy": busy,
        "delivered": seen["count"] / wanted,
        "p99": _percentile(seen["latencies"], 99),
    }


def _percentile(ordered: list[float], percent: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def measure(quick: bool) -> Iterator[Figure]:
    rounds, seconds, steady = (9, 0.6, 4.0) if quick else (40, 1.0, 20.0)
    with (
        tempfile.TemporaryDirectory() as folder,
        _started(Path(folder) / "guarded") as (guarded, same),
        _started(Path(folder) / "plain") as (_, plain),
    ):
        idle = guarded.memory() / 1e6
        speeds: dict[str, list[float]] = {"guarded": [], "plain": []}
        costs: dict[str, list[float]] = {"guarded": [], "plain": []}
        for turn in range(rounds + 1):
            for server in (guarded, same) if turn % 2 else (same, guarded):
                seen, cost = _requests(server, seconds)
                if turn:  # the first warms up
                    speeds[server.kind].append(seen["count"] / seen["seconds"])
                    costs[server.kind].append(cost)
        ratio = statistics.median(g / p for g, p in zip(costs["guarded"], costs["plain"], strict=True))
        yield Figure(
            "authenticated requests",
            statistics.median(speeds["guarded"]),
            "/s",
            "without the guard",
            statistics.median(speeds["plain"]),
        )
        yield Figure(
            "processor time a request",
            statistics.median(costs["guarded"]) * 1e6,
            "µs",
            "without the guard",
            statistics.median(costs["plain"]) * 1e6,
        )
        yield Figure("cost of the guard", (ratio - 1) * 100, "%", aim="under 10 %", met=ratio < 1.10)
        steadily = {server.kind: _requests(server, steady, 200)[0]["latencies"] for server in (guarded, plain)}
        for percent in (50, 95, 99):
            value = _percentile(steadily["guarded"], percent) * 1000
            yield Figure(
                f"p{percent} at 200 requests a second",
                value,
                "ms",
                "without the guard",
                _percentile(steadily["plain"], percent) * 1000,
                "under 25 ms" if percent == 99 else "",
                value < 25 if percent == 99 else None,
            )
        with_guard, without = (_sockets(server, steady) for server in (guarded, plain))
        yield Figure(
            f"memory a socket, {SOCKETS} open",
            with_guard["each"] / 1000,
            "kB",
            "without the guard",
            without["each"] / 1000,
            "under 60 kB",
            with_guard["each"] < 60_000,
        )
        yield Figure(
            "of their 10 messages a second, delivered",
            with_guard["delivered"] * 100,
            "%",
            "without the guard",
            without["delivered"] * 100,
            "all but the last, under way",
            with_guard["delivered"] > 0.95,
        )
        yield Figure("p99 of a message", with_guard["p99"] * 1000, "ms", "without the guard", without["p99"] * 1000)
        yield Figure("processor for them", with_guard["busy"] * 100, "%", "without the guard", without["busy"] * 100)
        yield Figure("memory when idle", idle, "MB", aim="under 90 MB", met=idle < 90)


def _free_socket() -> Any:
    import socket

    return socket.create_server(("127.0.0.1", 0))


def _open_many_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    main("What does the guard cost, and what does a socket?", measure)
