"""The programs an agent really uses, through the proxy."""

import asyncio
import io
import os
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from tests.egress.street import Authority, Door, Names, Upstream, door, make_authority, plain, upstream
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 26\r\n\r\n<a href='x-1.tar.gz'>x</a>"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("ca"), "example.org")


@pytest.fixture
def names() -> Names:
    known = Names()
    known.tell("example.org", ["127.0.0.1"])
    return known


async def run(way: Door, *command: str, **environment: str) -> tuple[int, str]:
    """Runs a program as it would run inside: with the proxy in its environment and nothing else of ours."""
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), way.address)
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
async def test_curl(tmp_path: Path, names: Names, authority: Authority) -> None:
    async with (
        upstream(plain(PAGE)) as server,
        upstream(plain(PAGE), tls=authority.server) as secure,
        door(tmp_path, allow=[f"example.org:{server.port}", f"example.org:{secure.port}"], names=names) as way,
    ):
        code, output = await run(way, "curl", "-sS", "--fail", f"http://example.org:{server.port}/")
        assert (code, output) == (0, "<a href='x-1.tar.gz'>x</a>")
        ca = str(authority.ca_file)
        code, output = await run(way, "curl", "-sS", "--fail", "--cacert", ca, f"https://example.org:{secure.port}/")
        assert (code, output) == (0, "<a href='x-1.tar.gz'>x</a>")
        upload = tmp_path / "upload"
        upload.write_bytes(os.urandom(2_000_000))
        code, _ = await run(way, "curl", "-sS", "--fail", "-T", str(upload), f"http://example.org:{server.port}/")
        assert code == 0
        assert server.bodies == [upload.read_bytes()]
        code, output = await run(way, "curl", "-sS", "http://denied.example/")
        assert "freehold egress allow denied.example:80" in output
        code, output = await run(way, "curl", "-sS", "https://denied.example/")
        assert code == 56
        assert "403" in output


URLLIB = """
import sys, urllib.request, ssl
url, ca = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
print(urllib.request.urlopen(url, context=context, data=b"x" * 100000).read().decode())
"""


async def test_urllib(tmp_path: Path, names: Names, authority: Authority) -> None:
    async with (
        upstream(plain(PAGE)) as server,
        upstream(plain(PAGE), tls=authority.server) as secure,
        door(tmp_path, allow=[f"example.org:{server.port}", f"example.org:{secure.port}"], names=names) as way,
    ):
        for url in (f"http://example.org:{server.port}/", f"https://example.org:{secure.port}/"):
            code, output = await run(way, sys.executable, "-c", URLLIB, url, str(authority.ca_file))
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


async def package_index(seen: Upstream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    seen.heads.append(head)
    body = wheel() if b".whl" in head else b"<a href='x-1-py3-none-any.whl'>x-1-py3-none-any.whl</a>"
    kind = "application/zip" if b".whl" in head else "text/html"
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()


async def test_pip(tmp_path: Path, names: Names, authority: Authority) -> None:
    async with (
        upstream(package_index, tls=authority.server) as secure,
        door(tmp_path, allow=[f"example.org:{secure.port}"], names=names) as way,
    ):
        index = f"https://example.org:{secure.port}/simple"
        options = ("--isolated", "--no-input", "--disable-pip-version-check", "--no-cache-dir", "--no-deps")
        places = ("--cert", str(authority.ca_file), "--index-url", index, "--dest", str(tmp_path / "got"))
        code, output = await run(way, sys.executable, "-m", "pip", "download", *options, *places, "x")
        assert code == 0, output
        assert (tmp_path / "got" / "x-1-py3-none-any.whl").read_bytes() == wheel()


async def test_websocket(tmp_path: Path, names: Names) -> None:
    async def talk(socket: ServerConnection) -> None:
        async for message in socket:
            await socket.send(message)

    async with serve(talk, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with door(tmp_path, allow=[f"example.org:{port}"], names=names) as way:
            async with connect(f"ws://example.org:{port}/", proxy=way.address) as socket:
                await socket.send("through CONNECT")
                assert await socket.recv() == "through CONNECT"
            await _websocket_over_plain_http(way, port)


async def _websocket_over_plain_http(way: Door, port: int) -> None:
    reader, writer = await way.open()
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
