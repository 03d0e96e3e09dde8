"""Which installed version runs a home. `freehold upgrade` puts versions beside each other, and a link names the one in use.

Whatever `freehold` the owner or a service starts, the version of that home runs. If the one that was started is newer
than the link and than what the link has replaced, it was installed later by other means, and it runs.
"""

import contextlib
import fcntl
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from freehold import __version__
from freehold.home import Home, find_home
from freehold.private_file import replace_private_file

CHOSEN = "FREEHOLD_VERSION_CHOSEN"
"""Set for the process that was chosen, so that it does not look again: the environment of the version that chose it."""
REPLACED = "replaced"
"""A file in the environment of a version: the newest version that was in use before it."""
_VERSION = re.compile(r"(\d+(?:\.\d+)*)((?:[.-]?(?:dev|a|b|rc|post)\d+)*)")
_PART = re.compile(r"(dev|a|b|rc|post)(\d+)")
_RANKS = ("dev", "a", "b", "rc", "", "post")
_chosen_by = ""


def current_version(home: Home) -> Path:
    """The link to the environment of the version that runs this home."""
    return home.root / "versions" / "current"


def trial_journal(home: Home) -> Path:
    """It exists while a version is tried."""
    return home.root / "versions" / "trial.json"


def starts_lock(home: Home) -> Path:
    """Locked by an upgrade while no version may start, and shared by each keeper that begins."""
    return home.root / "versions" / "starts.lock"


def is_on_trial(home: Home) -> bool:
    """Whether the version that runs may still be taken back with everything that it writes."""
    journal = _read_journal(home)
    return journal is not None and not was_ready(home, str(journal.get("copy")))


def was_ready(home: Home, copy: str) -> bool:
    """Whether the version of the trial with this copy got ready. Then it is never taken back by itself."""
    try:
        return _ready_mark(home).read_text() == copy
    except OSError:
        return False


def note_ready(home: Home) -> None:
    """This version is ready. Cheap unless it is the one on trial."""
    journal = _read_journal(home)
    if journal is None or was_ready(home, str(journal.get("copy"))):
        return
    environment = journal.get("environment")
    if isinstance(environment, str) and Path(environment).resolve() == Path(sys.prefix).resolve():
        with contextlib.suppress(OSError):
            replace_private_file(_ready_mark(home), str(journal.get("copy")).encode())


def forget_trial(home: Home) -> None:
    """It has ended, one way or the other."""
    trial_journal(home).unlink(missing_ok=True)
    _ready_mark(home).unlink(missing_ok=True)


def _ready_mark(home: Home) -> Path:
    return home.root / "versions" / "trial.ready"


