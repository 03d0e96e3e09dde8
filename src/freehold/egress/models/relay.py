"""Forwards one model request with the real key, and streams the response back with the key masked."""

import asyncio
from typing import Protocol

from freehold.egress import http1
from freehold.egress.http1 import BodyEncoder, Field, Framing, HttpRequest, HttpResponse
from freehold.egress.http_exchange import HttpExchange
from freehold.egress.models.header_policy import sent_fields
from freehold.egress.models.keys import key_fields
from freehold.egress.models.meter import Meter
from freehold.egress.models.model_request import ModelRequest
from freehold.egress.models.paths import Route
from freehold.egress.models.refusals import error_event
from freehold.egress.models.scrub import Scrubber
from freehold.egress.models.upstream import UpstreamConnection, UpstreamPool, UpstreamUser, no_answer
from freehold.egress.stream import CHUNK, ByteStream, PushbackReader
from freehold.errors import FreeholdError
from freehold.observe.secrets import Secret

PROVIDER_TIMEOUT = 600.0
"""Seconds that a provider may send nothing."""
CLOSE_TIMEOUT = 2.0
DRAIN_TIMEOUT = 60.0
"""Seconds for which a response is read to its end after the client has closed, to learn what it used."""

CLIENT_CLOSED = "models.cancelled"
_PROVIDER_ERRORS = ("models.unreachable", "models.bad-response")
"""Errors of the provider. Their outcome is set where they are detected."""

_DROPPED_DOWN = frozenset({"alt-svc", "set-cookie", "strict-transport-security"})


class RequestBill(Protocol):
    """The bill of one model request."""

    meter: Meter | None
    outcome: str

    def answer(self) -> None:
        """Called when the provider has responded."""
        ...

    async def begin(self) -> None:
        """Called before the request is sent: from now on it counts. Raises `models.not-recorded`."""
        ...

    def check(self) -> None:
        """Called after each part of the response. Raises `models.budget-reached` when a budget is used up."""
        ...

    def close(self) -> None:
        """Called when the response has ended, in whatever way."""
        ...


