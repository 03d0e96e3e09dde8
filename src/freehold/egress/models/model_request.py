"""The body of a question: read strictly, checked, and written anew, so that the provider reads what was checked."""

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from freehold.egress.http1 import Request
from freehold.egress.models.meter import BYTES_A_TOKEN
from freehold.egress.models.paths import Route
from freehold.errors import FreeholdError

MAX_BYTES = 32 * 1024 * 1024
IMAGE_TOKENS = 1_600
"""About what a picture costs, however many bytes it has."""
_BINARY = 4096
URLS = "urls"
"""Among the manifest's `allow`: the provider may fetch what a question names."""


@dataclass(frozen=True)
class Question:
    """What will be sent, and about how many tokens it is."""

    body: bytes
    model: str
    streamed: bool
    estimate: int
    most_output: int


def read_question(request: Request, route: Route, body: bytes) -> Question:
    """Raises `models.malformed`, `models.too-large` or `models.reaches-out`."""
    body = _decoded(request, body)
    if route.api is None:
        return Question(body, "", False, 0, 0)
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _malformed("its body is not JSON") from error
    if not isinstance(asked, dict):
        raise _malformed("its body is not a JSON object")
    _check_reach(asked, body, urls=URLS in route.provider.allow)
    model: object
    if route.api == "gemini":
        model, action = route.path.partition("?")[0].rpartition("/")[2].rsplit(":", 1)
        streamed = action.startswith("stream")
    else:
        model, streamed = asked.get("model"), asked.get("stream") is True
    if not isinstance(model, str):
        raise _malformed("it names no model")
    if route.api == "chat" and streamed:
        options = asked.get("stream_options")
        # Without this a chat that streams never tells what it cost.
        asked["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
    return Question(_encoded(asked), model[:200], streamed, _estimate(body, asked), _most_output(asked))


def _decoded(request: Request, body: bytes) -> bytes:
    """Compressed questions are opened here: nothing leaves that was not read."""
    codings = request.listed("content-encoding") - {"identity"}
    if not codings:
        return body
    openers = {"gzip": _gunzip, "zstd": _unzstd}
    if len(codings) > 1 or not codings <= openers.keys():
        raise _malformed("its content coding is not known here")
    opened = openers[codings.pop()](body)
    if opened is None:
        raise _malformed("its body is not compressed as it says")
    if len(opened) > MAX_BYTES:
        raise too_large()
    return opened


def _gunzip(body: bytes) -> bytes | None:
    opener = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        opened = opener.decompress(body, MAX_BYTES + 1)
    except zlib.error:
        return None
    return opened if len(opened) > MAX_BYTES or (opener.eof and not opener.unused_data) else None


def _unzstd(body: bytes) -> bytes | None:
    import zstandard

    try:
        return zstandard.ZstdDecompressor(max_window_size=MAX_BYTES).stream_reader(body).read(MAX_BYTES + 1)
    except zstandard.ZstdError:
        return None


def _encoded(asked: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(asked, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can spell and UTF-8 cannot
        return json.dumps(asked, separators=(",", ":")).encode()


def _check_reach(asked: Mapping[str, Any], body: bytes, *, urls: bool) -> None:
    """Refuses what makes the provider call servers that the agent names, or answer where nobody counts."""
    if asked.get("background") is True:
        raise _reaches("runs in the background, where it cannot be counted")
    if urls:
        return
    if asked.get("mcp_servers"):
        raise _reaches("names a server that the provider should call (mcp_servers)")
    tools = asked.get("tools")
    for tool in tools if isinstance(tools, list) else []:
        if isinstance(tool, dict):
            kind = str(tool.get("type"))
            if kind == "mcp" or kind.startswith("web_fetch") or {"urlContext", "url_context"} & tool.keys():
                raise _reaches("gives the provider a tool that fetches any address")
    # Most questions hold none of these words outside of quoted text, and are not searched.
    if any(word in body for word in _ADDRESS_KEYS) and any(_names_address(each) for each in _objects(asked)):
        raise _reaches("gives an address that the provider should fetch; send the content itself")


_ADDRESS_KEYS = (b'"image_url"', b'"file_url"', b'"fileUri"', b'"file_uri"', b'"url"')


def _names_address(part: Mapping[str, Any]) -> bool:
    image = part.get("image_url")
    found = [part.get("file_url"), part.get("fileUri"), part.get("file_uri")]
    found.append(image.get("url") if isinstance(image, dict) else image)
    if part.get("type") == "url":
        found.append(part.get("url"))
    return any(isinstance(each, str) and each.lstrip()[:5].lower().startswith(("http:", "https")) for each in found)


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


def _reaches(why: str) -> FreeholdError:
    return FreeholdError(
        "models.reaches-out",
        f"The question {why}: that would go around the owner's egress rules",
        hint=f'The owner can put "{URLS}" into allow of this provider in freehold.toml',
    )


def _estimate(body: bytes, asked: Mapping[str, Any]) -> int:
    if b"base64" not in body and b'"data"' not in body and b"data:" not in body:
        return len(body) // BYTES_A_TOKEN
    return sum(IMAGE_TOKENS if _is_binary(text) else len(text) // BYTES_A_TOKEN + 1 for text in _texts(asked))


def _is_binary(text: str) -> bool:
    return len(text) > _BINARY and " " not in text[:512]


def _texts(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


def _most_output(asked: Mapping[str, Any]) -> int:
    config = asked.get("generationConfig")
    for place, name in (
        (asked, "max_tokens"),
        (asked, "max_completion_tokens"),
        (asked, "max_output_tokens"),
        (config, "maxOutputTokens"),
    ):
        value = place.get(name) if isinstance(place, Mapping) else None
        if isinstance(value, int) and value > 0:
            return value
    return 4096


def _malformed(why: str) -> FreeholdError:
    return FreeholdError("models.malformed", f"The question cannot be read: {why}")


def too_large() -> FreeholdError:
    return FreeholdError("models.too-large", f"A question holds at most {MAX_BYTES} bytes")
