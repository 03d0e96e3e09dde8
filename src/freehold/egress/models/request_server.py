"""Serves model requests from inside: each is forwarded with the real key, and its response is streamed back."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from freehold.egress import http1
from freehold.egress.http1 import HttpRequest
from freehold.egress.models.billing import Bill, Billing, NoBill
from freehold.egress.models.keys import Keys
from freehold.egress.models.model_request import MAX_BYTES, ModelRequest, read_model_request, too_large
from freehold.egress.models.paths import Route, find_route
from freehold.egress.models.placeholders import PlaceholderGrant, Placeholders
from freehold.egress.models.provider import Provider
from freehold.egress.models.refusals import error_body, status_of
from freehold.egress.models.relay import ModelRelay
from freehold.egress.models.upstream import UpstreamPool
from freehold.egress.stream import CHUNK, ByteStream, PushbackReader
from freehold.errors import FreeholdError
from freehold.observe.agent_spans import model_span, set_usage
from freehold.observe.tracing import current_span

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 512
MAX_HELD = 96 * 1024 * 1024
"""Bytes of requests in memory at once, of all connections together."""
IDLE_TIMEOUT = 300.0
"""Seconds that a client may keep a connection open without a request."""
HEAD_TIMEOUT = 60.0
BODY_TIMEOUT = 60.0
LARGE = 64 * 1024
"""Bytes of a body from which it is checked in a thread, so that the loop goes on."""
MAX_CHECKS = 2
"""Large bodies that are checked at once. Other work needs threads too."""
CLOSE_TIMEOUT = 2.0


@dataclass(eq=False)
class RunningRequest:
    """A request of a session that is being forwarded. Moving the deadline of `scope` ends it."""

    session: str
    scope: asyncio.Timeout
    relay: ModelRelay | None = None
    """None while the request waits for its budget."""
    cut_because: FreeholdError | None = None

    def cut(self, because: FreeholdError) -> None:
        """Idempotent. Call it in the loop's thread."""
        if self.cut_because is None and (self.relay is None or not self.relay.finished):
            self.cut_because = because
            self.scope.reschedule(asyncio.get_running_loop().time())


@dataclass
class HeldBytes:
    """The bytes of one request that are in memory."""

    size: int = 0


