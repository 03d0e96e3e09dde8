"""What the kernel says is mounted. Names in it may be any bytes, whoever chose them."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class MountEntry:
    """`options` are those of the mount, such as `ro`, and not those of the file system.

    `root` is what of the file system is shown, and `device` which file system it is.
    """

    place: str
    kind: str
    options: tuple[str, ...]
    is_shared: bool
    root: str
    device: str


def read_mounts(pid: int | None = None) -> list[MountEntry]:
    """Every mount that a process sees, the later ones above the earlier ones. Raises OSError. None is this process."""
    name = "self" if pid is None else str(pid)
    return parse_mounts(Path(f"/proc/{name}/mountinfo").read_bytes())


def parse_mounts(table: bytes) -> list[MountEntry]:
    """The kernel escapes spaces, tabs, newlines and backslashes, and nothing else: only these separate words and lines."""
    found = []
    for line in os.fsdecode(table).split("\n")[:-1]:
        before, _, after = line.partition(" - ")
        words = before.split(" ")
        root, place = (_ESCAPE.sub(lambda escape: chr(int(escape[1], 8)), word) for word in words[3:5])
        is_shared = any(word.startswith("shared:") for word in words[6:])
        found.append(MountEntry(place, after.split(" ")[0], tuple(words[5].split(",")), is_shared, root, words[2]))
    return found
