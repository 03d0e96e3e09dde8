"""An HTTP proxy for one stream from inside: CONNECT, or one plain request.

One request a stream, always: `Connection: close` goes both ways, so whatever follows a request is never read as
another one, and there is nothing to smuggle into.
"""

import asyncio
import re
from dataclasses import dataclass

from freehold.egress import http1
from freehold.egress.clienthello import looks_like_tls
from freehold.egress.connections import Connection, Limits
from freehold.egress.gate import Gate
from freehold.egress.http1 import Request, malformed
from freehold.egress.names import Host, parse_host, parse_port, split_authority
from freehold.egress.stream import CHUNK, Inlet, Stream
from freehold.egress.tunnel import ALERT_UNRECOGNIZED_NAME, TLS_PORTS, check_if_tls, check_server_name, join, together
from freehold.errors import FreeholdError

_ABSOLUTE = re.compile(r"(https?)://([^/?#]+)([^#]*)", re.IGNORECASE)

_STATUS = {
    "egress.asked": (403, "Asked the owner"),
    "egress.bad-answer": (502, "Bad answer"),
    "egress.cut-short": (400, "Cut short"),
    "egress.denied": (403, "Not allowed"),
    "egress.expectation": (417, "Expectation failed"),
    "egress.malformed": (400, "Bad request"),
    "egress.no-address": (502, "No address"),
    "egress.odd-name": (400, "Odd name"),
    "egress.slow": (408, "Too slow"),
    "egress.too-long": (431, "Too long"),
    "egress.too-many": (503, "Too many connections"),
    "egress.unavailable": (503, "Unavailable"),
    "egress.unreachable": (502, "Unreachable"),
    "egress.use-connect": (501, "Use CONNECT"),
}


@dataclass(frozen=True)
class Target:
    """Where a plain request goes: the host it is checked and sent for, and the path as the server sees it."""

    host: Host
    port: int
    path: str

    @property
    def authority(self) -> str:
        return str(self.host) if self.port == 80 else f"{self.host}:{self.port}"


async def serve(client: Stream, connection: Connection, gate: Gate, limits: Limits) -> None:
    """Serves the stream to its end. Raises what the client could not be told by an HTTP answer any more."""
    inlet = Inlet(client)
    request = await _read_request(inlet, limits)
    if request.method == "CONNECT":
        await _connect(request, inlet, client, connection, gate, limits)
        return
    target = absolute_target(request)
    framing = request.framing()
    _check_expectation(request)
    await gate.permit(connection, target.host, target.port)
    upstream = await gate.connect(connection)
    try:
        await _exchange(request, target, framing, inlet, client, connection, upstream)
    finally:
        await upstream.close()


async def refuse(client: Stream, error: FreeholdError) -> None:
    """Tells the client in plain words, then waits for it to hang up: give it a deadline."""
    if error.code not in _STATUS:
        # Words about this machine are for the owner; inside they would be a look over the wall.
        error = FreeholdError("egress.unavailable", "Freehold cannot let anything out right now")
    status, phrase = _STATUS[error.code]
    text = f"{error.message}\n{error.hint}\n" if error.hint else f"{error.message}\n"
    body = text.encode("utf-8", "replace")
    fields = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
        ("X-Freehold-Egress", error.code),
    ]
    await client.write(http1.encode_head(f"HTTP/1.1 {status} {phrase}", fields) + body)
    await client.write_eof()
    # A client in the middle of sending sees our answer only if we go on reading for a moment.
    while await client.read(CHUNK):
        pass


async def _read_request(inlet: Inlet, limits: Limits) -> Request:
    try:
        async with asyncio.timeout(limits.head):
            return await http1.read_request(inlet)
    except TimeoutError as error:
        raise FreeholdError("egress.slow", f"The request did not come within {limits.head:g} seconds") from error


def absolute_target(request: Request) -> Target:
    """The target of a plain request to a proxy. Its Host, where given, must say the same."""
    found = _ABSOLUTE.fullmatch(request.target)
    if found is None:
        raise malformed("a proxy is asked for a whole address, as in GET http://example.org/")
    scheme, authority, path = found.groups()
    if scheme.lower() == "https":
        raise FreeholdError("egress.use-connect", "An https address is reached through CONNECT", hint="Set HTTPS_PROXY")
    host, port = _authority(authority, 80)
    _check_host_field(request, host, port, 80)
    if not path.startswith("/"):
        path = "*" if not path and request.method == "OPTIONS" else f"/{path}"
    return Target(host, port, path)


def _authority(text: str, default: int | None) -> tuple[Host, int]:
    name, port = split_authority(text)
    if port is None and default is None:
        raise malformed("CONNECT names a host and a port")
    return parse_host(name), parse_port(port) if port is not None else default or 0


def _check_host_field(request: Request, host: Host, port: int, default: int) -> None:
    given = request.values("host")
    if len(given) > 1 or any(_authority(value, default) != (host, port) for value in given):
        raise malformed("its Host is not the host of its address")


def _check_expectation(request: Request) -> None:
    if request.listed("expect") - {"100-continue"}:
        raise FreeholdError("egress.expectation", "The only expectation that can be met is 100-continue")


async def _connect(
    request: Request, inlet: Inlet, client: Stream, connection: Connection, gate: Gate, limits: Limits
) -> None:
    host, port = _authority(request.target, None)
    _check_host_field(request, host, port, port)
    if request.framing() != 0:
        raise malformed("CONNECT has no body")
    await gate.permit(connection, host, port)
    upstream = await gate.connect(connection)
    try:
        connection.answered = True
        await client.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        await _tunnel(host, port, inlet, client, connection, upstream, gate, limits)
    finally:
        await upstream.close()


