"""Hostile clients and hostile providers on the two sides of a running model gateway, made from a seed."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import h11
from tests.egress.framing_fuzz import MemoryStream, make_request
from tests.egress.http_servers import RealServer
from tests.egress.models.gateway_harness import KEY, GatewayHarness, run_gateway
from tests.egress.models.recording_provider import (
    MARKER,
    RecordingProvider,
    SeenRequest,
    gateway_to,
    recording_provider,
)
from tests.support.condition import DEADLINE

from freehold.manifest.sections.models import ModelSection

_ALLOWED = {("GET", "/v1/models"), ("POST", "/v1/chat/completions")}
SESSIONS = ("one", "two", "three")
TURNS = ("first", "later")
"""One changed byte must not make one marker of another."""


def question(marker: str) -> bytes:
    return json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": marker}]}).encode()


@asynccontextmanager
async def gateway_to_servers(folder: Path, servers: list[RealServer]) -> AsyncIterator[GatewayHarness]:
    """A model gateway with one provider for each server."""
    models = {
        server.name: ModelSection(
            kind="openai-compatible", base_url=f"http://127.0.0.1:{server.port}/v1", key="secret:real"
        )
        for server in servers
    }
    async with run_gateway(folder, models=models) as gateway:
        yield gateway


async def attack_as_client(gateway: GatewayHarness, server: RealServer, random: Random) -> None:
    """A hostile client, then a question of another session: the server sees allowed requests only, each whole."""
    key = gateway.models.endpoint_for(server.name, "attacker").key
    targets = (f"/{server.name}/v1/models", f"/{server.name}/v1/chat/completions", f"/{server.name}")
    raw = make_request(random, targets, ("Host: example.org", f"Authorization: Bearer {key}"))
    if random.random() < 0.5:
        body = question("marker-attacker")
        length = f"Content-Length: {len(body)}"
        good = (f"POST {targets[1]} HTTP/1.1", "Host: x", f"Authorization: Bearer {key}", length, "", "")
        raw = "\r\n".join(good).encode() + body + raw
    await gateway.models.handle(MemoryStream(raw))
    owner = gateway.models.endpoint_for(server.name, "owner").key
    answer = await gateway.http.post(
        targets[1], content=question("marker-owner"), headers={"authorization": f"Bearer {owner}"}
    )
    assert answer.status_code == 200, (raw, answer.text)
    seen = await server.take_seen()
    assert seen, raw
    assert b"marker-owner" in seen[-1].body, (raw, seen)
    for request in seen:
        assert (request.method, request.target) in _ALLOWED, (server.name, raw, request)
        assert [value for name, value in request.fields if name == "authorization"] == [f"Bearer {KEY}".encode()], raw
        lengths = [value for name, value in request.fields if name in ("content-length", "transfer-encoding")]
        assert lengths == [b"%d" % len(request.body)], (raw, request)
        assert KEY.encode() not in request.body, raw
        if request.method == "POST":
            json.loads(request.body)


# Answers


def make_answer(random: Random, marker: bytes) -> tuple[bytes, bool]:
    """The bytes with which a hostile provider answers, all of them with the marker, and whether it then closes."""
    body = random.choice((b"", marker, b'{"said": "%b"}' % marker, b"%b\r\n\r\n%b" % (marker, marker)))
    status = random.choice(
        (b"200 OK",) * 6 + (b"204 No", b"304 No", b"500 No", b"401 No", b"100 C", b"101 S", b"999 X")
    )
    fields = [b"X-Marker: %b" % marker]
    if random.random() < 0.4:
        return b"HTTP/1.1 200 OK\r\nX-Marker: %b\r\nContent-Length: %d\r\n\r\n%b" % (marker, len(body), body), False
    framing = random.random()
    if framing < 0.45:
        fields.append(b"Content-Length: %d" % len(body))
    elif framing < 0.85:
        fields.append(b"Transfer-Encoding: chunked")
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    if random.random() < 0.3:
        odd = b"""Content-Length: 5|Content-Length: 0|Content-Length: 500|Content-Length: -1|Transfer-Encoding: chunked
            |Transfer-Encoding: gzip|Connection: close|Connection: keep-alive|X: a\nY: b|X : y| folded|Content_Length: 1
            |Content-Type: text/event-stream|Upgrade: websocket|X: \0|Keep-Alive: max=100"""
        fields.append(random.choice([each.strip() for each in odd.split(b"|")]))
    random.shuffle(fields)
    version = random.choice((b"HTTP/1.1",) * 12 + (b"HTTP/1.0", b"HTTP/2"))
    end = b"\r\n" if random.random() < 0.97 else b"\n"
    whole = end.join([version + b" " + status, *fields, b"", b""]) + body
    surplus = b"HTTP/1.1 200 OK\r\nX-Marker: %b\r\nContent-Length: %d\r\n\r\n%b" % (marker, len(marker), marker)
    chance = random.random()
    if chance < 0.15:
        whole = b"HTTP/1.1 %b Early\r\n\r\n" % random.choice((b"100", b"102", b"103")) + whole
    elif chance < 0.3:
        whole += random.choice((surplus, surplus[: random.randrange(1, len(surplus))], b"\r\n", b"0"))
    elif chance < 0.4:
        return whole[: random.randrange(len(whole))], True
    elif chance < 0.45:
        place = random.randrange(len(whole))
        whole = whole[:place] + bytes([random.randrange(256)]) + whole[place + 1 :]
    # A gateway that waits for the rest of an answer would wait long: the provider ends what is not complete.
    return whole, random.random() < 0.3 or not _is_complete(whole)


def _is_complete(answer: bytes) -> bool:
    """Whether a second implementation reads a whole response without the end of the connection."""
    if b"\n" in answer.replace(b"\r\n", b""):
        return False  # a strict reader waits for a proper end of the head
    client = _client()
    client.receive_data(answer)
    try:
        while True:
            event = client.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return False
            if isinstance(event, h11.EndOfMessage):
                return True
    except h11.RemoteProtocolError:
        return False


def _client() -> h11.Connection:
    """A client that has asked and waits for its answer."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="POST", target="/", headers=[("Host", "x"), ("Content-Length", "0")]))
    client.send(h11.EndOfMessage())
    return client


