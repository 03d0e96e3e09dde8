"""The progress of a restore, and its cancellation: possible until the first file changes, never after."""

import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from freehold.errors import FreeholdError
from freehold.history.model import CancelOutcome, EntryKind, RestorePhase, RestoreProgress

CANCELLED_CODE = "history.cancelled"
_PHASES: dict[RestorePhase, str] = {
    "waiting": "Waiting for other work on the files",
    "planning": "Looking for changes",
    "preparing": "Preparing the files",
    "changing": "Changing the files",
    "recording": "Recording the result",
}
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LOCK_SECONDS = 0.05
"""How long a restore that waits for its turn does not see that it was cancelled."""


class RestoreControl:
    """One restore, from the request to its end. Thread-safe: others read its progress and cancel it."""

    def __init__(self, id: str, kind: EntryKind) -> None:
        self.id = id
        self._kind = kind
        self._lock = threading.Lock()
        self._phase: RestorePhase = "waiting"
        self._done = self._total = 0
        self._cancelled = False
        self._begun = False

    @property
    def progress(self) -> RestoreProgress:
        with self._lock:
            cancellable = not self._begun and not self._cancelled
            return RestoreProgress(self.id, self._kind, self._phase, self._done, self._total, cancellable)

    def cancel(self) -> bool:
        """Whether it ends without changing anything. False when it changes files already: then it is finished."""
        with self._lock:
            self._cancelled = self._cancelled or not self._begun
            return self._cancelled

    @contextmanager
    def wait_for(self, lock: threading.RLock) -> Iterator[None]:
        """Hold the lock. Raises `history.cancelled` as soon as it is cancelled, also while another holds it."""
        while not lock.acquire(timeout=_LOCK_SECONDS):
            self.check()
        try:
            self.enter("planning")
            yield
        finally:
            lock.release()

    def check(self) -> None:
        """Raises `history.cancelled` when it was cancelled."""
        if self._cancelled:
            raise FreeholdError(
                CANCELLED_CODE,
                f"The {self._kind} was cancelled. Nothing was changed",
                hint=f"To see what it would do: freehold {self._kind} … --dry-run",
            )

    def enter(self, phase: RestorePhase, total: int = 0) -> None:
        """The next phase, with this many steps. From `changing` on, nothing can be cancelled."""
        with self._lock:
            self.check()
            self._begun = self._begun or phase == "changing"
            self._phase, self._done, self._total = phase, 0, total

    def advance(self, steps: int) -> None:
        """This many steps are done, about. Raises `history.cancelled`."""
        self.check()
        with self._lock:  # several threads prepare files
            self._done = min(self._total, self._done + steps)


class RestoreControls:
    """The restores that run or wait for their turn, the oldest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active: list[RestoreControl] = []

    def add(self, kind: EntryKind, id: str | None) -> RestoreControl:
        """Without an id it gets one. Two that run or wait never have the same."""
        control = RestoreControl(secrets.token_hex(8) if id is None else id, kind)
        if not _ID.fullmatch(control.id):
            raise FreeholdError(
                "history.bad-request",
                f"{control.id[:80]!r} cannot be the id of a restore: it may have 1 to 64 letters, digits, - and _",
            )
        with self._lock:
            if self._find(control.id) is not None:
                raise FreeholdError(
                    "history.already-running",
                    f"A restore with the id {control.id} has not ended yet",
                    hint="Choose another id for each restore",
                )
            self._active.append(control)
        return control

    def remove(self, control: RestoreControl) -> None:
        with self._lock:
            self._active.remove(control)

    def list_progress(self) -> tuple[RestoreProgress, ...]:
        with self._lock:
            return tuple(control.progress for control in self._active)

    def cancel(self, id: str) -> CancelOutcome:
        with self._lock:
            control = self._find(id)
            if control is None:
                return "not-found"
            return "cancelled" if control.cancel() else "too-late"

    def _find(self, id: str) -> RestoreControl | None:
        return next((control for control in self._active if control.id == id), None)


def describe_phase(progress: RestoreProgress) -> str:
    """What it does now, and how far it is with it."""
    counted = f": {progress.done:,} of {progress.total:,}" if progress.total else ""
    return _PHASES[progress.phase] + counted
