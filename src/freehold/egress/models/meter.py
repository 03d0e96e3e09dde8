"""Reads the token counts from a response while it passes. Changes and delays nothing."""

import json
from collections.abc import Mapping
from typing import Any

from freehold.egress.models.paths import Api
from freehold.egress.models.usage import TokenCounts

MAX_LINE = 4 * 1024 * 1024
MAX_WHOLE = 16 * 1024 * 1024
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
        self._skipping = False
        self._output_bytes = 0
        self._whole = False
        self.tokens: TokenCounts | None = None
        self.final = False
        """Whether the provider has reported the final counts."""
        self.model: str | None = None

    @property
    def seen(self) -> TokenCounts:
        estimated = self._output_bytes // BYTES_A_TOKEN
        if self.tokens is None:
            return TokenCounts(self._estimate, estimated)
        if self.final:
            return self.tokens
        reported = self.tokens
        return TokenCounts(reported.input, max(reported.output, estimated), reported.cached, reported.written)

    def feed(self, piece: bytes) -> None:
        if not self._streamed:
            if not self._skipping:
                self._rest += piece
                self._skipping = len(self._rest) > MAX_WHOLE
            return
        self._rest += piece
        start = 0
        while (end := self._rest.find(b"\n", start)) >= 0:
            if not self._skipping:
                self._line(bytes(self._rest[start:end]))
            self._skipping = False
            start = end + 1
        del self._rest[:start]
        if len(self._rest) > MAX_LINE:
            self._rest.clear()
            self._skipping = True

    def end(self) -> None:
        """The response has ended."""
        if not self._streamed and not self._skipping:
            self._read(bytes(self._rest))
            self.final = self.tokens is not None
        elif self._streamed and self._rest and not self._skipping:
            self._line(bytes(self._rest))
        self._rest.clear()

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        self._output_bytes += max(1, len(line) - _FRAME[self._api])
        # Most lines have no counts and need no parsing.
        if b'"usage' in line:
            self._read(line[5:])

    def _read(self, text: bytes) -> None:
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            return
        if isinstance(event, list) and event and self._api == "gemini":
            event = event[-1]  # without alt=sse Gemini streams one JSON list
        if not isinstance(event, dict):
            return
        message = event
        for inner in ("message", "response"):
            if isinstance(event.get(inner), dict):
                message = event[inner]
        model = message.get("modelVersion") if self._api == "gemini" else message.get("model")
        if isinstance(model, str) and model:
            self.model = model[:200]
        usage = message.get("usageMetadata") if self._api == "gemini" else message.get("usage")
        if isinstance(usage, dict):
            self.tokens = _READERS[self._api](usage, self.tokens or TokenCounts())
            self.final = self._is_final(event)

    def _is_final(self, event: Mapping[str, Any]) -> bool:
        if self._api == "messages":
            return event.get("type") in ("message_delta", "message")
        if self._api == "gemini":
            candidates = event.get("candidates")
            return isinstance(candidates, list) and any(
                isinstance(each, dict) and "finishReason" in each for each in candidates
            )
        return True


def _count(usage: Mapping[str, Any], *names: str) -> int:
    """The first of these fields that is a valid count; 0 without one."""
    for name in names:
        value: object = usage
        for step in name.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40:
            return value
    return 0


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
    )


def _anthropic(usage: Mapping[str, Any], before: TokenCounts) -> TokenCounts:
    """Reported in two parts: input with the first event, output with the last, which may repeat the input."""
    cached = _count(usage, "cache_read_input_tokens")
    written = _count(usage, "cache_creation_input_tokens")
    asked = _count(usage, "input_tokens") + cached + written
    if not asked:
        asked, cached, written = before.input, before.cached, before.written
    return TokenCounts(asked, max(before.output, _count(usage, "output_tokens")), cached, written)


def _gemini(usage: Mapping[str, Any], before: TokenCounts) -> TokenCounts:
    given = _count(usage, "promptTokenCount") + _count(usage, "toolUsePromptTokenCount")
    output = _count(usage, "candidatesTokenCount") + _count(usage, "thoughtsTokenCount")
    return TokenCounts(given, output, _count(usage, "cachedContentTokenCount"))


_READERS = {"chat": _openai, "responses": _openai, "messages": _anthropic, "gemini": _gemini}
