"""Ctrl-C during `freehold undo`, and its progress line."""

import io
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.support.condition import wait_until

from freehold.cli._restore_progress import RestoreProgressLine, describe_progress
from freehold.cli.main import freehold_command
from freehold.errors import FreeholdError
from freehold.history import History, HistorySettings
from freehold.history.model import RestoreProgress
from freehold.history.restore import Restorer
from freehold.history.restore_control import RestoreControl
from freehold.home import Home, find_home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = find_home(tmp_path / "home")
    found.workspace.mkdir(parents=True)
    with History(found.history, {"workspace": found.workspace}, HistorySettings(quiet=0)) as history:
        (found.workspace / "file").write_text("old")
        history.snapshot()
        (found.workspace / "file").write_text("new text")
        history.snapshot("turn")
    return found


@pytest.fixture(autouse=True)
def python_handles_ctrl_c() -> Iterator[None]:
    """As in the program; the test run has a handler of its own."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def press_ctrl_c() -> None:
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)


def undo(home: Home) -> Result:
    return CliRunner().invoke(freehold_command, ["undo", "--home", str(home.root)])


def test_ctrl_c_before_the_first_change_cancels_the_undo(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Restorer.begin_changes

    def press_first(restorer: Restorer) -> None:
        control = restorer._context.control
        press_ctrl_c()
        wait_until(lambda: not control.progress.cancellable)
        begin(restorer)

    monkeypatch.setattr(Restorer, "begin_changes", press_first)
    result = undo(home)
    assert result.exit_code == 1
    assert isinstance(result.exception, FreeholdError)
    assert result.exception.message == "The undo was cancelled. Nothing was changed"
    assert (home.workspace / "file").read_text() == "new text"
    monkeypatch.undo()
    assert undo(home).exit_code == 0
    assert (home.workspace / "file").read_text() == "old"


def test_ctrl_c_after_the_first_change_says_that_the_undo_is_finished(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Event()
    begin, cancel = Restorer.begin_changes, RestoreControl.cancel

    def note(control: RestoreControl) -> bool:
        found = cancel(control)
        asked.set()
        return found

    def begin_then_press(restorer: Restorer) -> None:
        begin(restorer)
        press_ctrl_c()
        assert asked.wait(30)

    monkeypatch.setattr(RestoreControl, "cancel", note)
    monkeypatch.setattr(Restorer, "begin_changes", begin_then_press)
    result = undo(home)
    assert result.exit_code == 0
    assert "Files are being changed already. This is finished first." in result.output
    assert "1 restored" in result.output
    assert (home.workspace / "file").read_text() == "old"


def test_the_progress_is_one_line_on_a_terminal_and_nothing_elsewhere() -> None:
    terminal = io.StringIO()
    preparing = RestoreProgress("mine", "undo", "preparing", 20_000, 60_000, cancellable=True)
    line = RestoreProgressLine(terminal)
    line.show(preparing)
    line.show(RestoreProgress("mine", "undo", "recording", 0, 0, cancellable=False))
    line.clear()
    first, second, empty, rest = terminal.getvalue().split("\r")[1:]
    assert first == "Preparing the files: 20,000 of 60,000 (Ctrl-C cancels)" == describe_progress(preparing)
    assert second.rstrip() == "Recording the result"
    assert len(second) >= len(first), "the longer line before is overwritten"
    assert empty.strip() == rest == ""
    nothing = RestoreProgressLine(None)
    nothing.show(preparing)
    assert not nothing.is_shown
