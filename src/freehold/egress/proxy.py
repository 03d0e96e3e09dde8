"""An HTTP proxy for one stream from inside: CONNECT, or one plain request.

A stream carries one request. `Connection: close` goes both ways, so bytes that follow a request are never read as
another request, and credentials cannot change on a connection that is kept open.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace

from freehold.egress import http1
from freehold.egress.authorization import Authorizer
from freehold.egress.clienthello import looks_like_tls
from freehold.egress.connections import EgressConnection, EgressLimits
from freehold.egress.credentials import ProxyCredentials
from freehold.egress.http1 import BodyEncoder, HttpRequest, HttpResponse, malformed
from freehold.egress.http_exchange import HttpExchange
from freehold.egress.keyring.credential import HostCredential
from freehold.egress.keyring.response_mask import ResponseMask
from freehold.egress.keyring.service import KeyedRequest, Keyring
from freehold.egress.keyring.tls_server import TlsServerStream
from freehold.egress.names import Host, parse_host, parse_port, split_authority
from freehold.egress.stream import CHUNK, ByteStream, PushbackReader
from freehold.egress.tunnel import (
    ALERT_UNRECOGNIZED_NAME,
    TLS_PORTS,
    check_if_tls,
    check_server_name,
    raising_first_failure,
    relay_both_ways,
)
from freehold.errors import FreeholdError

_LOCALHOST = re.compile(r"\Alocalhost(?=[:/?]|\Z)", re.IGNORECASE)
_ABSOLUTE = re.compile(r"(https?)://([^/?#]+)([^#]*)", re.IGNORECASE)

_STATUS = {
    "egress.asked": (403, "Asked the owner"),
    "egress.bad-credentials": (407, "Proxy authentication required"),
    "egress.bad-response": (502, "Bad response"),
    "egress.cut-short": (400, "Cut short"),
    "egress.denied": (403, "Not allowed"),
    "egress.expectation": (417, "Expectation failed"),
    "egress.malformed": (400, "Bad request"),
    "egress.no-address": (502, "No address"),
    "egress.no-secret": (503, "No secret"),
    "egress.not-permitted": (403, "Not permitted"),
    "egress.odd-name": (400, "Bad host name"),
    "egress.slow": (408, "Too slow"),
    "egress.too-long": (431, "Too long"),
    "egress.too-many": (503, "Too many connections"),
    "egress.unavailable": (503, "Unavailable"),
    "egress.unreachable": (502, "Unreachable"),
    "egress.use-connect": (501, "Use CONNECT"),
}


@dataclass(frozen=True)
class Target:
    """Where a plain request goes: the host that is checked, and the path that is sent to the server."""

    host: Host
    port: int
    path: str
    usual_port: int = 80

    @property
    def authority(self) -> str:
        return str(self.host) if self.port == self.usual_port else f"{self.host}:{self.port}"


async def serve(
    client: ByteStream,
    connection: EgressConnection,
    authorizer: Authorizer,
    credentials: ProxyCredentials,
    limits: EgressLimits,
    keyring: Keyring | None = None,
) -> None:
    """Serves the stream to its end. Raises errors that are to be sent to the client as an HTTP response."""
    reader = PushbackReader(client)
    request = await _read_request(reader, limits)
    if connection.local_servers is not None:
        request = _name_loopback(request)
    if keyring is not None and (relayed := keyring.find_relayed(request.target)) is not None:
        credential, grant, path = relayed
        sender = _KeyedSender(connection, authorizer, keyring, credential.host, credential.port, grant.session)
        # The host of this request is the relay.
        fields = tuple(field for field in request.fields if field[0].lower() != "host")
        await sender.send(replace(request, target=path, fields=fields), reader, client, credential)
        return
    connection.session = credentials.find_session(request) or connection.session
    if connection.session is not None:
        connection.who = f"session:{connection.session}"
    if request.method == "CONNECT":
        await _connect(request, reader, client, connection, authorizer, limits, keyring)
        return
    target = absolute_target(request)
    framing = request.framing()
    _check_expectation(request)
    await authorizer.permit(connection, target.host, target.port)
    upstream = await authorizer.connect(connection)
    try:
        await _exchange(request, target, framing, reader, client, connection, upstream)
    finally:
        await upstream.close()


async def send_refusal(client: ByteStream, error: FreeholdError) -> None:
    """Sends the error as text, then waits for the client to close. The caller sets a deadline."""
    if error.code not in _STATUS:
        # The message may hold details about the host, which programs inside must not learn.
        error = FreeholdError("egress.unavailable", "Freehold cannot open connections right now")
    status, phrase = _STATUS[error.code]
    text = f"{error.message}\n{error.hint}\n" if error.hint else f"{error.message}\n"
    body = text.encode("utf-8", "replace")
    fields = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Connection", "close"),
        ("X-Freehold-Egress", error.code),
    ]
    if status == 407:
        fields.append(("Proxy-Authenticate", 'Basic realm="freehold"'))
    await client.write(http1.encode_response(status, phrase, fields, len(body)) + body)
    await client.write_eof()
    # A client that is still sending sees the response only if we keep reading.
    while await client.read(CHUNK):
        pass


async def _read_request(reader: PushbackReader, limits: EgressLimits) -> HttpRequest:
    try:
        async with asyncio.timeout(limits.head):
            return await http1.read_request(reader)
    except TimeoutError as error:
        raise FreeholdError("egress.slow", f"The request head did not arrive within {limits.head:g} seconds") from error


def _name_loopback(request: HttpRequest) -> HttpRequest:
    """The request with 127.0.0.1 in the place of `localhost`, a name that has a meaning only where there are local servers."""
    fields = tuple(
        (name, _LOCALHOST.sub("127.0.0.1", value) if name.lower() == "host" else value)
        for name, value in request.fields
    )
    scheme, mark, rest = request.target.partition("://")
    target = f"{scheme}{mark}{_LOCALHOST.sub('127.0.0.1', rest)}" if mark else _LOCALHOST.sub("127.0.0.1", scheme)
    return replace(request, target=target, fields=fields)


def absolute_target(request: HttpRequest) -> Target:
    """The target of a plain proxy request. Its Host field, if there is one, must name the same host."""
    found = _ABSOLUTE.fullmatch(request.target)
    if found is None:
        raise malformed("a proxy request names a full URL, as in GET http://example.org/")
    scheme, authority, path = found.groups()
    if scheme.lower() == "https":
        raise FreeholdError("egress.use-connect", "An https URL is reached through CONNECT", hint="Set HTTPS_PROXY")
    host, port = _authority(authority, 80)
    _check_host_field(request, host, port, 80)
    if not path.startswith("/"):
        path = "*" if not path and request.method == "OPTIONS" else f"/{path}"
    return Target(host, port, path)


def _authority(text: str, default: int | None) -> tuple[Host, int]:
    name, port = split_authority(text)
    if port is None and default is None:
        raise malformed("CONNECT must name a host and a port")
    return parse_host(name), parse_port(port) if port is not None else default or 0


def _check_host_field(request: HttpRequest, host: Host, port: int, default: int) -> None:
    given = request.values("host")
    if len(given) > 1 or any(_authority(value, default) != (host, port) for value in given):
        raise malformed("its Host field is not the host of its URL")


def _check_expectation(request: HttpRequest) -> None:
    if request.listed("expect") - {"100-continue"}:
        raise FreeholdError("egress.expectation", "Only Expect: 100-continue is supported")


async def _connect(
    request: HttpRequest,
    reader: PushbackReader,
    client: ByteStream,
    connection: EgressConnection,
    authorizer: Authorizer,
    limits: EgressLimits,
    keyring: Keyring | None,
) -> None:
    host, port = _authority(request.target, None)
    _check_host_field(request, host, port, port)
    if request.framing() != 0:
        raise malformed("CONNECT must not have a body")
    if keyring is not None and connection.session is not None:
        context = await keyring.find_context(host, port, connection.session)
        if context is not None:
            sender = _KeyedSender(connection, authorizer, keyring, host, port, connection.session)
            await _serve_inside_tls(sender, reader, client, context, limits)
            return
    await authorizer.permit(connection, host, port)
    upstream = await authorizer.connect(connection)
    try:
        connection.answered = True
        await client.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        await _tunnel(host, port, reader, client, connection, upstream, authorizer, limits)
    finally:
        await upstream.close()


async def _serve_inside_tls(
    sender: "_KeyedSender", reader: PushbackReader, client: ByteStream, context: ssl.SSLContext, limits: EgressLimits
) -> None:
    """One request to a host of a credential, by a tool that holds a placeholder. Errors are sent inside its TLS."""
    connection = sender.connection
    connection.answered = True
    await client.write(b"HTTP/1.1 200 Connected\r\n\r\n")
    inside = TlsServerStream(client, reader, context)
    async with asyncio.timeout(limits.head):
        await inside.accept()
    connection.answered = False
    try:
        requests = PushbackReader(inside)
        request = await _read_request(requests, limits)
        if not request.target.startswith("/"):
            raise malformed("a request inside a tunnel must name a path")
        _check_host_field(request, sender.host, sender.port, 443)
        held = sender.keyring.find_held(request, sender.host, sender.port, sender.session)
        await sender.send(request, requests, inside, held)
    except FreeholdError as error:
        if not connection.answered:
            connection.answered = True
            with suppress(OSError, EOFError, TimeoutError):
                async with asyncio.timeout(limits.connect):
                    await send_refusal(inside, error)
        raise


@dataclass(frozen=True)
class _KeyedSender:
    """Sends a request of a session to a host of a credential, with the secret or without."""

    connection: EgressConnection
    authorizer: Authorizer
    keyring: Keyring
    host: Host
    port: int
    session: str

    async def send(
        self, request: HttpRequest, reader: PushbackReader, client: ByteStream, credential: HostCredential | None
    ) -> None:
        """`credential` is the one whose placeholder the request holds. What it does not cover goes without its secret."""
        connection = self.connection
        connection.session, connection.who = self.session, f"session:{self.session}"
        framing = request.framing()
        _check_expectation(request)
        keyed: KeyedRequest | None = None
        if credential is not None and credential.covers(request.method, request.target):
            await self.authorizer.check_not_denied(connection, self.host, self.port)
            keyed = await self.keyring.unlock(credential, request, self.session)
            await self.authorizer.permit_named(connection, self.host, self.port, keyed.words)
        else:
            await self.authorizer.permit(connection, self.host, self.port)
        upstream = await self.authorizer.dial(connection)
        try:
            try:
                await upstream.start_tls(await self.keyring.find_trust(), self.host.text)
            except OSError as error:
                raise FreeholdError(
                    "egress.unreachable", f"{self.host} has no certificate that this machine trusts"
                ) from error
            target = Target(self.host, self.port, request.target, 443)
            sent = request if keyed is None else keyed.request
            mask = None if keyed is None else keyed.mask
            await _exchange(sent, target, framing, reader, client, connection, upstream, mask)
        finally:
            await upstream.close()


async def _tunnel(
    host: Host,
    port: int,
    reader: PushbackReader,
    client: ByteStream,
    connection: EgressConnection,
    upstream: ByteStream,
    authorizer: Authorizer,
    limits: EgressLimits,
) -> None:
    named = host.address is not None and (
        connection.once or authorizer.policy.decide(host, port, session=connection.session).rule is not None
    )
    responses = PushbackReader(upstream)
    if port in TLS_PORTS:
        try:
            async with asyncio.timeout(limits.head):
                first = await check_server_name(reader, host, named_address=named)
        except FreeholdError:
            await client.write(ALERT_UNRECOGNIZED_NAME)
            raise
        reader.put_back(first)
        await relay_both_ways(connection, reader, client, upstream, responses)
    elif port == 80:
        await _tunnel_http(host, named, reader, client, connection, upstream, limits)
    else:
        await _tunnel_any(host, named, reader, client, connection, upstream, responses)


async def _tunnel_http(
    host: Host,
    named: bool,
    reader: PushbackReader,
    client: ByteStream,
    connection: EgressConnection,
    upstream: ByteStream,
    limits: EgressLimits,
) -> None:
    """CONNECT to port 80, as WebSocket clients do. The request inside must be for the same host."""
    async with asyncio.timeout(limits.head):
        first = await reader.read()
    reader.put_back(first)
    if looks_like_tls(first):
        async with asyncio.timeout(limits.head):
            reader.put_back(await check_server_name(reader, host, named_address=named))
        await relay_both_ways(connection, reader, client, upstream, PushbackReader(upstream))
        return
    connection.answered = False
    request = await _read_request(reader, limits)
    if not request.target.startswith("/"):
        raise malformed("a request inside a tunnel must name a path")
    _check_host_field(request, host, 80, 80)
    _check_expectation(request)
    await _exchange(request, Target(host, 80, request.target), request.framing(), reader, client, connection, upstream)


async def _tunnel_any(
    host: Host,
    named: bool,
    reader: PushbackReader,
    client: ByteStream,
    connection: EgressConnection,
    upstream: ByteStream,
    responses: PushbackReader,
) -> None:
    """A port that a rule names, for any protocol. The server may send first."""

    async def checked() -> None:
        reader.put_back(await check_if_tls(reader, host, named_address=named))

    await relay_both_ways(connection, reader, client, upstream, responses, before_sending=checked)


async def _exchange(
    request: HttpRequest,
    target: Target,
    framing: http1.RequestFraming,
    reader: PushbackReader,
    client: ByteStream,
    connection: EgressConnection,
    upstream: ByteStream,
    mask: ResponseMask | None = None,
) -> None:
    """Sends one request and returns its responses at the same time: a server may respond before it has read everything."""
    wants_websocket = "upgrade" in request.listed("connection") and request.listed("upgrade") == {"websocket"}
    if wants_websocket and framing != 0:
        raise malformed("a request for a WebSocket must not have a body")
    fields = [("Host", target.authority), *request.end_to_end(without=("host",)), *_last_fields(wants_websocket)]
    length = framing if request.has_length else None
    exchange = HttpExchange(upstream, PushbackReader(upstream), request.method, target.path, fields, length)
    connection.sent(len(exchange.head))

    async def body() -> AsyncIterator[bytes]:
        async for piece in http1.read_body(reader, framing):
            connection.sent(len(piece))
            yield piece

    async with raising_first_failure() as both:
        sending = both.create_task(exchange.send(body()))
        switched = await _return_response(request, client, exchange, connection, wants_websocket, mask)
        sending.cancel()
    if switched:
        await relay_both_ways(connection, reader, client, upstream, exchange.reader)


def _last_fields(switches: bool) -> list[http1.Field]:
    return [("Connection", "Upgrade"), ("Upgrade", "websocket")] if switches else [("Connection", "close")]


async def _return_response(
    request: HttpRequest,
    client: ByteStream,
    exchange: HttpExchange,
    connection: EgressConnection,
    wants_websocket: bool,
    mask: ResponseMask | None,
) -> bool:
    """Returns the response to the client. True when the connection has become a WebSocket."""

    async def pass_on(interim: HttpResponse) -> None:
        if request.version == "1.1":
            connection.answered = True
            interim = interim if mask is None else mask.clean(interim)
            await client.write(http1.encode_response(interim.status, interim.reason, interim.end_to_end(), None))

    response = await exchange.read_head(pass_on, switches_to="websocket" if wants_websocket else None)
    response = response if mask is None else mask.clean(response)
    switched = response.status == 101
    framing: http1.Framing = exchange.framing
    if framing == "chunked" and request.version == "1.0":
        framing = "until-end"
    announced = framing if response.has_body(request.method) else response.announced_length()
    fields = [*response.end_to_end(), *_last_fields(switched)]
    head = http1.encode_response(response.status, response.reason, fields, announced)
    connection.answered = True
    await client.write(head)
    connection.received(len(head))
    if switched:
        return True
    body = BodyEncoder(framing)
    async for piece in exchange.read_body():
        await client.write(body.encode(piece if mask is None else mask.feed(piece)))
        connection.received(len(piece))
    if mask is not None:
        await client.write(body.encode(mask.end()))
    if end := body.end():
        await client.write(end)
    await client.write_eof()
    return False
