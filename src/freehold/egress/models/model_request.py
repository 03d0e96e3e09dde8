"""The body of a model request: parsed strictly, checked, and encoded anew, so the provider reads what was checked."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from freehold.egress.http1 import HttpRequest
from freehold.egress.models.field_policy import MediaPart
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
SMALLEST_OUTPUT = 16
"""Fewer tokens of output are refused by some providers."""
SMALLEST_THINKING = 1_024
"""Fewer tokens for thinking are refused by Anthropic. The whole output must be larger."""
MAX_RESPONSES = 1_024
"""How many responses to one prompt a request can ask for. Providers allow about a hundred."""
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_CONFIG_LIMITS = ("maxOutputTokens", "max_output_tokens")
"""Fields that limit the output. The latter are in Gemini's settings."""
MEDIA_BYTES_A_TOKEN = 32
"""About how many characters of encoded sound, film or paper make a token. A compressed document can have far more."""


@dataclass(frozen=True)
class ModelRequest:
    """The body that will be sent, and what it can cost."""

    body: bytes
    model: str
    streamed: bool
    """Whether its response can be counted, and cut, while it passes."""
    estimate: int
    """About how many tokens the prompt has."""
    max_output: int | None
    """How many output tokens the request allows for one response; None when it does not say."""
    responses: int = 1
    """How many responses it asks for."""
    tiers: tuple[str, ...] = ()
    """The service tiers that it asks for. Anthropic has two fields for them."""
    alternatives: tuple[str, ...] = ()
    """Models that may respond in the place of `model`."""
    surcharge: float = 1.0
    """By how much all its prices are multiplied."""
    long_cache: bool = False
    """Whether it asks for a cache that is kept for an hour, which costs more."""
    fills_window: bool = False
    """Whether its prompt can have as many tokens as the model takes: nobody knows how many a document has."""
    thinks: bool = False
    """Whether it names a number of tokens for thinking, which Anthropic wants to be smaller than the output."""

    @property
    def smallest_output(self) -> int:
        """To how many tokens its output can be limited."""
        return SMALLEST_OUTPUT + (SMALLEST_THINKING if self.thinks else 0)


