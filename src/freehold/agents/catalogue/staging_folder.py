"""Folders that replace others as a whole: an interrupted installation leaves what was there before."""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from freehold.home import Home


@contextmanager
def hold_install_lock(home: Home) -> Iterator[None]:
    """One installation at a time. Folders that an interrupted one left are removed."""
    home.agents.mkdir(parents=True, exist_ok=True)
    home.agents.chmod(0o755)  # the computer's uid reads it; the home around it is closed to others
    with (home.agents / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in home.agents.iterdir():
            if left.name.startswith((".new-", ".old-")):
                shutil.rmtree(left, ignore_errors=True)
        yield


@contextmanager
def replace_agent_folder(home: Home, name: str) -> Iterator[Path]:
    """An empty folder that replaces the agent's folder when the block ends without an error."""
    staging = Path(tempfile.mkdtemp(prefix=f".new-{name.lstrip('.')}-", dir=home.agents))
    try:
        staging.chmod(0o755)
        yield staging
        swap_folders(staging, home.agents / name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    shutil.rmtree(home.agents / ".cache", ignore_errors=True)


def swap_folders(staging: Path, place: Path) -> None:
    old = Path(tempfile.mkdtemp(prefix=".old-", dir=place.parent))
    if place.exists():
        place.rename(old / "agent")
    staging.rename(place)
    shutil.rmtree(old, ignore_errors=True)
