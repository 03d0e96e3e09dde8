"""No byte that an agent sends is read by a provider as another request, and no session gets another's answer."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.egress.models.gateway_harness import KEY, GatewayHarness
from tests.egress.models.recording_provider import (
    RecordingProvider,
    SeenRequest,
    answer_with_marker,
    gateway_to,
    recording_provider,
)
from tests.support.condition import until

from freehold.egress.models import upstream
from freehold.egress.models.provider import read_provider
from freehold.egress.models.upstream import MAX_IDLE, UpstreamPool, UpstreamUser
from freehold.manifest.sections.models import ModelSection

FILES = b"POST /v1/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer attackers-own-key\r\n"
SMUGGLED = {
    "a request that waits for its body": FILES + b"Content-Length: 4000\r\n\r\n",
    "a head that ends in an open line": FILES + b"X-Ignore: ",
    "a head that ends after its method": b"POST /v1/files HTTP/1.1\r\nX: ",
    "a whole request": FILES + b"Content-Length: 2\r\n\r\n{}",
    "one byte": b"G",
}


def question(marker: str) -> bytes:
    return json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": marker}]}).encode()


async def ask(gateway: GatewayHarness, session: str, marker: str) -> dict[str, str]:
    answer = await gateway.http.post(
        "/openai/v1/chat/completions", content=question(marker), headers=gateway.headers(session=session)
    )
    assert answer.status_code == 200, answer.text
    found: dict[str, str] = answer.json()
    return found


def raw_head(gateway: GatewayHarness, line: str, *fields: str, session: str = "attacker") -> bytes:
    key = gateway.models.endpoint_for("openai", session).key
    return "\r\n".join([line, "Host: x", f"Authorization: Bearer {key}", *fields, "", ""]).encode()


class CutStream:
    """A client that sends these bytes, ends its half, and reads on."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def read(self, n: int = 65536, /) -> bytes:
        taken, self._data = self._data[:n], self._data[n:]
        return taken

    async def write(self, data: bytes, /) -> None:
        assert not data.startswith(b"HTTP/1.1 2"), data

    async def write_eof(self) -> None:
        return

    async def close(self) -> None:
        return


def check_provider_saw_only(provider: RecordingProvider, *lines: str) -> None:
    assert [request.line for request in provider.requests] == list(lines)
    assert b"attackers-own-key" not in provider.raw
    assert b"/v1/files" not in provider.raw
    for request in provider.requests:
        assert request.head.count(KEY.encode()) == 1
        assert KEY.encode() not in request.body
        assert request.head.lower().count(b"\r\ncontent-length: ") == 1


@pytest.mark.parametrize("line", ["GET /openai/v1/models HTTP/1.1", "GET /openai HTTP/1.1", "HEAD /openai HTTP/1.1"])
async def test_a_body_on_a_request_that_has_none_reaches_no_provider(line: str, tmp_path: Path) -> None:
    """The attacks of the break-in: the next request must not become the content or the rest of a smuggled one."""
    async with recording_provider() as provider, gateway_to(tmp_path, provider.port) as gateway:
        questions = 0
        for hidden in SMUGGLED.values():
            counted = raw_head(gateway, line, f"Content-Length: {len(hidden)}") + hidden
            coded = raw_head(gateway, line, "Transfer-Encoding: chunked")
            coded += b"%x\r\n%b\r\n0\r\n\r\n" % (len(hidden), hidden)
            for raw in (counted, coded, raw_head(gateway, line, "Transfer-Encoding: chunked") + b"0\r\n\r\n"):
                refused = await gateway.raw(raw)
                assert refused.startswith(b"HTTP/1.1 400 ")
                assert b"must not have a body" in refused
                assert refused.count(b"HTTP/1.1") == 1
            for session in ("owner", "attacker"):
                questions += 1
                assert await ask(gateway, session, f"marker-{session}") == {
                    "line": "POST /v1/chat/completions HTTP/1.1",
                    "said": f"marker-{session}",
                }
        check_provider_saw_only(provider, *["POST /v1/chat/completions HTTP/1.1"] * questions)
        assert len(provider.connections) == 2


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_request_without_a_body_is_sent_with_an_explicit_length(method: str, tmp_path: Path) -> None:
    async with (
        recording_provider() as provider,
        gateway_to(tmp_path, provider.port, allow=["DELETE /v1/models"]) as gateway,
    ):
        for fields in ((), ("Content-Length: 0",)):
            raw = raw_head(gateway, f"{method} /openai/v1/models HTTP/1.1", "Connection: close", *fields)
            assert b"HTTP/1.1 200 OK" in await gateway.raw(raw)
        refused = await gateway.raw(
            raw_head(gateway, f"{method} /openai/v1/models HTTP/1.1", "Content-Length: 1") + b"x"
        )
        assert refused.startswith(b"HTTP/1.1 400 ")
        check_provider_saw_only(provider, *[f"{method} /v1/models HTTP/1.1"] * 2)