class HostileProvider:
    """Answers each marker with the bytes that were prepared for it, so that the order does not matter."""

    def __init__(self) -> None:
        self.answers: dict[bytes, tuple[bytes, bool]] = {}
        self.known: set[bytes] = set()

    def prepare(self, marker: bytes, random: Random) -> None:
        self.known.add(marker)
        self.answers[marker] = make_answer(random, marker)

    async def __call__(self, request: SeenRequest, writer: asyncio.StreamWriter) -> None:
        marker = MARKER.search(request.body)
        assert marker is not None
        data, closes = self.answers.pop(marker[0])
        writer.write(data)
        if closes:
            await writer.drain()
            writer.close()


@asynccontextmanager
async def gateway_to_hostile_provider(
    folder: Path,
) -> AsyncIterator[tuple[GatewayHarness, HostileProvider, RecordingProvider]]:
    hostile = HostileProvider()
    async with recording_provider(hostile) as provider, gateway_to(folder, provider.port) as gateway:
        yield gateway, hostile, provider


async def attack_as_provider(gateway: GatewayHarness, hostile: HostileProvider, random: Random) -> None:
    """Each session asks twice. What it gets holds nothing that was an answer to another question."""
    tag = f"{random.randrange(16**8):08x}"

    async def ask_twice(session: str) -> None:
        for turn in TURNS:
            marker = f"marker-{session}-{turn}-{tag}"
            answer = await _ask(gateway, session, marker)
            assert not set(MARKER.findall(answer)) & (hostile.known - {marker.encode()}), (marker, answer)
            _check_one_response(answer)

    for session in SESSIONS:
        for turn in TURNS:
            hostile.prepare(f"marker-{session}-{turn}-{tag}".encode(), random)
    async with asyncio.TaskGroup() as group:
        for session in SESSIONS:
            group.create_task(ask_twice(session))


async def _ask(gateway: GatewayHarness, session: str, marker: str) -> bytes:
    """All bytes that come back until the end."""
    key = gateway.models.endpoint_for("openai", session).key
    body = question(marker)
    head = (
        "POST /openai/v1/chat/completions HTTP/1.1",
        "Host: x",
        f"Authorization: Bearer {key}",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    received = b""
    try:
        writer.write("\r\n".join([*head, "", ""]).encode() + body)
        async with asyncio.timeout(DEADLINE):
            while data := await reader.read(65536):
                received += data
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    return received


def _check_one_response(answer: bytes) -> None:
    """A second implementation reads at most one response, with nothing behind it."""
    client = _client()
    client.receive_data(answer)
    client.receive_data(b"")
    with contextlib.suppress(h11.RemoteProtocolError):
        while not isinstance(client.next_event(), h11.EndOfMessage | h11.ConnectionClosed):
            pass
        assert client.trailing_data[0] == b"", answer
