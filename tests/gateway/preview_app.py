"""An app for previews, run inside the computer: well-behaved at some paths and hostile at others. Standard library only."""

import asyncio
import base64
import hashlib
import json
import struct
import sys
from typing import Any

PIECE = b"\0" * 65536
later = asyncio.Event()
stalled = asyncio.Event()
written = 0


async def body_of(reader: asyncio.StreamReader, fields: dict[str, str]) -> tuple[int, str]:
    digest, size = hashlib.sha256(), 0
    left = int(fields.get("content-length", 0))
    while left:
        piece = await reader.read(min(65536, left))
        left -= len(piece)
        size += len(piece)
        digest.update(piece)
    while fields.get("transfer-encoding") == "chunked":
        count = int(await reader.readline(), 16)
        piece = await reader.readexactly(count)
        await reader.readline()
        size += count
        digest.update(piece)
        if count == 0:
            break
    return size, digest.hexdigest()


def answer(writer: asyncio.StreamWriter, body: bytes, *fields: str, status: str = "200 OK") -> None:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields, "", ""]
    writer.write("\r\n".join(lines).encode("latin-1") + body)


async def endless(writer: asyncio.StreamWriter) -> None:
    """Send until the receiver accepts nothing for a second, and then continue."""
    global written
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(PIECE)
        written += len(PIECE)
        draining = asyncio.ensure_future(writer.drain())
        await asyncio.wait({draining}, timeout=1)
        if not draining.done():
            stalled.set()
        await draining


async def frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    first, second = await reader.readexactly(2)
    size = second & 127
    if size == 126:
        (size,) = struct.unpack("!H", await reader.readexactly(2))
    elif size == 127:
        (size,) = struct.unpack("!Q", await reader.readexactly(8))
    mask = await reader.readexactly(4)
    data = await reader.readexactly(size)
    return first & 15, bytes(one ^ mask[at % 4] for at, one in enumerate(data))


def framed(opcode: int, data: bytes) -> bytes:
    size = len(data)
    head = bytes([128 | opcode, size]) if size < 126 else bytes([128 | opcode, 127]) + struct.pack("!Q", size)
    return head + data


async def socket(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fields: dict[str, str]) -> None:
    key = fields["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
    protocol = fields.get("sec-websocket-protocol", "").split(",")[0]
    lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
    lines += [f"Sec-WebSocket-Accept: {accept}", "Set-Cookie: __Host-freehold-preview=stolen; Secure; Path=/"]
    lines += [f"Sec-WebSocket-Protocol: {protocol}"] if protocol else []
    writer.write("\r\n".join([*lines, "", ""]).encode())
    writer.write(framed(1, json.dumps(fields).encode()))
    while True:
        opcode, data = await frame(reader)
        if opcode == 8:
            writer.write(framed(8, data))
            return
        if data == b"close":
            writer.write(framed(8, struct.pack("!H", 4001) + b"enough"))
        elif data == b"huge":
            writer.write(bytes([130, 127]) + struct.pack("!Q", 1 << 40))
        elif data == b"odd":
            writer.write(framed(1, b"\xff\xfe"))
        else:
            writer.write(framed(opcode, data))


COOKIES = (
    "plain=1",
    "wide=1; Domain=localhost; Path=/; SameSite=Strict",
    "__Host-freehold=stolen; Secure; Path=/",
    "__host-FREEHOLD-preview=stolen; Secure; Path=/",
    "freehold_x=1",
    "=__Host-freehold=nameless",
    "freehold",
)


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.rstrip("\r\n").split("\r\n")
    target = line.split(" ")[1]
    pairs = [(name.lower(), value) for name, _, value in (field.partition(": ") for field in rest)]
    fields: dict[str, str] = dict(pairs)
    match target.partition("?")[0]:
        case "/seen":
            answer(writer, json.dumps({"line": line, "fields": pairs}).encode(), "Content-Type: application/json")
        case "/body":
            answer(writer, json.dumps(await body_of(reader, fields)).encode())
        case "/large":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (1600 * len(PIECE)))
            for _ in range(1600):
                writer.write(PIECE)
                await writer.drain()
        case "/chunked":
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")
        case "/length-and-chunks":
            writer.write(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n1\r\na\r\n0\r\n\r\n"
            )
        case "/old":
            writer.write(b"HTTP/1.0 200 OK\r\n\r\nold")
        case "/events":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: one\n\n")
            await later.wait()
            later.clear()
            writer.write(b"data: two\n\n")
            await reader.read()
        case "/next":
            later.set()
            answer(writer, b"")
        case "/endless":
            await endless(writer)
        case "/tally":
            await stalled.wait()
            answer(writer, str(written).encode())
        case "/socket":
            await socket(reader, writer, fields)
        case "/cookies":
            answer(writer, b"", *(f"Set-Cookie: {cookie}" for cookie in COOKIES))
        case "/redirect":
            answer(writer, b"", "Location: http://localhost:5173/next?a=1#b", status="302 Found")
        case "/framed":
            policy = "Content-Security-Policy: script-src 'self'; FRAME-ancestors 'none'"
            also = ("Strict-Transport-Security: max-age=9", 'Clear-Site-Data: "*"', 'Alt-Svc: h3=":443"')
            answer(writer, b"", "X-Frame-Options: DENY", policy, *also)
        case "/cors":
            allowed = f"Access-Control-Allow-Origin: {fields.get('origin', 'null')}"
            answer(writer, b"", allowed, "Access-Control-Allow-Credentials: true")
        case "/hints":
            writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
            answer(writer, b"at last")
        case "/always-hinting":
            while True:
                writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
                await writer.drain()
        case "/switch":
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: freehold\r\n\r\n")
        case "/garbage":
            writer.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
        case "/silent":
            await reader.read()
        case "/long-head":
            writer.write(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2_000_000 + b"\r\n\r\n")
        case "/many-fields":
            writer.write(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 5000 + b"\r\n")
        case "/injected":
            writer.write(b"HTTP/1.1 200 OK\r\nX: a\nSet-Cookie: __Host-freehold=1\r\nContent-Length: 0\r\n\r\n")
        case "/cut":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
        case "/too-long":
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
            )
        case "/two-lengths":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!")
        case "/teapot":
            answer(writer, b"no coffee", status="418 I am a teapot")
        case "/page":
            answer(writer, PAGE.encode(), "Content-Type: text/html")
        case "/worker.js":
            answer(writer, b"self.addEventListener('fetch', () => {})", "Content-Type: text/javascript")
        case _:
            answer(writer, b"nothing here", status="404 Not Found")


PAGE = "<!doctype html><meta charset=utf-8><title>app</title><h1>An app</h1>"


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await handle(reader, writer)
        await writer.drain()
    except (OSError, EOFError):
        pass  # whoever asked has gone
    finally:
        writer.close()


async def main(*ports: int) -> None:
    servers: list[Any] = [await asyncio.start_server(serve, "127.0.0.1", port, limit=2**20) for port in ports]
    print("listening", flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
