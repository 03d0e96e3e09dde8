"""Forwards one request to an app in the computer and its answer back, streamed in both directions."""

import asyncio
import re

from starlette.types import Message, Receive, Scope, Send

from freehold.computer.library.tunnel import Tunnel
from freehold.egress import http1
from freehold.egress.stream import PushbackReader
from freehold.errors import FreeholdError
from freehold.gateway.preview.headers import app_request_headers, browser_response_headers
from freehold.gateway.preview.hosts import PreviewSite

MAX_INFORMATIONAL = 8
"""Limit of 1xx answers before the real one. They are not forwarded."""
_TARGET = re.compile(rb"/[\x21-\x7e]*")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class InvalidRequest(Exception):
    """A request that cannot be written as valid HTTP/1.1."""


def encode_request_head(scope: Scope, site: PreviewSite) -> bytes:
    """The request head for the app. Each request has its own connection, so that requests cannot be confused."""
    given = [(name, value) for name, value in scope["headers"] if name in (b"content-length", b"transfer-encoding")]
    fields = [
        ("host", f"localhost:{site.port}"),
        ("connection", "close"),
        *app_request_headers(scope["headers"], site),
    ]
    if any(name == b"transfer-encoding" for name, _ in given):
        fields.append(("transfer-encoding", "chunked"))
    elif given:
        fields.append(("content-length", given[0][1].decode("latin-1")))
    return http1.encode_head(f"{scope['method']} {read_target(scope)} HTTP/1.1", check_headers(fields))


def read_target(scope: Scope) -> str:
    """Path and query, byte for byte as received. Raises InvalidRequest."""
    raw: bytes = scope["raw_path"]
    query: bytes = scope["query_string"]
    target = raw + b"?" + query if query else raw
    if not _TARGET.fullmatch(target):
        raise InvalidRequest
    return target.decode("ascii")


def check_headers(fields: list[http1.Field]) -> list[http1.Field]:
    if not all(_VALUE.fullmatch(value) for _, value in fields):
        raise InvalidRequest
    return fields


async def forward_request(
    tunnel: Tunnel, head: bytes, site: PreviewSite, scope: Scope, receive: Receive, send: Send
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
        outward = group.create_task(_send_request(tunnel, head, scope, receive))
        inward = group.create_task(_answer(tunnel, site, scope, send_and_note))
        await asyncio.wait({outward, inward}, return_when=asyncio.FIRST_COMPLETED)
        problem = inward.result() if inward.done() else None
        outward.cancel()
        inward.cancel()
    if problem is not None and not began:
        raise problem


async def _send_request(tunnel: Tunnel, head: bytes, scope: Scope, receive: Receive) -> None:
    """Send the whole request, then wait until the browser disconnects."""
    chunked = any(name == b"transfer-encoding" for name, _ in scope["headers"])
    is_open = True
    try:
        await tunnel.write(head)
    except FreeholdError:
        is_open = False  # the app may have answered all the same
    while (message := await receive())["type"] == "http.request":
        piece: bytes = message.get("body", b"")
        if chunked and piece:
            piece = http1.encode_chunk(piece)
        if chunked and not message.get("more_body", False):
            piece += http1.LAST_CHUNK
            chunked = False
        try:
            if is_open and piece:
                await tunnel.write(piece)
        except FreeholdError:
            is_open = False


async def _answer(tunnel: Tunnel, site: PreviewSite, scope: Scope, send: Send) -> FreeholdError | None:
    method = scope["method"]
    origin = next((value for name, value in scope["headers"] if name == b"origin"), None)
    inlet = PushbackReader(tunnel)
    try:
        answer = await _read_answer(inlet)
        framing = answer.framing(method)
        headers = browser_response_headers(answer, site, origin=origin)
        lengths = answer.values("content-length")
        if lengths and (isinstance(framing, int) and answer.status not in (204, 304)):
            headers.append((b"content-length", lengths[0].encode("latin-1")))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        async for piece in http1.read_body(inlet, framing):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    except FreeholdError as error:
        return error
    await send({"type": "http.response.body", "body": b""})
    return None


async def _read_answer(inlet: PushbackReader) -> http1.HttpResponse:
    for _ in range(MAX_INFORMATIONAL):
        answer = await http1.read_response(inlet)
        if answer.status >= 200:
            return answer
        if answer.status == 101:
            raise http1.bad_response("it switches protocols without being asked")
    raise http1.bad_response(f"it sends more than {MAX_INFORMATIONAL} informational answers")
