"""What a provider's API does for a turn: one request, answered piece by piece."""

import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from freehold.builtin.conversation import Message, ModelMessage, ModelPart, ModelText, TokenUsage, ToolRequest
from freehold.builtin.http_client import HttpAnswer, HttpError, open_request
from freehold.builtin.json_rpc import Json

SendPiece = Callable[[str], Awaitable[None]]
MAX_ERROR_BODY = 64 * 1024
MAX_EVENT = 64 * 1024 * 1024


class ModelError(Exception):
    """The model cannot answer. The message is for the owner."""


class ModelRefusal(ModelError):
    """The provider, or the model gateway, answered with an error status."""

    def __init__(self, model: str, status: int, body: bytes, retry_after: float | None) -> None:
        self.status = status
        self.retry_after = retry_after
        self.text = _error_text(body)
        super().__init__(f"The model {model} answered {status}: {self.text}")

    @property
    def is_overflow(self) -> bool:
        """Whether the conversation is too long for the model."""
        words = self.text.lower()
        return self.status in (400, 413) and any(
            phrase in words
            for phrase in ("too long", "context length", "context_length", "context window", "maximum number of tokens")
        )

    @property
    def refuses_pictures(self) -> bool:
        """Whether the model cannot be sent pictures."""
        words = self.text.lower()
        return self.status in (400, 404, 415, 422, 500) and any(
            phrase in words for phrase in ("image", "vision", "multimodal")
        )

    @property
    def is_busy(self) -> bool:
        """Whether the same request may succeed a little later."""
        return self.status in (429, 503, 529)


@dataclass(frozen=True)
class ToolDescription:
    """A tool as the model is told about it. `schema` is a JSON schema of its arguments."""

    name: str
    description: str
    schema: Json


@dataclass(frozen=True)
class ProviderRequest:
    """One request to the model, the same for every API."""

    model: str
    instructions: str
    messages: Sequence[Message]
    tools: Sequence[ToolDescription] = ()


@dataclass
class ReplyBuilder:
    """Puts an answer together from its pieces, and sends its text on as it comes."""

    send_text: SendPiece
    send_thought: SendPiece
    parts: list[ModelPart] = field(default_factory=list)
    usage: TokenUsage = field(default_factory=TokenUsage)
    _text: list[str] = field(default_factory=list)
    _calls: dict[object, "_GrowingCall"] = field(default_factory=dict)

    async def add_text(self, text: str) -> None:
        if text:
            self._text.append(text)
            await self.send_text(text)

    async def add_thought(self, text: str) -> None:
        if text:
            await self.send_thought(text)

    def begin_call(self, key: object, call: str, name: str, signature: str | None = None) -> None:
        if key not in self._calls:
            self._end_text()
            self._calls[key] = _GrowingCall(len(self.parts), call, name, signature)
            self.parts.append(ToolRequest(call, name, ""))

    def add_arguments(self, key: object, text: str) -> None:
        if key in self._calls:
            self._calls[key].arguments.append(text)

    def set_arguments(self, key: object, text: str) -> None:
        """Replaces what came in pieces by the whole, for an API that sends both."""
        if key in self._calls:
            self._calls[key].arguments[:] = [text]

    def add_part(self, part: ModelPart) -> None:
        self._end_text()
        self.parts.append(part)

    def finish(self) -> ModelMessage:
        self._end_text()
        for call in self._calls.values():
            self.parts[call.place] = ToolRequest(call.call, call.name, "".join(call.arguments), call.signature)
        return ModelMessage(tuple(self.parts), self.usage)

    def _end_text(self) -> None:
        if self._text:
            self.parts.append(ModelText("".join(self._text)))
            self._text.clear()


@dataclass
class _GrowingCall:
    place: int
    call: str
    name: str
    signature: str | None
    arguments: list[str] = field(default_factory=list)


class ProviderApi(Protocol):
    """One API. It holds no state between requests."""

    def headers(self, key: str) -> dict[str, str]: ...

    def path(self, model: str) -> str:
        """Where a streamed request goes, below the base address."""
        ...

    def body(self, request: ProviderRequest) -> Json: ...

    async def read_event(self, event: Json, reply: ReplyBuilder) -> None:
        """Takes one event of the stream. Raises `ModelError` for an event that reports an error."""
        ...


async def ask_model(
    api: ProviderApi, url: str, key: str, request: ProviderRequest, reply: ReplyBuilder
) -> ModelMessage:
    """Sends the request and reads the whole answer. Raises `ModelError`."""
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream", **api.headers(key)}
    body = json.dumps(api.body(request), separators=(",", ":")).encode()
    try:
        async with open_request("POST", url.rstrip("/") + api.path(request.model), headers, body) as answer:
            if answer.status >= 400:
                words = await answer.read(MAX_ERROR_BODY)
                raise ModelRefusal(request.model, answer.status, words, read_pause(answer.headers, words, time.time()))
            async for event in read_events(answer):
                await api.read_event(event, reply)
    except HttpError as error:
        raise ModelError(f"The model cannot be reached: {error}") from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ModelError(f"The model {request.model} sent an answer that cannot be read: {error!r:.200}") from error
    message = reply.finish()
    if not message.text and not message.tool_requests:
        raise ModelError(f"The model {request.model} sent an empty answer")
    return message


async def read_events(answer: HttpAnswer) -> AsyncIterator[Json]:
    """The data of server-sent events. Raises ValueError when one is not JSON."""
    rest = b""
    async for piece in answer.pieces():
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > MAX_EVENT:
            raise ValueError("an event without end")
        for line in lines:
            if line.startswith(b"data:"):
                text = line[5:].strip()
                if text and text != b"[DONE]":
                    event = json.loads(text)
                    if isinstance(event, dict):
                        yield event


def read_pause(headers: Mapping[str, str], body: bytes, now: float) -> float | None:
    """How many seconds the provider asks to wait. None when it does not say so in a known form."""
    given = headers.get("retry-after", "")
    if number := re.fullmatch(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*", given):
        return float(number[1])
    if milliseconds := re.fullmatch(r"\s*([0-9]{1,12})\s*", headers.get("retry-after-ms", "")):
        return int(milliseconds[1]) / 1000
    if given:
        from email.utils import parsedate_to_datetime

        try:
            return max(0.0, parsedate_to_datetime(given).timestamp() - now)
        except (ValueError, OverflowError):
            return None
    # Gemini has it in the details of its error.
    delay = re.search(rb'"retryDelay"\s*:\s*"([0-9]{1,9}(?:\.[0-9]{1,9})?)s"', body)
    return float(delay[1]) if delay else None


def _error_text(body: bytes) -> str:
    try:
        found = json.loads(body)
    except ValueError:
        return body[:1000].decode(errors="replace")
    if isinstance(found, list) and found:
        found = found[0]
    if isinstance(found, dict):
        inner = found.get("error", found)
        if isinstance(inner, dict) and inner.get("message"):
            code = inner.get("code")
            return f"{inner['message']}{f' ({code})' if isinstance(code, str) else ''}"[:1000]
    return str(found)[:1000]