def read_model_request(request: HttpRequest, route: Route, body: bytes) -> ModelRequest:
    """Raises `models.malformed`, `models.too-large`, `models.unknown-field` or `models.reaches-out`."""
    body = _decoded(request, body)
    if route.form is None:
        return ModelRequest(body, "", False, 0, 0)
    content = parse_request_json(body)
    model, media = check_request(route, content)
    if route.api is None:
        return ModelRequest(encode_request_json(content), model, False, 0, 0)
    streamed = content.get("stream") is True
    if route.api == "gemini":
        path, _, query = route.path.partition("?")
        formats = {part for part in query.split("&") if part.startswith("alt=")}
        streamed = path.endswith(":streamGenerateContent") and formats == {"alt=sse"}
    elif route.form in ("chat", "completion") and streamed:
        options = content.get("stream_options")
        # Without this a streamed chat does not report its tokens.
        content["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
    encoded = encode_request_json(content)
    return ModelRequest(
        encoded,
        model,
        streamed,
        _estimate(encoded, content, media),
        0 if route.form in ("embedding", "embed") else _max_output(content),
        _count_responses(content),
        _tiers(content),
        tuple(alternative_models(content)),
        1.0 if content.get("inference_geo") in (None, "global") else CHOSEN_REGION,
        b'"1h"' in encoded,
        not all(part.is_image for part in media),
        _thinking(content) is not None,
    )


def limit_output(request: ModelRequest, route: Route, tokens: int) -> ModelRequest:
    """The same request, with at most so many tokens for each response."""
    content = parse_request_json(request.body)
    holders: list[tuple[dict[str, Any], tuple[str, ...]]] = [(content, _LIMITS), (_config(content), _CONFIG_LIMITS)]
    options = content.get("options")
    holders += [(options, ("num_predict",))] if isinstance(options, dict) else []
    named = [(holder, name) for holder, names in holders for name in names if holder.get(name) is not None]
    for holder, name in named or [_own_limit(content, route)]:
        asked = holder.get(name, 0)
        holder[name] = min(asked, tokens) if asked > 0 else tokens
    thinking = _thinking(content)
    if thinking is not None:
        thinking["budget_tokens"] = min(thinking["budget_tokens"], tokens - SMALLEST_OUTPUT)
    return replace(request, body=encode_request_json(content), max_output=tokens)


def _own_limit(content: dict[str, Any], route: Route) -> tuple[dict[str, Any], str]:
    """Where a request of this form that names no limit would have it."""
    match route.form:
        case "generate":
            if not _config(content):
                content["generationConfig"] = {}
            return _config(content), "maxOutputTokens"
        case "responses":
            return content, "max_output_tokens"
        case "chat" if route.provider.kind == "openai":
            return content, "max_completion_tokens"
        case _:
            return content, "max_tokens"


def _thinking(content: Mapping[str, Any]) -> dict[str, Any] | None:
    """Anthropic's settings for thinking, if they name a number of tokens."""
    found = content.get("thinking")
    return found if isinstance(found, dict) and _counts(found, "budget_tokens") else None


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


def _estimate(body: bytes, content: Mapping[str, Any], media: Sequence[MediaPart]) -> int:
    """Everything counts by its bytes, except media where a provider takes media."""
    size, tokens = len(body), _count_token_ids(content)
    for part in media:
        size -= part.length
        tokens += _estimate_media(part)
    return size // BYTES_A_TOKEN + tokens


def _estimate_media(part: MediaPart) -> int:
    if part.is_image:
        return IMAGE_TOKENS
    return max(IMAGE_TOKENS, part.length // (BYTES_A_TOKEN if part.kind.startswith("text/") else MEDIA_BYTES_A_TOKEN))


def _count_token_ids(content: Mapping[str, Any]) -> int:
    """Prompts may be lists of tokens, of which each has only two bytes."""
    total = 0
    for prompt in (content.get("prompt"), content.get("input")):
        if isinstance(prompt, list):
            total += sum(isinstance(item, int) for item in prompt)
            total += sum(len(item) for item in prompt if isinstance(item, list))
    return total


def _config(content: Mapping[str, Any]) -> dict[str, Any]:
    """Gemini's settings, under either of its spellings."""
    found = content.get("generationConfig", content.get("generation_config"))
    return found if isinstance(found, dict) else {}


def _counts(content: Mapping[str, Any], *names: str) -> list[int]:
    """These fields that are not empty. A server may read "128" or 128.0 as a number, so they are refused.

    Raises `models.malformed`.
    """
    found = [(name, content[name]) for name in names if content.get(name) is not None]
    for name, value in found:
        if not isinstance(value, int) or isinstance(value, bool):
            raise malformed(f"{name} must be a whole number, not {value!a:.40}")
    return [value for _name, value in found]


def _max_output(content: Mapping[str, Any]) -> int | None:
    """The largest of the limits that the request names: providers differ in which of two they follow.

    Some read a number below zero as no limit.
    """
    named = _counts(content, *_LIMITS) + _counts(_config(content), *_CONFIG_LIMITS)
    options = content.get("options")
    named += _counts(options, "num_predict") if isinstance(options, dict) else []
    return max((value for value in named if value > 0), default=None) if min(named, default=0) >= 0 else None


def _count_responses(content: Mapping[str, Any]) -> int:
    prompts = content.get("prompt")
    named = _counts(content, "n", "best_of") + _counts(_config(content), "candidateCount", "candidate_count")
    of_each = max([1, *named])
    if of_each > MAX_RESPONSES:
        raise malformed(f"it asks for {of_each} responses, and at most {MAX_RESPONSES} are possible")
    # A list of texts, or of lists of tokens, is answered once for each; a list of tokens is one prompt.
    many = isinstance(prompts, list) and any(isinstance(item, (str, list)) for item in prompts)
    return of_each * (len(prompts) if many and isinstance(prompts, list) else 1)


def _tiers(content: Mapping[str, Any]) -> tuple[str, ...]:
    named = [content.get(name) for name in ("service_tier", "serviceTier", "speed")]
    return tuple(value.lower() for value in named if isinstance(value, str))


def too_large() -> FreeholdError:
    return FreeholdError("models.too-large", f"A model request can have at most {MAX_BYTES} bytes")
