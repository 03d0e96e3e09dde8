"""Programs that agents use, through the proxy."""

import asyncio
import io
import json
import os
import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from tests.egress.proxy_harness import (
    Authority,
    FakeResolver,
    FakeServer,
    RunningProxy,
    make_authority,
    respond_once,
    run_proxy,
    run_server,
)
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

from freehold.egress.credentials import PROXY_VARIABLES

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 26\r\n\r\n<a href='x-1.tar.gz'>x</a>"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("ca"), "example.org")


@pytest.fixture
def names() -> FakeResolver:
    known = FakeResolver()
    known.set("example.org", ["127.0.0.1"])
    return known


async def run(proxy: RunningProxy, *command: str, **environment: str) -> tuple[int, str]:
    """Runs a program as it would run inside: with the proxy in its environment and nothing else of ours."""
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), proxy.address)
    process = await asyncio.create_subprocess_exec(
        *command,
        env={"PATH": os.environ["PATH"], **proxies, **environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_curl(tmp_path: Path, names: FakeResolver, authority: Authority) -> None:
    async with (
        run_server(respond_once(PAGE)) as server,
        run_server(respond_once(PAGE), tls=authority.server) as secure,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}", f"example.org:{secure.port}"], names=names) as proxy,
    ):
        code, output = await run(proxy, "curl", "-sS", "--fail", f"http://example.org:{server.port}/")
        assert (code, output) == (0, "<a href='x-1.tar.gz'>x</a>")
        ca = str(authority.ca_file)
        code, output = await run(proxy, "curl", "-sS", "--fail", "--cacert", ca, f"https://example.org:{secure.port}/")
        assert (code, output) == (0, "<a href='x-1.tar.gz'>x</a>")
        upload = tmp_path / "upload"
        upload.write_bytes(os.urandom(2_000_000))
        code, _ = await run(proxy, "curl", "-sS", "--fail", "-T", str(upload), f"http://example.org:{server.port}/")
        assert code == 0
        assert server.bodies == [upload.read_bytes()]
        code, output = await run(proxy, "curl", "-sS", "http://denied.example/")
        assert "freehold egress allow denied.example:80" in output
        code, output = await run(proxy, "curl", "-sS", "https://denied.example/")
        assert code == 56
        assert "403" in output


URLLIB = """
import sys, urllib.request, ssl
url, ca = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
print(urllib.request.urlopen(url, context=context, data=b"x" * 100000).read().decode())
"""


async def test_urllib(tmp_path: Path, names: FakeResolver, authority: Authority) -> None:
    async with (
        run_server(respond_once(PAGE)) as server,
        run_server(respond_once(PAGE), tls=authority.server) as secure,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}", f"example.org:{secure.port}"], names=names) as proxy,
    ):
        for url in (f"http://example.org:{server.port}/", f"https://example.org:{secure.port}/"):
            code, output = await run(proxy, sys.executable, "-c", URLLIB, url, str(authority.ca_file))
            assert (code, output.strip()) == (0, "<a href='x-1.tar.gz'>x</a>")
        assert server.bodies == secure.bodies == [b"x" * 100000]


