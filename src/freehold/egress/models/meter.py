"""Reads the token counts from a response while it passes. Changes and delays nothing."""

import json
from collections.abc import Mapping
from typing import Any

from freehold.egress.models.paths import Api
from freehold.egress.models.usage import PLAIN, TokenCounts, TokenKinds

MAX_READ = 16 * 1024 * 1024
"""Bytes of an event, or of a response that is not streamed. What is longer is passed on and not read."""
BYTES_A_TOKEN = 4
_FRAME = {"chat": 200, "responses": 180, "messages": 100, "gemini": 200}
"""About how many bytes of an event are not output, to estimate tokens before the provider reports them."""


class Meter:
    """Gets every byte of one response, in order.

    `tokens` is what the provider has reported so far. `seen` is at least what was already streamed.
    """

    def __init__(self, api: Api, *, streamed: bool, estimate: int) -> None:
        self._api = api
        self._streamed = streamed
        self._estimate = estimate
        self._rest = bytearray()
        self._searched = 0
        self._skipping = False
        self._closing = False
        """Whether the counts that were read last are final if the response ends now."""
        self._failed = False
        self._output_bytes = 0
        self.tokens: TokenCounts | None = None
        self.kinds = PLAIN
        self.final = False
        """Whether the provider has reported the final counts: not when it failed, or a later report was not read."""
        self.ended = False
        self.model: str | None = None
        self.tier: str | None = None
        """The service tier that the provider says it used."""

    @property
    def seen(self) -> TokenCounts:
        estimated = self._output_bytes // BYTES_A_TOKEN if self._streamed or self.ended else 0
        if self.tokens is None:
            return TokenCounts(self._estimate, estimated)
        if self.final:
            return self.tokens
        reported = self.tokens
        return TokenCounts(reported.input, max(reported.output, estimated), reported.cached, reported.written)

    def feed(self, piece: bytes) -> None:
        if not self._streamed:
            self._output_bytes += len(piece)
            if not self._skipping:
                self._rest += piece
                self._skipping = len(self._rest) > MAX_READ
            return
        self._rest += piece
        start = 0
        while (end := self._rest.find(b"\n", max(start, self._searched))) >= 0:
            if not self._skipping:
                self._line(bytes(self._rest[start:end]))
            self._skipping = False
            start = end + 1
        del self._rest[:start]
        self._searched = len(self._rest)
        if self._searched > MAX_READ:
            self._skip()

    def end(self) -> None:
        """The response has ended as it should."""
        if self._streamed:
            if self._rest and not self._skipping:
                self._line(bytes(self._rest))
        elif not self._skipping:
            self._whole(bytes(self._rest))
        self._rest.clear()
        self.ended = True
        self.final = not self._failed and (self.final or self._closing)

    def _skip(self) -> None:
        """Leaves an event out that is too long. It may have had other counts than those before it."""
        self._output_bytes += len(self._rest)
        self._rest.clear()
        self._searched = 0
        self._skipping = True
        self.final = self._closing = False

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        self._output_bytes += max(1, len(line) - _FRAME[self._api])
        # Most lines have no counts and need no parsing.
        if b'"usage' in line or b'"error"' in line:
            self._read(_parse(line[5:]))
        elif self._api == "chat" and line[5:].strip() == b"[DONE]":
            self._closing = self.tokens is not None

    def _whole(self, text: bytes) -> None:
        """A response that was not streamed. Without alt=sse Gemini streams one list of events."""
        content = _parse(text)
        if isinstance(content, list) and self._api == "gemini":
            for event in content:
                self._read(event)
        else:
            self._read(content)
            self._closing = self.tokens is not None

    def _read(self, event: object) -> None:
        if not isinstance(event, dict):
            return
        if event.get("error") or event.get("type") == "error":
            self._failed, self.final = True, False
        message = event
        for inner in ("message", "response"):
            if isinstance(event.get(inner), dict):
                message = event[inner]
        model = message.get("modelVersion") if self._api == "gemini" else message.get("model")
        if isinstance(model, str) and model:
            self.model = model[:200]
        usage = message.get("usageMetadata") if self._api == "gemini" else message.get("usage")
        if isinstance(usage, dict):
            self.tier = _tier(message, usage) or self.tier
            self.tokens = _READERS[self._api](usage, self.tokens or TokenCounts())
            self.kinds = _read_kinds(usage)
            self.final = not self._failed and self._is_final(event)
            self._closing = self._closing or self._is_closing(event)

    def _is_final(self, event: Mapping[str, Any]) -> bool:
        """Whether no later event can report more. Some providers report what they have so far with every event."""
        if self._api == "messages":
            delta = event.get("delta")
            return event.get("type") == "message_delta" and isinstance(delta, dict) and bool(delta.get("stop_reason"))
        if self._api == "responses":
            return event.get("type") in ("response.completed", "response.incomplete", "response.failed")
        return self._api == "chat" and not event.get("choices")

    def _is_closing(self, event: Mapping[str, Any]) -> bool:
        """Whether the event says that a response is complete. Others of the same request may still go on."""
        if self._api == "gemini":
            feedback = event.get("promptFeedback")
            blocked = isinstance(feedback, dict) and bool(feedback.get("blockReason"))
            return blocked or _has_any(event.get("candidates"), "finishReason")
        return self._api == "chat" and _has_any(event.get("choices"), "finish_reason")


