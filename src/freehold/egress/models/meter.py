"""Reads from an answer as it passes what it cost. It changes nothing and delays nothing."""

import json
from collections.abc import Mapping
from typing import Any

from freehold.egress.models.paths import Api
from freehold.egress.models.usage import Tokens

MAX_LINE = 4 * 1024 * 1024
MAX_WHOLE = 16 * 1024 * 1024
BYTES_A_TOKEN = 4
_FRAME = {"chat": 200, "responses": 180, "messages": 100, "gemini": 200}
"""About how many bytes of an event are not the model's words, for counting before anybody has said."""


class Meter:
    """Fed every byte of one answer, in order.

    `tokens` is what the provider said so far; `seen` never falls behind what has plainly been streamed already.
    """

    def __init__(self, api: Api, *, streamed: bool, estimate: int) -> None:
        self._api = api
        self._streamed = streamed
        self._estimate = estimate
        self._rest = bytearray()
        self._skipping = False
        self._words = 0
        self._whole = False
        self.tokens: Tokens | None = None
        self.final = False
        """Whether the provider has told the whole of it."""
        self.model: str | None = None

    @property
    def seen(self) -> Tokens:
        guessed = self._words // BYTES_A_TOKEN
        if self.tokens is None:
            return Tokens(self._estimate, guessed)
        if self.final:
            return self.tokens
        told = self.tokens
        return Tokens(told.input, max(told.output, guessed), told.cached, told.written)

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
        """The answer is over."""
        if not self._streamed and not self._skipping:
            self._read(bytes(self._rest))
            self.final = self.tokens is not None
        elif self._streamed and self._rest and not self._skipping:
            self._line(bytes(self._rest))
        self._rest.clear()

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        self._words += max(1, len(line) - _FRAME[self._api])
        # Most lines hold a few words and nothing to count.
        if b'"usage' in line:
            self._read(line[5:])

    def _read(self, text: bytes) -> None:
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            return
        if isinstance(event, list) and event and self._api == "gemini":
            event = event[-1]  # without alt=sse Gemini streams one long list
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
            self.tokens = _READERS[self._api](usage, self.tokens or Tokens())
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
    """The first of these that is there, as a number that can be counted with."""
    for name in names:
        value: object = usage
        for step in name.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40:
            return value
    return 0


def _openai(usage: Mapping[str, Any], before: Tokens) -> Tokens:
    return Tokens(
        _count(usage, "prompt_tokens", "input_tokens"),
        _count(usage, "completion_tokens", "output_tokens"),
        _count(
            usage,
            "prompt_tokens_details.cached_tokens",
            "input_tokens_details.cached_tokens",
            "prompt_cache_hit_tokens",
        ),
    )


def _anthropic(usage: Mapping[str, Any], before: Tokens) -> Tokens:
    """Told in two parts: the question with the first event, the answer with the last, which may repeat the question."""
    cached = _count(usage, "cache_read_input_tokens")
    written = _count(usage, "cache_creation_input_tokens")
    asked = _count(usage, "input_tokens") + cached + written
    if not asked:
        asked, cached, written = before.input, before.cached, before.written
    return Tokens(asked, max(before.output, _count(usage, "output_tokens")), cached, written)


def _gemini(usage: Mapping[str, Any], before: Tokens) -> Tokens:
    given = _count(usage, "promptTokenCount") + _count(usage, "toolUsePromptTokenCount")
    said = _count(usage, "candidatesTokenCount") + _count(usage, "thoughtsTokenCount")
    return Tokens(given, said, _count(usage, "cachedContentTokenCount"))


_READERS = {"chat": _openai, "responses": _openai, "messages": _anthropic, "gemini": _gemini}
