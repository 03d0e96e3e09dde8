"""Strict readers of what the guest says: a field that is missing or of another type is a broken protocol."""

from typing import Any

from freehold.computer.frames import protocol_error
from freehold.errors import FreeholdError

Message = dict[str, Any]


def whole(message: Message, name: str, *, most: int = 2**63) -> int:
    value = message.get(name)
    if type(value) is not int or not -most <= value <= most:
        raise protocol_error(f"{name} is not a whole number")
    return value


def number(message: Message, name: str) -> float:
    value = message.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise protocol_error(f"{name} is not a number")
    return float(value)


def text(message: Message, name: str) -> str:
    value = message.get(name)
    if not isinstance(value, str):
        raise protocol_error(f"{name} is not text")
    return value


def whole_or_none(message: Message, name: str) -> int | None:
    return None if message.get(name) is None else whole(message, name)


def items(message: Message, name: str, *, most: int = 100_000) -> list[Any]:
    value = message.get(name)
    if not isinstance(value, list) or len(value) > most:
        raise protocol_error(f"{name} is not a list of at most {most}")
    return value


def failure(message: Message) -> FreeholdError | None:
    """The error that the guest reports, if that is what the message is. Its code is limited to our own rooms."""
    found = message.get("error")
    if found is None:
        return None
    if not isinstance(found, list) or len(found) != 2 or not all(isinstance(part, str) for part in found):
        raise protocol_error("an error without code and message")
    code, words = found
    if not code.startswith(("computer.", "files.")) or len(code) > 60 or len(words) > 2000:
        raise protocol_error("an error of an unknown kind")
    return FreeholdError(code, printable(words), hint=_HINTS.get(code, ""))


def printable(words: str) -> str:
    """Names chosen inside may hold anything: keep them from driving the owner's terminal."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in words)


_HINTS = {
    "computer.no-program": "Name a program that is installed inside; `command -v` there tells",
    "computer.bad-folder": "Give a folder that exists inside; relative ones are under /workspace",
    "computer.cannot-start": "Raise computer.limits.processes or end something that runs",
    "files.not-found": "Relative paths are under /workspace",
}
