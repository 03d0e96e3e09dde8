"""Tries a version with the real home. It stays if it gets ready; else the version before comes back, with its data.

A journal says what is being tried. If this process dies, the next start ends the trial: a version that has been ready
stays, with everything that it wrote since; any other is taken back before the home is opened.
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

from freehold import __version__
from freehold.errors import FreeholdError
from freehold.home import Home, ensure_private_folder
from freehold.installed_version import (
    REPLACED,
    current_version,
    find_python,
    forget_trial,
    newest_version,
    read_replaced,
    starts_lock,
    trial_journal,
    was_ready,
)
from freehold.keeper.lock import lock_home, read_lock_holder
from freehold.keeper.processes import identify_process
from freehold.keeper.service_manager import is_run_by_systemd
from freehold.strict_json import WrongShape, decode, encode
from freehold.upgrade.environment import COMPLETE, VersionEnvironment
from freehold.upgrade.home_copy import HomeCopy, remove_tree
from freehold.upgrade.interruption import outlast_terminal, without_interruption

Say = Callable[[str], None]
KILL_TIMEOUT = 30.0
SERVICE_TIMEOUT = 120.0
"""Until a service must be ready. One that ends is started again meanwhile."""
MAX_KEPT = 2
"""Environments, and homes of versions that failed. The oldest of more than these are removed."""


@dataclass(frozen=True)
class TrialJournal:
    """`before` is the environment that the link named, or nothing. `was_running`: whether it ran when the trial began.

    `is_service`: whether systemd starts it again by itself. `environment` is that of the version on trial, and `python`
    the interpreter of the version before.
    """

    version: str
    before: str | None
    copy: str
    was_running: bool
    is_service: bool = False
    environment: str | None = None
    python: str | None = None


class UpgradeTrial:
    """One at a time for each home."""

    def __init__(self, home: Home, say: Say) -> None:
        self._home = home
        self._tell = say
        self.folder = current_version(home).parent
        self._journal = trial_journal(home)

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Raises `upgrade.already-running`. Ends what an interrupted upgrade left; see the module."""
        ensure_private_folder(self._home.root)
        ensure_private_folder(self.folder)
        with self._lock():
            left = self._read_journal()
            if left is not None and not self._keep_if_ready(left):
                self._say("an upgrade was interrupted: going back to the version before")
                self._take_back(left)
            for name in {one.name.lstrip(".") for one in self.folder.glob("*before-*")}:
                HomeCopy(self._home, self.folder / name).remove()
            try:
                yield
            finally:
                self._remove_old()

    def end_abandoned(self) -> Path | None:
        """End a trial whose upgrade is gone, while nothing runs. The interpreter of the version before, if that is back.

        Raises `upgrade.failed` if it cannot be brought back: then nothing may open the home. Nothing is done while that upgrade works, while a keeper runs, and when another version wrote the journal.
        """
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(self._lock())
                left = self._read_journal()
                if left is None or self._keep_if_ready(left):
                    return None
                stack.enter_context(self._hold_starts())
                stack.enter_context(lock_home(self._home))
            except (FreeholdError, OSError):
                return None
            self._say("an upgrade was interrupted: going back to the version before")
            try:
                with without_interruption():
                    self._restore(left)
            except OSError as error:
                raise FreeholdError(
                    "upgrade.failed",
                    f"The version before cannot be brought back: {error}",
                    hint=f"Look at the disk, then try again: df -h {self._home.root}",
                ) from error
            return Path(left.python) if left.python is not None and Path(left.python).exists() else None

    def carry_out(self, environment: VersionEnvironment, version: str) -> None:
        """Raises `upgrade.failed`; then the version before runs again, if it ran, and its data is what it was.

        The same after Ctrl-C.
        """
        copy = HomeCopy(self._home, self.folder / f"before-{secrets.token_hex(4)}")
        copy.check_space()
        before = self._find_before()
        status = before.call("status", "--json", "--home", str(self._home.root))
        link = current_version(self._home)
        journal = TrialJournal(
            version,
            str(link.readlink()) if link.is_symlink() else None,
            copy.folder.name,
            was_running=status.stdout.startswith("{"),
            is_service=is_run_by_systemd(self._home),
            environment=str(environment.folder),
            python=str(before.python),
        )
        with outlast_terminal():
            self._write_journal(journal)
            try:
                self._replace_version(environment, journal, copy)
            except BaseException as trouble:
                message = trouble.message if isinstance(trouble, FreeholdError) else "the upgrade was interrupted"
                self._say(f"going back: {message}")
                self._take_back(journal)
                raise
            forget_trial(self._home)
            copy.remove()
            if not journal.was_running:
                environment.call("down", "--home", str(self._home.root))

    def _replace_version(self, environment: VersionEnvironment, journal: TrialJournal, copy: HomeCopy) -> None:
        """Stop what runs, copy what is stored, and start the other version. Raises `upgrade.failed`."""
        try:
            with self._hold_starts():
                self._say("stopping Freehold" if journal.was_running else "Freehold is not running")
                stopped = self._find_before().call("down", "--home", str(self._home.root))
                _require(stopped, "Freehold could not be stopped")
                self._say("copying what is stored")
                with lock_home(self._home):
                    copy.make()
                    self._note_replaced(environment)
                    self._point(str(environment.folder))
            self._say(f"starting version {journal.version}")
            reason = self._wait_for_service(environment) if journal.is_service else self._start(environment)
        except subprocess.TimeoutExpired:
            reason = "it did not get ready in time"
        if reason:
            raise FreeholdError(
                "upgrade.failed",
                f"Version {journal.version} did not get ready: {reason}",
                hint="The version before is back with its data. Look at freehold logs, and tell us",
            )

    def _note_replaced(self, environment: VersionEnvironment) -> None:
        """An older version that the owner chose is not outdated by the one that it replaces."""
        replaced = newest_version(__version__, read_replaced(current_version(self._home)))
        environment.folder.mkdir(parents=True, exist_ok=True)
        (environment.folder / REPLACED).write_text(replaced)

    def _keep_if_ready(self, left: TrialJournal) -> bool:
        """A version that has been ready may have worked for weeks: it stays, with what was written since."""
        if not was_ready(self._home, left.copy):
            return False
        forget_trial(self._home)
        HomeCopy(self._home, self.folder / left.copy).remove()
        return True

    def _say(self, what: str) -> None:
        """The terminal may be gone."""
        with contextlib.suppress(OSError):
            self._tell(what)

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        with (self.folder / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FreeholdError("upgrade.already-running", "Another upgrade of this home is running") from None
            yield

    @contextlib.contextmanager
    def _hold_starts(self) -> Iterator[None]:
        """Meanwhile a keeper that is started waits; see `begin_start`."""
        with starts_lock(self._home).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _start(self, environment: VersionEnvironment) -> str:
        """Why it is not ready; empty if it is."""
        started = environment.call("up", "-d", "--home", str(self._home.root))
        status = environment.call("status", "--json", "--home", str(self._home.root))
        if started.returncode:
            return _explain(status) or _last_line(started)
        return "" if _is_ready(status) else f"it is not ready: {_explain(status) or _last_line(status)}"

    def _wait_for_service(self, environment: VersionEnvironment) -> str:
        """As `_start`. systemd starts it, and starts it again when it ends."""
        deadline = time.monotonic() + SERVICE_TIMEOUT
        while not _is_ready(status := environment.call("status", "--json", "--home", str(self._home.root))):
            if time.monotonic() > deadline:
                return f"its service is not ready: {_explain(status) or _last_line(status)}"
            time.sleep(0.2)
        return ""

    def _take_back(self, journal: TrialJournal) -> None:
        """May be repeated."""
        with without_interruption():
            with self._hold_starts():
                self._stop_tried()
                self._restore(journal)
            if journal.was_running and not journal.is_service:
                before = VersionEnvironment(Path(journal.python)) if journal.python is not None else self._find_before()
                _require(before.call("up", "-d", "--home", str(self._home.root)), "It could not be started")

    def _restore(self, journal: TrialJournal) -> None:
        """Nothing runs. May be repeated."""
        copy = HomeCopy(self._home, self.folder / journal.copy)
        if copy.folder.exists():
            copy.restore(self.folder / f"failed-{journal.copy.removeprefix('before-')}")
        copy.remove()
        if journal.before is None:
            current_version(self._home).unlink(missing_ok=True)
        else:
            self._point(journal.before)
        forget_trial(self._home)

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

    def _remove_old(self) -> None:
        """Environments and failed homes but those used last; never that of a version that runs."""
        used = {current_version(self._home).resolve(), Path(sys.prefix).resolve()}
        environments = [mark.parent for mark in self.folder.glob(f"*/{COMPLETE}") if not mark.parent.is_symlink()]
        for kind in (environments, list(self.folder.glob("failed-*"))):
            kind.sort(key=lambda one: one.stat().st_mtime_ns, reverse=True)
            for old in kind[MAX_KEPT:]:
                if old.resolve() not in used:
                    remove_tree(old)
        for wheel in self.folder.glob("*.whl"):
            wheel.unlink()

    def _point(self, target: str) -> None:
        draft = self.folder / ".current"
        draft.unlink(missing_ok=True)
        draft.symlink_to(target)
        draft.replace(current_version(self._home))
        with contextlib.suppress(OSError):
            os.utime(target)  # used last; see _remove_old

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


def _is_ready(status: "subprocess.CompletedProcess[str]") -> bool:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return bool(json.loads(status.stdout)["ready"])
    return False


def _explain(status: "subprocess.CompletedProcess[str]") -> str:
    """What is missing, and why the timeline cannot be read. Empty when the version on trial does not say it."""
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        found = json.loads(status.stdout)
        trouble = str(found.get("timeline_trouble") or "").splitlines()
        return "; ".join([*map(str, found["missing"]), *trouble[:1]])[:600]
    return ""


def _require(done: "subprocess.CompletedProcess[str]", what: str) -> None:
    if done.returncode:
        raise FreeholdError("upgrade.failed", f"{what}: {_last_line(done)}", hint="freehold status, freehold logs")


def _last_line(done: "subprocess.CompletedProcess[str]") -> str:
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return lines[0][:300] if lines else f"exit code {done.returncode}"
