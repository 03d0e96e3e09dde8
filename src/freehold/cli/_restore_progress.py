"""Runs an undo, redo, restore or revert: shows its progress on a terminal, and cancels it with Ctrl-C.

Until the first file changes, Ctrl-C cancels it and nothing has changed. After that it is finished, whatever is pressed.
"""

import signal
import sys
import threading
from collections.abc import Callable
from typing import Protocol, TextIO

import click

from freehold.errors import FreeholdError
from freehold.history import calls
from freehold.history.model import CancelOutcome, RestoreProgress
from freehold.history.restore_control import describe_phase
from freehold.home import Home

_INTERVAL = 0.2


class RestoreSource(Protocol):
    """The keeper, or the history that this command opened itself."""

    def list_restores(self) -> tuple[RestoreProgress, ...]: ...
    def cancel_restore(self, restore_id: str) -> CancelOutcome: ...


class KeeperRestores:
    """Asks the keeper. One that does not answer, or knows no progress, has none to show."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def list_restores(self) -> tuple[RestoreProgress, ...]:
        from freehold.keeper.client import call_keeper

        try:
            return call_keeper(self._home, calls.ListRestores(), timeout=5).restores
        except FreeholdError:
            return ()

    def cancel_restore(self, restore_id: str) -> CancelOutcome:
        from freehold.keeper.client import call_keeper

        try:
            return call_keeper(self._home, calls.CancelRestore(restore_id), timeout=5).outcome
        except FreeholdError:
            return "not-found"


class RestoreRun:
    """One call in a thread of its own, so that Ctrl-C is seen meanwhile. The call must have the id `restore_id`."""

    def __init__(
        self, restore_id: str, work: Callable[["RestoreRun"], calls.RestoreReport], source: RestoreSource
    ) -> None:
        self._id = restore_id
        self._work = work
        self._ended = threading.Event()
        self._reply: calls.RestoreReport | None = None
        self._error: BaseException | None = None
        self._is_cancel_wanted = False
        self.source = source

    def wait(self, *, shown: bool) -> calls.RestoreReport:
        """The reply, or the error of the call. Call it from the main thread."""
        line = RestoreProgressLine(sys.stderr if shown and sys.stderr.isatty() else None)
        # Not as an exception, which could come between any two lines and leave the call alone.
        before = signal.signal(signal.SIGINT, self._want_cancel)
        try:
            threading.Thread(target=self._run, name="restore", daemon=True).start()
            while not self._ended.wait(_INTERVAL):
                if line.is_shown:
                    line.show(next((each for each in self.source.list_restores() if each.id == self._id), None))
                if self._is_cancel_wanted:
                    self._cancel(line)
        finally:
            signal.signal(signal.SIGINT, before)
        line.clear()
        if self._error is not None:
            raise self._error
        assert self._reply is not None
        return self._reply

    def _want_cancel(self, *_: object) -> None:
        self._is_cancel_wanted = True

    def _cancel(self, line: "RestoreProgressLine") -> None:
        """Tried again while the call has not arrived. The error of the call says that it was cancelled."""
        outcome = self.source.cancel_restore(self._id)
        self._is_cancel_wanted = outcome == "not-found"
        if outcome == "too-late":
            line.clear()
            click.echo("Files are being changed already. This is finished first.", err=True)

    def _run(self) -> None:
        try:
            self._reply = self._work(self)
        except BaseException as error:
            self._error = error
        finally:
            self._ended.set()


class RestoreProgressLine:
    """One line that is written over and over. Without a terminal, nothing is written."""

    def __init__(self, terminal: TextIO | None) -> None:
        self._terminal = terminal
        self._length = 0

    @property
    def is_shown(self) -> bool:
        return self._terminal is not None

    def show(self, progress: RestoreProgress | None) -> None:
        if self._terminal is None or progress is None:
            return
        text = describe_progress(progress)
        self._terminal.write("\r" + text.ljust(self._length))
        self._terminal.flush()
        self._length = len(text)

    def clear(self) -> None:
        if self._terminal is not None and self._length:
            self._terminal.write("\r" + " " * self._length + "\r")
            self._terminal.flush()
            self._length = 0


def describe_progress(progress: RestoreProgress) -> str:
    return describe_phase(progress) + (" (Ctrl-C cancels)" if progress.cancellable else "")
