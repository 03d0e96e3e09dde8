"""One stream from inside: questions in, each sent on with the real key, answers out as they come."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from freehold.egress import http1
from freehold.egress.http1 import Request
from freehold.egress.models.account import Account
from freehold.egress.models.keys import Keys
from freehold.egress.models.paths import Route, find_route
from freehold.egress.models.placeholders import Grant, Placeholders
from freehold.egress.models.provider import Provider
from freehold.egress.models.question import MAX_BYTES, Question, read_question, too_large
from freehold.egress.models.refusals import error_body, status_of
from freehold.egress.models.relay import Relay
from freehold.egress.models.upstream import Upstreams
from freehold.egress.stream import CHUNK, Inlet, Stream
from freehold.errors import FreeholdError

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 512
MAX_HELD = 96 * 1024 * 1024
"""Bytes of questions that are in memory at once, of all connections together."""
IDLE = 300.0
"""How long a client may keep a connection without asking, in seconds."""
HEAD = 60.0
BODY = 60.0
FAREWELL = 2.0


@dataclass(eq=False)
class Live:
    """A question that is under way, for a session, within a scope that ends it."""

    session: str
    relay: Relay
    scope: asyncio.Timeout
    cut_because: FreeholdError | None = None

    def cut(self, because: FreeholdError) -> None:
        """Idempotent; from the loop's thread."""
        if self.cut_because is None and not self.relay.finished:
            self.cut_because = because
            self.scope.reschedule(asyncio.get_running_loop().time())


@dataclass
class Held:
    """How many bytes of a question are in memory."""

    size: int = 0