class ModelRelay:
    """Forwards one request and its response."""

    def __init__(
        self,
        request: HttpRequest,
        route: Route,
        session: str,
        model_request: ModelRequest,
        key: Secret | None,
        client: ByteStream,
        bill: RequestBill,
    ) -> None:
        self._request = request
        self._route = route
        self._model_request = model_request
        self._key = key
        self._user = UpstreamUser(session, route.provider.place, key)
        self._client = client
        self._bill = bill
        self._scrubber = Scrubber(key.reveal().encode() if key is not None else b"")
        self._upstream: UpstreamConnection
        self._exchange: HttpExchange | None = None
        self._framing: Framing = 0
        self._body = BodyEncoder(0)
        self._last = b"\n\n"
        self._held_head = b""
        self._events = False
        self.answered = False
        """Whether the client has begun to get a response."""
        self.finished = False
        """Whether the whole response was passed on. From then on there is nothing left to cut."""
        self._client_lost = asyncio.Event()
        """Set when nobody reads the response any more."""

    async def run(self, upstreams: UpstreamPool, reader: PushbackReader) -> bool:
        """Runs until the response has ended or the client has closed. True when the client's connection can be reused."""
        self._upstream = await upstreams.acquire(self._user, self._route.provider)
        try:
            answering = asyncio.ensure_future(self._forward(upstreams, self._upstream))
            watching = asyncio.ensure_future(self._wait_until_closed(reader))
            try:
                await asyncio.wait({answering, watching}, return_when=asyncio.FIRST_COMPLETED)
                if not answering.done() and self._route.api is not None:
                    self._client_lost.set()
                    # The provider goes on, and charges for it. Its report at the end is the truth.
                    await asyncio.wait({answering}, timeout=DRAIN_TIMEOUT)
                if not answering.done():
                    self._bill.outcome = "cancelled"
                    return False
                await answering
                if self._client_lost.is_set():
                    self._bill.outcome = "cancelled" if self._bill.outcome == "answered" else self._bill.outcome
                    return False
            finally:
                answering.cancel()
                watching.cancel()
                await asyncio.gather(answering, watching, return_exceptions=True)
        finally:
            if self._exchange is not None and self._exchange.is_clean:
                upstreams.release(self._user, self._upstream)
            else:
                await self._upstream.stream.close()
        return True

    async def break_off(self, error: FreeholdError) -> None:
        """Ends a response that has begun with an error event, so that the agent can show the reason."""
        if error.code not in _PROVIDER_ERRORS:
            self._bill.outcome = error.code.removeprefix("models.")
        is_open_stream = self.answered and self._events and self._framing == "chunked"
        if not is_open_stream or error.code in (*_PROVIDER_ERRORS, CLIENT_CLOSED):
            return  # the client sees that its response was cut, as it would without the gateway
        async with asyncio.timeout(CLOSE_TIMEOUT):
            ending = b"" if self._last.endswith(b"\n\n") else b"\n\n"
            event = ending + error_event(self._route.api, error)
            await self._send(self._body.encode(event) + self._body.end())
            await self._client.write_eof()

    async def _forward(self, upstreams: UpstreamPool, upstream: UpstreamConnection) -> None:
        """Sends the request and passes the response on."""
        await self._bill.begin()
        self._upstream = await upstreams.recheck(upstream, self._user, self._route.provider)
        self._exchange = self._open_exchange(self._upstream)
        response = await self._send_request(self._exchange)
        await self._pass_on(response, self._exchange)

    async def _send_request(self, exchange: HttpExchange) -> HttpResponse:
        """Sends the request and returns the head of its response."""
        body = self._model_request.body
        sending: asyncio.Future[None] | None = None
        try:
            async with asyncio.timeout(PROVIDER_TIMEOUT):
                if len(body) < CHUNK:
                    await exchange.send_whole(body)
                else:
                    # A provider may refuse a long request before it has read all of it.
                    sending = asyncio.ensure_future(exchange.send_whole(body))
                return await exchange.read_head()
        except TimeoutError as error:
            self._bill.outcome = "unreachable"
            raise no_answer(self._route.provider, "did not respond in time") from error
        except (OSError, FreeholdError) as error:
            self._bill.outcome = "unreachable"
            is_cut = isinstance(error, OSError) or error.code == "egress.cut-short"
            what = "closed the connection without a response" if is_cut else "did not respond with valid HTTP"
            raise no_answer(self._route.provider, what) from error
        finally:
            if sending is not None:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)

    def _open_exchange(self, upstream: UpstreamConnection) -> HttpExchange:
        provider = self._route.provider
        fields: list[Field] = [("Host", provider.authority)]
        fields += sent_fields(self._request, is_checked=self._route.form is not None)
        # The response must not be compressed: tokens are counted and the key is masked here.
        fields += [("Accept-Encoding", "identity"), ("Connection", "keep-alive")]
        if self._key is not None:
            fields += key_fields(provider, self._key, fields)
        method, body = self._request.method, self._model_request.body
        return HttpExchange(upstream.stream, upstream.reader, method, self._route.path, fields, len(body))

    async def _pass_on(self, response: HttpResponse, exchange: HttpExchange) -> None:
        if response.listed("content-encoding") - {"identity"}:
            self._bill.outcome = "bad-response"
            raise FreeholdError(
                "models.bad-response", "The provider compressed its response although identity was requested"
            )
        self._events = any("event-stream" in value.lower() for value in response.values("content-type"))
        self._bill.outcome = "answered" if response.status < 400 else f"status-{response.status}"
        self._bill.answer()
        meter = None
        if self._route.api is not None and response.status < 400:
            # Some servers do not stream although they were asked to.
            is_whole = any("application/json" in value.lower() for value in response.values("content-type"))
            streamed = self._events or (self._model_request.streamed and not is_whole)
            meter = Meter(self._route.api, streamed=streamed, estimate=self._model_request.estimate)
            self._bill.meter = meter
        self._held_head = self._client_head(response, exchange.framing)
        self.answered = True
        if not exchange.reader.has_buffered or self._framing == 0:
            await self._send(b"")
        try:
            await self._pass_body(exchange, meter)
        except (OSError, FreeholdError, TimeoutError) as error:
            if isinstance(error, FreeholdError) and error.code.startswith("models."):
                raise
            self._bill.outcome = "cut"
            raise FreeholdError("models.unreachable", "The provider's response was cut") from error

    def _client_head(self, response: HttpResponse, framing: Framing) -> bytes:
        """The head for the client. A body of unknown length goes in chunks, or for an old client until the end."""
        fields = [(name, self._scrubber.text(value)) for name, value in response.end_to_end(without=_DROPPED_DOWN)]
        if not isinstance(framing, int):
            framing = "chunked" if self._request.version == "1.1" else "until-end"
        if framing == "until-end":
            fields.append(("Connection", "close"))
        self._framing, self._body = framing, BodyEncoder(framing)
        announced = framing if response.has_body(self._request.method) else response.announced_length()
        return http1.encode_response(response.status, response.reason, fields, announced)

    async def _pass_body(self, exchange: HttpExchange, meter: Meter | None) -> None:
        body = aiter(exchange.read_body())
        passed = 0
        while True:
            async with asyncio.timeout(PROVIDER_TIMEOUT):
                part = await anext(body, b"")
            if not part:
                break
            passed += len(part)
            self.finished = passed == self._framing
            await self._write(self._scrubber.feed(part))
            if meter is not None:
                meter.feed(part)
                if not self.finished:
                    self._bill.check()
        self.finished = True
        await self._write(self._scrubber.end())
        if meter is not None:
            meter.end()
        end = self._body.end()
        if end or self._held_head:
            await self._send(end)

    async def _write(self, part: bytes) -> None:
        if part:
            self._last = part[-2:]
            await self._send(self._body.encode(part))

    async def _send(self, data: bytes) -> None:
        """Sends data to the client, with the head before it when that was held back for the first part of the body."""
        data, self._held_head = self._held_head + data, b""
        if self._client_lost.is_set():
            return
        try:
            await self._client.write(data)
        except (OSError, FreeholdError) as error:
            self._client_lost.set()
            if self._route.api is None:
                raise FreeholdError(CLIENT_CLOSED, "The client closed the connection") from error

    async def _wait_until_closed(self, reader: PushbackReader) -> None:
        """Returns when the client has closed. A client that sends its next request early is still there."""
        early = await reader.read()
        if early:
            reader.put_back(early)
            await self._client_lost.wait()
