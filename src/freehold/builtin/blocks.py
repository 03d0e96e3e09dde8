"""What a prompt holds: words, images, and files that are pointed at."""

import base64
import binascii
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from freehold.builtin.wire import Refusal


@dataclass(frozen=True)
class Image:
    data: bytes
    mime: str


Word = str | Image


def read_blocks(blocks: list[dict[str, Any]]) -> list[Word]:
    """In the order they were given. Raises `Refusal` for a kind that we did not say we take."""
    return [_read(block) for block in blocks]


def text_of(words: list[Word]) -> str:
    return "\n".join(word for word in words if isinstance(word, str))


def _read(block: dict[str, Any]) -> Word:
    match block.get("type"):
        case "text":
            return str(block["text"])
        case "image":
            try:
                return Image(base64.b64decode(block["data"], validate=True), str(block["mimeType"]))
            except binascii.Error:
                raise Refusal("An image is not base64", -32602) from None
        case "resource_link":
            return f"[the file {_path(str(block['uri']))}: read it if it matters]"
        case "resource":
            inner = block["resource"]
            if "text" not in inner:
                raise Refusal("This agent takes no embedded files but text", -32602)
            return f"The file {_path(str(inner['uri']))}:\n\n{inner['text']}"
        case other:
            raise Refusal(f"This agent takes no {other!r} in a prompt", -32602)


def _path(uri: str) -> str:
    return unquote(urlsplit(uri).path) if uri.startswith("file://") else uri
