"""Forwards one request to an app in the computer and its answer back, streamed in both directions."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from starlette.types import Message, Receive, Scope, Send

from freehold.computer.library.tunnel import Tunnel
from freehold.egress import http1
from freehold.egress.http_exchange import HttpExchange
from freehold.egress.stream import PushbackReader
from freehold.errors import FreeholdError
from freehold.gateway.preview.headers import app_request_headers, browser_response_headers
from freehold.gateway.preview.hosts import PreviewSite

_TARGET = re.compile(rb"/[\x21-\x7e]*")
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class InvalidRequest(Exception):
    """A request that cannot be written as valid HTTP/1.1."""


def open_exchange(tunnel: Tunnel, scope: Scope, site: PreviewSite) -> HttpExchange:
    """The request to the app. Each has its own connection, so that requests cannot be confused. Raises InvalidRequest."""
    given = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
    request = http1.HttpRequest(given, "1.1", scope["method"], read_target(scope))
    fields = [
        ("host", f"localhost:{site.port}"),
        ("connection", "close"),
        *app_request_headers(scope["headers"], site),
    ]
    try:
        length = request.framing() if request.has_length else None
        return HttpExchange(tunnel, PushbackReader(tunnel), request.method, request.target, fields, length)
    except FreeholdError as error:
        raise InvalidRequest from error


def read_target(scope: Scope) -> str:
    """Path and query, byte for byte as received. Raises InvalidRequest."""
    raw: bytes = scope["raw_path"]
    query: bytes = scope["query_string"]
    target = raw + b"?" + query if query else raw
    if not _TARGET.fullmatch(target):
        raise InvalidRequest
    return target.decode("ascii")


async def forward_request(
    exchange: HttpExchange, site: PreviewSite, scope: Scope, receive: Receive, send: Send
) -> None:
    """Forward until the answer is complete or the browser disconnects. Raises FreeholdError before the answer has begun.

    When the app's answer ends early, the answer to the browser ends early too, so that it does not look complete.
    """
    began = False

    async def send_and_note(message: Message) -> None:
        nonlocal began
        began = True
        await send(message)

    async with asyncio.TaskGroup() as group:
        outward = group.create_task(_send_request(exchange, receive))
        inward = group.create_task(_answer(exchange, site, scope, send_and_note))
        await asyncio.wait({outward, inward}, return_when=asyncio.FIRST_COMPLETED)
        problem = inward.result() if inward.done() else None
        outward.cancel()
        inward.cancel()
    if problem is not None and not began:
        raise problem


async def _send_request(exchange: HttpExchange, receive: Receive) -> None:
    """Send the whole request, then wait until the browser disconnects."""
    is_gone = False

    async def body() -> AsyncGenerator[bytes]:
        nonlocal is_gone
        while (message := await receive())["type"] == "http.request":
            yield message.get("body", b"")
            if not message.get("more_body", False):
                return
        is_gone = True

    # A browser that disconnects early leaves a body that is too short. The app then sees that it was cut.
    with suppress(FreeholdError):
        async with aclosing(body()) as pieces:
            await exchange.send(pieces)
    while not is_gone:
        is_gone = (await receive())["type"] != "http.request"


async def _answer(exchange: HttpExchange, site: PreviewSite, scope: Scope, send: Send) -> FreeholdError | None:
    """Interim answers are not forwarded."""
    origin = next((value for name, value in scope["headers"] if name == b"origin"), None)
    try:
        answer = await exchange.read_head()
        headers = browser_response_headers(answer, site, origin=origin)
        length = answer.announced_length()
        if length is not None and answer.status != 304:
            headers.append((b"content-length", str(length).encode("ascii")))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        async for piece in exchange.read_body():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    except FreeholdError as error:
        return error
    await send({"type": "http.response.body", "body": b""})
    return None
