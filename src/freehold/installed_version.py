"""Which installed version runs a home. `freehold upgrade` puts versions beside each other, and a link names the one in use.

Whatever `freehold` the owner or a service starts, the version of that home runs.
"""

import os
import sys
from pathlib import Path

from freehold.home import Home, find_home

CHOSEN = "FREEHOLD_VERSION_CHOSEN"
"""Set for the process that was chosen, so that it does not look again."""


def current_version(home: Home) -> Path:
    """The link to the environment of the version that runs this home."""
    return home.root / "versions" / "current"


def run_current_version(module: str, words: list[str]) -> None:
    """Become the version that runs the home which these words name. Returns if that is this one."""
    if os.environ.pop(CHOSEN, None) is not None:
        return
    python = find_python(find_home(_read_home(words)))
    if python is not None and python.parent.parent.resolve() != Path(sys.prefix).resolve():
        os.execve(python, [str(python), "-m", module, *words], {**os.environ, CHOSEN: "1"})  # noqa: S606 - of the same user


def find_python(home: Home) -> Path | None:
    """None when no other version was put beside this one, or somebody else could have put it there."""
    link = current_version(home)
    try:
        folder = link.parent.stat()
    except OSError:
        return None
    python = link / "bin" / "python"
    is_ours = folder.st_uid == os.geteuid() and not folder.st_mode & 0o022
    return python if is_ours and python.exists() else None


def _read_home(words: list[str]) -> str | None:
    for number, word in enumerate(words):
        if word == "--":
            return None
        if word == "--home" and number + 1 < len(words):
            return words[number + 1]
        if word.startswith("--home="):
            return word.removeprefix("--home=")
    return None
