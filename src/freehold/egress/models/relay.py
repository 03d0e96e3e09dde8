"""Forwards one model request with the real key, and streams the response back with the key masked."""

import asyncio
from typing import Protocol

from freehold.egress import http1
from freehold.egress.http1 import Field, HttpRequest, HttpResponse
from freehold.egress.models.keys import key_field
from freehold.egress.models.meter import Meter
from freehold.egress.models.model_request import ModelRequest
from freehold.egress.models.paths import Route
from freehold.egress.models.refusals import error_event
from freehold.egress.models.scrub import Scrubber
from freehold.egress.models.upstream import UpstreamConnection, UpstreamPool, no_answer
from freehold.egress.stream import ByteStream, PushbackReader
from freehold.errors import FreeholdError
from freehold.observe.secrets import Secret

PROVIDER_TIMEOUT = 600.0
"""Seconds that a provider may send nothing."""
CLOSE_TIMEOUT = 2.0

CLIENT_CLOSED = "models.cancelled"
_PROVIDER_ERRORS = ("models.unreachable", "models.bad-response")
"""Errors of the provider. Their outcome is set where they are detected."""

_DROPPED_UP = frozenset(
    {
        "accept-encoding",
        "api-key",
        "authorization",
        "content-encoding",
        "content-length",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "origin",
        "referer",
        "x-api-key",
        "x-goog-api-key",
        # These could make a server see another method, path or caller than the one that was checked.
        "x-http-method",
        "x-http-method-override",
        "x-method-override",
        "x-original-url",
        "x-rewrite-url",
        "x-real-ip",
    }
)
_DROPPED_DOWN = frozenset({"alt-svc", "content-length", "set-cookie", "strict-transport-security"})


