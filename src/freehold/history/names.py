"""File names are bytes. This is their one printable and reversible spelling for people, JSON and terminals."""

import os
from collections.abc import Mapping
from pathlib import Path

from freehold.errors import FreeholdError

COMPUTER_FOLDERS = {b"/workspace": b"workspace", b"/home/agent": b"home"}
"""The persistent folders as agents see them."""


def show_name(path: bytes) -> str:
    """Printable text that `read_name` turns back into the same bytes.

    A byte that is not valid UTF-8, not printable, or a backslash is spelled `\\xNN`, so that a name can neither break
    a line of the log nor send control sequences to a terminal.
    """
    text = path.decode("utf-8", "surrogateescape")
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(char if char.isprintable() and char != "\\" else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))


def read_name(text: str) -> bytes:
    """The bytes of a name that `show_name` has spelled. A backslash that does not begin `\\xNN` stays a backslash."""
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
    """The parts of a path that starts with the name of a root. Refuses paths that could point outside."""
    parts = tuple(part for part in path.split(b"/") if part not in (b"", b"."))
    if b".." in parts or b"\0" in path:
        raise FreeholdError("history.bad-path", f"{show_name(path)} is not a valid path in the history")
    return parts


def find_path(text: str, roots: Mapping[bytes, Path]) -> tuple[bytes, ...]:
    """The parts of a path as typed: `workspace/a.py`, or its path on the host or in the computer."""
    wanted = read_name(text)
    if wanted.startswith(b"/"):
        for name, root in roots.items():
            base = os.fsencode(root)
            if wanted == base or wanted.startswith(base + b"/"):
                return (name, *split_path(wanted[len(base) :]))
        for inside, name in COMPUTER_FOLDERS.items():
            if name in roots and (wanted == inside or wanted.startswith(inside + b"/")):
                return (name, *split_path(wanted[len(inside) :]))
    parts = split_path(wanted)
    if wanted.startswith(b"/") or not parts or parts[0] not in roots:
        known = ", ".join(show_name(name) + "/…" for name in roots)
        raise FreeholdError(
            "history.unknown-path",
            f"{text} is not in a folder that history records",
            hint=f"Begin the path with one of: {known}",
        )
    return parts
