"""A copy of everything in a home that a version writes for itself, so that another version can be tried and taken back.

The owner's files are not in it: they have a history, and no version changes them.
"""

import shutil
import subprocess
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.home import Home

LEFT_OUT = frozenset(
    ["agents", "computers", "copies", "home", "images", "keeper.lock", "kept-homes", "logs", "mount-cache", "mounts", "versions", "workspace"]
)  # fmt: skip
SPARE_BYTES = 64 << 20
CLEARED = ".cleared"
"""Says that nothing of the version that failed is in the home any more."""


class HomeCopy:
    """Made while nothing runs. `folder` is on the disk of the home, and does not exist before."""

    def __init__(self, home: Home, folder: Path) -> None:
        self._home = home
        self._folder = folder

    def make(self) -> None:
        """Raises `upgrade.no-space`. Blocks are shared with the original where the file system can."""
        names = self._list_names()
        needed = sum(_measure(self._home.root / name) for name in names) + SPARE_BYTES
        free = shutil.disk_usage(self._home.root).free
        if needed > free:
            raise FreeholdError(
                "upgrade.no-space",
                f"A copy of the home needs {needed // 10**6} MB, and {free // 10**6} MB are free",
                hint=f"Free some space: df -h {self._home.root}",
            )
        draft = self._folder.with_name(f".{self._folder.name}")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        for name in names:
            _copy(self._home.root / name, draft / name)
        draft.rename(self._folder)

    def restore(self, aside: Path) -> None:
        """Everything is as it was. What is there now is moved to the new folder `aside`. May be repeated after an interruption."""
        aside.mkdir(mode=0o700, exist_ok=True)
        mark = aside / CLEARED
        if not mark.exists():
            for name in self._list_names():
                (self._home.root / name).rename(aside / name)
            mark.touch()
        for kept in list(self._folder.iterdir()):
            kept.rename(self._home.root / kept.name)
        self._folder.rmdir()

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _list_names(self) -> list[str]:
        return sorted(one.name for one in self._home.root.iterdir() if one.name not in LEFT_OUT)


def _copy(source: Path, target: Path) -> None:
    done = subprocess.run(
        ["cp", "-a", "--reflink=auto", "--", str(source), str(target)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise FreeholdError(
            "upgrade.failed", f"{source} cannot be copied: {done.stderr.strip()[:300]}", hint="Nothing was changed"
        )


def _measure(path: Path) -> int:
    if not path.is_dir() or path.is_symlink():
        return path.lstat().st_blocks * 512
    return sum(one.lstat().st_blocks * 512 for one in path.rglob("*"))
