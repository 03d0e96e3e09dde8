"""One question out and its answer back, byte by byte as it comes, with the key put in here and taken out again."""

import asyncio
from typing import Protocol

from freehold.egress import http1
from freehold.egress.http1 import Answer, Field, Request
from freehold.egress.models.keys import key_field
from freehold.egress.models.meter import Meter
from freehold.egress.models.paths import Route
from freehold.egress.models.question import Question
from freehold.egress.models.refusals import error_event
from freehold.egress.models.scrub import Scrubber
from freehold.egress.models.upstream import Upstream, Upstreams, no_answer
from freehold.egress.stream import Inlet, Stream
from freehold.errors import FreeholdError
from freehold.observe.secrets import Secret

SILENCE = 600.0
"""How long a provider may say nothing, in seconds."""
FAREWELL = 2.0

GONE = "models.cancelled"
_THEIRS = ("models.unreachable", "models.bad-answer")
"""What is the provider's doing, and noted where it was seen."""

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
        # Ways to make a server see another method, path or caller than the one that was checked.
        "x-http-method",
        "x-http-method-override",
        "x-method-override",
        "x-original-url",
        "x-rewrite-url",
        "x-real-ip",
    }
)
_DROPPED_DOWN = frozenset({"alt-svc", "content-length", "set-cookie", "strict-transport-security"})


class Sent(Protocol):
    """The account of one question."""

    meter: Meter | None
    outcome: str

    def answer(self) -> None:
        """The provider is there."""
        ...

    def begin(self) -> None:
        """Called when the question has been sent."""
        ...

    def check(self) -> None:
        """Called after each piece. Raises `models.budget-reached` when the answer has used a budget up."""
        ...

    def close(self) -> None:
        """The answer is over, whichever way."""
        ...


