"""What a hostile program inside says to the proxy, and what the proxy never does."""

import asyncio
import resource
from pathlib import Path

import pytest
from tests.egress.spellings import LOOPBACK, METADATA
from tests.egress.street import OK, Names, door, echo, hang_up, plain, upstream

from freehold.egress import Limits, Mode
from freehold.egress.addresses import why_refused_here


@pytest.mark.parametrize("mode", ["deny", "ask", "allow"])
async def test_no_spelling_of_an_inner_address_gets_out(tmp_path: Path, mode: Mode) -> None:
    async with (
        upstream(plain(OK)) as server,
        door(tmp_path, mode=mode, check=why_refused_here, limits=Limits(ask=0.05)) as way,
    ):
        for host in METADATA + LOOPBACK:
            for port in (80, 443, server.port):
                for request in (
                    f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n",
                    f"GET http://{host}:{port}/ HTTP/1.1\r\n\r\n",
                ):
                    answer = await way.say(request.encode("utf-8"))
                    assert answer.split()[1] in (b"400", b"403"), (request, answer)
        assert way.names.asked == []
        assert server.connected == 0
        assert way.egress.snapshot().pending == (), "the owner is not even asked"


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "127.0.0.1", "::1", "fd00:ec2::254", "::ffff:127.0.0.1", "10.0.0.1"]
)
async def test_no_name_leads_to_an_inner_address(tmp_path: Path, address: str) -> None:
    names = Names()
    names.tell("169-254-169-254.rebind.example", [address])
    async with (
        upstream(plain(OK)) as server,
        door(
            tmp_path,
            mode="allow",
            allow=[f"*.rebind.example:{server.port}"],
            check=why_refused_here,
            names=names,
        ) as way,
    ):
        target = f"169-254-169-254.rebind.example:{server.port}"
        assert (await way.say(f"GET http://{target}/ HTTP/1.1\r\n\r\n".encode())).split()[1] == b"403"
        assert (await way.say(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())).split()[1] == b"403"
        assert server.connected == 0


async def test_a_rule_for_one_inner_address_opens_no_other_and_no_other_port(tmp_path: Path) -> None:
    async with (
        upstream(plain(OK)) as wanted,
        upstream(plain(OK)) as other,
        door(tmp_path, mode="allow", allow=[f"127.0.0.1:{wanted.port}"], check=why_refused_here) as way,
    ):
        assert (await way.say(f"GET http://127.0.0.1:{wanted.port}/ HTTP/1.1\r\n\r\n".encode())).split()[1] == b"200"
        for host in (f"127.0.0.1:{other.port}", f"127.0.0.2:{wanted.port}", f"[::1]:{wanted.port}", "127.0.0.1:80"):
            assert (await way.say(f"GET http://{host}/ HTTP/1.1\r\n\r\n".encode())).split()[1] == b"403"
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
    names = Names()
    names.tell("good.example", ["127.0.0.1"])
    async with upstream(plain(OK)) as server, door(tmp_path, allow=[f"good.example:{server.port}"], names=names) as way:
        tail = tail.replace(b"Host: good.example", b"Host: good.example:%d" % server.port, 1)
        answer = await way.say(b"POST http://good.example:%d/ HTTP/1.1\r\n" % server.port + tail)
        assert answer.split()[1] in (b"400", b"431"), answer
        assert server.connected == 0
        assert way.egress.counters.malformed == 1
        assert len(way.events("request_refused")) == 1


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
async def test_a_smuggled_body_is_not_passed_on_as_another_request(tmp_path: Path, body: bytes) -> None:
    async def listen(seen: object, reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read())

    received: list[bytes] = []
    names = Names()
    names.tell("good.example", ["127.0.0.1"])
    async with upstream(listen) as server, door(tmp_path, allow=[f"good.example:{server.port}"], names=names) as way:
        head = b"POST http://good.example:%d/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" % server.port
        assert (await way.say(head + body)).split()[1] in (b"400", b"431")
        await server.served.get()
    assert received[0].count(b"HTTP/1.1") == 1
    assert not received[0].endswith(b"0\r\n\r\n")