class Exchange:
    """Serves streams. Refusals are answers in the words of the API that was asked; nothing is ever sent twice."""

    def __init__(
        self,
        providers: Mapping[str, Provider],
        placeholders: Placeholders,
        keys: Keys,
        upstreams: Upstreams,
        account: Account,
    ) -> None:
        self._providers = providers
        self._placeholders = placeholders
        self._keys = keys
        self._upstreams = upstreams
        self._account = account
        self._live: set[Live] = set()
        self._connections = 0
        self._held = 0

    def cut_all(self, because: FreeholdError) -> None:
        for live in tuple(self._live):
            live.cut(because)

    def cut_session(self, session: str, because: FreeholdError) -> None:
        for live in tuple(self._live):
            if live.session == session:
                live.cut(because)

    async def serve(self, stream: Stream) -> None:
        """To its end, and closes it. What goes wrong is told to the client, not raised."""
        try:
            inlet = Inlet(stream)
            if self._connections >= MAX_CONNECTIONS:
                await _refuse(stream, None, FreeholdError("models.too-many", "Too many connections are open"))
                return
            self._connections += 1
            try:
                while await self._serve_one(inlet, stream):
                    pass
            finally:
                self._connections -= 1
        except (OSError, EOFError, TimeoutError, FreeholdError) as error:
            log.debug("a connection to the model gateway ended: %s", error)
        finally:
            try:
                await stream.close()
            except (OSError, EOFError, FreeholdError) as error:
                log.debug("it was gone already: %s", error)

    async def _serve_one(self, inlet: Inlet, stream: Stream) -> bool:
        """Whether another request may follow on this stream."""
        async with asyncio.timeout(IDLE):
            first = await _wait_for_request(inlet)
        if not first:
            return False
        route: Route | None = None
        grant: Grant | None = None
        try:
            async with asyncio.timeout(HEAD):
                request = await http1.read_request(inlet)
            route = find_route(request, self._providers)
            if route is None:
                await _greet(stream, request)
                return _goes_on(request)
            grant = self._grant(request, route)
            self._account.admit()
            with self._holding() as held:
                body = await self._read_body(request, inlet, stream, held)
                question = read_question(request, route, body)
                del body
                return await self._ask(request, route, grant, question, inlet, stream)
        except TimeoutError:
            await _refuse(stream, route, FreeholdError("models.slow", "The request did not come in time"))
            return False
        except FreeholdError as error:
            if error.code != "egress.cut-short":
                name = route.provider.name if route is not None else ""
                await self._account.note_refusal(name, grant.session if grant is not None else None, error)
            await _refuse(stream, route, error)
            return False

    @contextmanager
    def _holding(self) -> Iterator[Held]:
        held = Held()
        try:
            yield held
        finally:
            self._held -= held.size

    async def _read_body(self, request: Request, inlet: Inlet, stream: Stream, held: Held) -> bytes:
        """The whole of it: whether it may be sent is decided before any of it is."""
        framing = request.framing()
        expected = request.listed("expect")
        if expected - {"100-continue"}:
            raise FreeholdError("models.malformed", "The only expectation that can be met is 100-continue")
        if isinstance(framing, int) and framing > MAX_BYTES:
            raise too_large()
        if expected:
            await stream.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        pieces: list[bytes] = []
        async with asyncio.timeout(BODY):
            async for piece in http1.read_body(inlet, framing):
                held.size += len(piece)
                self._held += len(piece)
                if held.size > MAX_BYTES:
                    raise too_large()
                if self._held > MAX_HELD:
                    raise FreeholdError("models.too-many", "Too many large questions are asked at once")
                pieces.append(piece)
        return b"".join(pieces)

    def _grant(self, request: Request, route: Route) -> Grant:
        """Every place where a client may put its key must agree, or hold nothing."""
        offered = {value for value in request.values("x-api-key") + request.values("x-goog-api-key") if value}
        offered |= {value.split(" ", 1)[-1].strip() for value in request.values("authorization") if value}
        if route.offered:
            offered.add(route.offered)
        grants = [self._placeholders.find(token, route.provider.name) for token in offered]
        if len(grants) != 1 or grants[0] is None:
            raise FreeholdError(
                "models.bad-placeholder",
                f"This is not the placeholder that this session was given for {route.provider.name}",
                hint="Programs that an agent starts inherit the right one from its environment",
            )
        return grants[0]

    async def _ask(
        self,
        request: Request,
        route: Route,
        grant: Grant,
        question: Question,
        inlet: Inlet,
        stream: Stream,
    ) -> bool:
        key = await self._keys.fetch(route.provider)
        self._account.admit()
        sent = await self._account.open(route, grant, question)
        relay = Relay(request, route, question, key, stream, sent)
        live: Live | None = None
        try:
            async with asyncio.timeout(None) as scope:
                live = Live(grant.session, relay, scope)
                self._live.add(live)
                return await relay.run(self._upstreams, inlet) and _goes_on(request)
        except TimeoutError:
            if live is None or live.cut_because is None:
                raise
            return await _break_off(relay, live.cut_because)
        except FreeholdError as error:
            return await _break_off(relay, error)
        finally:
            if live is not None:
                self._live.discard(live)
            sent.close()


async def _break_off(relay: Relay, because: FreeholdError) -> bool:
    """What has not begun is refused instead."""
    await relay.break_off(because)
    if not relay.answered:
        raise because
    return False


async def _wait_for_request(inlet: Inlet) -> bool:
    """Whether anything comes at all: a client may keep its connection for later."""
    begun = await inlet.read(1)
    inlet.put_back(begun)
    return bool(begun)


def _goes_on(request: Request) -> bool:
    return request.version == "1.1" and "close" not in request.listed("connection")


async def _greet(stream: Stream, request: Request) -> None:
    fields = [("Content-Type", "text/plain"), ("Content-Length", "0")]
    if request.framing() != 0:
        raise FreeholdError("models.malformed", "A greeting has no body")
    await stream.write(http1.encode_head("HTTP/1.1 200 OK", fields))


async def _refuse(stream: Stream, route: Route | None, error: FreeholdError) -> None:
    status, phrase = status_of(error)
    body = error_body(route.api if route is not None else None, error)
    fields = [
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
        ("X-Freehold-Refused", error.code),
    ]
    async with asyncio.timeout(FAREWELL):
        await stream.write(http1.encode_head(f"HTTP/1.1 {status} {phrase}", fields) + body)
        await stream.write_eof()
        # A client in the middle of sending sees our answer only if we go on reading for a moment.
        while await stream.read(CHUNK):
            pass