@pytest.mark.parametrize(
    "fields",
    [
        ("Content-Length: {length}", "Content-Length: {length}"),
        ("Content-Length: {length}", "Transfer-Encoding: chunked"),
        ("Content-Length: {length}", "Content_Length: 2"),
        ("Content-Length: {length}", "Transfer_Encoding: chunked"),
        ("Content-Length: {length}", "X: a\nTransfer-Encoding: chunked"),
        ("Content-Length: {length}", "X: a\r Content-Length: 2"),
        ("Content-Length: {length}", " Content-Length: 2"),
        ("Content-Length : {length}",),
        ("Content-Length: {length}", "Transfer-Encoding\0: chunked"),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: identity, chunked",),
    ],
)
async def test_a_question_with_two_readings_reaches_no_provider(fields: tuple[str, ...], tmp_path: Path) -> None:
    async with recording_provider() as provider, gateway_to(tmp_path, provider.port) as gateway:
        body = question("marker-attacker")
        given = [each.format(length=len(body)) for each in fields]
        raw = (
            raw_head(gateway, "POST /openai/v1/chat/completions HTTP/1.1", *given) + body + SMUGGLED["a whole request"]
        )
        refused = await gateway.raw(raw)
        assert refused.startswith(b"HTTP/1.1 400 ")
        assert not provider.raw


async def test_what_follows_a_question_is_a_request_of_its_own(tmp_path: Path) -> None:
    """A request behind the body is checked like any other: without a placeholder it goes nowhere."""
    async with recording_provider() as provider, gateway_to(tmp_path, provider.port) as gateway:
        body = question("marker-attacker")
        head = raw_head(gateway, "POST /openai/v1/chat/completions HTTP/1.1", f"Content-Length: {len(body)}")
        answers = await gateway.raw(head + body + SMUGGLED["a whole request"])
        assert answers.count(b"HTTP/1.1 200") == 1
        assert answers.count(b"HTTP/1.1 404") == 1
        check_provider_saw_only(provider, "POST /v1/chat/completions HTTP/1.1")


async def test_a_client_that_hangs_up_at_any_byte_has_nothing_forwarded(tmp_path: Path) -> None:
    async with recording_provider() as provider, gateway_to(tmp_path, provider.port) as gateway:
        body = question("marker-attacker")
        length = f"Content-Length: {len(body)}"
        raw = raw_head(gateway, "POST /openai/v1/chat/completions HTTP/1.1", length) + body
        framed = raw_head(gateway, "POST /openai/v1/chat/completions HTTP/1.1", "Transfer-Encoding: chunked")
        framed += b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)

        for whole in (raw, framed):
            for cut in range(len(whole)):
                await gateway.models.handle(CutStream(whole[:cut]))
        assert not provider.raw
        assert (await ask(gateway, "owner", "marker-owner"))["said"] == "marker-owner"


# Answers


async def test_connections_are_reused_within_a_session_and_never_between_sessions(tmp_path: Path) -> None:
    async with recording_provider() as provider, gateway_to(tmp_path, provider.port) as gateway:
        for session in ("one", "two", "one", "two", "one"):
            await ask(gateway, session, f"marker-{session}")
        assert len(provider.connections) == 2
        for connection in provider.connections:
            assert (b"marker-one" in connection) != (b"marker-two" in connection)


async def test_a_connection_is_not_used_with_another_key(tmp_path: Path) -> None:
    async with recording_provider() as provider, gateway_to(tmp_path, provider.port) as gateway:
        await ask(gateway, "one", "marker-one")
        gateway.vault.set("real", "sk-another-key-0123456789")
        await ask(gateway, "one", "marker-one")
        assert len(provider.connections) == 2


