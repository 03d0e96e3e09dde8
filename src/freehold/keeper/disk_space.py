"""How much room the disks of a home have left."""

import os
from collections.abc import Iterable
from pathlib import Path

from freehold.keeper.calls import DiskState, DiskStatus

FULL_BYTES = 64 * 1024 * 1024
LOW_BYTES = 1024 * 1024 * 1024
FULL_SHARE, LOW_SHARE = 0.01, 0.05
"""Of the disk. The smaller of the share and the bytes counts: a small disk is not low from the start."""


def measure_disks(folders: Iterable[Path]) -> DiskStatus:
    """The disk among those of these folders that has the least room. A folder that does not exist is skipped."""
    found = [_measure(folder) for folder in folders if folder.is_dir()]
    return min(found, key=lambda status: (ORDER.index(status.state), status.free))


ORDER: tuple[DiskState, ...] = ("full", "low", "ok")


def _measure(folder: Path) -> DiskStatus:
    disk = os.statvfs(folder)
    size, free = disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize
    has_names = disk.f_files == 0 or disk.f_favail > 0  # some file systems do not count them
    if free < min(FULL_BYTES, size * FULL_SHARE) or not has_names:
        state: DiskState = "full"
    elif free < min(LOW_BYTES, size * LOW_SHARE):
        state = "low"
    else:
        state = "ok"
    left = f"{_format(free)} of {_format(size)} free on the disk of {folder}" + ("" if has_names else ", and no inode")
    words = {"full": f"The disk is full: {left}", "low": f"The disk is nearly full: {left}", "ok": left}[state]
    return DiskStatus(str(folder), free, size, state, words)


def _format(amount: int) -> str:
    value = float(amount)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if value >= 10 or unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
