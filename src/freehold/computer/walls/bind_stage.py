"""Makes folders of the owner's home available to an unprivileged sandbox, without opening the home itself.

A keeper that runs as root starts the sandbox with a uid that cannot enter the home (mode 0700). The starting thread
therefore enters a new mount namespace and binds only the needed folders below a new /run in it. No other process sees
these mounts, and they end with the last process of the computer.
"""

import ctypes
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from freehold.errors import FreeholdError

CLONE_NEWNS = 0x00020000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 0x1, 0x2, 0x4, 0x8, 0x20
MS_BIND, MS_REC, MS_SLAVE = 0x1000, 0x4000, 0x80000
STAGE = Path("/run")

_libc = ctypes.CDLL(None, use_errno=True)


def stage_sources(sources: Sequence[Path]) -> list[str]:
    """Move the calling thread permanently into a mount namespace in which the sources are at the returned paths."""
    return stage_binds([StagedBind(source, str(number)) for number, source in enumerate(sources)])


@dataclass(frozen=True)
class StagedBind:
    """A source, and its place below the stage."""

    source: Path
    name: str
    read_only: bool = False


def stage_binds(binds: Sequence[StagedBind]) -> list[str]:
    """The same with places of one's own choice. The stage itself is then a folder that can be shared as a whole."""
    if _libc.unshare(CLONE_NEWNS) != 0:
        _raise_mount_error("create a mount namespace")
    _mount(None, "/", None, MS_REC | MS_SLAVE)
    # Open before /run is covered, because a source may be below /run.
    descriptors = [os.open(bind.source, os.O_PATH | os.O_CLOEXEC) for bind in binds]
    try:
        _mount("freehold", str(STAGE), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755,size=64k")
        places: list[str] = []
        for bind, descriptor in zip(binds, descriptors, strict=True):
            place = STAGE / bind.name
            place.parent.mkdir(parents=True, exist_ok=True)
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                place.mkdir()
            else:
                place.touch()
            _mount(f"/proc/thread-self/fd/{descriptor}", str(place), None, MS_BIND | MS_REC)
            if bind.read_only:
                _mount(None, str(place), None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)
            places.append(str(place))
        return places
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    if _libc.mount(*words, ctypes.c_ulong(flags), None if data is None else data.encode()) != 0:
        _raise_mount_error(f"mount {source or kind or ''} on {target}")


def _raise_mount_error(act: str) -> None:
    reason = os.strerror(ctypes.get_errno())
    raise FreeholdError(
        "computer.no-isolation",
        f"The folders of the computer cannot be made available to an unprivileged user: cannot {act}: {reason}",
        hint="Start Freehold as an ordinary user, not as root, or give this container CAP_SYS_ADMIN",
    )
