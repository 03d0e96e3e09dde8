"""The progress of a restore, and its cancellation: possible until the first file changes, never after."""

import threading

from freehold.errors import FreeholdError
from freehold.history.model import EntryKind, RestorePhase, RestoreProgress

CANCELLED_CODE = "history.cancelled"


class RestoreControl:
    """One restore, from the request to its end. Thread-safe: others read its progress and cancel it."""

    def __init__(self, kind: EntryKind) -> None:
        self._kind = kind
        self._lock = threading.Lock()
        self._phase: RestorePhase = "planning"
        self._done = self._total = 0
        self._cancelled = False
        self._begun = False

    @property
    def progress(self) -> RestoreProgress:
        with self._lock:
            cancellable = not self._begun and not self._cancelled
            return RestoreProgress(self._kind, self._phase, self._done, self._total, cancellable)

    def cancel(self) -> bool:
        """Whether it ends without changing anything. False when it changes files already: then it is finished."""
        with self._lock:
            self._cancelled = self._cancelled or not self._begun
            return self._cancelled

    def check(self) -> None:
        """Raises `history.cancelled` when it was cancelled."""
        if self._cancelled:
            raise FreeholdError(
                CANCELLED_CODE,
                f"The {self._kind} was cancelled. Nothing was changed",
                hint=f"To see what it would do: freehold {self._kind} --dry-run",
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
        self._done = min(self._total, self._done + steps)


class RestoreControls:
    """The restores that run or wait for their turn, the oldest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active: list[RestoreControl] = []

    def add(self, kind: EntryKind) -> RestoreControl:
        control = RestoreControl(kind)
        with self._lock:
            self._active.append(control)
        return control

    def remove(self, control: RestoreControl) -> None:
        with self._lock:
            self._active.remove(control)

    def get_progress(self) -> RestoreProgress | None:
        with self._lock:
            return self._active[0].progress if self._active else None

    def cancel(self) -> tuple[int, int]:
        """Cancel each restore that has not changed a file. Returns how many were cancelled, and how many go on."""
        with self._lock:
            cancelled = sum([control.cancel() for control in self._active])
            return cancelled, len(self._active) - cancelled