def _read_journal(home: Home) -> Mapping[str, Any] | None:
    try:
        found = json.loads(trial_journal(home).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def run_current_version(module: str, words: list[str]) -> None:
    """Become the version that runs the home which these words name. Returns if that is this one.

    A trial whose upgrade was interrupted is ended first.
    """
    global _chosen_by
    chosen_by = os.environ.pop(CHOSEN, None)
    if chosen_by is not None:
        _chosen_by = chosen_by
        return
    home = find_home(_read_home(words))
    python = _end_trial(home) or find_python(home)
    if python is not None and python.parent.parent.resolve() != Path(sys.prefix).resolve():
        os.execve(python, [str(python), "-m", module, *words], {**os.environ, CHOSEN: sys.prefix})  # noqa: S606 - of the same user


def find_installation(home: Home) -> Path | None:
    """The environment that the owner started, outside of the home. None if an older version chose this one without a word."""
    own = Path(sys.prefix)
    if own.resolve().parent != current_version(home).parent.resolve():
        return own
    return Path(_chosen_by) if _chosen_by.startswith("/") else None


def _end_trial(home: Home) -> Path | None:
    if not trial_journal(home).exists() or not _is_ours(trial_journal(home).parent):
        return None
    from freehold.errors import FreeholdError
    from freehold.upgrade.trial import UpgradeTrial

    try:
        return UpgradeTrial(home, lambda what: _print(f"{what} …")).end_abandoned()
    except FreeholdError as error:
        _print(str(error))
        sys.exit(1)


def _print(line: str) -> None:
    print(line, file=sys.stderr)  # noqa: T201 - no command has begun


class VersionStart:
    """The start of a keeper of the right version. No upgrade stops or copies anything until the home is locked."""

    def __init__(self, home: Home, handle: int | None) -> None:
        self._home = home
        self._handle = handle

    def watch(self, announce: Callable[[str, dict[str, Any]], None]) -> Callable[[str, dict[str, Any]], None]:
        """The same listener to the events of the keeper. The home is locked when its folders are there."""

        def hear(event: str, data: dict[str, Any]) -> None:
            if event == "stage" and data.get("stage") == "paths":
                self.release()
            elif event == "sealed":
                note_ready(self._home)
            announce(event, data)

        return hear

    def release(self) -> None:
        """Idempotent."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def begin_start(module: str, words: list[str]) -> VersionStart:
    """Wait while an upgrade copies, then become the version that runs the home; see `run_current_version`.

    A service starts its keeper again at once when an upgrade has stopped it.
    """
    home = find_home(_read_home(words))
    while True:
        seen = _read_choice(home)
        run_current_version(module, words)
        handle = _share_starts(home)
        if handle is None or _read_choice(home) == seen:
            return VersionStart(home, handle)
        os.close(handle)


def _share_starts(home: Home) -> int | None:
    try:
        handle = os.open(starts_lock(home), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    fcntl.flock(handle, fcntl.LOCK_SH)
    return handle


def _read_choice(home: Home) -> tuple[str | None, bytes | None]:
    """What decides about the version."""
    link, journal = current_version(home), trial_journal(home)
    target = str(link.readlink()) if link.is_symlink() else None
    try:
        return target, journal.read_bytes()
    except OSError:
        return target, None


def find_python(home: Home) -> Path | None:
    """None when this version runs the home: no other was put beside it, it is newer, or somebody else could have put it there.

    The path does not go through the link: it stays that of the same version.
    """
    link = current_version(home)
    python = link.resolve() / "bin" / "python"
    return python if _is_ours(link.parent) and python.exists() and not _is_outdated(link) else None


def _is_ours(folder: Path) -> bool:
    """Whether nobody else could have put something there."""
    try:
        found = folder.stat()
    except OSError:
        return False
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _is_outdated(link: Path) -> bool:
    """Whether this process was installed outside of the home, and later than what the link names."""
    chosen = link.resolve()
    if chosen.parent == Path(sys.prefix).resolve().parent:
        return False
    own, named = _order(__version__), _order(chosen.name.rpartition("-")[0])
    replaced = _order(read_replaced(chosen))
    if own is None or named is None or own <= named:
        return False
    return replaced is None or own > replaced


def read_replaced(environment: Path) -> str:
    """Empty if nothing is known."""
    try:
        return (environment / REPLACED).read_text()
    except OSError:
        return ""


def newest_version(*versions: str) -> str:
    """Of those that are versions. Raises ValueError if none is."""
    return max((order, one) for one in versions if (order := _order(one)))[1]


def _order(version: str) -> tuple[list[int], list[tuple[int, int]]] | None:
    """Compares as versions of Python packages do: 0.10.dev1 < 0.10rc1 < 0.10 = 0.10.0 < 0.10.post1. None if it is no version."""
    found = _VERSION.fullmatch(version.partition("+")[0])
    if found is None:
        return None
    numbers = [int(number) for number in found[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    parts = _PART.findall(found[2]) or [("", "0")]
    return numbers, [(_RANKS.index(letters), int(digits)) for letters, digits in parts]


def _read_home(words: list[str]) -> str | None:
    for number, word in enumerate(words):
        if word == "--":
            return None
        if word == "--home" and number + 1 < len(words):
            return words[number + 1]
        if word.startswith("--home="):
            return word.removeprefix("--home=")
    return None
