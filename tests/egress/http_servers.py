"""Three real HTTP servers that tell which requests they saw: h11 and httptools (both under uvicorn), and Node's http."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import uvicorn
from starlette.types import Receive, Scope, Send
from tests.support.condition import DEADLINE
from uvicorn.server import ServerState

_CACHED_NODE = Path(__file__).parents[2] / ".cache" / "agents" / "agents" / ".node" / "bin" / "node"
NODE = shutil.which("node") or str(_CACHED_NODE)

_NODE_SERVER = """
const http = require('http');
let all = [];
function serve(request, answer) {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    const fields = [];
    for (let at = 0; at < request.rawHeaders.length; at += 2) {
      fields.push([request.rawHeaders[at].toLowerCase(), Buffer.from(request.rawHeaders[at + 1], 'latin1').toString('hex')]);
    }
    const seen = [request.method, request.url, Buffer.concat(parts).toString('hex'), fields];
    all.push(seen);
    answer.writeHead(200, {'X-Seen': Buffer.from(JSON.stringify(seen)).toString('hex'), 'Content-Length': 0});
    answer.end();
  });
}
const server = http.createServer({maxHeaderSize: 65536}, serve);
server.on('checkContinue', serve);
server.on('checkExpectation', serve);
server.on('clientError', (error, socket) => socket.destroy());
server.on('connect', (request, socket) => socket.destroy());
const control = http.createServer((request, answer) => { answer.end(JSON.stringify(all)); all = []; });
server.listen(0, '127.0.0.1', () => control.listen(0, '127.0.0.1', () =>
  console.log(JSON.stringify([server.address().port, control.address().port]))));
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
"""


@dataclass(frozen=True)
class ObservedRequest:
    """A request as a server understood it. The fields are sorted."""

    method: str
    target: str
    body: bytes
    fields: tuple[tuple[str, bytes], ...]

    @classmethod
    def from_json(cls, seen: list[object]) -> "ObservedRequest":
        method, target, body, fields = seen
        assert isinstance(method, str)
        assert isinstance(target, str)
        assert isinstance(body, str)
        assert isinstance(fields, list)
        found = tuple(sorted((name, bytes.fromhex(value).strip(b" \t")) for name, value in fields))
        return cls(method, target, bytes.fromhex(body), found)


class RealServer:
    """A running server."""

    def __init__(self, name: str, port: int) -> None:
        self.name = name
        self.port = port
        self.seen: list[list[object]] = []

    async def take_seen(self) -> list[ObservedRequest]:
        """All requests since the last call."""
        taken, self.seen = self.seen, []
        return [ObservedRequest.from_json(each) for each in taken]

    async def read(self, data: bytes, *, ends: bool) -> list[ObservedRequest]:
        """Sends the bytes on a new connection and returns the requests that the server answered, until it closes.

        `ends`: the connection ends after the bytes, as after a client that hangs up.
        """
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(data)
            if ends:
                writer.write_eof()
            async with asyncio.timeout(DEADLINE):
                answers = await reader.read()
        except ConnectionError:
            answers = b""
        finally:
            writer.close()
        marked = [line[8:] for line in answers.split(b"\r\n") if line.lower().startswith(b"x-seen: ")]
        return [ObservedRequest.from_json(json.loads(bytes.fromhex(mark.decode()))) for mark in marked]


class NodeServer(RealServer):
    def __init__(self, port: int, control: int) -> None:
        super().__init__("node", port)
        self._control = control

    async def take_seen(self) -> list[ObservedRequest]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._control)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        async with asyncio.timeout(DEADLINE):
            answer = await reader.read()
        writer.close()
        text = answer[answer.index(b"[") : answer.rindex(b"]") + 1]
        return [ObservedRequest.from_json(each) for each in json.loads(text)]


@asynccontextmanager
async def _uvicorn_server(kind: Literal["h11", "httptools"]) -> AsyncIterator[RealServer]:
    running = RealServer(kind, 0)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        fields = [[name.decode("latin-1").lower(), value.hex()] for name, value in scope["headers"]]
        seen = [scope["method"], target.decode("latin-1"), body.hex(), fields]
        running.seen.append(seen)
        headers = [(b"x-seen", json.dumps(seen).encode().hex().encode()), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    config = uvicorn.Config(app, http=kind, ws="none", lifespan="off", log_config=None, log_level="critical")
    config.load()
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: config.http_protocol_class(config=config, server_state=state, app_state={}),  # type: ignore[call-arg]
        "127.0.0.1",
    )
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()
        for connection in tuple(state.connections):
            connection.shutdown()
        for task in tuple(state.tasks):
            task.cancel()
        await asyncio.gather(*state.tasks, return_exceptions=True)
        await server.wait_closed()


@asynccontextmanager
async def _node_server() -> AsyncIterator[RealServer]:
    process = await asyncio.create_subprocess_exec(
        NODE, "-e", _NODE_SERVER, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        async with asyncio.timeout(DEADLINE):
            port, control = json.loads(await process.stdout.readline())
        yield NodeServer(port, control)
    finally:
        process.stdin.close()
        await process.wait()


@asynccontextmanager
async def real_servers() -> AsyncIterator[list[RealServer]]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(_uvicorn_server("h11")),
            await stack.enter_async_context(_uvicorn_server("httptools")),
            await stack.enter_async_context(_node_server()),
        ]
