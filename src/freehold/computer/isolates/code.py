"""Code as the guest receives it: text in the request, or a WASM module that is sent by its hash."""

from collections.abc import Sequence
from typing import Any

from freehold.computer.library.files import Files
from freehold.computer.library.reply import escape_unprintable
from freehold.errors import FreeholdError

MODULE_TEXT = "("
MODULE_BYTES = b"\0asm"
_COMMENTS = (";;", "(;")


def read_module(language: str, code: str | bytes) -> bytes | None:
    """The module in the code: bytes, or text that begins as one does. None for other languages, and for a call."""
    if language != "wasm":
        return None
    if isinstance(code, bytes):
        return code
    return code.encode() if code.lstrip().startswith((MODULE_TEXT, *_COMMENTS)) else None


async def read_code_file(files: Files, language: str, path: str) -> str | bytes:
    """The code in a file of the computer: bytes for wasm, text for the others."""
    content = await files.read(path)
    if language == "wasm":
        return content
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise FreeholdError(
            "computer.bad-request",
            f"{escape_unprintable(path)} is not text, so it is no code of {language}",
            hint="Code is read as UTF-8; a WebAssembly module is run by wasm",
        ) from None


def describe_code(
    language: str,
    code: str | bytes,
    call: str | None,
    arguments: Sequence[str],
    outputs: Sequence[str],
    name: str | None = None,
) -> dict[str, Any]:
    """The part of a request that says what to run. A module itself is not in it."""
    if language != "wasm" and (call is not None or isinstance(code, bytes)):
        raise FreeholdError(
            "computer.bad-request", "Only wasm has calls and code in bytes", hint=f"Give the code of {language} as text"
        )
    request: dict[str, Any] = {"code": "" if read_module(language, code) is not None else code}
    if language == "typescript":
        request["typescript"] = True
    optional = {"call": call, "arguments": list(arguments), "outputs": list(outputs), "name": name}
    request.update({key: value for key, value in optional.items() if value})
    return request
