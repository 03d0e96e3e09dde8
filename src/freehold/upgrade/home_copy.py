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
        self.folder = folder

    def check_space(self) -> None:
        """Raises `upgrade.no-space`."""
        needed = sum(_measure(self._home.root / name) for name in self._list_names()) + SPARE_BYTES
        free = shutil.disk_usage(self._home.root).free
        if needed > free:
            raise FreeholdError(
                "upgrade.no-space",
                f"A copy of the home needs {needed // 10**6} MB, and {free // 10**6} MB are free",
                hint=f"Free some space: df -h {self._home.root}",
            )

    def make(self) -> None:
        """Raises `upgrade.no-space`. Blocks are shared with the original where the file system can."""
        self.check_space()
        draft = self.folder.with_name(f".{self.folder.name}")
        remove_tree(draft)
        draft.mkdir(mode=0o700)
        for name in self._list_names():
            _copy(self._home.root / name, draft / name)
        _run("sync", "--file-system", "--", str(draft))  # the version that is tried changes the original next
        draft.rename(self.folder)

    def restore(self, aside: Path) -> None:
        """Everything is as it was. What is there now is moved to the new folder `aside`. May be repeated after an interruption."""
        aside.mkdir(mode=0o700, exist_ok=True)
        mark = aside / CLEARED
        if not mark.exists():
            for name in self._list_names():
                (self._home.root / name).rename(aside / name)
            mark.touch()
        for kept in list(self.folder.iterdir()):
            kept.rename(self._home.root / kept.name)
        self.folder.rmdir()

    def remove(self) -> None:
        """Also what an interrupted `make` left."""
        remove_tree(self.folder)
        remove_tree(self.folder.with_name(f".{self.folder.name}"))

    def _list_names(self) -> list[str]:
        return sorted(one.name for one in self._home.root.iterdir() if one.name not in LEFT_OUT)


def _copy(source: Path, target: Path) -> None:
    _run("cp", "-a", "--reflink=auto", "--", str(source), str(target))


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FreeholdError(
            "upgrade.failed", f"The home cannot be copied: {done.stderr.strip()[:300]}", hint="Nothing was changed"
        )


def remove_tree(folder: Path) -> None:
    """However deep it is: what was set aside by an undo is as agents made it."""
    subprocess.run(["rm", "-rf", "--", str(folder)], capture_output=True, check=False)


def _measure(path: Path) -> int:
    done = subprocess.run(["du", "-s", "-B1", "--", str(path)], capture_output=True, text=True, check=False)
    size = done.stdout.partition("\t")[0]
    return int(size) if size.isdigit() else 0