async def _tunnel(
    host: Host,
    port: int,
    inlet: Inlet,
    client: Stream,
    connection: Connection,
    upstream: Stream,
    gate: Gate,
    limits: Limits,
) -> None:
    named = host.address is not None and (connection.once or gate.policy.decide(host, port).rule is not None)
    answers = Inlet(upstream)
    if port in TLS_PORTS:
        try:
            async with asyncio.timeout(limits.head):
                first = await check_server_name(inlet, host, named_address=named)
        except FreeholdError:
            await client.write(ALERT_UNRECOGNIZED_NAME)
            raise
        inlet.put_back(first)
        await join(connection, inlet, client, upstream, answers)
    elif port == 80:
        await _tunnel_http(host, named, inlet, client, connection, upstream, limits)
    else:
        await _tunnel_any(host, named, inlet, client, connection, upstream, answers)


async def _tunnel_http(
    host: Host, named: bool, inlet: Inlet, client: Stream, connection: Connection, upstream: Stream, limits: Limits
) -> None:
    """CONNECT to port 80, as WebSocket clients do: the request inside is held to the same host."""
    async with asyncio.timeout(limits.head):
        first = await inlet.read()
    inlet.put_back(first)
    if looks_like_tls(first):
        async with asyncio.timeout(limits.head):
            inlet.put_back(await check_server_name(inlet, host, named_address=named))
        await join(connection, inlet, client, upstream, Inlet(upstream))
        return
    connection.answered = False
    request = await _read_request(inlet, limits)
    if not request.target.startswith("/"):
        raise malformed("inside a tunnel a request names a path")
    _check_host_field(request, host, 80, 80)
    _check_expectation(request)
    await _exchange(request, Target(host, 80, request.target), request.framing(), inlet, client, connection, upstream)


async def _tunnel_any(
    host: Host, named: bool, inlet: Inlet, client: Stream, connection: Connection, upstream: Stream, answers: Inlet
) -> None:
    """A port that a rule names for whatever is spoken there; the server may well speak first."""

    async def checked() -> None:
        inlet.put_back(await check_if_tls(inlet, host, named_address=named))

    await join(connection, inlet, client, upstream, answers, before_sending=checked)


async def _exchange(
    request: Request,
    target: Target,
    framing: http1.Framing,
    inlet: Inlet,
    client: Stream,
    connection: Connection,
    upstream: Stream,
) -> None:
    """One request up, its answers down, at the same time: a server may answer before it has read everything."""
    wants_websocket = "upgrade" in request.listed("connection") and request.listed("upgrade") == {"websocket"}
    fields = [("Host", target.authority), *request.end_to_end(without=("host", "content-length"))]
    if framing == "chunked":
        fields.append(("Transfer-Encoding", "chunked"))
    elif request.values("content-length"):
        fields.append(("Content-Length", str(framing)))
    fields += [("Connection", "Upgrade"), ("Upgrade", "websocket")] if wants_websocket else [("Connection", "close")]
    head = http1.encode_head(f"{request.method} {target.path} HTTP/1.1", fields)
    await upstream.write(head)
    connection.sent(len(head))
    answers = Inlet(upstream)

    async with together() as both:
        sending = both.create_task(_send_body(inlet, upstream, framing, connection))
        switched = await _return_answer(request, client, answers, connection, wants_websocket)
        sending.cancel()
    if switched:
        await join(connection, inlet, client, upstream, answers)


async def _send_body(inlet: Inlet, upstream: Stream, framing: http1.Framing, connection: Connection) -> None:
    async for piece in http1.read_body(inlet, framing):
        try:
            await upstream.write(http1.encode_piece(piece) if framing == "chunked" else piece)
        except OSError:
            # A server that has heard enough closes its ear; its answer is still on the way.
            return
        connection.sent(len(piece))
    if framing == "chunked":
        await upstream.write(http1.LAST_PIECE)


async def _return_answer(
    request: Request, client: Stream, answers: Inlet, connection: Connection, wants_websocket: bool
) -> bool:
    """Passes the answer on; True when the connection has become a WebSocket."""
    while True:
        answer = await http1.read_answer(answers)
        if answer.status == 101 and not wants_websocket:
            raise http1.bad_answer("it switches to a protocol that nobody asked for")
        if answer.status >= 200 or answer.status == 101:
            break
        if request.version == "1.1":
            connection.answered = True
            head = http1.encode_head(f"HTTP/1.1 {answer.status} {answer.reason}", answer.end_to_end())
            await client.write(head)
    switched = answer.status == 101
    framing = answer.framing(request.method)
    coded = framing == "chunked" and request.version == "1.1"
    dropped = ("content-length",) if answer.values("transfer-encoding") else ()
    fields = answer.end_to_end(without=dropped)
    if coded:
        fields.append(("Transfer-Encoding", "chunked"))
    fields += [("Connection", "Upgrade"), ("Upgrade", "websocket")] if switched else [("Connection", "close")]
    head = http1.encode_head(f"HTTP/1.1 {answer.status} {answer.reason}", fields)
    connection.answered = True
    await client.write(head)
    connection.received(len(head))
    if switched:
        return True
    async for piece in http1.read_body(answers, framing):
        await client.write(http1.encode_piece(piece) if coded else piece)
        connection.received(len(piece))
    if coded:
        await client.write(http1.LAST_PIECE)
    await client.write_eof()
    return False
