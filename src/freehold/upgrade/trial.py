"""Tries a version with the real home. It stays if it gets ready; else the version before comes back, with its data.

A journal says what is being tried. If this process dies, the next upgrade begins by taking the trial back.
"""

import contextlib
import fcntl
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.home import Home, ensure_private_folder
from freehold.installed_version import current_version, find_python
from freehold.keeper.lock import read_lock_holder
from freehold.keeper.processes import identify_process
from freehold.strict_json import WrongShape, decode, encode
from freehold.upgrade.environment import VersionEnvironment
from freehold.upgrade.home_copy import HomeCopy

Say = Callable[[str], None]
KILL_TIMEOUT = 30.0


@dataclass(frozen=True)
class TrialJournal:
    """`before` is the environment that the link named, or nothing. `was_running`: whether it ran when the trial began."""

    version: str
    before: str | None
    copy: str
    was_running: bool


class UpgradeTrial:
    """One at a time for each home."""

    def __init__(self, home: Home, say: Say) -> None:
        self._home = home
        self._say = say
        self.folder = current_version(home).parent
        self._journal = self.folder / "trial.json"

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Raises `upgrade.already-running`. Takes back what an interrupted upgrade left."""
        ensure_private_folder(self._home.root)
        ensure_private_folder(self.folder)
        with (self.folder / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FreeholdError("upgrade.already-running", "Another upgrade of this home is running") from None
            left = self._read_journal()
            if left is not None:
                self._say("an upgrade was interrupted: going back to the version before")
                self._take_back(left)
            yield

    def carry_out(self, environment: VersionEnvironment, version: str) -> None:
        """Raises `upgrade.failed`; then the version before runs again, if it ran, and its data is what it was."""
        before = self._find_before()
        was_running = before.call("status", "--json", "--home", str(self._home.root)).stdout.startswith("{")
        self._say("stopping Freehold" if was_running else "Freehold is not running")
        _require(before.call("down", "--home", str(self._home.root)), "Freehold could not be stopped")
        link = current_version(self._home)
        name = f"before-{secrets.token_hex(4)}"
        previous = str(link.readlink()) if link.is_symlink() else None
        journal = TrialJournal(version, previous, name, was_running)
        self._say("copying what is stored")
        HomeCopy(self._home, self.folder / name).make()
        self._write_journal(journal)
        self._say(f"starting version {version}")
        try:
            self._point(str(environment.python.parent.parent))
            trouble = self._try(environment)
        except subprocess.TimeoutExpired:
            trouble = "it did not get ready in time"
        if trouble:
            self._say(f"going back: {trouble}")
            self._take_back(journal)
            raise FreeholdError(
                "upgrade.failed",
                f"Version {version} did not get ready: {trouble}",
                hint="The version before is back with its data. Look at freehold logs, and tell us",
            )
        self._journal.unlink()
        HomeCopy(self._home, self.folder / name).remove()
        if not was_running:
            environment.call("down", "--home", str(self._home.root))

    def _try(self, environment: VersionEnvironment) -> str:
        """Why it is not ready; empty if it is."""
        started = environment.call("up", "-d", "--home", str(self._home.root))
        if started.returncode:
            return _last_line(started)
        status = environment.call("status", "--json", "--home", str(self._home.root))
        with contextlib.suppress(ValueError, KeyError, TypeError):
            if json.loads(status.stdout)["ready"]:
                return ""
        return f"it is not ready: {_last_line(status)}"

    def _take_back(self, journal: TrialJournal) -> None:
        """May be repeated."""
        self._stop_tried()
        copy = self.folder / journal.copy
        if copy.exists():
            HomeCopy(self._home, copy).restore(self.folder / f"failed-{journal.copy.removeprefix('before-')}")
        if journal.before is None:
            current_version(self._home).unlink(missing_ok=True)
        else:
            self._point(journal.before)
        self._journal.unlink()
        if journal.was_running:
            _require(self._find_before().call("up", "-d", "--home", str(self._home.root)), "It could not be started")

    def _stop_tried(self) -> None:
        """By its own command, or that of this version; and if neither works, by a signal. Its programs end with the keeper."""
        for environment in (self._find_before(), VersionEnvironment(Path(sys.executable))):
            with contextlib.suppress(subprocess.TimeoutExpired, OSError):
                if environment.call("down", "--now", "--home", str(self._home.root)).returncode == 0:
                    break
        if is_unlocked(self._home):
            return
        holder = read_lock_holder(self._home)
        found = None if holder is None else identify_process(holder.pid)
        if holder is not None and found is not None and found.started == holder.started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(holder.pid, signal.SIGKILL)
        deadline = time.monotonic() + KILL_TIMEOUT
        while not is_unlocked(self._home):
            if time.monotonic() > deadline:
                raise FreeholdError(
                    "upgrade.still-running",
                    "The new version does not stop",
                    hint="End its processes, then freehold upgrade again: it begins by going back",
                )
            time.sleep(0.05)

    def _find_before(self) -> VersionEnvironment:
        """The version that the link names; this one if there is no link."""
        return VersionEnvironment(find_python(self._home) or Path(sys.executable))

    def _point(self, target: str) -> None:
        draft = self.folder / ".current"
        draft.unlink(missing_ok=True)
        draft.symlink_to(target)
        draft.replace(current_version(self._home))

    def _read_journal(self) -> TrialJournal | None:
        try:
            return decode(TrialJournal, json.loads(self._journal.read_bytes()))
        except FileNotFoundError:
            return None
        except (ValueError, WrongShape) as error:
            raise FreeholdError(
                "upgrade.unreadable", f"{self._journal} cannot be read: {error}", hint="Remove it if Freehold works"
            ) from error

    def _write_journal(self, journal: TrialJournal) -> None:
        draft = self._journal.with_name(".trial.json")
        with draft.open("w") as file:
            json.dump(encode(journal), file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._journal)


def is_unlocked(home: Home) -> bool:
    """Whether no keeper holds this home."""
    try:
        with home.lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    return True


def _require(done: "subprocess.CompletedProcess[str]", what: str) -> None:
    if done.returncode:
        raise FreeholdError("upgrade.failed", f"{what}: {_last_line(done)}", hint="freehold status, freehold logs")


def _last_line(done: "subprocess.CompletedProcess[str]") -> str:
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return lines[0][:300] if lines else f"exit code {done.returncode}"
