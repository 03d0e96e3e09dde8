"""A model server on loopback: four APIs, scripted answers, faults on demand, and a record of all requests."""

import asyncio
import contextlib
import gzip
import json
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from freehold.egress import http1
from freehold.egress.stream import PushbackReader, SocketStream
from freehold.errors import FreeholdError
from freehold.testing.api_formats import (
    TOO_LONG,
    Event,
    ScriptedReply,
    ScriptedUsage,
    encode_complete,
    encode_event,
    encode_stream,
    error_body,
)
from freehold.testing.conversation import Api, Conversation, find_api, read_conversation
from freehold.testing.script import Fail, Fault, Say, Script, Step, choose_step, make_script

ACCEPT_STEPS = 5
"""Rounds of the event loop from the arrival of a connection until its task has begun, and can be cancelled."""
_STATUS: Mapping[str, int] = {"429": 429, "500": 500, "529": 529, "overflow": 400, "blind": 400}


@dataclass(frozen=True)
class ReceivedRequest:
    """One request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    api: Api | None
    conversation: Conversation | None

    @property
    def key(self) -> str:
        """The API key of the request, from any of the usual headers."""
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        return bearer or self.headers.get("x-api-key", "") or self.headers.get("x-goog-api-key", "")

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class ScriptedModel:
    """`async with ScriptedModel() as model:` listens on a free port. `freehold.testing.script` describes the prompts.

    `script` is asked first for every request: a function of the conversation, or a list of steps.
    """

    def __init__(
        self,
        script: Script | Sequence[Step] | None = None,
        *,
        port: int = 0,
        usage: ScriptedUsage | None = None,
        log: bool = False,
    ) -> None:
        self.script = make_script(script) if isinstance(script, Sequence) else script
        self._port = port
        self._log = log
        self._server: asyncio.Server | None = None
        self._faults: deque[Fault] = deque()
        self._arrived = asyncio.Condition()
        self._left = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._released = asyncio.Event()
        self.usage = usage or ScriptedUsage()
        self.requests: list[ReceivedRequest] = []
        self.disconnected = 0
        """How many clients disconnected in the middle of an answer."""

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        """The base URL for the clients of Anthropic and Google. Those of OpenAI need `/v1` after it."""
        return f"http://127.0.0.1:{self._port}"

    def fail_next(self, *faults: Fault) -> None:
        """The next requests fail with these faults, one each."""
        self._faults.extend(faults)

    def release(self) -> None:
        """Lets requests that hang continue."""
        self._released.set()

    async def wait_received(self, count: int = 1) -> ReceivedRequest:
        """Waits until this many requests have arrived in total. Returns the last of them."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)
        return self.requests[count - 1]

    async def wait_disconnected(self, count: int = 1) -> None:
        """Waits until this many clients have disconnected in the middle of an answer."""
        async with self._left:
            await self._left.wait_for(lambda: self.disconnected >= count)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        # asyncio forgets to close a connection that was accepted and has no transport when its server is closed.
        for listening in self._server.sockets:
            asyncio.get_running_loop().remove_reader(listening.fileno())
        for _ in range(ACCEPT_STEPS):
            await asyncio.sleep(0)
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        stream = SocketStream(reader, writer)
        try:
            await self._converse(stream)
        except (FreeholdError, OSError, asyncio.CancelledError):
            pass
        finally:
            with contextlib.suppress(asyncio.CancelledError):
                await stream.close()
            self._tasks.discard(task)

    async def _converse(self, stream: SocketStream) -> None:
        inlet = PushbackReader(stream)
        while True:
            request = await http1.read_request(inlet)
            if "100-continue" in request.listed("expect"):
                await stream.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = b"".join([piece async for piece in http1.read_body(inlet, request.framing())])
            received = _read(request, _decoded(request, body))
            await self._note(received)
            if not await self._answer_unless_gone(received, inlet, stream):
                return

    async def _note(self, received: ReceivedRequest) -> None:
        async with self._arrived:
            self.requests.append(received)
            self._arrived.notify_all()
        if self._log:
            seen = {"method": received.method, "path": received.path, "bytes": len(received.body)}
            sys.stdout.write(json.dumps(seen) + "\n")
            sys.stdout.flush()

    async def _answer_unless_gone(self, received: ReceivedRequest, inlet: PushbackReader, stream: SocketStream) -> bool:
        """Answers while the client is connected, and counts a client that disconnects."""
        answering = asyncio.ensure_future(self._answer(received, stream))
        watching = asyncio.ensure_future(_until_gone(inlet))
        try:
            await asyncio.wait({answering, watching}, return_when=asyncio.FIRST_COMPLETED)
            if answering.done() and not answering.cancelled() and answering.exception() is None:
                return answering.result()
            async with self._left:
                self.disconnected += 1
                self._left.notify_all()
            return False
        finally:
            answering.cancel()
            watching.cancel()
            await asyncio.gather(answering, watching, return_exceptions=True)

    async def _answer(self, received: ReceivedRequest, stream: SocketStream) -> bool:
        """Returns whether the connection can be used again."""
        path = received.path.partition("?")[0]
        if received.method in ("GET", "HEAD"):
            found = path.endswith("/models")
            await _send(stream, 200 if found else 404, _MODELS if found else error_body(None, 404, f"no {path}"))
        elif path.endswith("/count_tokens"):
            await _send(stream, 200, {"input_tokens": self.usage.input})
        elif path.endswith(":countTokens"):
            await _send(stream, 200, {"totalTokens": self.usage.input})
        elif received.conversation is None:
            status = 404 if received.api is None else 400
            await _send(stream, status, error_body(received.api, status, f"no such request {path}"))
        else:
            return await self._speak(received.conversation, stream)
        return True

    async def _speak(self, conversation: Conversation, stream: SocketStream) -> bool:
        step = self.script(conversation) if self.script is not None else None
        if step is None:
            step = choose_step(conversation)
        if self._faults:
            step = Fail(self._faults.popleft())
        fault = step.fault if isinstance(step, Fail) else None
        if fault == "disconnect":
            return False
        if fault == "hang":
            await self._released.wait()
        if fault is not None and fault in _STATUS:
            status = _STATUS[fault]
            extra = [("retry-after", "0")] if status == 429 else []
            words = {"overflow": TOO_LONG, "blind": "image input is not supported"}.get(fault, "a scripted failure")
            await _send(stream, status, error_body(conversation.api, status, words), extra)
            return True
        said = Say("An answer that does not end well.") if isinstance(step, Fail) else step
        reply = ScriptedReply(conversation, said, self.usage, int(time.time()))
        if not conversation.stream:
            if fault == "malformed":
                await _send(stream, 200, b"{this is not JSON")
                return True
            await _send(stream, 200, encode_complete(reply), cut=fault == "cut")
            return fault != "cut"
        return await self._stream(reply, stream, fault)

    async def _stream(self, reply: ScriptedReply, stream: SocketStream, fault: Fault | None) -> bool:
        api = reply.conversation.api
        fields = [("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache")]
        body = http1.BodyEncoder("chunked")
        pause = reply.step.pause if isinstance(reply.step, Say) else 0.0
        await stream.write(http1.encode_response(200, "OK", fields, "chunked"))
        for number, event in enumerate(encode_stream(reply)):
            if number == 3 and fault == "cut":
                return False
            if number == 3 and fault == "malformed":
                await stream.write(body.encode(b"data: {not json\n\n"))
            await stream.write(body.encode(encode_event(api, event)))
            if pause:
                await asyncio.sleep(pause)
        if api == "chat":
            await stream.write(body.encode(b"data: [DONE]\n\n"))
        await stream.write(body.end())
        return True


