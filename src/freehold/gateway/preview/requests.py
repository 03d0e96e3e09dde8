"""One request, brought to an app inside and its answer back: streamed both ways, each side waiting for the other."""

import asyncio
import re

from starlette.types import Message, Receive, Scope, Send

from freehold.computer.tunnel import Tunnel
from freehold.egress import http1
from freehold.egress.stream import Inlet
from freehold.errors import FreeholdError
from freehold.gateway.preview.hosts import Place
from freehold.gateway.preview.translation import for_the_app, for_the_browser

MAX_HINTS = 8
"""Answers of the kind 1xx before the real one; they are not passed on."""
_TARGET = re.compile(rb"/[\x21-\x7e]*")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Unspeakable(Exception):
    """A request that cannot be said in plain HTTP."""


def head_of(scope: Scope, place: Place) -> bytes:
    """The request as the app reads it: one connection each, so that no two requests can be mistaken for each other."""
    given = [(name, value) for name, value in scope["headers"] if name in (b"content-length", b"transfer-encoding")]
    fields = [("host", f"localhost:{place.port}"), ("connection", "close"), *for_the_app(scope["headers"], place)]
    if any(name == b"transfer-encoding" for name, _ in given):
        fields.append(("transfer-encoding", "chunked"))
    elif given:
        fields.append(("content-length", given[0][1].decode("latin-1")))
    return http1.encode_head(f"{scope['method']} {target_of(scope)} HTTP/1.1", checked(fields))


def target_of(scope: Scope) -> str:
    """Path and query, byte for byte as they came."""
    raw: bytes = scope["raw_path"]
    query: bytes = scope["query_string"]
    target = raw + b"?" + query if query else raw
    if not _TARGET.fullmatch(target):
        raise Unspeakable
    return target.decode("ascii")


def checked(fields: list[http1.Field]) -> list[http1.Field]:
    if not all(_VALUE.fullmatch(value) for _, value in fields):
        raise Unspeakable
    return fields


async def forward(tunnel: Tunnel, head: bytes, place: Place, scope: Scope, receive: Receive, send: Send) -> None:
    """Until the answer is through or the browser has gone. Raises FreeholdError while nothing was answered yet.

    An answer that breaks off is broken off towards the browser, too: it must not pass for a whole one.
    """
    began = False

    async def send_noted(message: Message) -> None:
        nonlocal began
        began = True
        await send(message)

    async with asyncio.TaskGroup() as group:
        outward = group.create_task(_ask(tunnel, head, scope, receive))
        inward = group.create_task(_answer(tunnel, place, scope, send_noted))
        await asyncio.wait({outward, inward}, return_when=asyncio.FIRST_COMPLETED)
        problem = inward.result() if inward.done() else None
        outward.cancel()
        inward.cancel()
    if problem is not None and not began:
        raise problem


async def _ask(tunnel: Tunnel, head: bytes, scope: Scope, receive: Receive) -> None:
    """Say it all, then wait until the browser leaves."""
    chunked = any(name == b"transfer-encoding" for name, _ in scope["headers"])
    heard = True
    try:
        await tunnel.write(head)
    except FreeholdError:
        heard = False  # it may have answered all the same
    while (message := await receive())["type"] == "http.request":
        piece: bytes = message.get("body", b"")
        if chunked and piece:
            piece = http1.encode_piece(piece)
        if chunked and not message.get("more_body", False):
            piece += http1.LAST_PIECE
            chunked = False
        try:
            if heard and piece:
                await tunnel.write(piece)
        except FreeholdError:
            heard = False


async def _answer(tunnel: Tunnel, place: Place, scope: Scope, send: Send) -> FreeholdError | None:
    method = scope["method"]
    asked_by = next((value for name, value in scope["headers"] if name == b"origin"), None)
    inlet = Inlet(tunnel)
    try:
        answer = await _read_answer(inlet)
        framing = answer.framing(method)
        headers = for_the_browser(answer, place, asked_by=asked_by)
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


async def _read_answer(inlet: Inlet) -> http1.Answer:
    for _ in range(MAX_HINTS):
        answer = await http1.read_answer(inlet)
        if answer.status >= 200:
            return answer
        if answer.status == 101:
            raise http1.bad_answer("it changes the protocol unasked")
    raise http1.bad_answer("it never comes to the point")
