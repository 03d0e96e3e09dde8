"""What does the guard cost? Authenticated requests and a thousand sockets, beside the same application without it.

Server and load are processes of their own. For the cost of a request, one process serves both with and without the
guard, on two ports that are asked in turns: two processes differ by some percent even with the same code. The turns
are short and many, so that whatever else the machine does strikes both alike.
"""

import asyncio
import contextlib
import itertools
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
TURN_REQUESTS = 12
"""Of each connection, before the other port has its turn."""
PATIENCE = 120.0


# The server


def serve(folder: str) -> None:
    """Serve with and without the guard until stdin ends; prints {"ports", "token"} when ready."""
    asyncio.run(_serve(Path(folder)))


async def _serve(root: Path) -> None:
    import uvicorn
    from fastapi import FastAPI
    from starlette.types import Receive, Scope, Send

    from freehold.gateway.app import build_app
    from freehold.gateway.principal import Principal
    from freehold.gateway.rate_limit import RateLimit
    from freehold.gateway.routing import build_all
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
        assert isinstance(guard._app, FastAPI)
        build_all(guard._app)  # without the guard, the framework finds the routes
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
    """Prints {"latencies"} of so many requests a second, whatever the answers do."""
    print(json.dumps(asyncio.run(_request_load(port, token, seconds, rate))), flush=True)


async def _request_load(port: int, token: str, seconds: float, rate: float) -> dict[str, Any]:
    latencies: list[float] = []
    loop = asyncio.get_running_loop()
    start = loop.time()
    turns = iter(range(int(rate * seconds)))

    async def connection() -> None:
        client = await _Client.connect(port, token)
        for turn in turns:
            due = start + turn / rate
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            await client.ask()
            latencies.append(loop.time() - due)  # a late answer counts from when it was due
        await client.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(connection())
    return {"latencies": sorted(latencies)}


class _Client:
    """One connection that asks one request after the other."""

    def __init__(self, port: int, token: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._request = (
            f"GET /v1/me HTTP/1.1\r\nHost: localhost:{port}\r\nAuthorization: Bearer {token}\r\n"
            "Accept: application/json\r\nUser-Agent: bench\r\n\r\n"
        ).encode()
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, port: int, token: str) -> "_Client":
        return cls(port, token, *await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, times: int = 1) -> None:
        for _ in range(times):
            self._writer.write(self._request)
            head = await self._reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(head[:100].decode())
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
            await self._reader.readexactly(length)

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


def compared_load(ports: dict[str, int], token: str, pid: int, rounds: int) -> None:
    """Asks both ports in turns. Prints for each its requests a second, and the server's processor time a request."""
    print(json.dumps(asyncio.run(_compared_load(ports, token, pid, rounds))), flush=True)


async def _compared_load(ports: dict[str, int], token: str, pid: int, rounds: int) -> dict[str, Any]:
    clients = {kind: [await _Client.connect(port, token) for _ in range(CONNECTIONS)] for kind, port in ports.items()}
    seen: dict[str, Any] = {kind: {"speeds": [], "costs": []} for kind in ports}
    count = CONNECTIONS * TURN_REQUESTS
    for number in range(rounds + 1):
        for kind in sorted(ports, reverse=bool(number % 2)):
            cpu, start = _read_cpu(pid), time.perf_counter()
            await asyncio.gather(*(client.ask(TURN_REQUESTS) for client in clients[kind]))
            if number:  # the first warms up
                seen[kind]["speeds"].append(count / (time.perf_counter() - start))
                seen[kind]["costs"].append((_read_cpu(pid) - cpu) / count)
    for client in itertools.chain(*clients.values()):
        await client.close()
    return seen


def _read_cpu(pid: int) -> float:
    """Seconds of all threads of a process. Its `stat` counts in hundredths only."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


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


def _latencies(server: Server, seconds: float, rate: float) -> list[float]:
    with _program("request_load", server.port, server.token, seconds, rate) as load:
        found: list[float] = _line(load)["latencies"]
    return found


def _compare(guarded: Server, plain: Server, rounds: int) -> Iterator[Figure]:
    ports = {server.kind: server.port for server in (guarded, plain)}
    with _program("compared_load", ports, guarded.token, guarded.process.pid, rounds) as load:
        seen = _line(load)
    costs = [seen[kind]["costs"] for kind in ("guarded", "plain")]
    ratio = statistics.median(with_it / without for with_it, without in zip(*costs, strict=True))
    for name, unit, scale, what in (
        ("authenticated requests", "/s", 1, "speeds"),
        ("processor time a request", "µs", 1e6, "costs"),
    ):
        found, peer = (statistics.median(seen[kind][what]) * scale for kind in ("guarded", "plain"))
        yield Figure(name, found, unit, "without the guard", peer)
    yield Figure("cost of the guard", (ratio - 1) * 100, "%", aim="under 10 %", met=ratio < 1.10)


def _sockets(server: Server, seconds: float) -> dict[str, float]:
    empty = server.memory()
    with _program("socket_load", server.port, server.token, seconds) as load:
        opened = _line(load)["open"]
        each = (server.memory() - empty) / opened
        before = _read_cpu(server.process.pid)
        assert load.stdin is not None
        print(file=load.stdin, flush=True)
        seen = _line(load)
        busy = (_read_cpu(server.process.pid) - before) / seen["seconds"]
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
    rounds, steady = (60, 4.0) if quick else (300, 20.0)
    with (
        tempfile.TemporaryDirectory() as folder,
        _started(Path(folder) / "guarded") as (guarded, same),
        _started(Path(folder) / "plain") as (_, plain),
    ):
        idle = guarded.memory() / 1e6
        yield from _compare(guarded, same, rounds)
        steadily = {server.kind: _latencies(server, steady, 200) for server in (guarded, plain)}
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
