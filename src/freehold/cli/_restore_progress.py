"""Runs an undo, redo, restore or revert: shows its progress on a terminal, and cancels it with Ctrl-C.

Until the first file changes, Ctrl-C cancels it and nothing has changed. After that it is finished, whatever is pressed.
"""

import sys
import threading
from collections.abc import Callable
from typing import Protocol, TextIO

import click

from freehold.errors import FreeholdError
from freehold.history import calls
from freehold.history.model import RestorePhase, RestoreProgress
from freehold.home import Home

_INTERVAL = 0.2
_PHASES: dict[RestorePhase, str] = {
    "planning": "Looking for changes",
    "preparing": "Preparing the files",
    "changing": "Changing the files",
    "recording": "Recording the result",
}


class RestoreSource(Protocol):
    """The keeper, or the history that this command opened itself."""

    def get_progress(self) -> RestoreProgress | None: ...
    def cancel_restores(self) -> tuple[int, int]: ...


class KeeperRestores:
    """Asks the keeper. One that does not answer, or knows no progress, has none to show."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def get_progress(self) -> RestoreProgress | None:
        from freehold.keeper.client import call_keeper

        try:
            return call_keeper(self._home, calls.GetRestoreProgress(), timeout=5).progress
        except FreeholdError:
            return None

    def cancel_restores(self) -> tuple[int, int]:
        from freehold.keeper.client import call_keeper

        try:
            found = call_keeper(self._home, calls.CancelRestores(), timeout=5)
        except FreeholdError:
            return 0, 0
        return found.cancelled, found.running


class RestoreRun:
    """One call in a thread of its own, so that Ctrl-C reaches this one."""

    def __init__(self, work: Callable[["RestoreRun"], calls.RestoreReport], source: RestoreSource) -> None:
        self._work = work
        self._ended = threading.Event()
        self._reply: calls.RestoreReport | None = None
        self._error: BaseException | None = None
        self._is_cancel_wanted = False
        self.source = source

    def wait(self, *, shown: bool) -> calls.RestoreReport:
        """The reply, or the error of the call."""
        line = RestoreProgressLine(sys.stderr if shown and sys.stderr.isatty() else None)
        threading.Thread(target=self._run, name="restore", daemon=True).start()
        while not self._ended.is_set():
            try:
                while not self._ended.wait(_INTERVAL):
                    if line.is_shown:
                        line.show(self.source.get_progress())
                    if self._is_cancel_wanted:
                        self._cancel(line)
            except KeyboardInterrupt:
                self._is_cancel_wanted = True
                self._cancel(line)
        line.clear()
        if self._error is not None:
            raise self._error
        assert self._reply is not None
        return self._reply

    def _cancel(self, line: "RestoreProgressLine") -> None:
        """Tried again while the call has not arrived. The error of the call says that it was cancelled."""
        cancelled, running = self.source.cancel_restores()
        self._is_cancel_wanted = not cancelled and not running
        if running:
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
    counted = f": {progress.done:,} of {progress.total:,}" if progress.total else ""
    hint = " (Ctrl-C cancels)" if progress.cancellable else ""
    return f"{_PHASES[progress.phase]}{counted}{hint}"
