"""The processes below this one, as the kernel lists them."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_unclaimed: set[int] = set()
"""The zombies of the previous call of `reap_orphans`."""


def find_descendants(root: int) -> dict[int, str]:
    """Every living process below `root`, with its command line. Zombies are left out; their children are not."""
    found: dict[int, str] = {}
    frontier = list(_children(root))
    while frontier:
        pid = frontier.pop()
        frontier += _children(pid)
        if command := read_command(pid):
            found[pid] = command
    return found


def reap_orphans() -> None:
    """Take away the adopted processes that had ended before the previous call and that nobody has waited for since.

    Each zombie makes every later search slower. The child of a test is waited for by the test, within its file.
    """
    ended = {pid for pid in _children(os.getpid()) if _is_zombie(pid)}
    for pid in ended & _unclaimed:
        with contextlib.suppress(ChildProcessError):  # a thread has waited for it meanwhile
            os.waitpid(pid, os.WNOHANG)
    ended -= _unclaimed
    _unclaimed.clear()
    _unclaimed.update(ended)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def read_command(pid: int) -> str:
    """Its command line, or nothing if it is a zombie or gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def _children(pid: int) -> Iterator[int]:
    # Each thread lists the children that it started itself.
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except OSError:
        return
    for thread in threads:
        try:
            children = Path(f"/proc/{pid}/task/{thread}/children").read_text()
        except OSError:
            continue
        yield from map(int, children.split())
