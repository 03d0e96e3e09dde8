"""Requests and responses through the model gateway, over real sockets."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
import zstandard
from tests.egress.models.gateway_harness import KEY, PATHS, PROVIDER_OF, GatewayHarness, build_request, run_gateway
from tests.support.condition import DEADLINE

from freehold.egress.models.placeholders import PREFIX
from freehold.egress.models.request_server import MAX_CONNECTIONS
from freehold.manifest.sections.models import ModelSection
from freehold.testing import Api
from freehold.testing.script import Fault

APIS = pytest.mark.parametrize("api", list(PATHS))
HEADER_OF: dict[Api, str] = {
    "chat": "authorization",
    "responses": "authorization",
    "messages": "x-api-key",
    "gemini": "x-goog-api-key",
}


@APIS
@pytest.mark.parametrize("stream", [False, True])
async def test_the_real_key_arrives_in_its_own_header_and_the_placeholder_nowhere(
    api: Api, stream: bool, gateway: GatewayHarness
) -> None:
    answer = await gateway.ask(api, stream=stream)
    assert answer.status_code == 200
    assert "hello ther" in answer.text
    received = gateway.provider.requests[-1]
    holding = [name for name, value in received.headers.items() if KEY in value]
    assert holding == [HEADER_OF[api]]
    assert PREFIX not in str(received.headers) + received.path + received.body.decode()


@APIS
async def test_a_response_is_passed_on_unchanged(api: Api, gateway: GatewayHarness) -> None:
    path, body = build_request(api, stream=True)
    through = await gateway.http.post(path, json=body, headers=gateway.headers(PROVIDER_OF[api]))
    inner = path.removeprefix(f"/{PROVIDER_OF[api]}")
    if api == "chat":
        body["stream_options"] = {"include_usage": True}
    async with httpx2.AsyncClient(base_url=gateway.provider.url, trust_env=False, timeout=DEADLINE) as direct:
        straight = await direct.post(inner, json=body)
    assert _words(through.text) == _words(straight.text)
    assert through.headers["content-type"] == straight.headers["content-type"]


def _words(text: str) -> list[str]:
    """The lines of a stream without the ids, which are random."""
    kept = []
    for line in text.splitlines():
        if line.startswith("data: {"):
            line = json.dumps(_without_names(json.loads(line[6:])))
        kept.append(line)
    return kept


def _without_names(value: object) -> object:
    if isinstance(value, dict):
        dropped = {"id", "created", "created_at", "item_id", "call_id"}
        return {key: _without_names(each) for key, each in value.items() if key not in dropped}
    return [_without_names(each) for each in value] if isinstance(value, list) else value


async def test_a_streamed_chat_is_made_to_report_its_usage(gateway: GatewayHarness) -> None:
    await gateway.ask("chat", stream=True)
    assert gateway.provider.requests[-1].json["stream_options"] == {"include_usage": True}
    path, body = build_request("chat", stream=True)
    body["stream_options"] = {"include_usage": False, "include_obfuscation": False}
    await gateway.http.post(path, json=body, headers=gateway.headers())
    sent = {"include_usage": True, "include_obfuscation": False}
    assert gateway.provider.requests[-1].json["stream_options"] == sent


async def test_a_key_in_the_query_is_removed(gateway: GatewayHarness) -> None:
    endpoint = gateway.models.endpoint_for("gemini", "s1")
    path, body = build_request("gemini")
    answer = await gateway.http.post(f"{path}?key={endpoint.key}&alt=json&$method=DELETE", json=body)
    assert answer.status_code == 200
    assert gateway.provider.requests[-1].path.endswith(":generateContent?alt=json")


@pytest.mark.parametrize(("fault", "status"), [("429", 429), ("500", 500), ("529", 529)])
async def test_a_refusal_is_passed_on_and_nothing_is_tried_again(
    fault: Fault, status: int, gateway: GatewayHarness
) -> None:
    gateway.provider.fail_next(fault)
    answer = await gateway.ask("messages", stream=True)
    assert answer.status_code == status
    assert len(gateway.provider.requests) == 1
    await gateway.models.usage_of("s1")
    assert gateway.events("models.answered")[-1]["outcome"] == f"status-{status}"


@APIS
async def test_a_stream_that_the_provider_cuts_is_cut_for_the_client(api: Api, gateway: GatewayHarness) -> None:
    gateway.provider.fail_next("cut")
    with pytest.raises(httpx2.RemoteProtocolError):
        await gateway.ask(api, stream=True)
    await gateway.models.usage_of("s1")
    assert gateway.events("models.answered")[-1]["outcome"] == "cut"
    assert (await gateway.ask(api, stream=True)).status_code == 200


async def test_a_provider_that_closes_early_is_reported_as_unreachable(gateway: GatewayHarness) -> None:
    gateway.provider.fail_next("disconnect")
    answer = await gateway.ask("messages")
    assert answer.status_code == 502
    assert answer.json()["type"] == "error"
    assert len(gateway.provider.requests) == 1


async def test_an_unreachable_provider_blocks_the_session_until_it_responds(gateway: GatewayHarness) -> None:
    """The error names what to check; after a response the session is no longer blocked."""
    gateway.provider.fail_next("disconnect")
    assert (await gateway.ask()).status_code == 502
    blocked = gateway.models.blocked("s1")
    assert blocked is not None
    assert "base_url of [models.openai]" in (blocked.hint or "")
    assert (await gateway.ask()).status_code == 200
    assert gateway.models.blocked("s1") is None


async def test_malformed_events_pass_and_count_nothing_wrong(gateway: GatewayHarness) -> None:
    gateway.provider.fail_next("malformed")
    assert "{not json" in (await gateway.ask("chat", stream=True)).text
    assert (await gateway.models.usage_of("s1")).tokens.total == 120


async def test_one_connection_serves_many_requests(gateway: GatewayHarness) -> None:
    key = gateway.models.endpoint_for("openai", "s1").key.encode()
    _, body = build_request("chat")
    data = json.dumps(body).encode()
    head = b"POST /openai/v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %b\r\n" % key
    first = head + b"Content-Length: %d\r\n\r\n%b" % (len(data), data)
    last = head + b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(data), data)
    back = await gateway.raw(first + first + last)
    assert back.count(b"HTTP/1.1 200") == 3


async def test_compressed_requests_are_forwarded_uncompressed(gateway: GatewayHarness) -> None:
    path, body = build_request("responses")
    data = json.dumps(body).encode()
    for coding, packed in (("gzip", gzip.compress(data)), ("zstd", zstandard.compress(data))):
        headers = {**gateway.headers(), "content-encoding": coding, "content-type": "application/json"}
        assert (await gateway.http.post(path, content=packed, headers=headers)).status_code == 200
        assert "content-encoding" not in gateway.provider.requests[-1].headers
        assert gateway.provider.requests[-1].json == body | {"store": False}


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
async def test_a_decompression_bomb_is_refused(coding: str, gateway: GatewayHarness) -> None:
    bomb = b'{"model": "' + b"a" * (64 * 1024 * 1024) + b'"}'
    packed = gzip.compress(bomb) if coding == "gzip" else zstandard.compress(bomb)
    headers = {**gateway.headers(), "content-encoding": coding}
    answer = await gateway.http.post(PATHS["chat"], content=packed, headers=headers)
    assert answer.status_code == 413
    assert not gateway.provider.requests


Answerer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def provider_that(folder: Path, answer: Answerer) -> AsyncIterator[GatewayHarness]:
    """A gateway in front of a fake provider, which reads one whole request and then responds."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(length)
        await answer(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        models = {"openai": ModelSection(kind="openai-compatible", base_url=f"{url}/v1", key="secret:real")}
        async with run_gateway(folder, models=models) as gateway:
            yield gateway


async def test_each_part_of_a_stream_is_passed_on_at_once(tmp_path: Path) -> None:
    seen = asyncio.Event()

    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"c\r\ndata: {}\r\n\r\n\r\n")
        await seen.wait()
        writer.write(b"0\r\n\r\n")

    async with provider_that(tmp_path, answer) as gateway:
        path, body = build_request("chat", stream=True)
        async with (
            asyncio.timeout(DEADLINE),
            gateway.http.stream("POST", path, json=body, headers=gateway.headers()) as streaming,
        ):
            pieces = streaming.aiter_bytes()
            assert await anext(pieces) == b"data: {}\r\n\r\n"
            seen.set()
            assert [piece async for piece in pieces] == []