class RequestBill(Protocol):
    """The bill of one model request."""

    meter: Meter | None
    outcome: str

    def answer(self) -> None:
        """Called when the provider has responded."""
        ...

    def begin(self) -> None:
        """Called when the request was sent."""
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
        model_request: ModelRequest,
        key: Secret | None,
        client: ByteStream,
        bill: RequestBill,
    ) -> None:
        self._request = request
        self._route = route
        self._model_request = model_request
        self._key = key
        self._client = client
        self._bill = bill
        self._scrubber = Scrubber(key.reveal().encode() if key is not None else b"")
        self._chunked = False
        self._last = b"\n\n"
        self._held_head = b""
        self._events = False
        self.answered = False
        """Whether the client has begun to get a response."""
        self.finished = False
        """Whether the whole response was passed on. From then on there is nothing left to cut."""

    async def run(self, upstreams: UpstreamPool, reader: PushbackReader) -> bool:
        """Runs until the response has ended or the client has closed. True when the client's connection can be reused."""
        upstream = await upstreams.acquire(self._route.provider)
        reusable = False
        try:
            answering = asyncio.ensure_future(self._forward(upstream))
            watching = asyncio.ensure_future(_wait_until_closed(reader))
            try:
                await asyncio.wait({answering, watching}, return_when=asyncio.FIRST_COMPLETED)
                if not answering.done():
                    self._bill.outcome = "cancelled"
                    return False
                reusable = await answering
            finally:
                answering.cancel()
                watching.cancel()
                await asyncio.gather(answering, watching, return_exceptions=True)
        finally:
            if reusable:
                await upstreams.release(self._route.provider, upstream)
            else:
                await upstream.stream.close()
        return True

    async def break_off(self, error: FreeholdError) -> None:
        """Ends a response that has begun with an error event, so that the agent can show the reason."""
        if error.code not in _PROVIDER_ERRORS:
            self._bill.outcome = error.code.removeprefix("models.")
        if not (self.answered and self._events and self._chunked) or error.code in (*_PROVIDER_ERRORS, CLIENT_CLOSED):
            return  # the client sees that its response was cut, as it would without the gateway
        async with asyncio.timeout(CLOSE_TIMEOUT):
            ending = b"" if self._last.endswith(b"\n\n") else b"\n\n"
            await self._send(http1.encode_chunk(ending + error_event(self._route.api, error)) + http1.LAST_CHUNK)
            await self._client.write_eof()

    async def _forward(self, upstream: UpstreamConnection) -> bool:
        """Sends the request and passes the response on. True when the provider's connection can be reused."""
        try:
            await upstream.stream.write(self._head() + self._model_request.body)
            self._bill.begin()
            response = await self._read_head(upstream)
        except (OSError, FreeholdError) as error:
            self._bill.outcome = "unreachable"
            raise no_answer(self._route.provider, "closed the connection without a response") from error
        except TimeoutError as error:
            self._bill.outcome = "unreachable"
            raise no_answer(self._route.provider, "did not respond in time") from error
        return await self._pass_on(response, upstream)

    def _head(self) -> bytes:
        provider = self._route.provider
        fields: list[Field] = [("Host", provider.authority)]
        fields += self._request.end_to_end(without=_DROPPED_UP)
        # The response must not be compressed: tokens are counted and the key is masked here.
        fields += [("Accept-Encoding", "identity"), ("Connection", "keep-alive")]
        if self._request.method != "GET":
            fields.append(("Content-Length", str(len(self._model_request.body))))
        if self._key is not None:
            fields.append(key_field(provider, self._key))
        return http1.encode_head(f"{self._request.method} {self._route.path} HTTP/1.1", fields)

    async def _read_head(self, upstream: UpstreamConnection) -> HttpResponse:
        async with asyncio.timeout(PROVIDER_TIMEOUT):
            response = await http1.read_response(upstream.reader)
            while response.status < 200:
                response = await http1.read_response(upstream.reader)
            return response

    async def _pass_on(self, response: HttpResponse, upstream: UpstreamConnection) -> bool:
        framing = response.framing(self._request.method)
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
            streamed = self._events or (self._model_request.streamed and self._route.api != "gemini")
            meter = Meter(self._route.api, streamed=streamed, estimate=self._model_request.estimate)
            self._bill.meter = meter
        fields = [(name, self._scrubber.text(value)) for name, value in response.end_to_end(without=_DROPPED_DOWN)]
        self._chunked = not isinstance(framing, int) and self._request.version == "1.1"
        if isinstance(framing, int):
            fields.append(("Content-Length", str(framing)))
        elif self._chunked:
            fields.append(("Transfer-Encoding", "chunked"))
        closes = not self._chunked and not isinstance(framing, int)
        if closes:
            fields.append(("Connection", "close"))
        self.answered = True
        self._held_head = http1.encode_head(f"HTTP/1.1 {response.status} {response.reason}", fields)
        if not upstream.reader.has_buffered or framing == 0:
            await self._send(b"")
        try:
            await self._pass_body(upstream, framing, meter)
        except (OSError, FreeholdError, TimeoutError) as error:
            if isinstance(error, FreeholdError) and error.code.startswith("models."):
                raise
            self._bill.outcome = "cut"
            raise FreeholdError("models.unreachable", "The provider's response was cut") from error
        return framing != "until-end" and response.version == "1.1" and "close" not in response.listed("connection")

    async def _pass_body(self, upstream: UpstreamConnection, framing: http1.Framing, meter: Meter | None) -> None:
        body = aiter(http1.read_body(upstream.reader, framing))
        passed = 0
        while True:
            async with asyncio.timeout(PROVIDER_TIMEOUT):
                part = await anext(body, b"")
            if not part:
                break
            passed += len(part)
            self.finished = passed == framing
            await self._write(self._scrubber.feed(part))
            if meter is not None:
                meter.feed(part)
                if not self.finished:
                    self._bill.check()
        self.finished = True
        await self._write(self._scrubber.end())
        if meter is not None:
            meter.end()
        if self._chunked or self._held_head:
            await self._send(http1.LAST_CHUNK if self._chunked else b"")

    async def _write(self, part: bytes) -> None:
        if part:
            self._last = part[-2:]
            await self._send(http1.encode_chunk(part) if self._chunked else part)

    async def _send(self, data: bytes) -> None:
        """Sends data to the client, with the head before it when that was held back for the first part of the body."""
        data, self._held_head = self._held_head + data, b""
        try:
            await self._client.write(data)
        except (OSError, FreeholdError) as error:
            raise FreeholdError(CLIENT_CLOSED, "The client closed the connection") from error


async def _wait_until_closed(reader: PushbackReader) -> None:
    """Returns when the client has closed. A client that sends its next request early is still there."""
    early = await reader.read()
    if early:
        reader.put_back(early)
        await asyncio.Event().wait()
