"""The body of a model request: parsed strictly, checked, and encoded anew, so the provider reads what was checked."""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from freehold.egress.http1 import HttpRequest
from freehold.egress.models.meter import BYTES_A_TOKEN
from freehold.egress.models.paths import Route
from freehold.egress.models.request_forms import alternative_models, check_request
from freehold.egress.models.request_json import encode_request_json, malformed, parse_request_json
from freehold.errors import FreeholdError

MAX_BYTES = 32 * 1024 * 1024
IMAGE_TOKENS = 1_600
"""About how many tokens an image costs, whatever its size."""
CHOSEN_REGION = 1.1
"""What Anthropic multiplies its prices by when a request chooses where it is computed."""
_BINARY = 4096


@dataclass(frozen=True)
class ModelRequest:
    """The body that will be sent, and what it can cost."""

    body: bytes
    model: str
    streamed: bool
    estimate: int
    """About how many tokens the prompt has."""
    max_output: int | None
    """How many output tokens the request allows for one response; None when it does not say."""
    responses: int = 1
    """How many responses it asks for."""
    tier: str | None = None
    """The service tier that it asks for."""
    alternatives: tuple[str, ...] = ()
    """Models that may respond in the place of `model`."""
    surcharge: float = 1.0
    """By how much all its prices are multiplied."""
    long_cache: bool = False
    """Whether it asks for a cache that is kept for an hour, which costs more."""


def read_model_request(request: HttpRequest, route: Route, body: bytes) -> ModelRequest:
    """Raises `models.malformed`, `models.too-large`, `models.unknown-field` or `models.reaches-out`."""
    body = _decoded(request, body)
    if route.form is None:
        return ModelRequest(body, "", False, 0, 0)
    content = parse_request_json(body)
    model = check_request(route, content)
    if route.api is None:
        return ModelRequest(encode_request_json(content), model, False, 0, 0)
    streamed = content.get("stream") is True
    if route.api == "gemini":
        streamed = route.path.partition("?")[0].rpartition(":")[2].startswith("stream")
    elif route.form in ("chat", "completion") and streamed:
        options = content.get("stream_options")
        # Without this a streamed chat does not report its tokens.
        content["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
    return ModelRequest(
        encode_request_json(content),
        model,
        streamed,
        _estimate(body, content),
        0 if route.form in ("embedding", "embed") else _max_output(content),
        _count_responses(content),
        _tier(content),
        tuple(alternative_models(content)),
        1.0 if content.get("inference_geo") in (None, "global") else CHOSEN_REGION,
        b'"1h"' in body,
    )


def _decoded(request: HttpRequest, body: bytes) -> bytes:
    """The body without compression, so that it can be checked."""
    codings = request.listed("content-encoding") - {"identity"}
    if not codings:
        return body
    decoders = {"gzip": _gunzip, "zstd": _unzstd}
    if len(codings) > 1 or not codings <= decoders.keys():
        raise malformed("its content encoding is not supported")
    decoded = decoders[codings.pop()](body)
    if decoded is None:
        raise malformed("its body does not match its content encoding")
    if len(decoded) > MAX_BYTES:
        raise too_large()
    return decoded


def _gunzip(body: bytes) -> bytes | None:
    decoder = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        decoded = decoder.decompress(body, MAX_BYTES + 1)
    except zlib.error:
        return None
    return decoded if len(decoded) > MAX_BYTES or (decoder.eof and not decoder.unused_data) else None


def _unzstd(body: bytes) -> bytes | None:
    import zstandard

    try:
        return zstandard.ZstdDecompressor(max_window_size=MAX_BYTES).stream_reader(body).read(MAX_BYTES + 1)
    except zstandard.ZstdError:
        return None


def _estimate(body: bytes, content: Mapping[str, Any]) -> int:
    if b"base64" not in body and b'"data"' not in body and b"data:" not in body:
        return len(body) // BYTES_A_TOKEN
    return sum(IMAGE_TOKENS if _is_binary(text) else len(text) // BYTES_A_TOKEN + 1 for text in _texts(content))


def _is_binary(text: str) -> bool:
    return len(text) > _BINARY and " " not in text[:512]


def _texts(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def _config(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Gemini's settings, under either of its spellings."""
    found = content.get("generationConfig", content.get("generation_config"))
    return found if isinstance(found, dict) else {}


def _positive(*values: object) -> int | None:
    return next(
        (value for value in values if isinstance(value, int) and not isinstance(value, bool) and value > 0), None
    )


def _max_output(content: Mapping[str, Any]) -> int | None:
    """The largest of the limits that the request names: providers differ in which of two they follow."""
    config = _config(content)
    named = [
        _positive(value)
        for value in (
            content.get("max_tokens"),
            content.get("max_completion_tokens"),
            content.get("max_output_tokens"),
            config.get("maxOutputTokens"),
            config.get("max_output_tokens"),
        )
    ]
    return max((value for value in named if value is not None), default=None)


def _count_responses(content: Mapping[str, Any]) -> int:
    config = _config(content)
    prompts = content.get("prompt")
    of_each = max(
        _positive(content.get("n")) or 1,
        _positive(content.get("best_of")) or 1,
        _positive(config.get("candidateCount"), config.get("candidate_count")) or 1,
    )
    # A list of texts, or of lists of tokens, is answered once for each; a list of tokens is one prompt.
    many = isinstance(prompts, list) and any(isinstance(item, (str, list)) for item in prompts)
    return of_each * (len(prompts) if many and isinstance(prompts, list) else 1)


def _tier(content: Mapping[str, Any]) -> str | None:
    for name in ("service_tier", "serviceTier"):
        if isinstance(value := content.get(name), str):
            return value.lower()
    return "fast" if content.get("speed") == "fast" else None


def too_large() -> FreeholdError:
    return FreeholdError("models.too-large", f"A model request can have at most {MAX_BYTES} bytes")
