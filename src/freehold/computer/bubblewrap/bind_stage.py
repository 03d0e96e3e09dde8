"""Lets an unprivileged sandbox bind folders it may not reach by path, without opening the owner's home to it.

A keeper started by root runs the sandbox as a uid that cannot walk into the home (mode 0700). Its launching thread
therefore takes a mount namespace of its own, and binds just the folders asked for beneath a fresh /run in it. Nothing
is mounted where anybody else could see it, and all of it goes with the last process of the computer.
"""

import ctypes
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from freehold.errors import FreeholdError

CLONE_NEWNS = 0x00020000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_SLAVE = 0x2, 0x4, 0x8, 0x1000, 0x4000, 0x80000
STAGE = Path("/run")

_libc = ctypes.CDLL(None, use_errno=True)


def stage_sources(sources: Sequence[Path]) -> list[str]:
    """Moves the calling thread, for good, into a mount namespace where the sources are at the paths returned."""
    if _libc.unshare(CLONE_NEWNS) != 0:
        _refuse("take a mount namespace of its own")
    _mount(None, "/", None, MS_REC | MS_SLAVE)
    # Opened before /run is covered, so that a source beneath /run is found, too.
    descriptors = [os.open(source, os.O_PATH | os.O_CLOEXEC) for source in sources]
    try:
        _mount("freehold", str(STAGE), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755,size=64k")
        places: list[str] = []
        for number, descriptor in enumerate(descriptors):
            place = STAGE / str(number)
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                place.mkdir()
            else:
                place.touch()
            _mount(f"/proc/thread-self/fd/{descriptor}", str(place), None, MS_BIND | MS_REC)
            places.append(str(place))
        return places
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    if _libc.mount(*words, ctypes.c_ulong(flags), None if data is None else data.encode()) != 0:
        _refuse(f"mount {source or kind or ''} on {target}")


def _refuse(act: str) -> None:
    reason = os.strerror(ctypes.get_errno())
    raise FreeholdError(
        "computer.no-isolation",
        f"The computer's folders cannot be handed to an unprivileged user: could not {act}: {reason}",
        hint="Start Freehold as an ordinary user rather than as root, or give this container CAP_SYS_ADMIN",
    )
