"""What an owner may set about history, with the defaults."""

import os
from dataclasses import dataclass
from pathlib import Path

GIB = 1 << 30


@dataclass(frozen=True)
class Settings:
    quota: int | None = None
    """Bytes the store may use; None: 5 GiB or a tenth of the disk, whichever is less."""
    quiet: float = 30.0
    """Seconds without a write after which a changed tree becomes an entry; 0 switches that off."""
    largest_file: int = GIB
    """Files above this are noted, not stored."""
    scan_every: float = 3600.0
    """Seconds between full scans, for what no event tells (mmap, a hard link from outside)."""
    scan_without_watch: float = 60.0
    """Seconds between full scans while the kernel gives no watches."""
    quota_grace: float = 600.0
    """Seconds between telling the owner that the quota is reached and dropping the oldest entries."""
    ignore: tuple[str, ...] = ()
    """Patterns of paths that are not kept, as in a .gitignore; see `ignoring`."""

    def quota_for(self, folder: Path) -> int:
        if self.quota is not None:
            return self.quota
        disk = os.statvfs(folder)
        return min(5 * GIB, disk.f_blocks * disk.f_frsize // 10)
