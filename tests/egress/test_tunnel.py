"""CONNECT, and TLS that must go to the allowed host."""

import asyncio
import os
import ssl
from pathlib import Path

import pytest
from tests.egress.proxy_harness import (
    OK,
    Authority,
    FakeResolver,
    FakeServer,
    RunningProxy,
    echo,
    hang_up,
    make_authority,
    respond_once,
    run_proxy,
    run_server,
)

from freehold.egress import EgressLimits

TLS_PORT = 8443
"""One of the ports where only TLS may be spoken, and which needs no privilege."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("ca"), "example.org", "evil.example")


@pytest.fixture
def place() -> str:
    """An address of this test's own on loopback, so that a fixed port is free."""
    low, high = os.urandom(2)
    return f"127.77.{high}.{max(low, 1) % 254 + 1}"


@pytest.fixture
def names(place: str) -> FakeResolver:
    known = FakeResolver()
    known.set("example.org", [place])
    known.set("evil.example", [place])
    return known


async def start_tls(
    proxy: RunningProxy, target: str, context: ssl.SSLContext, name: str | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    status, reader, writer = await proxy.connect(target)
    assert status.startswith(b"HTTP/1.1 200"), status
    try:
        await writer.start_tls(context, server_hostname=name)
    except BaseException:
        writer.transport.abort()
        raise
    return reader, writer


async def test_tls_to_the_host_that_was_asked_for_passes(
    tmp_path: Path, place: str, names: FakeResolver, authority: Authority
) -> None:
    async with (
        run_server(echo, host=place, port=TLS_PORT, tls=authority.server),
        run_proxy(tmp_path, allow=[f"example.org:{TLS_PORT}"], names=names) as proxy,
    ):
        reader, writer = await start_tls(proxy, f"example.org:{TLS_PORT}", authority.client, "example.org")
        payload = os.urandom(3_000_000)
        sending = asyncio.ensure_future(_send(writer, payload))
        assert await reader.readexactly(len(payload)) == payload
        await sending
        await hang_up(writer)


async def _send(writer: asyncio.StreamWriter, payload: bytes) -> None:
    for start in range(0, len(payload), 65536):
        writer.write(payload[start : start + 65536])
        await writer.drain()


async def test_tls_to_another_host_is_refused_before_a_byte_arrives(
    tmp_path: Path, place: str, names: FakeResolver, authority: Authority
) -> None:
    seen: list[bytes] = []

    async def listen(_seen: FakeServer, reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.read(100))

    async with (
        run_server(listen, host=place, port=TLS_PORT) as server,
        run_proxy(tmp_path, allow=[f"example.org:{TLS_PORT}"], names=names) as proxy,
    ):
        with pytest.raises(ssl.SSLError, match=r"(?i)unrecognized.name"):
            await start_tls(proxy, f"example.org:{TLS_PORT}", authority.client, "evil.example")
        await server.served.get()
        assert seen == [b""]
        event = await proxy.event("request_refused")
        assert "evil.example" in str(event["reason"])
        assert event["target"] == f"example.org:{TLS_PORT}"


async def test_tls_without_a_name_is_refused(
    tmp_path: Path, place: str, names: FakeResolver, authority: Authority
) -> None:
    context = ssl.create_default_context(cafile=str(authority.ca_file))
    context.check_hostname = False
    async with (
        run_server(echo, host=place, port=TLS_PORT, tls=authority.server),
        run_proxy(tmp_path, allow=[f"example.org:{TLS_PORT}"], names=names) as proxy,
    ):
        with pytest.raises((ssl.SSLError, OSError)):
            await start_tls(proxy, f"example.org:{TLS_PORT}", context, "")


async def test_tls_without_a_name_passes_to_an_address_that_a_rule_names(
    tmp_path: Path, place: str, authority: Authority
) -> None:
    context = ssl.create_default_context(cafile=str(authority.ca_file))
    context.check_hostname = False
    async with (
        run_server(echo, host=place, port=TLS_PORT, tls=authority.server),
        run_proxy(tmp_path, allow=[f"{place}:{TLS_PORT}"]) as proxy,
    ):
        reader, writer = await start_tls(proxy, f"{place}:{TLS_PORT}", context, "")
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        await hang_up(writer)


async def test_tls_without_a_name_passes_to_an_address_that_was_allowed_once(
    tmp_path: Path, place: str, authority: Authority
) -> None:
    context = ssl.create_default_context(cafile=str(authority.ca_file))
    context.check_hostname = False
    async with (
        run_server(echo, host=place, port=TLS_PORT, tls=authority.server),
        run_proxy(tmp_path, mode="ask") as proxy,
    ):
        opening = asyncio.ensure_future(start_tls(proxy, f"{place}:{TLS_PORT}", context, ""))
        request = await proxy.event("question_asked")
        assert isinstance(request["id"], int)
        await proxy.egress.answer(request["id"], "once")
        _reader, writer = await opening
        await hang_up(writer)


@pytest.mark.parametrize(
    "first", [b"SSH-2.0-x\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\0" * 64, b"\x16\x03\x01\x00\x05hello"]
)
async def test_anything_but_tls_on_a_tls_port_is_refused(
    tmp_path: Path, place: str, names: FakeResolver, first: bytes
) -> None:
    async with (
        run_server(respond_once(OK), host=place, port=TLS_PORT) as server,
        run_proxy(tmp_path, allow=[f"example.org:{TLS_PORT}"], names=names) as proxy,
    ):
        status, reader, writer = await proxy.connect(f"example.org:{TLS_PORT}")
        assert status.startswith(b"HTTP/1.1 200")
        writer.write(first)
        assert await reader.read() == bytes([21, 3, 3, 0, 2, 2, 112])
        await hang_up(writer)
        await server.served.get()
        assert server.heads == []


async def test_a_silent_client_on_a_tls_port_is_not_waited_for_long(
    tmp_path: Path, place: str, names: FakeResolver
) -> None:
    async with (
        run_server(echo, host=place, port=TLS_PORT),
        run_proxy(tmp_path, allow=[f"example.org:{TLS_PORT}"], names=names, limits=EgressLimits(head=0.2)) as proxy,
    ):
        _status, reader, writer = await proxy.connect(f"example.org:{TLS_PORT}")
        assert await reader.read() == b""
        await hang_up(writer)


async def test_another_port_that_a_rule_names_carries_anything_and_the_server_may_speak_first(
    tmp_path: Path, place: str, names: FakeResolver
) -> None:
    async def banner(_seen: FakeServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-server\r\n")
        writer.write(b"you said " + await reader.readline())
        await writer.drain()

    async with (
        run_server(banner, host=place) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names) as proxy,
    ):
        _status, reader, writer = await proxy.connect(f"example.org:{server.port}")
        assert await reader.readline() == b"SSH-2.0-server\r\n"
        writer.write(b"hello\n")
        assert await reader.read() == b"you said hello\n"
        await hang_up(writer)


async def test_tls_is_checked_on_every_port_where_it_is_spoken(
    tmp_path: Path, place: str, names: FakeResolver, authority: Authority
) -> None:
    async with (
        run_server(echo, host=place, tls=authority.server) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names) as proxy,
    ):
        _reader, writer = await start_tls(proxy, f"example.org:{server.port}", authority.client, "example.org")
        await hang_up(writer)
        with pytest.raises((ssl.SSLError, OSError)):
            await start_tls(proxy, f"example.org:{server.port}", authority.client, "evil.example")