def _parse(text: bytes) -> object:
    """None when it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _has_any(items: object, name: str) -> bool:
    return isinstance(items, list) and any(isinstance(item, dict) and item.get(name) for item in items)


def _count(usage: Mapping[str, Any], *names: str) -> int:
    """The first of these fields that is a valid count; 0 without one."""
    for name in names:
        value: object = usage
        for step in name.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40:
            return value
    return 0


def _tier(message: Mapping[str, Any], usage: Mapping[str, Any]) -> str | None:
    if usage.get("speed") == "fast":
        return "fast"
    for found in (message.get("service_tier"), usage.get("service_tier"), usage.get("serviceTier")):
        if isinstance(found, str):
            return found.lower()
    traffic = usage.get("trafficType")
    if isinstance(traffic, str):
        return next((tier for tier in ("priority", "flex") if tier in traffic.lower()), None)
    return None


def _read_kinds(usage: Mapping[str, Any]) -> TokenKinds:
    """The tokens with a price of their own, under the names of all APIs."""
    return TokenKinds(
        written_1h=_count(usage, "cache_creation.ephemeral_1h_input_tokens"),
        input_audio=_count(usage, "prompt_tokens_details.audio_tokens", "input_tokens_details.audio_tokens")
        or _of_modality(usage, "promptTokensDetails", "AUDIO"),
        cached_audio=_of_modality(usage, "cacheTokensDetails", "AUDIO"),
        output_audio=_count(usage, "completion_tokens_details.audio_tokens", "output_tokens_details.audio_tokens")
        or _of_modality(usage, "candidatesTokensDetails", "AUDIO"),
        input_image=_count(usage, "prompt_tokens_details.image_tokens", "input_tokens_details.image_tokens")
        or _of_modality(usage, "promptTokensDetails", "IMAGE"),
        output_image=_of_modality(usage, "candidatesTokensDetails", "IMAGE"),
        reasoning=_count(usage, "completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens")
        or _count(usage, "thoughtsTokenCount"),
        searches=_count(usage, "server_tool_use.web_search_requests", "num_search_queries", "num_sources_used"),
    )


def _of_modality(usage: Mapping[str, Any], name: str, modality: str) -> int:
    details = usage.get(name)
    return sum(
        _count(each, "tokenCount")
        for each in (details if isinstance(details, list) else [])
        if isinstance(each, Mapping) and each.get("modality") == modality
    )


def _openai(usage: Mapping[str, Any], before: TokenCounts) -> TokenCounts:
    return TokenCounts(
        _count(usage, "prompt_tokens", "input_tokens"),
        _count(usage, "completion_tokens", "output_tokens"),
        _count(
            usage,
            "prompt_tokens_details.cached_tokens",
            "input_tokens_details.cached_tokens",
            "prompt_cache_hit_tokens",
        ),
        _count(usage, "prompt_tokens_details.cache_write_tokens", "input_tokens_details.cache_write_tokens"),
    )


def _anthropic(usage: Mapping[str, Any], before: TokenCounts) -> TokenCounts:
    """Reported in two parts: input with the first event, output with the last, which may repeat the input.

    What the provider did on the way, such as summing up a long conversation, is in `iterations` only.
    """
    steps = usage.get("iterations")
    parts = [each for each in steps if isinstance(each, Mapping)] if isinstance(steps, list) else []

    def counted(name: str) -> int:
        return max(_count(usage, name), sum(_count(each, name) for each in parts))

    cached, written = counted("cache_read_input_tokens"), counted("cache_creation_input_tokens")
    asked = counted("input_tokens") + cached + written
    if not asked:
        asked, cached, written = before.input, before.cached, before.written
    return TokenCounts(asked, max(before.output, counted("output_tokens")), cached, written)


def _gemini(usage: Mapping[str, Any], before: TokenCounts) -> TokenCounts:
    given = _count(usage, "promptTokenCount") + _count(usage, "toolUsePromptTokenCount")
    output = _count(usage, "candidatesTokenCount") + _count(usage, "thoughtsTokenCount")
    return TokenCounts(given, output, _count(usage, "cachedContentTokenCount"))


_READERS = {"chat": _openai, "responses": _openai, "messages": _anthropic, "gemini": _gemini}
