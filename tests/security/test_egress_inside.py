"""Attacks on egress from inside a real computer."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.egress.address_spellings import LOOPBACK, METADATA
from tests.egress.proxy_harness import (
    OK,
    Authority,
    FakeResolver,
    echo,
    make_authority,
    pretend_public,
    respond_once,
    run_server,
)
from tests.support.condition import until

from freehold.computer import Computer
from freehold.egress import EgressLimits, EgressService, EgressSettings, Mode
from freehold.egress.addresses import AddressCheck, why_refused_here
from freehold.timeline import Timeline

TLS_PORT = 8443
PROXY_PORT = 3128

SAY = """
import socket, sys, json
def say(data):
    with socket.create_connection(("127.0.0.1", 3128), timeout=30) as door:
        door.sendall(data.encode("utf-8"))
        answer = b""
        while piece := door.recv(65536):
            answer += piece
    return answer.decode("latin-1")
"""


@dataclass(frozen=True)
class Inside:
    computer: Computer
    egress: EgressService
    timeline: Timeline
    names: FakeResolver

    async def python(self, code: str, *arguments: str) -> str:
        """Runs the program inside and returns what it printed."""
        result = await self.computer.run(["python3", "-c", SAY + code, *arguments], timeout=60)
        assert result.exit_code == 0, result.stderr.decode()
        return result.stdout.decode()


@asynccontextmanager
async def inside(
    folder: Path,
    *,
    mode: Mode = "deny",
    allow: Sequence[str] = (),
    names: FakeResolver | None = None,
    limits: EgressLimits | None = None,
    check: AddressCheck = why_refused_here,
) -> AsyncIterator[Inside]:
    names = names or FakeResolver()
    settings = EgressSettings(mode, tuple(allow))
    with Timeline(folder / "timeline.db") as timeline:
        async with (
            EgressService(timeline, settings, limits=limits, resolve=names, check=check) as egress,
            Computer.start() as computer,
        ):
            await computer.listen(PROXY_PORT, egress.handle)
            yield Inside(computer, egress, timeline, names)
            # The host and a second computer are as responsive as before, whatever was done.
            async with asyncio.timeout(30), Computer.start() as second:
                assert (await second.run("echo alive")).stdout == b"alive\n"


DIRECT = """
import errno, os
host_port = int(sys.argv[1])
found = {}
def attempt(name, act):
    try:
        act()
        found[name] = "worked"
    except OSError as error:
        found[name] = errno.errorcode.get(error.errno, str(error))
