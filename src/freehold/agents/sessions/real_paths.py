"""Where the paths of a permission request really lead: symbolic links followed, other names of a file counted."""

import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from posixpath import join, normpath
from urllib.parse import unquote, urlsplit

from freehold.computer import Computer
from freehold.computer.contract.conventions import AGENT_HOME, HOST_COMMANDS, WORKSPACE
from freehold.errors import FreeholdError

RESOLVE_TIMEOUT = 10.0
_SCRIPT = """
import json, os, stat, sys

def follow(path):
    left, place, links = path.split("/")[::-1], "", 0
    while left:
        name = left.pop()
        if name == "..":
            place = place.rpartition("/")[0]
        if name in ("", ".", ".."):
            continue
        try:
            target = os.readlink(f"{place}/{name}")
        except OSError:
            place = f"{place}/{name}"
            continue
        links += 1
        # A link below /proc leads each process elsewhere: this one and the agent too.
        if links > 40 or place == "/proc" or place.startswith("/proc/"):
            raise ValueError
        place = "" if target.startswith("/") else place
        left += target.split("/")[::-1]
    return place or "/"

found = []
for path in json.loads(sys.stdin.read()):
    try:
        real = follow(path)
        seen = os.stat(real, follow_symlinks=False)
        found.append([real, seen.st_nlink if stat.S_ISREG(seen.st_mode) else 1])
    except FileNotFoundError:
        found.append([real, 1])
    except (OSError, ValueError):
        found.append(None)
print(json.dumps(found))
"""


@dataclass(frozen=True)
class RealPath:
    """`place` has no symbolic link in it. `names` is the number of hard links of an existing file."""

    place: str
    names: int = 1


ResolvePaths = Callable[[Sequence[str]], Awaitable[list[RealPath | None]]]
"""For each absolute path where it leads; None when that cannot be found out."""


def absolute_path(path: str, folder: str = WORKSPACE) -> str:
    """The path as the agent's programs read it: from the folder, with `~` and `file://` replaced. `..` stays."""
    if path.startswith("file:"):
        with suppress(ValueError):  # such as file://[x, which is no address: then it is a name
            path = unquote(urlsplit(path).path)
    if path == "~" or path.startswith("~/"):
        path = AGENT_HOME + path[1:]
    return join(WORKSPACE, folder, path)


def lexical_path(path: str) -> str:
    """An absolute path without `.`, `..` and double slashes."""
    return "/" + normpath(path).lstrip("/")


def is_below(path: str, folder: str) -> bool:
    return PurePosixPath(path).is_relative_to(folder)


async def resolve_in_computer(computer: Computer, paths: Sequence[str]) -> list[RealPath | None]:
    """Asks inside the computer, in one process. What is not answered in time or is malformed is None."""
    nothing: list[RealPath | None] = [None] * len(paths)
    if not paths or any("\0" in path for path in paths):
        return nothing
    try:
        result = await computer.run(
            ["/usr/bin/python3", "-I", "-S", "-c", _SCRIPT],
            stdin=json.dumps(list(paths)),
            cwd="/",
            timeout=RESOLVE_TIMEOUT,
            apart=HOST_COMMANDS,
        )
        rows = json.loads(result.text)
    except (FreeholdError, ValueError):
        return nothing
    if not isinstance(rows, list) or len(rows) != len(paths):
        return nothing
    return [_read(row) for row in rows]


def _read(row: object) -> RealPath | None:
    if (
        isinstance(row, list)
        and len(row) == 2
        and isinstance(row[0], str)
        and row[0].startswith("/")
        and type(row[1]) is int
    ):
        return RealPath(row[0], row[1])
    return None
