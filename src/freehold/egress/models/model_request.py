"""The body of a model request: parsed strictly, checked, and encoded anew, so the provider reads what was checked."""

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from freehold.egress.http1 import HttpRequest
from freehold.egress.models.meter import BYTES_A_TOKEN
from freehold.egress.models.paths import Route
from freehold.errors import FreeholdError

MAX_BYTES = 32 * 1024 * 1024
IMAGE_TOKENS = 1_600
"""About how many tokens an image costs, whatever its size."""
_BINARY = 4096
URLS = "urls"
"""A word of the manifest's `allow`: the provider may fetch URLs that a request names."""


@dataclass(frozen=True)
class ModelRequest:
    """The body that will be sent, and an estimate of its tokens."""

    body: bytes
    model: str
    streamed: bool
    estimate: int
    max_output: int


def read_model_request(request: HttpRequest, route: Route, body: bytes) -> ModelRequest:
    """Raises `models.malformed`, `models.too-large` or `models.reaches-out`."""
    body = _decoded(request, body)
    if route.api is None:
        return ModelRequest(body, "", False, 0, 0)
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _malformed("its body is not JSON") from error
    if not isinstance(content, dict):
        raise _malformed("its body is not a JSON object")
    _check_reach(content, body, urls=URLS in route.provider.allow)
    model: object
    if route.api == "gemini":
        model, action = route.path.partition("?")[0].rpartition("/")[2].rsplit(":", 1)
        streamed = action.startswith("stream")
    else:
        model, streamed = content.get("model"), content.get("stream") is True
    if not isinstance(model, str):
        raise _malformed("it names no model")
    if route.api == "chat" and streamed:
        options = content.get("stream_options")
        # Without this a streamed chat does not report its tokens.
        content["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
    return ModelRequest(_encoded(content), model[:200], streamed, _estimate(body, content), _max_output(content))


def _decoded(request: HttpRequest, body: bytes) -> bytes:
    """The body without compression, so that it can be checked."""
    codings = request.listed("content-encoding") - {"identity"}
    if not codings:
        return body
    decoders = {"gzip": _gunzip, "zstd": _unzstd}
    if len(codings) > 1 or not codings <= decoders.keys():
        raise _malformed("its content encoding is not supported")
    decoded = decoders[codings.pop()](body)
    if decoded is None:
        raise _malformed("its body does not match its content encoding")
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


def _encoded(content: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half a surrogate pair is valid in JSON but not in UTF-8
        return json.dumps(content, separators=(",", ":")).encode()


def _check_reach(content: Mapping[str, Any], body: bytes, *, urls: bool) -> None:
    """Refuses requests that make the provider call other servers, or respond where the cost is not counted."""
    if content.get("background") is True:
        raise _reaches_out("runs in the background, where its cost cannot be counted")
    if urls:
        return
    if content.get("mcp_servers"):
        raise _reaches_out("names a server that the provider should call (mcp_servers)")
    tools = content.get("tools")
    for tool in tools if isinstance(tools, list) else []:
        if isinstance(tool, dict):
            kind = str(tool.get("type"))
            if kind == "mcp" or kind.startswith("web_fetch") or {"urlContext", "url_context"} & tool.keys():
                raise _reaches_out("gives the provider a tool that fetches any URL")
    # Most requests contain none of these keys and need no search.
    if any(word in body for word in _ADDRESS_KEYS) and any(_names_address(item) for item in _objects(content)):
        raise _reaches_out("gives a URL that the provider should fetch; send the content itself")


_ADDRESS_KEYS = (b'"image_url"', b'"file_url"', b'"fileUri"', b'"file_uri"', b'"url"')


def _names_address(part: Mapping[str, Any]) -> bool:
    image = part.get("image_url")
    found = [part.get("file_url"), part.get("fileUri"), part.get("file_uri")]
    found.append(image.get("url") if isinstance(image, dict) else image)
    if part.get("type") == "url":
        found.append(part.get("url"))
    return any(isinstance(item, str) and item.lstrip()[:5].lower().startswith(("http:", "https")) for item in found)


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def _reaches_out(why: str) -> FreeholdError:
    return FreeholdError(
        "models.reaches-out",
        f"The request {why}: that would bypass the owner's egress rules",
        hint=f'The owner can add "{URLS}" to allow of this provider in freehold.toml',
    )


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


def _max_output(content: Mapping[str, Any]) -> int:
    config = content.get("generationConfig")
    for place, name in (
        (content, "max_tokens"),
        (content, "max_completion_tokens"),
        (content, "max_output_tokens"),
        (config, "maxOutputTokens"),
    ):
        value = place.get(name) if isinstance(place, Mapping) else None
        if isinstance(value, int) and value > 0:
            return value
    return 4096


def _malformed(why: str) -> FreeholdError:
    return FreeholdError("models.malformed", f"The model request is not valid: {why}")


def too_large() -> FreeholdError:
    return FreeholdError("models.too-large", f"A model request can have at most {MAX_BYTES} bytes")