def tcp(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as one:
        one.settimeout(5)
        one.connect((address, port))
def udp(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as one:
        one.sendto(b"hello", (address, 53))
for address in ("1.1.1.1", "8.8.8.8", "169.254.169.254", "10.0.0.1", "192.168.1.1", "172.17.0.1", "2606:4700::1111", "fd00:ec2::254"):
    attempt("tcp " + address, lambda: tcp(address, 80))
    attempt("udp " + address, lambda: udp(address))
attempt("host loopback", lambda: tcp("127.0.0.1", host_port))
attempt("host loopback 6", lambda: tcp("::1", host_port))
attempt("lookup", lambda: socket.getaddrinfo("example.org", 80))
attempt("raw icmp", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attempt("raw 6", lambda: socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6))
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
attempt("packet dgram", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM))
attempt("multicast", lambda: udp("239.255.255.250"))
attempt("broadcast", lambda: udp("255.255.255.255"))
found["interfaces"] = " ".join(name for _, name in socket.if_nameindex()) if hasattr(socket, "if_nameindex") else "lo"
found["routes"] = str(len(open("/proc/net/route").readlines()) - 1)
print(json.dumps(found))
"""


async def test_there_is_no_other_way_out(tmp_path: Path) -> None:
    """No route, no resolver, no raw socket, and not the host's loopback."""
    async with run_server(echo) as server, inside(tmp_path, mode="allow") as agent:
        found = json.loads(await agent.python(DIRECT, str(server.port)))
        assert found.pop("interfaces") in ("lo", "")
        assert found.pop("routes") == "0"
        assert "worked" not in found.values(), found
        assert server.connected == 0
        assert agent.names.asked == []


EVERY_SPELLING = """
for host in json.loads(sys.argv[1]):
    for port in (80, 443, int(sys.argv[2])):
        for request in (f"CONNECT {host}:{port} HTTP/1.1\\r\\n\\r\\n", f"GET http://{host}:{port}/ HTTP/1.1\\r\\n\\r\\n"):
            answer = say(request)
            assert answer.split()[1] in ("400", "403"), (request, answer)
print("refused")
"""


@pytest.mark.parametrize("mode", ["ask", "allow"])
async def test_the_hosts_loopback_and_metadata_are_refused_in_every_spelling(tmp_path: Path, mode: Mode) -> None:
    async with (
        run_server(respond_once(OK)) as server,
        inside(tmp_path, mode=mode, limits=EgressLimits(ask=0.05)) as agent,
    ):
        spellings = json.dumps(METADATA + LOOPBACK)
        assert await agent.python(EVERY_SPELLING, spellings, str(server.port)) == "refused\n"
        assert server.connected == 0
        assert agent.names.asked == []
        refused = [event for event in agent.timeline.read(kinds=("egress.*",)) if event.kind.endswith("refused")]
        assert refused
        assert {event.who for event in refused} == {"computer"}


TUNNEL = """
import concurrent.futures
def knock(number):
    label = f"{number:060x}"
    return say(f"CONNECT {label}.{label}.tunnel.example:443 HTTP/1.1\\r\\n\\r\\n").split()[1]
with concurrent.futures.ThreadPoolExecutor(16) as pool:
    print(json.dumps(sorted(set(pool.map(knock, range(400))))))
"""


async def test_a_tunnel_of_names_carries_nothing_out(tmp_path: Path) -> None:
    """Data in the labels of names: none is looked up, and the owner sees one request and not four hundred."""
    async with inside(tmp_path, mode="ask", limits=EgressLimits(ask=0.02)) as agent:
        assert json.loads(await agent.python(TUNNEL)) == ["403"]
        assert agent.names.asked == []
        (request,) = agent.egress.status().pending
        assert str(request.pattern) == "*.tunnel.example:443"
        assert len(agent.timeline.read(kinds=("egress.*",), limit=10_000)) < 300


HANDSHAKE = """
import ssl
target, name, ca = sys.argv[1:]
context = ssl.create_default_context(cadata=ca)
context.check_hostname = False
door = socket.create_connection(("127.0.0.1", 3128), timeout=30)
door.sendall(f"CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n".encode())
assert door.recv(65536).split()[1] == b"200"
try:
    with context.wrap_socket(door, server_hostname=name) as secure:
        secure.sendall(b"hello")
        print(secure.recv(5).decode())
except ssl.SSLError as error:
    print(error.reason)
"""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("ca"), "good.example", "evil.example")


async def test_tls_must_name_the_host_that_was_allowed(tmp_path: Path, authority: Authority) -> None:
    place = "127.77.200.7"
    names = FakeResolver()
    names.set("good.example", [place])
    async with (
        run_server(echo, host=place, port=TLS_PORT, tls=authority.server),
        inside(tmp_path, allow=[f"good.example:{TLS_PORT}"], names=names, check=pretend_public) as agent,
    ):
        target, ca = f"good.example:{TLS_PORT}", authority.ca_file.read_text()
        assert await agent.python(HANDSHAKE, target, "good.example", ca) == "hello\n"
        assert "UNRECOGNIZED_NAME" in await agent.python(HANDSHAKE, target, "evil.example", ca)
        # The client has its answer before the event is written.
        (refused,) = await until(lambda: agent.timeline.read(kinds=("egress.request_refused",)))
        assert "evil.example" in str(refused.data["reason"])