async def test_a_key_in_the_response_is_masked_wherever_it_is_split(tmp_path: Path) -> None:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX-Echo: Bearer %b\r\nTransfer-Encoding: chunked\r\n\r\n" % KEY.encode())
        for part in (f"before {KEY[:7]}", KEY[7:20], f"{KEY[20:]} after {KEY}", KEY[:5]):
            writer.write(b"%x\r\n%b\r\n" % (len(part), part.encode()))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async with provider_that(tmp_path, answer) as gateway:
        back = await gateway.ask()
        stars = "*" * len(KEY)
        assert back.text == f"before {stars} after {stars}{KEY[:5]}"
        assert back.headers["x-echo"] == f"Bearer {stars}"


async def test_masking_a_key_keeps_the_length_of_a_response(tmp_path: Path) -> None:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = b'{"error": "bad key %b"}' % KEY.encode()
        writer.write(b"HTTP/1.1 401 No\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    async with provider_that(tmp_path, answer) as gateway:
        back = await gateway.ask()
        assert back.status_code == 401
        assert back.json() == {"error": "bad key " + "*" * len(KEY)}


async def test_a_compressed_response_is_not_passed_on(tmp_path: Path) -> None:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nabc")

    async with provider_that(tmp_path, answer) as gateway:
        back = await gateway.ask()
        assert back.status_code == 502
        assert "abc" not in back.text


async def test_cookies_and_alternative_services_of_the_provider_are_removed(tmp_path: Path) -> None:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nAlt-Svc: h3\r\nRequest-Id: r1\r\nContent-Length: 2\r\n\r\n{}"
        writer.write(head)

    async with provider_that(tmp_path, answer) as gateway:
        back = await gateway.ask()
        assert back.headers["request-id"] == "r1"
        assert not {"set-cookie", "alt-svc"} & set(back.headers)


async def test_a_connection_that_the_provider_closed_is_not_used_again(tmp_path: Path) -> None:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")  # and closes, though it did not say so

    async with provider_that(tmp_path, answer) as gateway:
        for _ in range(5):
            assert (await gateway.ask()).status_code == 200


async def test_a_flood_of_connections_leaves_room_for_a_request(gateway: GatewayHarness) -> None:
    """Many connections with half a request each: those beyond the limit are refused, and a closed one frees its slot."""
    opened = [await asyncio.open_connection("127.0.0.1", gateway.port) for _ in range(MAX_CONNECTIONS + 20)]
    try:
        for _reader, writer in opened:
            writer.write(b"POST /openai/v1/chat/completions HTTP/1.1\r\nHost: x\r\n")
        refused = [reader for reader, _writer in opened[MAX_CONNECTIONS:]]
        async with asyncio.timeout(DEADLINE):
            lines = await asyncio.gather(*(reader.readuntil(b"\r\n") for reader in refused))
        assert set(lines) == {b"HTTP/1.1 503 Service Unavailable\r\n"}
        for _reader, writer in opened[:10]:
            writer.close()
            await writer.wait_closed()
        async with asyncio.timeout(DEADLINE):
            while (await gateway.ask()).status_code != 200:
                continue
    finally:
        for _reader, writer in opened:
            writer.close()


async def test_many_large_requests_at_once_stay_within_a_memory_limit(gateway: GatewayHarness) -> None:
    """Each announces the largest allowed body and sends nearly all of it."""
    key = gateway.models.endpoint_for("openai", "s1").key.encode()
    size = 30 * 1024 * 1024
    head = b"POST /openai/v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer %b\r\nContent-Length: %d\r\n\r\n"
    opened = [await asyncio.open_connection("127.0.0.1", gateway.port) for _ in range(5)]
    try:

        async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
            writer.write(head % (key, size + 1))
            sending = asyncio.ensure_future(_pour(writer, size))
            try:
                return await reader.readuntil(b"\r\n")
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)

        asking = [asyncio.ensure_future(send(*each)) for each in opened]
        async with asyncio.timeout(DEADLINE):
            done, waiting = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        assert {task.result() for task in done} == {b"HTTP/1.1 503 Service Unavailable\r\n"}
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    finally:
        for _reader, writer in opened:
            writer.close()
    assert not gateway.provider.requests


async def _pour(writer: asyncio.StreamWriter, size: int) -> None:
    for _ in range(size // 65536):
        writer.write(b"x" * 65536)
        await writer.drain()
