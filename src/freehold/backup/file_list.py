"""The list of files of a backup: one JSON object a line, one line for each file, folder and link."""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

EntryType = Literal["file", "folder", "link", "table"]
MAX_INLINE_BLOBS = 64
"""The blobs of a longer file are named in blobs of their own."""
MAX_PATH = 8192
MAX_WHOLE_PATH = 4095
"""What the kernel takes as one path. Agents can make longer ones, folder by folder."""


@dataclass(frozen=True)
class ListedFile:
    """`path` is relative to the home. `mtime` is in nanoseconds. `uid` and `gid` are None for files of Freehold itself.

    A `table` is a table of history, as an SQLite database without indexes. With `indirect`, `blobs` are lists of blobs:
    hex, one a line. All blobs of a file but the last have `block` bytes.
    """

    path: bytes
    type: EntryType
    mode: int
    mtime: int
    size: int = 0
    blobs: tuple[bytes, ...] = ()
    target: bytes = b""
    block: int = 0
    indirect: bool = False
    uid: int | None = None
    gid: int | None = None


class BadListing(Exception):
    """A line is malformed, or its path leads out of the home."""


def encode_listing(files: Iterable[ListedFile]) -> bytes:
    lines = []
    for file in files:
        found: dict[str, object] = {
            "path": _show(file.path), "type": file.type, "mode": file.mode, "mtime": file.mtime, "size": file.size,
        }  # fmt: skip
        if file.blobs:
            found["lists" if file.indirect else "blobs"] = [blob.hex() for blob in file.blobs]
            found["block"] = file.block
        if file.type == "link":
            found["target"] = _show(file.target)
        if file.uid is not None:
            found["uid"], found["gid"] = file.uid, file.gid
        lines.append(json.dumps(found, separators=(",", ":")))
    return "\n".join(lines).encode() + b"\n"


def decode_listing(text: bytes) -> Iterator[ListedFile]:
    """Raises BadListing. No path that is returned is absolute or has `..`, and none goes through a link of the list."""
    links: set[bytes] = set()
    for number, line in enumerate(text.splitlines(), 1):
        try:
            found = json.loads(line)
            indirect = "lists" in found
            file = ListedFile(
                path=_hide(found["path"]),
                type=found["type"],
                mode=int(found["mode"]),
                mtime=int(found["mtime"]),
                size=int(found["size"]),
                blobs=tuple(bytes.fromhex(blob) for blob in found.get("lists" if indirect else "blobs", ())),
                target=_hide(found.get("target", "")),
                block=int(found.get("block", 0)),
                indirect=indirect,
                uid=found.get("uid"),
                gid=found.get("gid"),
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BadListing(f"line {number} is malformed: {error}") from error
        check_path(file.path)
        if file.type not in ("file", "folder", "link", "table"):
            raise BadListing(f"line {number} has the type {file.type!r}")
        parts = file.path.split(b"/")
        if any(b"/".join(parts[:length]) in links for length in range(1, len(parts))):
            raise BadListing(f"{_show(file.path)!r} goes through a link")
        if file.type == "link":
            links.add(file.path)
        yield file


def check_path(path: bytes) -> bytes:
    """Raises BadListing unless it is a relative path inside the home."""
    parts = path.split(b"/")
    if not path or len(path) > MAX_PATH or b"\0" in path or any(part in (b"", b".", b"..") for part in parts):
        raise BadListing(f"{_show(path)[:200]!r} is no path in a home")
    return path


def can_be_reached(path: Path) -> bool:
    return len(os.fsencode(path)) <= MAX_WHOLE_PATH


def _show(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _hide(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