ODD = """
for port in (1, 22, 25, 53, 3128, 6379, 8001, 65535):
    assert say(f"CONNECT good.example:{port} HTTP/1.1\\r\\n\\r\\n").split()[1] == "403", port
for tail in (
    "Content-Length: 4\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n",
    "Content-Length: 0\\r\\nContent-Length: 9\\r\\n\\r\\n",
    "Host: evil.example\\r\\n\\r\\n",
    "X: y\\nContent-Length: 5\\r\\n\\r\\n",
    "X: y\\r\\n Content-Length: 5\\r\\n\\r\\n",
):
    answer = say("POST http://good.example/ HTTP/1.1\\r\\n" + tail)
    assert answer.split()[1] == "400", (tail, answer)
print("refused")
"""


async def test_odd_ports_and_smuggled_headers_are_refused(tmp_path: Path) -> None:
    async with inside(tmp_path, mode="allow", allow=["good.example"]) as agent:
        assert await agent.python(ODD) == "refused\n"
        assert agent.names.asked == []


FLOOD = """
import os
held = []
for number in range(700):
    one = socket.socket()
    one.settimeout(10)
    try:
        one.connect(("127.0.0.1", 3128))
        one.sendall(b"GET http://good.example/ HTTP/1.1\\r\\nX: ")
    except OSError:
        break
    held.append(one)
print(len(held))
"""


async def test_a_flood_of_half_requests_ends_and_the_way_is_free_again(tmp_path: Path) -> None:
    names = FakeResolver()
    names.set("good.example", ["127.0.0.1"])
    async with (
        run_server(respond_once(OK)) as server,
        inside(
            tmp_path,
            allow=[f"good.example:{server.port}"],
            names=names,
            check=pretend_public,
            limits=EgressLimits(head=0.5),
        ) as agent,
    ):
        assert int(await agent.python(FLOOD)) > 100
        assert len(agent.egress.connections) <= agent.egress.limits.connections
        fetched = await agent.computer.run(f"curl -sS --retry 20 --retry-delay 1 http://good.example:{server.port}/")
        assert fetched.stdout.endswith(b"hello"), fetched


async def test_what_is_allowed_arrives_whole(tmp_path: Path) -> None:
    names = FakeResolver()
    names.set("good.example", ["127.0.0.1"])
    payload = bytes(range(256)) * 40_000
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(payload) + payload
    async with (
        run_server(respond_once(answer)) as server,
        inside(tmp_path, allow=[f"good.example:{server.port}"], names=names, check=pretend_public) as agent,
    ):
        got = await agent.computer.run(f"curl -sS http://good.example:{server.port}/ | sha256sum")
        expected = await agent.computer.run("sha256sum", stdin=payload)
        assert got.stdout == expected.stdout


async def test_an_open_connection_ends_when_the_owner_removes_its_rule(tmp_path: Path) -> None:
    names = FakeResolver()
    names.set("good.example", ["127.0.0.1"])
    async with run_server(echo) as server, inside(tmp_path, names=names, check=pretend_public) as agent:
        target = f"good.example:{server.port}"
        await agent.egress.add_rule("allow", target)
        hold = "door = socket.create_connection(('127.0.0.1', 3128))\n" + (
            f"door.sendall(b'CONNECT {target} HTTP/1.1\\r\\n\\r\\nhello')\n"
            "got = b''\nwhile not got.endswith(b'hello'): got += door.recv(100)\nprint('open', flush=True)\n"
            "try:\n    print(door.recv(100))\nexcept ConnectionError:\n    print(b'')\n"
        )
        process = await agent.computer.spawn(["python3", "-c", SAY + hold])
        async with asyncio.timeout(30):
            assert await process.stdout.read() == b"open\n"
            await agent.egress.remove_rule(target)
            assert await process.stdout.read() == b"b''\n"
            assert (await process.wait()).code == 0
            await server.served.get()
