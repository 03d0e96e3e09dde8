"""The server's HTTP protocol. What it refuses itself is answered in the one shape of errors."""

import asyncio
from functools import partial
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from freehold.errors import FreeholdError
from freehold.gateway.error_responses import ErrorResponse
from freehold.gateway.security_headers import PLAIN

MAX_CONNECTIONS = 4096
MAX_ADDRESS = 65_535
"""The parser of addresses accepts no longer one."""
MAX_HEAD = 64 * 1024
HEAD_TIMEOUT = 30.0
"""Seconds in which a connection must send the head of a request."""
# The WebSocket library accepts no more, and says so in its own words.
MAX_SOCKET_LINE = 8_000
MAX_SOCKET_HEADERS = 120

INVALID = ErrorResponse(FreeholdError("request.malformed", "The request is not valid HTTP", hint="Send HTTP/1.1"))
LONG_ADDRESS = ErrorResponse(
    FreeholdError("request.address-too-long", f"The address has more than {MAX_ADDRESS} characters")
)
LONG_HEAD = ErrorResponse(FreeholdError("request.headers-too-long", f"The headers have more than {MAX_HEAD} bytes"))
LATE_HEAD = ErrorResponse(
    FreeholdError("request.too-slow", f"The head of the request did not arrive within {HEAD_TIMEOUT:.0f} s")
)
BUSY = ErrorResponse(
    FreeholdError("gateway.busy", f"There are more than {MAX_CONNECTIONS} connections", hint="Try again in a moment")
)
FAILED = ErrorResponse(
    FreeholdError(
        "gateway.unexpected", "An unexpected error occurred in Freehold", hint="freehold logs gateway shows the cause"
    )
)


class _Refused(Exception):
    """Stops the parser; the protocol then answers `refusal`."""


class ServerHttp(HttpToolsProtocol):
    """Heads have a size and a deadline. Every refusal is JSON."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._refusal = INVALID
        self._is_head_open = True
        self._head_size = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT, self._end_late_head)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._is_head_open or self.transport.is_closing():
            return
        self._head_size += len(data)
        if self._head_size > MAX_HEAD + MAX_ADDRESS:
            self._refuse(LONG_HEAD)
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_TIMEOUT, self._end_late_head)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_head_open = True
        self._head_size = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > MAX_ADDRESS:
            self._stop_parser(LONG_ADDRESS)

    def on_headers_complete(self) -> None:
        self._is_head_open = False
        self._stop_head_timer()
        if sum(len(name) + len(value) for name, value in self.headers) > MAX_HEAD:
            self._stop_parser(LONG_HEAD)
        if len(self.connections) > MAX_CONNECTIONS:
            self._stop_parser(BUSY)
        super().on_headers_complete()

    def handle_websocket_upgrade(self) -> None:
        if len(self.url) > MAX_SOCKET_LINE:
            self._refuse(LONG_ADDRESS)
        elif len(self.headers) > MAX_SOCKET_HEADERS or any(len(n) + len(v) > MAX_SOCKET_LINE for n, v in self.headers):
            self._refuse(LONG_HEAD)
        else:
            super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        self._refuse(self._refusal)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        cycle.send_500_response = partial(_send_failure, cycle)  # type: ignore[method-assign]
        super()._start_asgi_task(cycle, app)

    def _stop_parser(self, refusal: ErrorResponse) -> None:
        self._refusal = refusal
        raise _Refused

    def _end_late_head(self) -> None:
        self._head_timer = None
        self._refuse(LATE_HEAD)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, refusal: ErrorResponse) -> None:
        """Answer and close. While an earlier request waits for its answer, only close: the client would mix them up."""
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request
        is_free = cycle is None or cycle.response_complete
        if cycle is not None and cycle.more_body and not cycle.response_started and not self.pipeline:
            # The body of this very request is broken. Its own answer is not sent.
            is_free = cycle.disconnected = True
        if is_free:
            body = refusal.encode()
            lines = [name + b": " + value + b"\r\n" for name, value in refusal_headers(refusal, body)]
            self.transport.write(b"".join((STATUS_LINE[refusal.status], *lines, b"\r\n", body)))
        self.transport.close()


def refusal_headers(refusal: ErrorResponse, body: bytes) -> list[tuple[bytes, bytes]]:
    length = str(len(body)).encode()
    return [
        (b"content-type", b"application/json"),
        (b"content-length", length),
        *PLAIN.for_data,
        (b"connection", b"close"),
    ]


async def _send_failure(cycle: RequestResponseCycle) -> None:
    """The application raised an error past the guard. The server logs it."""
    body = FAILED.encode()
    await cycle.send({"type": "http.response.start", "status": FAILED.status, "headers": refusal_headers(FAILED, body)})
    await cycle.send({"type": "http.response.body", "body": body, "more_body": False})
