"""Strict readers for replies of the guest. A missing field or a wrong type is a protocol error."""

from typing import Any

from freehold.computer.library.frames import protocol_error
from freehold.errors import FreeholdError

MAX_ERROR_TEXT = 2000

Message = dict[str, Any]


def read_int(message: Message, name: str, *, most: int = 2**63) -> int:
    value = message.get(name)
    if type(value) is not int or not -most <= value <= most:
        raise protocol_error(f"{name} is not an integer in range")
    return value


def read_number(message: Message, name: str) -> float:
    value = message.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise protocol_error(f"{name} is not a number")
    return float(value)


def read_text(message: Message, name: str) -> str:
    value = message.get(name)
    if not isinstance(value, str):
        raise protocol_error(f"{name} is not a string")
    return value


def read_optional_int(message: Message, name: str) -> int | None:
    return None if message.get(name) is None else read_int(message, name)


def read_list(message: Message, name: str, *, most: int = 100_000) -> list[Any]:
    value = message.get(name)
    if not isinstance(value, list) or len(value) > most:
        raise protocol_error(f"{name} is not a list of at most {most} items")
    return value


def read_error(message: Message) -> FreeholdError | None:
    """The error in the message, or None. Only codes of `computer.` and `files.` are accepted; a long text is cut."""
    found = message.get("error")
    if found is None:
        return None
    if not isinstance(found, list) or len(found) != 2 or not all(isinstance(part, str) for part in found):
        raise protocol_error("an error without code and message")
    code, words = found
    if not code.startswith(("computer.", "files.")) or len(code) > 60 or not code.isprintable():
        raise protocol_error("an error with an unknown code")
    shown = words if len(words) <= MAX_ERROR_TEXT else words[:MAX_ERROR_TEXT] + "…"
    return FreeholdError(code, escape_unprintable(shown), hint=_HINTS.get(code, ""))


def escape_unprintable(words: str) -> str:
    """Escape control characters: text from inside must not control the owner's terminal."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in words)


_HINTS = {
    "computer.no-program": "Run `command -v` inside to see which programs are installed",
    "computer.bad-folder": "Give a folder that can be entered inside; relative paths are below /workspace",
    "computer.cannot-start": "Raise computer.limits.processes in freehold.toml, or end some processes",
    "computer.no-node": "Install an agent that needs Node (freehold agents add), or use an image with Node",
    "computer.no-isolates": "Run tools/build-addon where Freehold was built, and start the computer again",
    "computer.no-wasmtime": "pip install wasmtime beside Freehold and start the computer again, or add it to the image",
    "computer.no-package": "Add the package to the image and build it again; nothing is fetched while code runs",
    "computer.context-ended": "Reset the context to go on without its variables",
    "files.not-found": "Relative paths are below /workspace",
    "files.permission": "Change its permissions in a terminal (chmod), or undo the change that took them",
}
