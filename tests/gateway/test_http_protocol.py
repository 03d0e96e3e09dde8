"""What the server refuses before the API sees it is answered like every other error: in JSON, with code and hint."""

import asyncio
import json
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send
from tests.gateway.running_gateway import RunningGateway
from tests.support.condition import DEADLINE

from freehold.gateway import http_protocol
from freehold.gateway.http_protocol import MAX_ADDRESS, MAX_HEAD

HANDSHAKE = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
KEY = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"


async def send(gateway: RunningGateway, data: bytes) -> bytes:
    """Everything that the server answers until it closes the connection."""
    async with asyncio.timeout(DEADLINE):
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        try:
            writer.write(data)
            return await reader.read()
        finally:
            writer.close()


def read_error(answer: bytes) -> tuple[int, dict[str, Any]]:
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    assert "content-type: application/json" in lines, answer
    assert f"content-length: {len(body)}" in lines
    assert "x-content-type-options: nosniff" in lines
    error = json.loads(body)["error"]
    assert all(error[name] for name in ("code", "message", "hint"))
    return int(lines[0].split()[1]), error


def request(gateway: RunningGateway, address: str = "/livez", headers: str = "") -> bytes:
    return f"GET {address} HTTP/1.1\r\nhost: {gateway.host}\r\n{headers}\r\n".encode()


async def test_every_refusal_of_the_server_is_json(gateway: RunningGateway) -> None:
    long = "a" * (MAX_ADDRESS + 1)
    many = "".join(f"x-{number}: {'v' * 1000}\r\n" for number in range(80))
    cases = {
        b"nonsense\r\n\r\n": (400, "request.malformed"),
        b"GET / HTTP/9.9\r\n\r\n": (400, "request.malformed"),
        request(gateway, headers="a b: c\r\n"): (400, "request.malformed"),
        request(gateway, f"/v1/files/stat?path={long}"): (414, "request.address-too-long"),
        request(gateway, f"/{long}"): (414, "request.address-too-long"),
        request(gateway, headers=many): (431, "request.headers-too-long"),
        request(gateway, headers=f"x: {'v' * (MAX_HEAD + 1)}\r\n"): (431, "request.headers-too-long"),
        request(gateway, "/v1/socket", HANDSHAKE): (400, "request.malformed"),
        request(gateway, f"/v1/socket?{'a' * 10_000}", HANDSHAKE + KEY): (414, "request.address-too-long"),
        request(gateway, "/v1/socket", HANDSHAKE + KEY + f"x: {'v' * 9000}\r\n"): (431, "request.headers-too-long"),
    }
    for data, expected in cases.items():
        status, error = read_error(await send(gateway, data))
        assert (status, error["code"]) == expected, data[:80]


async def test_a_head_without_end_is_refused_while_it_arrives(gateway: RunningGateway) -> None:
    answer = await send(gateway, b"GET / HTTP/1.1\r\nx: " + b"v" * (MAX_HEAD + MAX_ADDRESS + 1))
    assert read_error(answer)[0] == 431


async def test_a_broken_body_is_refused(gateway: RunningGateway) -> None:
    headers = "content-type: application/json\r\ntransfer-encoding: chunked\r\n"
    data = request(gateway, "/v1/sign-in/link", headers).replace(b"GET", b"POST") + b"not a chunk\r\n"
    assert read_error(await send(gateway, data))[0] == 400


async def test_nonsense_after_a_request_is_not_an_answer_to_it(gateway: RunningGateway) -> None:
    """The client would take the refusal for the answer to its first request."""
    asked = asyncio.Event()
    let_go = asyncio.Event()

    async def wait(scope: Scope, receive: Receive, reply: Send) -> None:
        asked.set()
        await let_go.wait()
        await reply({"type": "http.response.start", "status": 204, "headers": []})
        await reply({"type": "http.response.body", "body": b""})

    app, gateway.app._app = gateway.app._app, wait
    try:
        async with asyncio.timeout(DEADLINE):
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            writer.write(request(gateway))
            await asked.wait()
            writer.write(b"nonsense\r\n\r\n")
            assert await reader.read() == b""
            writer.close()
    finally:
        let_go.set()
        gateway.app._app = app


async def test_a_connection_that_sends_no_head_is_closed(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4,096 silent connections would otherwise close the gateway for everybody."""
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT", 0.5)  # a whole request must arrive within it, too
    for start in (b"", b"GET /livez HTTP/1.1\r\nhost: x\r\n", request(gateway) + b"GET /livez"):
        answer = await send(gateway, start)
        *before, last = answer.split(b"HTTP/1.1 ")
        assert read_error(b"HTTP/1.1 " + last)[0] == 408
        assert len(before) == (2 if start.endswith(b"GET /livez") else 1)


async def test_a_full_gateway_says_so(gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "MAX_CONNECTIONS", 0)
    status, error = read_error(await send(gateway, request(gateway)))
    assert (status, error["code"]) == (503, "gateway.busy")


async def test_an_error_past_the_guard_is_json(gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway.app, "_sites", None)
    status, error = read_error(await send(gateway, request(gateway, headers="connection: close\r\n")))
    assert (status, error["code"]) == (500, "gateway.unexpected")
