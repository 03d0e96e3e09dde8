"""Names are bytes on disk; here is the one printable, reversible spelling of them for owners, JSON and terminals."""

import os
from collections.abc import Mapping
from pathlib import Path

from freehold.errors import FreeholdError

INSIDE = {b"/workspace": b"workspace", b"/home/agent": b"home"}
"""The kept folders as the agent sees them."""


def show_name(path: bytes) -> str:
    """Printable text that `read_name` turns back into the same bytes.

    Whatever is not valid UTF-8, not printable, or a backslash is spelled `\\xNN` byte by byte, so that a name
    can neither break a line of the log nor send control sequences to a terminal.
    """
    text = path.decode("utf-8", "surrogateescape")
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(char if char.isprintable() and char != "\\" else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))


def read_name(text: str) -> bytes:
    """The bytes that `show_name` was given. A backslash that starts no `\\xNN` stands for itself."""
    parts = text.split("\\x")
    found = [os.fsencode(parts[0])]
    for part in parts[1:]:
        try:
            found.append(
                bytes.fromhex(part[:2]) if len(part) >= 2 and " " not in part[:2] else b"\\x" + os.fsencode(part[:2])
            )
        except ValueError:
            found.append(b"\\x" + os.fsencode(part[:2]))
        found.append(os.fsencode(part[2:]))
    return b"".join(found)


def split_path(path: bytes) -> tuple[bytes, ...]:
    """The components of a path that starts with a root's name; refuses what could point outside."""
    parts = tuple(part for part in path.split(b"/") if part not in (b"", b"."))
    if b".." in parts or b"\0" in path:
        raise FreeholdError("history.bad-path", f"{show_name(path)} does not name a path in the history")
    return parts


def find_path(text: str, roots: Mapping[bytes, Path]) -> tuple[bytes, ...]:
    """What an owner typed, as components: `workspace/a.py`, or where that is on this machine or in the computer."""
    wanted = read_name(text)
    if wanted.startswith(b"/"):
        for name, root in roots.items():
            base = os.fsencode(root)
            if wanted == base or wanted.startswith(base + b"/"):
                return (name, *split_path(wanted[len(base) :]))
        for inside, name in INSIDE.items():
            if name in roots and (wanted == inside or wanted.startswith(inside + b"/")):
                return (name, *split_path(wanted[len(inside) :]))
    parts = split_path(wanted)
    if wanted.startswith(b"/") or not parts or parts[0] not in roots:
        known = ", ".join(show_name(name) + "/…" for name in roots)
        raise FreeholdError(
            "history.unknown-path",
            f"{text} is in none of the folders that are kept",
            hint=f"Start it with one of: {known}",
        )
    return parts
