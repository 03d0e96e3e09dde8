"""Drafts that a killed guest left behind: where they can be, and their removal when the next guest starts.

A draft that needs a name gets it at the top of its mount and not beside its target, so that a look at the top of each mount
finds all of them.
"""

from __future__ import annotations

import fcntl

from freehold.guest.kernel import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PREFIX = b".freehold-"
_DIGITS = b"0123456789abcdef"
_RANDOM_BYTES = 6
_TYPE, _REGULAR = 0o170000, 0o100000
"""Bits of a file's mode."""
_NOT_SEARCHED = (b"proc", b"sysfs", b"tmpfs", b"devtmpfs", b"devpts", b"mqueue", b"cgroup2", b"fuse")
"""File systems whose files end with the computer, and those that may wait for a network."""


def make_name() -> bytes:
    return PREFIX + os.urandom(_RANDOM_BYTES).hex().encode()


def lock(descriptor: int) -> None:
    """Until it is closed, no other guest on the same folders takes this draft for a leftover."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # a file system without locks: `remove_leftovers` removes nothing there
        return


def find_top(folder: bytes) -> bytes:
    """The top of the mount that has this folder; the folder itself in a mount that is not searched for leftovers."""
    from os import path as paths  # slow to import

    path = paths.realpath(folder) + b"/"
    tops = [mount for mount in read_mounts() if path.startswith(mount[0].rstrip(b"/") + b"/")]
    top, is_searched = max(tops, key=lambda mount: len(mount[0]), default=(folder, True))
    return top if is_searched else folder


def read_mounts() -> list[tuple[bytes, bool]]:
    """The mount points that can be written, and whether they are searched for leftovers."""
    with open("/proc/self/mountinfo", "rb") as file:  # noqa: PTH123
        return list(parse_mounts(file))


def parse_mounts(lines: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    for line in lines:
        fields, _, source = line.partition(b" - ")
        place, options = fields.split()[4:6]
        if b"rw" in options.split(b","):
            # A space, a tab, a line feed or a backslash in a path is three octal digits.
            plain = place.decode("unicode_escape").encode("latin-1") if b"\\" in place else place
            yield plain, not source.startswith(_NOT_SEARCHED)


def remove_leftovers(mounts: Iterable[tuple[bytes, bool]]) -> Iterator[bool]:
    """A job of the loop. Drafts that another guest still writes stay."""
    for folder, is_searched in mounts:
        if not is_searched:
            continue
        try:
            entries = os.scandir(folder)
        except OSError:
            continue
        with entries:
            for entry in entries:
                if _is_draft(entry.name):
                    _remove_leftover(folder + b"/" + entry.name)
                yield False


def _is_draft(name: bytes) -> bool:
    digits = name[len(PREFIX) :]
    return name.startswith(PREFIX) and len(digits) == 2 * _RANDOM_BYTES and not digits.strip(_DIGITS)


def _remove_leftover(path: bytes) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if os.fstat(descriptor).st_mode & _TYPE == _REGULAR:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
    except OSError:
        return
    finally:
        os.close(descriptor)
