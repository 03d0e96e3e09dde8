"""One WebSocket between a browser and an app inside: two conversations, message by message."""

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

from freehold.computer.tunnel import Tunnel
from freehold.egress.http1 import Answer
from freehold.errors import FreeholdError
from freehold.gateway.preview.hosts import Place
from freehold.gateway.preview.requests import checked, target_of
from freehold.gateway.preview.translation import for_the_app, for_the_browser
from freehold.gateway.serving import take_longer_messages

MAX_MESSAGE = 1024 * 1024
"""Either way; longer ones end the socket. It is held here whole, for as many sockets as there may be at once."""
PIECE = 64 * 1024
GOING_AWAY = 1001
BROKEN = 1011


class Refused(Exception):
    """The app does not want a socket there."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class AppSocket:
    """The app's half, after its handshake."""

    def __init__(self, tunnel: Tunnel, place: Place, scope: Scope) -> None:
        target = target_of(scope)
        path, _, query = target.partition("?")
        uri = WebSocketURI(False, "localhost", place.port, path, query, None, None)
        wanted = scope.get("subprotocols") or None
        self._protocol = ClientProtocol(uri, subprotocols=wanted, max_size=MAX_MESSAGE)
        self._tunnel = tunnel
        self._place = place
        self._scope = scope
        self._parts: list[bytes] = []
        self._text = False
        self._events: list[object] = []

    async def open(self) -> dict[str, object]:
        """Shake hands; what the browser is to be answered. Raises Refused, FreeholdError or ProtocolError."""
        request = self._protocol.connect()
        fields = checked(for_the_app(self._scope["headers"], self._place, socket=True))
        own = [
            (name, value) for name, value in request.headers.raw_items() if name.lower() not in ("user-agent", "host")
        ]
        request.headers = Headers([("Host", f"localhost:{self._place.port}"), *own, *fields])
        self._protocol.send_request(request)
        await self._flush()
        while not self._events and self._protocol.handshake_exc is None:
            if not await self._hear():
                raise FreeholdError("preview.bad-answer", "The app hung up")
        problem = self._protocol.handshake_exc
        if isinstance(problem, InvalidStatus):
            raise Refused(problem.response.status_code)
        if problem is not None:
            raise FreeholdError("preview.bad-answer", f"The app's handshake is wrong: {problem}")
        response = self._events.pop(0)
        assert isinstance(response, Response)  # the first that a client hears
        answer = Answer(tuple(response.headers.raw_items()), "1.1", 101, "")
        cookies = [field for field in for_the_browser(answer, self._place, asked_by=None) if field[0] == b"set-cookie"]
        return {"type": "websocket.accept", "subprotocol": self._protocol.subprotocol, "headers": cookies}

    async def say(self, message: dict[str, object]) -> None:
        text = message.get("text")
        if isinstance(text, str):
            self._protocol.send_text(text.encode())
        else:
            data = message.get("bytes")
            assert isinstance(data, bytes)  # a message is one or the other
            self._protocol.send_binary(data)
        await self._flush()

    async def next(self) -> str | bytes | None:
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
            if not await self._hear():
                return None

    async def close(self, code: int, reason: str = "") -> None:
        if self._protocol.state is State.OPEN:
            with suppress(ProtocolError):
                self._protocol.send_close(
                    code if 1000 <= code < 5000 and code not in (1005, 1006, 1015) else GOING_AWAY, reason
                )
            await self._flush()

    @property
    def ending(self) -> tuple[int, str]:
        """What the app said as it closed the socket."""
        closed = self._protocol.close_rcvd
        if closed is None:
            return BROKEN, "the app hung up"
        return (closed.code, closed.reason) if closed.code not in (1005, 1006, 1015) else (1000, "")

    async def _hear(self) -> bool:
        data = await self._tunnel.read(PIECE)
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


async def relay(tunnel: Tunnel, place: Place, scope: Scope, receive: Receive, send: Send) -> None:
    """Until either side closes. Raises Refused or FreeholdError while the browser's half is not accepted yet."""
    app = AppSocket(tunnel, place, scope)
    await receive()  # the browser asks
    accepted = await app.open()
    take_longer_messages(scope, MAX_MESSAGE)
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
            await app.say(dict(message))
        await app.close(message.get("code") or GOING_AWAY, message.get("reason") or "")


async def _to_the_browser(app: AppSocket, send: Send) -> None:
    code, reason = BROKEN, "the app's words make no sense"
    with suppress(OSError):
        try:
            while (message := await app.next()) is not None:
                key = "text" if isinstance(message, str) else "bytes"
                await send({"type": "websocket.send", key: message})
            code, reason = app.ending
        except (FreeholdError, UnicodeDecodeError):
            pass
        await send({"type": "websocket.close", "code": code, "reason": reason})
