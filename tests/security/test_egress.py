"""What a hostile program inside sends to the proxy, and what the proxy refuses."""

import asyncio
import resource
from pathlib import Path

import pytest
from tests.egress.address_spellings import LOOPBACK, METADATA
from tests.egress.proxy_harness import OK, FakeResolver, echo, hang_up, respond_once, run_proxy, run_server
from tests.support.condition import DEADLINE

from freehold.egress import EgressLimits, Mode
from freehold.egress.addresses import why_refused_here


@pytest.mark.parametrize("mode", ["deny", "ask", "allow"])
async def test_no_spelling_of_an_internal_address_is_allowed(tmp_path: Path, mode: Mode) -> None:
    async with (
        run_server(respond_once(OK)) as server,
        run_proxy(tmp_path, mode=mode, check=why_refused_here, limits=EgressLimits(ask=0.05)) as proxy,
    ):
        for host in METADATA + LOOPBACK:
            for port in (80, 443, server.port):
                for request in (
                    f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n",
                    f"GET http://{host}:{port}/ HTTP/1.1\r\n\r\n",
                ):
                    answer = await proxy.send(request.encode("utf-8"))
                    assert answer.split()[1] in (b"400", b"403"), (request, answer)
        assert proxy.names.asked == []
        assert server.connected == 0
        assert proxy.egress.status().pending == (), "the owner is not even asked"


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "127.0.0.1", "::1", "fd00:ec2::254", "::ffff:127.0.0.1", "10.0.0.1"]
)
async def test_no_name_leads_to_an_internal_address(tmp_path: Path, address: str) -> None:
    names = FakeResolver()
    names.set("169-254-169-254.rebind.example", [address])
    async with (
        run_server(respond_once(OK)) as server,
        run_proxy(
            tmp_path,
            mode="allow",
            allow=[f"*.rebind.example:{server.port}"],
            check=why_refused_here,
            names=names,
        ) as proxy,
    ):
        target = f"169-254-169-254.rebind.example:{server.port}"
        assert (await proxy.send(f"GET http://{target}/ HTTP/1.1\r\n\r\n".encode())).split()[1] == b"403"
        assert (await proxy.send(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())).split()[1] == b"403"
        assert server.connected == 0


async def test_a_rule_for_one_internal_address_allows_no_other_address_and_no_other_port(tmp_path: Path) -> None:
    async with (
        run_server(respond_once(OK)) as wanted,
        run_server(respond_once(OK)) as other,
        run_proxy(tmp_path, mode="allow", allow=[f"127.0.0.1:{wanted.port}"], check=why_refused_here) as proxy,
    ):
        assert (await proxy.send(f"GET http://127.0.0.1:{wanted.port}/ HTTP/1.1\r\n\r\n".encode())).split()[1] == b"200"
        for host in (f"127.0.0.1:{other.port}", f"127.0.0.2:{wanted.port}", f"[::1]:{wanted.port}", "127.0.0.1:80"):
            assert (await proxy.send(f"GET http://{host}/ HTTP/1.1\r\n\r\n".encode())).split()[1] == b"403"
        assert (wanted.connected, other.connected) == (1, 0)


SMUGGLED_BODIES = [
    b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://evil.example/ HTTP/1.1\r\n\r\n",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding:\tchunked\x0b\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: xchunked\r\nContent-Length: 0\r\n\r\n",
    b"Content-Length: 0\r\nContent-Length: 44\r\n\r\nGET http://evil.example/ HTTP/1.1\r\nX: y\r\n\r\n",
    b"Content-Length: 0,44\r\n\r\n",
    b"X: y\r\n Content-Length: 44\r\n\r\n",
    b"X: y\nContent-Length: 44\r\n\r\n",
    b"X: y\rContent-Length: 44\r\n\r\n",
    b"X: y\0\r\n\r\n",
    b"Content-Length : 4\r\n\r\nabcd",
    b"Host: evil.example\r\n\r\n",
    b"Host: good.example\r\nHost: evil.example\r\n\r\n",
    b"Host: good.example:81\r\n\r\n",
    b"Host: good.example, evil.example\r\n\r\n",
    b"Host: good.example\r\n\thost: evil.example\r\n\r\n",
    b"Host: good.example/evil\r\n\r\n",
    b"Host:\r\n\r\n",
    b"X" * 40_000 + b": y\r\n\r\n",
    b"X: " + b"y" * 40_000 + b"\r\n\r\n",
    b"X: y\r\n" * 300 + b"\r\n",
]