_MODEL = {
    "id": "scripted",
    "name": "models/scripted",
    "object": "model",
    "type": "model",
    "display_name": "Scripted",
    "created_at": "2026-01-01T00:00:00Z",
    "created": 1,
    "owned_by": "freehold",
    "context_length": 128_000,
}
_MODELS: Event = {"object": "list", "data": [_MODEL], "has_more": False, "models": [_MODEL]}


def _read(request: http1.HttpRequest, body: bytes) -> ReceivedRequest:
    path = request.target.partition("?")[0]
    headers = {name.lower(): value for name, value in request.fields}
    api = find_api(path) if request.method == "POST" else None
    conversation = None
    if api is not None:
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            conversation = read_conversation(api, path, json.loads(body))
    return ReceivedRequest(request.method, request.target, headers, body, api, conversation)


def _decoded(request: http1.HttpRequest, body: bytes) -> bytes:
    coding = "".join(request.values("content-encoding")).lower()
    if coding == "gzip":
        return gzip.decompress(body)
    if coding == "zstd":
        import zstandard

        return zstandard.ZstdDecompressor().decompressobj().decompress(body)
    return body


async def _send(
    stream: SocketStream,
    status: int,
    body: Event | bytes,
    extra: Sequence[http1.Field] = (),
    *,
    cut: bool = False,
) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = [("Content-Type", "application/json"), *extra]
    await stream.write(
        http1.encode_response(status, "Scripted", fields, len(data)) + (data[: len(data) // 2] if cut else data)
    )


async def _until_gone(inlet: PushbackReader) -> None:
    """Waits until the client disconnects. One that sends its next request early is still connected."""
    early = await inlet.read()
    if early:
        inlet.put_back(early)
        await asyncio.Event().wait()