async def test_a_stop_closes_connections_that_wait_for_the_next_request(tmp_path: Path) -> None:
    async with recording_provider() as provider, gateway_to(tmp_path, provider.port) as gateway:
        for session in ("one", "two"):
            await ask(gateway, session, f"marker-{session}")
            await gateway.models.usage_of(session)  # waits until the request is over
        pool = gateway.models._upstreams
        assert len(pool._idle) == 2
        await gateway.models.stop()
        assert not pool._idle


async def test_the_connections_of_a_session_end_with_it(tmp_path: Path) -> None:
    async with recording_provider() as provider, gateway_to(tmp_path, provider.port) as gateway:
        await ask(gateway, "one", "marker-one")
        await gateway.models.usage_of("one")  # waits until the request is over
        gateway.models.end_session("one")
        await ask(gateway, "one", "marker-one")
        assert len(provider.connections) == 2


SURPLUS = b'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{"said": "SMUGGLED"}'


@pytest.mark.parametrize("session", ["owner", "attacker"])
@pytest.mark.parametrize(
    "surplus", [SURPLUS, SURPLUS[:1], b"\r\n", SURPLUS * 5000], ids=["whole", "byte", "line", "long"]
)
@pytest.mark.parametrize("late", [False, True], ids=["at once", "late"])
async def test_an_answer_that_nobody_asked_for_is_nobodys_answer(
    late: bool, surplus: bytes, session: str, tmp_path: Path
) -> None:
    """As after a smuggled request: the provider sends one answer more, with the first or when the connection is idle."""
    is_sent, may_send = asyncio.Event(), asyncio.Event()

    async def answer(request: SeenRequest, writer: asyncio.StreamWriter) -> None:
        await answer_with_marker(request, writer)
        if b"marker-first" in request.body:
            if late:
                await may_send.wait()
            writer.write(surplus)
            if len(surplus) < 65536:
                await writer.drain()
            is_sent.set()

    async with recording_provider(answer) as provider, gateway_to(tmp_path, provider.port) as gateway:
        assert (await ask(gateway, "attacker", "marker-first"))["said"] == "marker-first"
        may_send.set()
        await is_sent.wait()
        for marker in ("marker-second", "marker-third"):
            assert (await ask(gateway, session, marker))["said"] == marker
        assert len(provider.connections) == 2


ODD = {
    "no content with a body": b'HTTP/1.1 204 No Content\r\nContent-Length: 20\r\n\r\n{"said": "SMUGGLED"}',
    "not modified with a body": b'HTTP/1.1 304 Not Modified\r\nContent-Length: 20\r\n\r\n{"said": "SMUGGLED"}',
    "a continue with a body": b"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n" + SURPLUS,
    "hints": b"HTTP/1.1 103 Early Hints\r\n\r\n" + SURPLUS,
    "a body until the end": b"HTTP/1.1 200 OK\r\n\r\n" + SURPLUS,
    "a length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n" + SURPLUS,
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 90\r\n\r\n" + SURPLUS,
    "trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n" + SURPLUS,
    "nonsense": b"\x00" * 64 + b"\r\n\r\n" + SURPLUS,
}


@pytest.mark.parametrize("kind", ODD)
async def test_a_connection_with_an_odd_answer_is_not_used_again(kind: str, tmp_path: Path) -> None:
    async def answer(request: SeenRequest, writer: asyncio.StreamWriter) -> None:
        if b"marker-first" not in request.body:
            await answer_with_marker(request, writer)
            return
        writer.write(ODD[kind])
        if kind == "a body until the end":
            writer.close()

    async with recording_provider(answer) as provider, gateway_to(tmp_path, provider.port) as gateway:
        body = question("marker-first")
        fields = ("Connection: close", f"Content-Length: {len(body)}")
        head = raw_head(gateway, "POST /openai/v1/chat/completions HTTP/1.1", *fields, session="one")
        await gateway.raw(head + body)
        assert (await ask(gateway, "one", "marker-second"))["said"] == "marker-second"
        assert len(provider.connections) == 2