@pytest.mark.parametrize("tail", SMUGGLED_BODIES, ids=range(len(SMUGGLED_BODIES)))
async def test_a_smuggled_request_reaches_no_server(tmp_path: Path, tail: bytes) -> None:
    names = FakeResolver()
    names.set("good.example", ["127.0.0.1"])
    async with (
        run_server(respond_once(OK)) as server,
        run_proxy(tmp_path, allow=[f"good.example:{server.port}"], names=names) as proxy,
    ):
        tail = tail.replace(b"Host: good.example", b"Host: good.example:%d" % server.port, 1)
        answer = await proxy.send(b"POST http://good.example:%d/ HTTP/1.1\r\n" % server.port + tail)
        assert answer.split()[1] in (b"400", b"431"), answer
        assert server.connected == 0
        assert proxy.egress.counters.malformed == 1
        assert len(proxy.events("request_refused")) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"5\r\nhelloGET / HTTP/1.1\r\n\r\n0\r\n\r\n",
        b"5\nhello\r\n0\r\n\r\n",
        b"fffffffffffffffff\r\nx",
        b"0\r\nHost : evil.example\r\n\r\n",
        b"-1\r\n",
    ],
)
async def test_a_smuggled_body_is_not_forwarded_as_another_request(tmp_path: Path, body: bytes) -> None:
    async def listen(seen: object, reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read())

    received: list[bytes] = []
    names = FakeResolver()
    names.set("good.example", ["127.0.0.1"])
    async with (
        run_server(listen) as server,
        run_proxy(tmp_path, allow=[f"good.example:{server.port}"], names=names) as proxy,
    ):
        head = b"POST http://good.example:%d/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" % server.port
        assert (await proxy.send(head + body)).split()[1] in (b"400", b"431")
        await server.served.get()
    assert received[0].count(b"HTTP/1.1") == 1
    assert not received[0].endswith(b"0\r\n\r\n")


async def test_a_flood_of_names_fills_neither_the_list_of_requests_nor_the_disk_nor_dns(tmp_path: Path) -> None:
    async with run_proxy(tmp_path, mode="ask", limits=EgressLimits(ask=0.01)) as proxy:
        before = (tmp_path / "timeline.db").stat().st_size
        gate = asyncio.Semaphore(50)

        async def knock(number: int) -> None:
            async with gate:
                host = f"{number:032x}.{number:032x}.tunnel.example" if number % 2 else f"evil{number}.example"
                assert (await proxy.send(f"CONNECT {host}:443 HTTP/1.1\r\n\r\n".encode())).split()[1] == b"403"

        await asyncio.gather(*(knock(number) for number in range(600)))
        pending = proxy.egress.status().pending
        assert len(pending) <= 64
        assert len([request for request in pending if request.family == "tunnel.example"]) == 1
        assert proxy.names.asked == []
    assert (tmp_path / "timeline.db").stat().st_size - before < 1_000_000


async def test_slow_and_silent_clients_are_cut(tmp_path: Path) -> None:
    async with run_proxy(tmp_path, limits=EgressLimits(head=0.3, connections=60)) as proxy:
        clients = [await proxy.open() for _ in range(50)]
        for _reader, writer in clients[::2]:
            writer.write(b"GET http://example.org/ HTTP/1.1\r\nX: ")
        for reader, writer in clients:
            async with asyncio.timeout(DEADLINE):
                assert (await reader.read()).startswith(b"HTTP/1.1 408")
            await hang_up(writer)
        assert (await proxy.send(b"GET http://example.org/ HTTP/1.1\r\n\r\n")).split()[1] == b"403"


async def test_an_endless_head_uses_little_memory(tmp_path: Path) -> None:
    async with run_proxy(tmp_path) as proxy:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        reader, writer = await proxy.open()
        writer.write(b"GET http://example.org/ HTTP/1.1\r\n")
        try:
            for _ in range(2000):
                writer.write(b"X: " + b"y" * 16_000)
                await writer.drain()
        except ConnectionError:
            pass
        await hang_up(writer)
        assert (await proxy.event("request_refused"))["reason"]
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024
        del reader


async def test_an_error_reveals_nothing_about_the_host(tmp_path: Path) -> None:
    names = FakeResolver()
    names.set("inner.example", ["10.1.2.3"])
    names.set("dead.example", ["127.77.8.8"])
    async with run_proxy(tmp_path, mode="allow", allow=["dead.example:9"], names=names) as proxy:
        for target in ("inner.example:80", "dead.example:9", "nowhere.example:80"):
            answer = await proxy.send(f"GET http://{target}/ HTTP/1.1\r\n\r\n".encode())
            assert answer.split()[1] in (b"403", b"502")
            for secret in (b"10.1.2.3", b"127.77.8.8", str(tmp_path).encode(), b"Traceback", b"/work", b"python"):
                assert secret not in answer.lower()


async def test_a_flood_in_one_tunnel_leaves_the_others_alive(tmp_path: Path) -> None:
    names = FakeResolver()
    names.set("good.example", ["127.0.0.1"])

    async def pour(writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(bytes(65536))
            await writer.drain()

    async with (
        run_server(echo) as server,
        run_proxy(tmp_path, allow=[f"good.example:{server.port}"], names=names) as proxy,
    ):
        floods = [await proxy.connect(f"good.example:{server.port}") for _ in range(4)]
        pouring = [asyncio.ensure_future(pour(writer)) for _status, _reader, writer in floods]
        for _ in range(20):
            _status, reader, writer = await proxy.connect(f"good.example:{server.port}")
            writer.write(b"hello")
            async with asyncio.timeout(DEADLINE):
                assert await reader.readexactly(5) == b"hello"
            await hang_up(writer)
        for task in pouring:
            task.cancel()
        await asyncio.gather(*pouring, return_exceptions=True)
        for _status, _reader, writer in floods:
            writer.transport.abort()