class ModelRequestServer:
    """Serves streams. A refusal has the error format of the API that was called. No request is sent twice."""

    def __init__(
        self,
        providers: Mapping[str, Provider],
        placeholders: Placeholders,
        keys: Keys,
        upstreams: UpstreamPool,
        billing: Billing,
    ) -> None:
        self._providers = providers
        self._placeholders = placeholders
        self._keys = keys
        self._upstreams = upstreams
        self._billing = billing
        self._running: set[RunningRequest] = set()
        self._connections = 0
        self._held = 0
        self._checks = asyncio.Semaphore(MAX_CHECKS)

    def cut_all(self, because: FreeholdError) -> None:
        for running in tuple(self._running):
            running.cut(because)

    def cut_session(self, session: str, because: FreeholdError) -> None:
        for running in tuple(self._running):
            if running.session == session:
                running.cut(because)
        self._upstreams.end_session(session)

    async def serve(self, stream: ByteStream) -> None:
        """Serves the stream to its end and closes it. Errors are sent to the client, not raised."""
        try:
            reader = PushbackReader(stream)
            if self._connections >= MAX_CONNECTIONS:
                await _refuse(stream, None, FreeholdError("models.too-many", "Too many connections are open"))
                return
            self._connections += 1
            try:
                while await self._serve_one(reader, stream):
                    pass
            finally:
                self._connections -= 1
        except (OSError, EOFError, TimeoutError, FreeholdError) as error:
            log.debug("a connection to the model gateway ended: %s", error)
        finally:
            try:
                await stream.close()
            except (OSError, EOFError, FreeholdError) as error:
                log.debug("the stream was already closed: %s", error)

    async def _serve_one(self, reader: PushbackReader, stream: ByteStream) -> bool:
        """Serves one request. True when another may follow on this stream."""
        async with asyncio.timeout(IDLE_TIMEOUT):
            first = await _wait_for_request(reader)
        if not first:
            return False
        route: Route | None = None
        grant: PlaceholderGrant | None = None
        try:
            async with asyncio.timeout(HEAD_TIMEOUT):
                request = await http1.read_request(reader)
            route = find_route(request, self._providers)
            if route is None:
                await _respond_empty(stream, request)
                return request.keeps_open
            grant = self._grant(request, route)
            self._billing.check_not_stopped()
            with self._holding() as held:
                body = await self._read_body(request, reader, stream, held)
                model_request = await self._check_body(request, route, body, held)
                del body
                grant = self._grant(request, route)  # the session may have ended meanwhile
                if route.api is None:  # it uses no model
                    return await self._ask(request, route, grant, model_request, reader, stream)
                operation = "embeddings" if route.form in ("embedding", "embed") else "chat"
                provider = route.provider
                with model_span(operation, provider.name, provider.kind, model_request.model, grant.session):
                    return await self._ask(request, route, grant, model_request, reader, stream)
        except TimeoutError:
            await _refuse(stream, route, FreeholdError("models.slow", "The request did not arrive in time"))
            return False
        except FreeholdError as error:
            if error.code != "egress.cut-short":
                name = route.provider.name if route is not None else ""
                await self._billing.record_refusal(name, grant.session if grant is not None else None, error)
            await _refuse(stream, route, error)
            return False

    @contextmanager
    def _holding(self) -> Iterator[HeldBytes]:
        held = HeldBytes()
        try:
            yield held
        finally:
            self._held -= held.size

    async def _read_body(
        self, request: HttpRequest, reader: PushbackReader, stream: ByteStream, held: HeldBytes
    ) -> bytes:
        """The whole body. It is checked before any part of it is sent."""
        framing = request.framing()
        _check_bodiless(request)
        expected = request.listed("expect")
        if expected - {"100-continue"}:
            raise FreeholdError("models.malformed", "Only Expect: 100-continue is supported")
        if isinstance(framing, int) and framing > MAX_BYTES:
            raise too_large()
        if expected:
            await stream.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        pieces: list[bytes] = []
        async with asyncio.timeout(BODY_TIMEOUT):
            async for piece in http1.read_body(reader, framing):
                self._hold(len(piece), held)
                pieces.append(piece)
        return b"".join(pieces)

    async def _check_body(self, request: HttpRequest, route: Route, body: bytes, held: HeldBytes) -> ModelRequest:
        """The checked request. A large one takes long, and a compressed one may be large."""
        if len(body) < LARGE and not request.listed("content-encoding"):
            return read_model_request(request, route, body)
        async with self._checks:
            checked = await asyncio.to_thread(read_model_request, request, route, body)
        self._hold(max(0, len(checked.body) - held.size), held)
        return checked

    def _hold(self, size: int, held: HeldBytes) -> None:
        """Raises `models.too-large` or `models.too-many`."""
        held.size += size
        self._held += size
        if held.size > MAX_BYTES:
            raise too_large()
        if self._held > MAX_HELD:
            raise FreeholdError("models.too-many", "Too many large requests at once")

    def _grant(self, request: HttpRequest, route: Route) -> PlaceholderGrant:
        """The grant of the placeholder. Every field where a client may put its key must agree or be empty."""
        offered = {value for value in request.values("x-api-key") + request.values("x-goog-api-key") if value}
        offered |= {value.split(" ", 1)[-1].strip() for value in request.values("authorization") if value}
        if route.offered:
            offered.add(route.offered)
        grants = [self._placeholders.find(token, route.provider.name) for token in offered]
        if len(grants) != 1 or grants[0] is None:
            raise FreeholdError(
                "models.bad-placeholder",
                f"The key is not the placeholder that this session got for {route.provider.name}",
                hint="Use the key from the environment of the agent",
            )
        return grants[0]

    async def _ask(
        self,
        request: HttpRequest,
        route: Route,
        grant: PlaceholderGrant,
        model_request: ModelRequest,
        reader: PushbackReader,
        stream: ByteStream,
    ) -> bool:
        key = await self._keys.fetch(route.provider)
        bill: Bill | NoBill | None = None
        running: RunningRequest | None = None
        try:
            async with asyncio.timeout(None) as scope:
                running = RunningRequest(grant.session, scope)
                self._running.add(running)
                self._billing.check_not_stopped()
                bill = await self._billing.open(route, grant, model_request)
                sent = bill.request if isinstance(bill, Bill) else model_request
                relay = running.relay = ModelRelay(request, route, grant.session, sent, key, stream, bill)
                return await relay.run(self._upstreams, reader) and request.keeps_open
        except TimeoutError:
            if running is None or running.cut_because is None:
                raise
            return await _break_off(running.relay, running.cut_because)
        except FreeholdError as error:
            return await _break_off(running.relay if running is not None else None, error)
        finally:
            if running is not None:
                self._running.discard(running)
            if bill is not None:
                bill.close()
                if bill.meter is not None:
                    set_usage(current_span(), bill.meter.seen.input, bill.meter.seen.output, bill.meter.model)


async def _break_off(relay: ModelRelay | None, because: FreeholdError) -> bool:
    """Ends a response early. One that has not begun is refused instead."""
    if relay is not None:
        await relay.break_off(because)
    if relay is None or not relay.answered:
        raise because
    return False


async def _wait_for_request(reader: PushbackReader) -> bool:
    """Waits for the first byte. False when the client closed without a request."""
    first = await reader.read(1)
    reader.put_back(first)
    return bool(first)


def _check_bodiless(request: HttpRequest) -> None:
    """A body where the method has none is refused: some servers would read it as the next request."""
    if request.method not in http1.METHODS_WITH_BODY and request.framing() != 0:
        raise FreeholdError("models.malformed", f"A {request.method[:16]} request must not have a body")


async def _respond_empty(stream: ByteStream, request: HttpRequest) -> None:
    _check_bodiless(request)
    await stream.write(http1.encode_response(200, "OK", [("Content-Type", "text/plain")], 0))


async def _refuse(stream: ByteStream, route: Route | None, error: FreeholdError) -> None:
    status, phrase = status_of(error)
    body = error_body(route.api if route is not None else None, error)
    fields = [
        ("Content-Type", "application/json"),
        ("Connection", "close"),
        ("X-Freehold-Refused", error.code),
    ]
    async with asyncio.timeout(CLOSE_TIMEOUT):
        await stream.write(http1.encode_response(status, phrase, fields, len(body)) + body)
        await stream.write_eof()
        # A client that is still sending sees the response only if we keep reading.
        while await stream.read(CHUNK):
            pass
