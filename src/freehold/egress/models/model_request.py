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
MEDIA_BYTES_A_TOKEN = 32
"""About how many characters of encoded sound, film or paper make a token."""
_BINARY = 4096
_MEDIA = frozenset(("data", "url", "image_url", "video_url", "audio_url", "file_data"))
_ARGUMENTS = frozenset(("input", "args", "response", "metadata", "parameters", "input_schema"))
"""Objects of any shape, which a model reads as text."""


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
    encoded = encode_request_json(content)
    return ModelRequest(
        encoded,
        model,
        streamed,
        _estimate(encoded, content),
        0 if route.form in ("embedding", "embed") else _max_output(content),
        _count_responses(content),
        _tier(content),
        tuple(alternative_models(content)),
        1.0 if content.get("inference_geo") in (None, "global") else CHOSEN_REGION,
        b'"1h"' in encoded,
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
    """Everything counts by its bytes, except media where a provider takes media."""
    size, tokens = len(body), _count_token_ids(content)
    if b'data"' in body or b"data:" in body:
        for length, cost in _find_media(content):
            size -= length
            tokens += cost
    return size // BYTES_A_TOKEN + tokens


def _count_token_ids(content: Mapping[str, Any]) -> int:
    """Prompts may be lists of tokens, of which each has only two bytes."""
    total = 0
    for prompt in (content.get("prompt"), content.get("input")):
        if isinstance(prompt, list):
            total += sum(isinstance(item, int) for item in prompt)
            total += sum(len(item) for item in prompt if isinstance(item, list))
    return total


def _find_media(content: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """The length of each long text that is media, and about how many tokens it costs."""
    waiting: list[Any] = [content]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, dict):
            for name, value in item.items():
                if not isinstance(value, str):
                    if not (name in _ARGUMENTS and isinstance(value, dict)):
                        waiting.append(value)
                elif name in _MEDIA and len(value) > _BINARY and (kind := _media_type(item, value)):
                    costs_by_size = not kind.startswith("image/")
                    yield len(value), max(IMAGE_TOKENS, len(value) // MEDIA_BYTES_A_TOKEN if costs_by_size else 0)


def _media_type(part: Mapping[str, Any], value: str) -> str | None:
    """None for text: it costs what text costs, also where media could be."""
    if value.startswith("data:"):
        kind = value[5:100].partition(",")[0].partition(";")[0]
    else:
        named = (part.get(name) for name in ("media_type", "mimeType", "mime_type"))
        kind = next((name for name in named if isinstance(name, str)), "application/octet-stream")
    return None if kind.startswith("text/") or part.get("type") == "text" else kind


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