async def test_a_flood_of_names_bothers_neither_the_owner_nor_the_disk_nor_dns(tmp_path: Path) -> None:
    async with door(tmp_path, mode="ask", limits=Limits(ask=0.01)) as way:
        before = (tmp_path / "timeline.db").stat().st_size
        gate = asyncio.Semaphore(50)

        async def knock(number: int) -> None:
            async with gate:
                host = f"{number:032x}.{number:032x}.tunnel.example" if number % 2 else f"evil{number}.example"
                assert (await way.say(f"CONNECT {host}:443 HTTP/1.1\r\n\r\n".encode())).split()[1] == b"403"

        await asyncio.gather(*(knock(number) for number in range(600)))
        pending = way.egress.snapshot().pending
        assert len(pending) <= 64
        assert len([question for question in pending if question.family == "tunnel.example"]) == 1
        assert way.names.asked == []
    assert (tmp_path / "timeline.db").stat().st_size - before < 1_000_000


async def test_slow_and_silent_clients_hold_nothing_for_long(tmp_path: Path) -> None:
    async with door(tmp_path, limits=Limits(head=0.3, connections=60)) as way:
        clients = [await way.open() for _ in range(50)]
        for _reader, writer in clients[::2]:
            writer.write(b"GET http://example.org/ HTTP/1.1\r\nX: ")
        for reader, writer in clients:
            async with asyncio.timeout(20):
                assert (await reader.read()).startswith(b"HTTP/1.1 408")
            await hang_up(writer)
        assert (await way.say(b"GET http://example.org/ HTTP/1.1\r\n\r\n")).split()[1] == b"403"


async def test_an_endless_head_costs_no_memory(tmp_path: Path) -> None:
    async with door(tmp_path) as way:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        reader, writer = await way.open()
        writer.write(b"GET http://example.org/ HTTP/1.1\r\n")
        try:
            for _ in range(2000):
                writer.write(b"X: " + b"y" * 16_000)
                await writer.drain()
        except ConnectionError:
            pass
        await hang_up(writer)
        assert (await way.event("request_refused"))["reason"]
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024
        del reader


async def test_an_error_tells_nothing_about_the_host(tmp_path: Path) -> None:
    names = Names()
    names.tell("inner.example", ["10.1.2.3"])
    names.tell("dead.example", ["127.77.8.8"])
    async with door(tmp_path, mode="allow", allow=["dead.example:9"], names=names) as way:
        for target in ("inner.example:80", "dead.example:9", "nowhere.example:80"):
            answer = await way.say(f"GET http://{target}/ HTTP/1.1\r\n\r\n".encode())
            assert answer.split()[1] in (b"403", b"502")
            for secret in (b"10.1.2.3", b"127.77.8.8", str(tmp_path).encode(), b"Traceback", b"/work", b"python"):
                assert secret not in answer.lower()


async def test_a_flood_in_one_tunnel_leaves_the_others_alive(tmp_path: Path) -> None:
    names = Names()
    names.tell("good.example", ["127.0.0.1"])

    async def pour(writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(bytes(65536))
            await writer.drain()

    async with upstream(echo) as server, door(tmp_path, allow=[f"good.example:{server.port}"], names=names) as way:
        floods = [await way.connect(f"good.example:{server.port}") for _ in range(4)]
        pouring = [asyncio.ensure_future(pour(writer)) for _status, _reader, writer in floods]
        for _ in range(20):
            _status, reader, writer = await way.connect(f"good.example:{server.port}")
            writer.write(b"hello")
            async with asyncio.timeout(20):
                assert await reader.readexactly(5) == b"hello"
            await hang_up(writer)
        for task in pouring:
            task.cancel()
        await asyncio.gather(*pouring, return_exceptions=True)
        for _status, _reader, writer in floods:
            writer.transport.abort()
