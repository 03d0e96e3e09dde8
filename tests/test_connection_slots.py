"""Nobody keeps others out by holding connections open: not on the gateway, nor on the metrics port."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx2
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from tests.gateway.running_gateway import UnsignalledServer, listen, running_gateway
from tests.support.condition import DEADLINE, until
from uvicorn.protocols.http.h11_impl import H11Protocol

from freehold.connection_slots import ConnectionSlot, ConnectionSlots, SlottedConnection
from freehold.gateway import server
from freehold.observe.metrics import MetricsRegistry
from freehold.observe.metrics_server import serve_metrics

STALLED = (b"", b"GET /metrics HTTP/1.1\r\nHost: ", b"GET ")


def take(slots: ConnectionSlots, peer: str, dropped: list[str], name: str = "") -> ConnectionSlot | None:
    return slots.take(peer, lambda: dropped.append(name or peer))


def test_the_one_that_waited_longest_makes_room() -> None:
    slots, dropped = ConnectionSlots(3, 3), list[str]()
    for number in range(5):
        assert take(slots, "192.0.2.1", dropped, str(number)) is not None
    assert dropped == ["0", "1"]
    assert len(slots) == 3


def test_a_request_without_an_owner_makes_room_after_those_that_wait() -> None:
    slots, dropped = ConnectionSlots(2, 2), list[str]()
    busy, idle = take(slots, "192.0.2.1", dropped, "busy"), take(slots, "192.0.2.1", dropped, "idle")
    assert busy is not None
    assert idle is not None
    busy.begin()
    assert take(slots, "192.0.2.1", dropped, "new") is not None
    assert dropped == ["idle"]


def test_what_the_owner_uses_is_never_closed_for_another() -> None:
    slots, dropped = ConnectionSlots(2, 2), list[str]()
    for _ in range(2):
        used = take(slots, "192.0.2.1", dropped, "owner")
        assert used is not None
        used.begin()
        used.keep()
    assert take(slots, "192.0.2.1", dropped) is None
    assert take(slots, "198.51.100.1", dropped) is None
    assert dropped == []


def test_the_peer_with_the_most_makes_room_for_another() -> None:
    slots, dropped = ConnectionSlots(4, 3), list[str]()
    for _ in range(3):
        take(slots, "192.0.2.1", dropped)
    take(slots, "198.51.100.1", dropped)
    assert take(slots, "203.0.113.9", dropped) is not None
    assert dropped == ["192.0.2.1"]


def test_one_peer_has_a_limit_unless_it_stands_for_many() -> None:
    slots, dropped = ConnectionSlots(10, 2, lambda peer: peer == "10.0.0.1"), list[str]()
    for _ in range(3):
        take(slots, "10.0.0.1", dropped)
        take(slots, "192.0.2.1", dropped)
    assert dropped == ["192.0.2.1"]


def test_a_place_is_given_back_once() -> None:
    slots = ConnectionSlots(2, 2)
    slot = take(slots, "192.0.2.1", [])
    assert slot is not None
    slot.begin()
    slot.end()
    slot.release()
    slot.release()
    slot.keep()
    assert len(slots) == 0


@asynccontextmanager
async def stalled_connections(port: int, count: int = 200) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for number in range(count):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.close)
            writer.write(STALLED[number % len(STALLED)])
        yield


async def test_200_stalled_connections_do_not_close_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket that the owner had open before stays open."""
    monkeypatch.setattr(server, "make_slots", lambda _is_proxy: ConnectionSlots(40, 40))
    async with (
        running_gateway(tmp_path) as gateway,
        gateway.socket(gateway.browser()) as opened,
        stalled_connections(gateway.port),
    ):
        token = gateway.token("read")
        for _ in range(5):
            assert (await gateway.http.get("/v1/me", headers=token)).status_code == 200
        async with gateway.socket(gateway.browser()) as second:
            await second.send('{"type": "ping"}')
            assert json.loads(await second.recv()) == {"type": "pong"}
        await opened.send('{"type": "ping"}')
        assert json.loads(await opened.recv()) == {"type": "pong"}


async def test_200_stalled_connections_do_not_close_the_metrics() -> None:
    metrics = MetricsRegistry()
    async with (
        serve_metrics(port=0, metrics=metrics) as port,
        stalled_connections(port),
        httpx2.AsyncClient(trust_env=False, timeout=DEADLINE) as http,
    ):
        for _ in range(3):
            assert (await http.get(f"http://127.0.0.1:{port}/metrics")).status_code == 200


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def serve(head_timeout: float) -> AsyncIterator[tuple[int, ConnectionSlots]]:
    places, limit = ConnectionSlots(8, 8), head_timeout

    class Connection(SlottedConnection, H11Protocol):
        slots = places
        head_timeout = limit

    listener = listen()
    config = uvicorn.Config(app, http=Connection, lifespan="off", log_config=None, timeout_keep_alive=60)
    running = UnsignalledServer(config)
    async with asyncio.TaskGroup() as group:
        group.create_task(running.serve(sockets=[listener]))
        await until(lambda: running.started)
        try:
            yield listener.getsockname()[1], places
        finally:
            running.should_exit = True


@pytest.mark.parametrize("start", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nhost: x\r\n\r\nGET / HT"])
async def test_a_head_has_a_deadline(start: bytes) -> None:
    """Also that of a second request on the same connection."""
    # A request that is whole must be read before the deadline of the next one, also on a busy machine.
    async with serve(2.0 if start.startswith(b"GET / HTTP") else 0.05) as (port, slots):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(start)
        async with asyncio.timeout(DEADLINE):
            with contextlib.suppress(ConnectionResetError):
                answer = await reader.read()
                assert answer.startswith(b"HTTP/1.1 200") is start.startswith(b"GET / HTTP")
        writer.close()
        await until(lambda: len(slots) == 0)


async def test_a_connection_in_use_has_no_deadline() -> None:
    async with serve(3600) as (port, slots):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(3):
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            async with asyncio.timeout(DEADLINE):
                assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200")
        assert len(slots) == 1
        writer.close()
        await until(lambda: len(slots) == 0)