async def test_an_answer_before_the_end_of_a_question_is_passed_on_and_its_connection_ends(tmp_path: Path) -> None:
    """A provider that refuses a long question reads no further. Its refusal is passed on, and nothing is sent behind it."""
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}"
    ended = asyncio.Event()
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(refusal)
        await ended.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, gateway_to(tmp_path, server.sockets[0].getsockname()[1]) as gateway:
        body = question("x" * 16_000_000)
        for _ in range(2):
            answer = await gateway.http.post(
                "/openai/v1/chat/completions", content=body, headers=gateway.headers(session="one")
            )
            assert answer.status_code == 413
        assert connections == 2
        ended.set()


async def test_an_answer_that_breaks_off_at_any_byte_is_never_a_whole_one(tmp_path: Path) -> None:
    """Neither with a length nor in chunks, and the next question gets its own answer."""
    text = b'{"said": "marker-cut"}'
    wholes = [
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(text), text),
    ]
    parts = [whole[:cut] for whole in wholes for cut in range(len(whole))]

    async def answer(request: SeenRequest, writer: asyncio.StreamWriter) -> None:
        if b"cut" in request.body:
            writer.write(parts[int(request.body.split(b"cut-")[1].split(b'"')[0])])
            await writer.drain()
            writer.close()
        else:
            await answer_with_marker(request, writer)

    async with recording_provider(answer) as provider, gateway_to(tmp_path, provider.port) as gateway:

        async def ask_for(number: int) -> bytes:
            body = question(f"cut-{number}")
            fields = ("Connection: close", f"Content-Length: {len(body)}")
            head = raw_head(gateway, "POST /openai/v1/chat/completions HTTP/1.1", *fields, session="cut")
            return await gateway.raw(head + body)

        for start in range(0, len(parts), 40):
            numbers = range(start, min(start + 40, len(parts)))
            for answered in await asyncio.gather(*(ask_for(number) for number in numbers)):
                assert not answered.endswith((text, b"\r\n0\r\n\r\n")), answered
        assert (await ask(gateway, "cut", "marker-after"))["said"] == "marker-after"


async def test_an_idle_connection_that_the_provider_closes_is_not_used(tmp_path: Path) -> None:
    closed = asyncio.Event()

    async def answer(request: SeenRequest, writer: asyncio.StreamWriter) -> None:
        await answer_with_marker(request, writer)
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        closed.set()

    async with recording_provider(answer) as provider, gateway_to(tmp_path, provider.port) as gateway:
        for number in range(3):
            assert (await ask(gateway, "one", f"marker-{number}"))["said"] == f"marker-{number}"
            await until(closed.is_set)
            closed.clear()
        assert len(provider.connections) == 3


async def test_a_connection_on_which_the_provider_speaks_before_the_request_is_sent_is_not_used() -> None:
    """Between the choice of a connection and the request, the request is written down. The provider may speak meanwhile."""
    writers: list[asyncio.StreamWriter] = []

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        provider = read_provider("openai", ModelSection(kind="openai-compatible", base_url=url))
        pool, user = UpstreamPool(), UpstreamUser("one", "openai", None)
        connection = await pool.acquire(user, provider)
        assert await pool.recheck(connection, user, provider) is connection
        pool.release(user, connection)
        assert await pool.acquire(user, provider) is connection
        assert await pool.recheck(connection, user, provider) is connection
        await until(lambda: bool(writers))
        writers[0].write(SURPLUS)
        await writers[0].drain()
        other = await pool.recheck(connection, user, provider)
        assert other is not connection
        await other.stream.close()
        await pool.close()
        for writer in writers:
            writer.close()


async def test_idle_connections_are_few_and_do_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        provider = read_provider("openai", ModelSection(kind="openai-compatible", base_url=url))
        pool, user = UpstreamPool(), UpstreamUser("one", "openai", None)
        opened = [await pool.acquire(user, provider) for _ in range(MAX_IDLE + 1)]
        for connection in opened:
            pool.release(user, connection)
        assert not opened[0].is_quiet
        assert all(connection.is_quiet for connection in opened[1:])
        monkeypatch.setattr(upstream, "IDLE_TIMEOUT", 0.0)
        connection = await pool.acquire(user, provider)
        pool.release(user, connection)
        await until(lambda: not connection.is_quiet)
        await pool.close()
        assert not any(connection.is_quiet for connection in opened)
