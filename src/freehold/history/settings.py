"""The settings of history with their defaults."""

import os
from dataclasses import dataclass
from pathlib import Path

GIB = 1 << 30


@dataclass(frozen=True)
class HistorySettings:
    quota: int | None = None
    """Bytes that the store may use; None means 5 GiB or a tenth of the disk, whichever is less."""
    quiet: float = 30.0
    """Seconds without a write after which changes become an entry; 0 disables this."""
    rate: int | None = None
    """Bytes that one agent may add in an hour; None means half of the quota. The owner's own changes have no such limit."""
    scan_every: float = 3600.0
    """Seconds between full scans, for changes without events (mmap, a hard link from outside)."""
    scan_without_watch: float = 60.0
    """Seconds between full scans while the folders cannot be watched."""
    quota_grace: float = 600.0
    """Seconds between the notice that the quota is exceeded and the drop of the oldest entries."""
    ignore: tuple[str, ...] = ()
    """Patterns of paths that are not recorded, as in .gitignore; see `ignore_rules`."""

    def quota_for(self, folder: Path) -> int:
        if self.quota is not None:
            return self.quota
        disk = os.statvfs(folder)
        return min(5 * GIB, disk.f_blocks * disk.f_frsize // 10)

    def rate_for(self, folder: Path) -> int:
        return self.rate if self.rate is not None else self.quota_for(folder) // 2
