"""Events over HTTP: read, published, and followed by a cursor, with the scope of their slot."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.gateway.running_gateway import RunningGateway, running_gateway
from tests.support.condition import DEADLINE, until

from freehold.connection_slots import ConnectionSlot, ConnectionSlots

EVENTS = "/v1/slots/events"
TYPE = "com.example.told"
COUNT = 150


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path, '[slots]\nevents = "local"\n') as running:
        await until(lambda: running.services.slots.get("events").status.state == "ok")
        yield running


async def publish(gateway: RunningGateway, headers: dict[str, str], *numbers: int) -> None:
    for number in numbers:
        made = await gateway.http.post(EVENTS, json={"type": TYPE, "data": {"n": number}}, headers=headers)
        assert made.status_code == 201


@asynccontextmanager
async def stream(
    gateway: RunningGateway, headers: dict[str, str], query: str = ""
) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    async def messages(response: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
        message: dict[str, Any] = {}
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            if line == "":
                if "data" in message:
                    yield message
                message = {}
            elif name:
                message[name] = json.loads(value) if name == "data" else value

    async with (
        asyncio.timeout(DEADLINE),
        gateway.http.stream("GET", f"{EVENTS}/stream{query}", headers=headers) as response,
    ):
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        found = messages(response)
        first = await anext(found)
        assert first["event"] == "position"
        yield found


async def test_an_event_is_published_once_for_a_key_and_read_by_cursor(gateway: RunningGateway) -> None:
    headers = gateway.token("events")
    body = {"type": TYPE, "subject": "thing/1", "data": {"n": 1}, "key": "k"}
    first, second = [(await gateway.http.post(EVENTS, json=body, headers=headers)).json() for _ in range(2)]
    assert first == second
    page = (await gateway.http.get(f"{EVENTS}?type={TYPE}", headers=headers)).json()
    (event,) = page["events"]
    assert (event["id"], event["specversion"], event["actor"]) == (first["id"], "1.0", "token:script")
    after = (await gateway.http.get(f"{EVENTS}?after={page['cursor']}&type={TYPE}", headers=headers)).json()
    assert after["events"] == []


async def test_a_subscriber_gets_what_was_before_its_cursor_and_then_what_comes(gateway: RunningGateway) -> None:
    headers = gateway.token("events")
    await publish(gateway, headers, 1, 2)
    async with stream(gateway, headers, f"?after=0&type={TYPE}") as messages:
        assert [(await anext(messages))["data"]["data"]["n"] for _ in range(2)] == [1, 2]
        await publish(gateway, headers, 3)
        third = await anext(messages)
        assert third["data"]["data"] == {"n": 3}
    # A browser that connects again sends the id of the last message.
    async with stream(gateway, {**headers, "last-event-id": third["id"]}, f"?type={TYPE}") as messages:
        await publish(gateway, headers, 4)
        assert (await anext(messages))["data"]["data"] == {"n": 4}


async def test_a_subscriber_without_a_cursor_gets_only_what_comes(gateway: RunningGateway) -> None:
    headers = gateway.token("events")
    await publish(gateway, headers, 1)
    async with stream(gateway, headers, f"?type={TYPE}") as messages:
        await publish(gateway, headers, 2)
        assert (await anext(messages))["data"]["data"] == {"n": 2}


async def test_a_stream_ends_when_its_token_is_revoked(gateway: RunningGateway) -> None:
    async with stream(gateway, gateway.token("events", name="short"), f"?type={TYPE}") as messages:
        gateway.services.tokens.revoke("short")
        with pytest.raises((httpx2.RemoteProtocolError, StopAsyncIteration)):
            await anext(messages)


async def test_only_the_scope_of_the_slot_reads_and_publishes(gateway: RunningGateway) -> None:
    for scope in ("read", "beads", "prompt"):
        headers = gateway.token(scope, name=f"only-{scope}")
        for path in ("", "/stream", "/delivery", "/dead", "/export"):
            assert (await gateway.http.get(f"{EVENTS}{path}", headers=headers)).status_code == 403
        assert (await gateway.http.post(EVENTS, json={"type": TYPE}, headers=headers)).status_code == 403


async def test_delivery_and_dead_letters_are_told_also_without_a_sink(gateway: RunningGateway) -> None:
    headers = gateway.token("events")
    assert (await gateway.http.get(f"{EVENTS}/delivery", headers=headers)).json()["state"] == "none"
    assert (await gateway.http.get(f"{EVENTS}/dead", headers=headers)).json() == {"letters": [], "cursor": None}
    for act in ("resend", "drop"):
        done = await gateway.http.post(f"{EVENTS}/dead/{act}", json={}, headers=headers)
        assert done.json() == {"count": 0}
    missing = await gateway.http.post(f"{EVENTS}/dead/resend", json={"sequences": [7]}, headers=headers)
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "events.not-found")


async def test_the_log_goes_out_and_comes_back(gateway: RunningGateway) -> None:
    headers = gateway.token("events")
    await publish(gateway, headers, 1, 2)
    records = (await gateway.http.get(f"{EVENTS}/export", headers=headers)).json()["records"]
    back = await gateway.http.post(f"{EVENTS}/import", json={"records": records}, headers=headers)
    assert back.json() == {"created": 0, "kept": len(records)}
    wrong = await gateway.http.post(EVENTS, json={"type": "org.freehold.x.y"}, headers=headers)
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "events.invalid")


async def test_a_subscriber_that_never_reads_is_dropped_and_holds_up_nobody(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    from freehold.gateway import event_stream

    monkeypatch.setattr(event_stream, "STALL_TIMEOUT", 0.5)
    dropped: list[str] = []
    take = ConnectionSlots.take

    def note_drops(slots: ConnectionSlots, peer: str, drop: Callable[[], None]) -> ConnectionSlot | None:
        def note_and_drop() -> None:
            dropped.append(peer)
            drop()

        return take(slots, peer, note_and_drop)

    monkeypatch.setattr(ConnectionSlots, "take", note_drops)
    headers = gateway.token("events")
    # More than the buffers of both ends hold.
    for _ in range(COUNT):
        data = {"n": 0, "x": "y" * 60_000}
        made = await gateway.http.post(EVENTS, json={"type": TYPE, "data": data}, headers=headers)
        assert made.status_code == 201
    port = int(gateway.url.rpartition(":")[2])
    own = socket.socket()
    own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    own.setblocking(False)
    await asyncio.get_running_loop().sock_connect(own, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=own, limit=1024)
    try:
        head = f"GET {EVENTS}/stream?after=0 HTTP/1.1\r\nhost: localhost:{port}\r\n"
        head += f"authorization: {headers['authorization']}\r\n\r\n"
        writer.write(head.encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        async with stream(gateway, headers, f"?after={COUNT - 1}") as messages:
            await anext(messages)
            await publish(gateway, headers, 7)
            assert (await anext(messages))["data"]["data"] == {"n": 7}

            await until(lambda: dropped)
        # What was under way arrives, and then the end: not everything was kept for it.
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        received = 0
        async with asyncio.timeout(DEADLINE):
            while part := await reader.read(65536):
                received += len(part)
        assert received < COUNT * 60_000
    finally:
        writer.transport.abort()