class Relay:
    def __init__(
        self, request: Request, route: Route, question: Question, key: Secret | None, client: Stream, sent: Sent
    ) -> None:
        self._request = request
        self._route = route
        self._question = question
        self._key = key
        self._client = client
        self._sent = sent
        self._scrubber = Scrubber(key.reveal().encode() if key is not None else b"")
        self._chunked = False
        self._last = b"\n\n"
        self._before = b""
        self._events = False
        self.answered = False
        """Whether the client has begun to get an answer."""
        self.finished = False
        """Whether all of it is on its way: from then on there is nothing left to cut."""

    async def run(self, upstreams: Upstreams, inlet: Inlet) -> bool:
        """Until the answer is over or the client has gone. Whether the client's connection may go on."""
        upstream = await upstreams.take(self._route.provider)
        reusable = False
        try:
            answering = asyncio.ensure_future(self._exchange(upstream))
            watching = asyncio.ensure_future(_until_gone(inlet))
            try:
                await asyncio.wait({answering, watching}, return_when=asyncio.FIRST_COMPLETED)
                if not answering.done():
                    self._sent.outcome = "cancelled"
                    return False
                reusable = await answering
            finally:
                answering.cancel()
                watching.cancel()
                await asyncio.gather(answering, watching, return_exceptions=True)
        finally:
            if reusable:
                await upstreams.give_back(self._route.provider, upstream)
            else:
                await upstream.stream.close()
        return True

    async def break_off(self, error: FreeholdError) -> None:
        """Ends an answer that has begun, so that the agent's user reads why."""
        if error.code not in _THEIRS:
            self._sent.outcome = error.code.removeprefix("models.")
        if not (self.answered and self._events and self._chunked) or error.code in (*_THEIRS, GONE):
            return  # the client sees that its answer was cut, as it would without us
        async with asyncio.timeout(FAREWELL):
            ending = b"" if self._last.endswith(b"\n\n") else b"\n\n"
            await self._tell(http1.encode_piece(ending + error_event(self._route.api, error)) + http1.LAST_PIECE)
            await self._client.write_eof()

    async def _exchange(self, upstream: Upstream) -> bool:
        """Whether the provider's connection may be used again."""
        try:
            await upstream.stream.write(self._head() + self._question.body)
            self._sent.begin()
            answer = await self._read_head(upstream)
        except (OSError, FreeholdError) as error:
            self._sent.outcome = "unreachable"
            raise no_answer(self._route.provider, "hung up without an answer") from error
        except TimeoutError as error:
            self._sent.outcome = "unreachable"
            raise no_answer(self._route.provider, "did not answer") from error
        return await self._pass_on(answer, upstream)

    def _head(self) -> bytes:
        provider = self._route.provider
        fields: list[Field] = [("Host", provider.authority)]
        fields += self._request.end_to_end(without=_DROPPED_UP)
        # Nothing comes back compressed: it must be read here to be counted, and to be sure that no key is in it.
        fields += [("Accept-Encoding", "identity"), ("Connection", "keep-alive")]
        if self._request.method != "GET":
            fields.append(("Content-Length", str(len(self._question.body))))
        if self._key is not None:
            fields.append(key_field(provider, self._key))
        return http1.encode_head(f"{self._request.method} {self._route.path} HTTP/1.1", fields)

    async def _read_head(self, upstream: Upstream) -> Answer:
        async with asyncio.timeout(SILENCE):
            answer = await http1.read_answer(upstream.inlet)
            while answer.status < 200:
                answer = await http1.read_answer(upstream.inlet)
            return answer

    async def _pass_on(self, answer: Answer, upstream: Upstream) -> bool:
        framing = answer.framing(self._request.method)
        if answer.listed("content-encoding") - {"identity"}:
            self._sent.outcome = "bad-answer"
            raise FreeholdError("models.bad-answer", "The provider compressed its answer though it was asked not to")
        self._events = any("event-stream" in value.lower() for value in answer.values("content-type"))
        self._sent.outcome = "answered" if answer.status < 400 else f"status-{answer.status}"
        self._sent.answer()
        meter = None
        if self._route.api is not None and answer.status < 400:
            streamed = self._events or (self._question.streamed and self._route.api != "gemini")
            meter = Meter(self._route.api, streamed=streamed, estimate=self._question.estimate)
            self._sent.meter = meter
        fields = [(name, self._scrubber.text(value)) for name, value in answer.end_to_end(without=_DROPPED_DOWN)]
        self._chunked = not isinstance(framing, int) and self._request.version == "1.1"
        if isinstance(framing, int):
            fields.append(("Content-Length", str(framing)))
        elif self._chunked:
            fields.append(("Transfer-Encoding", "chunked"))
        closes = not self._chunked and not isinstance(framing, int)
        if closes:
            fields.append(("Connection", "close"))
        self.answered = True
        self._before = http1.encode_head(f"HTTP/1.1 {answer.status} {answer.reason}", fields)
        if not upstream.inlet.holds_more or framing == 0:
            await self._tell(b"")
        try:
            await self._pass_body(upstream, framing, meter)
        except (OSError, FreeholdError, TimeoutError) as error:
            if isinstance(error, FreeholdError) and error.code.startswith("models."):
                raise
            self._sent.outcome = "cut"
            raise FreeholdError("models.unreachable", "The provider's answer was cut") from error
        return framing != "until-end" and answer.version == "1.1" and "close" not in answer.listed("connection")

    async def _pass_body(self, upstream: Upstream, framing: http1.Framing, meter: Meter | None) -> None:
        body = aiter(http1.read_body(upstream.inlet, framing))
        passed = 0
        while True:
            async with asyncio.timeout(SILENCE):
                piece = await anext(body, b"")
            if not piece:
                break
            passed += len(piece)
            self.finished = passed == framing
            await self._write(self._scrubber.feed(piece))
            if meter is not None:
                meter.feed(piece)
                if not self.finished:
                    self._sent.check()
        self.finished = True
        await self._write(self._scrubber.end())
        if meter is not None:
            meter.end()
        if self._chunked or self._before:
            await self._tell(http1.LAST_PIECE if self._chunked else b"")

    async def _write(self, piece: bytes) -> None:
        if piece:
            self._last = piece[-2:]
            await self._tell(http1.encode_piece(piece) if self._chunked else piece)

    async def _tell(self, data: bytes) -> None:
        """With the head before it, where that waited for the first piece of the body."""
        data, self._before = self._before + data, b""
        try:
            await self._client.write(data)
        except (OSError, FreeholdError) as error:
            raise FreeholdError(GONE, "The client has gone") from error


async def _until_gone(inlet: Inlet) -> None:
    """A client that sends its next request early is still there."""
    early = await inlet.read()
    if early:
        inlet.put_back(early)
        await asyncio.Event().wait()
