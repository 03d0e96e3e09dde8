"""Relays one WebSocket between a browser and an app in the computer, message by message."""

import asyncio
from contextlib import suppress

from starlette.types import Receive, Scope, Send
from websockets.client import ClientProtocol
from websockets.datastructures import Headers
from websockets.exceptions import InvalidStatus, ProtocolError
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.uri import WebSocketURI

from freehold.computer.library.tunnel import Tunnel
from freehold.egress.http1 import HttpResponse, check_field
from freehold.errors import FreeholdError
from freehold.gateway.preview.headers import app_request_headers, browser_response_headers
from freehold.gateway.preview.hosts import PreviewSite
from freehold.gateway.preview.requests import InvalidRequest, read_target
from freehold.gateway.socket_protocol import raise_message_limit

MAX_MESSAGE = 1024 * 1024
"""In both directions. A longer message closes the socket. A whole message is buffered here for each socket."""
READ_SIZE = 64 * 1024
GOING_AWAY = 1001
BROKEN = 1011


class SocketRefused(Exception):
    """The app refused the handshake with this status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class AppSocket:
    """The connection to the app."""

    def __init__(self, tunnel: Tunnel, site: PreviewSite, scope: Scope) -> None:
        target = read_target(scope)
        path, _, query = target.partition("?")
        uri = WebSocketURI(False, "localhost", site.port, path, query, None, None)
        wanted = scope.get("subprotocols") or None
        self._protocol = ClientProtocol(uri, subprotocols=wanted, max_size=MAX_MESSAGE)
        self._tunnel = tunnel
        self._site = site
        self._scope = scope
        self._parts: list[bytes] = []
        self._text = False
        self._events: list[object] = []

    async def open(self) -> dict[str, object]:
        """Make the handshake and return the message that accepts the browser.

        Raises SocketRefused, FreeholdError or ProtocolError.
        """
        request = self._protocol.connect()
        try:
            fields = [
                check_field(*field) for field in app_request_headers(self._scope["headers"], self._site, socket=True)
            ]
        except FreeholdError as error:
            raise InvalidRequest from error
        own = [
            (name, value) for name, value in request.headers.raw_items() if name.lower() not in ("user-agent", "host")
        ]
        request.headers = Headers([("Host", f"localhost:{self._site.port}"), *own, *fields])
        self._protocol.send_request(request)
        await self._flush()
        while not self._events and self._protocol.handshake_exc is None:
            if not await self._receive_data():
                raise FreeholdError("preview.bad-answer", "The app closed the connection")
        problem = self._protocol.handshake_exc
        if isinstance(problem, InvalidStatus):
            raise SocketRefused(problem.response.status_code)
        if problem is not None:
            raise FreeholdError("preview.bad-answer", f"The WebSocket handshake of the app is invalid: {problem}")
        response = self._events.pop(0)
        assert isinstance(response, Response)  # always the first event of a client
        answer = HttpResponse(tuple(response.headers.raw_items()), "1.1", 101, "")
        cookies = [
            field for field in browser_response_headers(answer, self._site, origin=None) if field[0] == b"set-cookie"
        ]
        return {"type": "websocket.accept", "subprotocol": self._protocol.subprotocol, "headers": cookies}

    async def send(self, message: dict[str, object]) -> None:
        text = message.get("text")
        if isinstance(text, str):
            self._protocol.send_text(text.encode())
        else:
            data = message.get("bytes")
            assert isinstance(data, bytes)  # a message has text or bytes
            self._protocol.send_binary(data)
        await self._flush()

    async def receive(self) -> str | bytes | None:
        """The next whole message; None when the app has closed the socket."""
        while True:
            while self._events:
                event = self._events.pop(0)
                assert isinstance(event, Frame)
                match event.opcode:
                    case Opcode.TEXT | Opcode.BINARY:
                        self._text = event.opcode is Opcode.TEXT
                        self._parts = [bytes(event.data)]
                    case Opcode.CONT:
                        self._parts.append(bytes(event.data))
                    case Opcode.CLOSE:
                        return None
                    case _:
                        continue
                if event.fin:
                    whole = b"".join(self._parts)
                    self._parts = []
                    return whole.decode() if self._text else whole
            if not await self._receive_data():
                return None

    async def close(self, code: int, reason: str = "") -> None:
        if self._protocol.state is State.OPEN:
            with suppress(ProtocolError):
                self._protocol.send_close(
                    code if 1000 <= code < 5000 and code not in (1005, 1006, 1015) else GOING_AWAY, reason
                )
            await self._flush()

    @property
    def close_reason(self) -> tuple[int, str]:
        """Code and reason with which the app closed the socket."""
        closed = self._protocol.close_rcvd
        if closed is None:
            return BROKEN, "the app closed the connection"
        return (closed.code, closed.reason) if closed.code not in (1005, 1006, 1015) else (1000, "")

    async def _receive_data(self) -> bool:
        data = await self._tunnel.read(READ_SIZE)
        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        self._events += self._protocol.events_received()
        await self._flush()
        return bool(data)

    async def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                await self._tunnel.write(data)


async def relay_socket(tunnel: Tunnel, site: PreviewSite, scope: Scope, receive: Receive, send: Send) -> None:
    """Relay until one side closes. Raises SocketRefused or FreeholdError before the browser is accepted."""
    app = AppSocket(tunnel, site, scope)
    await receive()  # the browser's request to connect
    accepted = await app.open()
    raise_message_limit(scope, MAX_MESSAGE)
    await send(accepted)
    async with asyncio.TaskGroup() as group:
        outward = group.create_task(_to_the_app(app, receive))
        inward = group.create_task(_to_the_browser(app, send))
        await asyncio.wait({outward, inward}, return_when=asyncio.FIRST_COMPLETED)
        outward.cancel()
        inward.cancel()


async def _to_the_app(app: AppSocket, receive: Receive) -> None:
    with suppress(FreeholdError, ProtocolError):
        while (message := await receive())["type"] == "websocket.receive":
            await app.send(dict(message))
        await app.close(message.get("code") or GOING_AWAY, message.get("reason") or "")


async def _to_the_browser(app: AppSocket, send: Send) -> None:
    code, reason = BROKEN, "the app sent an invalid message"
    with suppress(OSError):
        try:
            while (message := await app.receive()) is not None:
                key = "text" if isinstance(message, str) else "bytes"
                await send({"type": "websocket.send", key: message})
            code, reason = app.close_reason
        except (FreeholdError, UnicodeDecodeError):
            pass
        await send({"type": "websocket.close", "code": code, "reason": reason})
