"""The parts of a prompt: text, images, and references to files."""

import base64
import binascii
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from freehold.builtin.json_rpc import RequestError


@dataclass(frozen=True)
class PromptImage:
    data: bytes
    mime: str


PromptPart = str | PromptImage


def read_blocks(blocks: list[dict[str, Any]]) -> list[PromptPart]:
    """In their order. Raises `RequestError` for a kind that this agent does not support."""
    return [_read(block) for block in blocks]


def join_text(parts: list[PromptPart]) -> str:
    return "\n".join(part for part in parts if isinstance(part, str))


def _read(block: dict[str, Any]) -> PromptPart:
    match block.get("type"):
        case "text":
            return str(block["text"])
        case "image":
            try:
                return PromptImage(base64.b64decode(block["data"], validate=True), str(block["mimeType"]))
            except binascii.Error:
                raise RequestError("An image is not valid Base64", -32602) from None
        case "resource_link":
            return f"[the file {_path(str(block['uri']))}: read it if you need it]"
        case "resource":
            inner = block["resource"]
            if "text" not in inner:
                raise RequestError("This agent supports embedded files only if they are text", -32602)
            return f"The file {_path(str(inner['uri']))}:\n\n{inner['text']}"
        case other:
            raise RequestError(f"This agent does not support {other!r} in a prompt", -32602)


def _path(uri: str) -> str:
    return unquote(urlsplit(uri).path) if uri.startswith("file://") else uri
