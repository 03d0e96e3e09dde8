"""The server's WebSocket protocol. A handshake that it refuses itself is answered in the one shape of errors."""

from typing import Any

from starlette.types import Scope
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from freehold.connection_slots import SlottedSocket
from freehold.errors import FreeholdError, kind_of_status
from freehold.gateway.error_responses import ErrorResponse
from freehold.gateway.http_protocol import INVALID, refusal_headers

_MESSAGE_LIMIT = "freehold.message-limit"


class ServerWebSocket(SlottedSocket, WebSocketsSansIOProtocol):
    """A route may raise the message limit of one socket. A refused handshake is answered in JSON."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.conn.reject = _reject_handshake  # type: ignore[method-assign]

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.close_sent:  # otherwise the handshake was refused and there is no scope
            self.scope["extensions"][_MESSAGE_LIMIT] = {"set": self._set_message_limit}

    def _set_message_limit(self, limit: int) -> None:
        self.conn.max_message_size = limit


def raise_message_limit(scope: Scope, limit: int) -> None:
    """Set the size limit of messages on this socket, in bytes. Does nothing under another server."""
    extension = scope.get("extensions", {}).get(_MESSAGE_LIMIT)
    if extension is not None:
        extension["set"](limit)


def _reject_handshake(status: int, text: str) -> Response:
    error = FreeholdError(
        "request.malformed", "This is not a WebSocket handshake", kind=kind_of_status(int(status)).name
    )
    body = ErrorResponse(error).encode()
    headers = [(name.decode(), value.decode()) for name, value in refusal_headers(INVALID, body)]
    return Response(int(status), "Refused", Headers(headers), body)
