"""Fills the disk of a test, which is a small one of its own."""

import os
from contextlib import suppress
from pathlib import Path

TRIES = 200


def fill_disk(disk: Path, free: int) -> Path:
    """A file that leaves at most about this many bytes free. Others may write meanwhile."""
    ballast = disk / "ballast"
    with ballast.open("wb") as file:
        for _ in range(TRIES):
            space = os.statvfs(disk)
            with suppress(OSError):  # somebody has written since it was measured
                os.posix_fallocate(file.fileno(), 0, max(4096, space.f_bavail * space.f_frsize - free))
                return ballast
    raise TimeoutError(f"{disk} could not be filled in {TRIES} tries")