def wheel() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in (
            ("x.py", ""),
            ("x-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: x\nVersion: 1\n"),
            ("x-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
            ("x-1.dist-info/RECORD", "x.py,,\n"),
        ):
            archive.writestr(zipfile.ZipInfo(name), text)  # without the time: every call gives the same bytes
    return packed.getvalue()


async def package_index(seen: FakeServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    seen.heads.append(head)
    body = wheel() if b".whl" in head else b"<a href='x-1-py3-none-any.whl'>x-1-py3-none-any.whl</a>"
    kind = "application/zip" if b".whl" in head else "text/html"
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()


async def test_pip(tmp_path: Path, names: FakeResolver, authority: Authority) -> None:
    async with (
        run_server(package_index, tls=authority.server) as secure,
        run_proxy(tmp_path, allow=[f"example.org:{secure.port}"], names=names) as proxy,
    ):
        index = f"https://example.org:{secure.port}/simple"
        options = ("--isolated", "--no-input", "--disable-pip-version-check", "--no-cache-dir", "--no-deps")
        places = ("--cert", str(authority.ca_file), "--index-url", index, "--dest", str(tmp_path / "got"))
        code, output = await run(proxy, sys.executable, "-m", "pip", "download", *options, *places, "x")
        assert code == 0, output
        assert (tmp_path / "got" / "x-1-py3-none-any.whl").read_bytes() == wheel()


NODE = Path(__file__).parents[2] / ".cache" / "agents" / "agents" / ".node" / "bin" / "node"
"""The one that agents run with: older ones ignore the environment."""

CLIENTS = {
    "curl": ["curl", "-sS", "--fail", "--cacert", "{ca}", "{url}"],
    "wget": ["wget", "-qO-", "--ca-certificate={ca}", "{url}"],
    "urllib": [sys.executable, "-c", URLLIB, "{url}", "{ca}"],
    "httpx": [
        sys.executable,
        "-c",
        "import httpx2, sys; print(httpx2.get(sys.argv[1], verify=sys.argv[2]).text)",
        "{url}",
        "{ca}",
    ],
    "node": [str(NODE), "-e", "fetch(process.argv[1]).then(a => a.text()).then(console.log)", "{url}"],
    "npm": ["npm", "view", "x", "name", "--registry", "{url}", "--cafile", "{ca}", "--fetch-retries", "0"],
    "git": ["git", "-c", "http.sslCAInfo={ca}", "ls-remote", "{url}repository"],
}
"""Each fetches the URL. httpx is what the built-in agent uses."""


async def serve_everything(seen: FakeServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A page, an npm package or the references of a git repository."""
    head = await reader.readuntil(b"\r\n\r\n")
    seen.heads.append(head)
    if length := re.search(rb"content-length: *(\d+)", head, re.IGNORECASE):
        # A server that closes with a body unread resets the connection of a client that is still sending it.
        await reader.readexactly(int(length[1]))
    kind, body = "text/plain", b"reached"
    if b"/x " in head or b"/x?" in head:
        versions = {"1.0.0": {"name": "reached", "version": "1.0.0", "dist": {"tarball": "http://x/x.tgz"}}}
        package = {"name": "x", "dist-tags": {"latest": "1.0.0"}, "versions": versions}
        kind, body = "application/json", json.dumps(package).encode()
    elif b"git-upload-pack" in head:
        line = b"a" * 40 + b" refs/heads/reached\0agent=x\n"
        body = b"001e# service=git-upload-pack\n0000%04x%b0000" % (len(line) + 4, line)
        kind = "application/x-git-upload-pack-advertisement"
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_client_is_known_by_the_credentials_in_its_environment(
    tmp_path: Path, names: FakeResolver, authority: Authority, client: str
) -> None:
    """With the credentials of its session it connects, without them it does not; the server never sees them."""
    if shutil.which(CLIENTS[client][0]) is None:
        pytest.skip(f"{client} is not installed")
    async with run_server(serve_everything, tls=authority.server) as server, run_proxy(tmp_path, names=names) as proxy:
        await proxy.egress.allow_session("one", f"example.org:{server.port}", "conversation", who="session:one")
        ca, url = str(authority.ca_file), f"https://example.org:{server.port}/"
        command = [word.format(ca=ca, url=url) if word != URLLIB else word for word in CLIENTS[client]]
        more = {"NODE_EXTRA_CA_CERTS": ca, "NODE_USE_ENV_PROXY": "1", "HOME": str(tmp_path)}
        own = proxy.egress.credentials.environment("one")
        for session, allowed in (("one", True), ("another", False), (None, False)):
            address = proxy.address if session is None else proxy.address_for(session)
            given = dict.fromkeys(PROXY_VARIABLES, address)
            given["GIT_HTTP_PROXY_AUTHMETHOD"] = str(own["GIT_HTTP_PROXY_AUTHMETHOD"])
            _code, output = await run(proxy, *command, **given, **more)
            assert ("reached" in output) == allowed, (session, output)
        assert server.heads
        assert b"proxy-authorization" not in b"".join(server.heads).lower()


async def test_websocket(tmp_path: Path, names: FakeResolver) -> None:
    async def talk(socket: ServerConnection) -> None:
        async for message in socket:
            await socket.send(message)

    async with serve(talk, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with run_proxy(tmp_path, allow=[f"example.org:{port}"], names=names) as proxy:
            async with connect(f"ws://example.org:{port}/", proxy=proxy.address) as socket:
                await socket.send("through CONNECT")
                assert await socket.recv() == "through CONNECT"
            await _websocket_over_plain_http(proxy, port)


async def _websocket_over_plain_http(proxy: RunningProxy, port: int) -> None:
    reader, writer = await proxy.open()
    writer.write(
        f"GET http://example.org:{port}/ HTTP/1.1\r\nHost: example.org:{port}\r\nConnection: keep-alive, Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101")
    assert b"Upgrade: websocket" in head
    writer.write(b"\x81\x85\0\0\0\0hello")
    assert await reader.readexactly(7) == b"\x81\x05hello"
    writer.write(b"\x88\x80\0\0\0\0")
    assert (await reader.read()).startswith(b"\x88")
    writer.close()
    await writer.wait_closed()