async def test_half_a_connection_may_end_first(tmp_path: Path, place: str, names: FakeResolver) -> None:
    async def last_word(_seen: FakeServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        everything = await reader.read()
        writer.write(everything[::-1])
        await writer.drain()

    async with (
        run_server(last_word, host=place) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names) as proxy,
    ):
        _status, reader, writer = await proxy.connect(f"example.org:{server.port}")
        writer.write(b"hello")
        writer.write_eof()
        assert await reader.read() == b"olleh"
        await hang_up(writer)


async def test_a_tunnel_to_port_80_is_held_to_its_host(tmp_path: Path, place: str, names: FakeResolver) -> None:
    try:
        server_at_80 = run_server(respond_once(OK), host=place, port=80)
        server = await server_at_80.__aenter__()
    except PermissionError:
        pytest.skip("port 80 needs a privilege on this machine")
    try:
        async with run_proxy(tmp_path, allow=["example.org:80"], names=names) as proxy:
            for host, expected in (("example.org", b"200"), ("evil.example", b"400")):
                _status, reader, writer = await proxy.connect("example.org:80")
                writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                assert (await reader.read()).split()[1] == expected
                await hang_up(writer)
            assert len(server.heads) == 1
    finally:
        await server_at_80.__aexit__(None, None, None)


@pytest.mark.parametrize(
    "request_head",
    [
        b"CONNECT example.org HTTP/1.1\r\n\r\n",
        b"CONNECT example.org: HTTP/1.1\r\n\r\n",
        b"CONNECT http://example.org:443/ HTTP/1.1\r\n\r\n",
        b"CONNECT example.org:0443 HTTP/1.1\r\n\r\n",
        b"CONNECT user@example.org:443 HTTP/1.1\r\n\r\n",
        b"CONNECT example.org:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\nHost: example.org\r\n\r\n",
        b"CONNECT example.org:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        b"CONNECT example.org:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
async def test_an_odd_connect_is_refused(tmp_path: Path, names: FakeResolver, request_head: bytes) -> None:
    async with run_proxy(tmp_path, mode="allow", names=names) as proxy:
        assert (await proxy.send(request_head)).startswith(b"HTTP/1.1 400")
        assert proxy.names.asked == []


@pytest.mark.parametrize("port", [1, 22, 25, 53, 445, 3128, 3306, 6379, 8001, 65535])
@pytest.mark.parametrize("mode", ["deny", "allow"])
async def test_odd_ports_are_refused_unless_named(tmp_path: Path, names: FakeResolver, port: int, mode: str) -> None:
    async with run_proxy(
        tmp_path, mode="allow" if mode == "allow" else "deny", allow=["example.org"], names=names
    ) as proxy:
        status, _reader, writer = await proxy.connect(f"example.org:{port}")
        assert status.startswith(b"HTTP/1.1 403")
        await hang_up(writer)
        assert proxy.names.asked == []
