"""The progress of an undo, and its cancellation: before the first change nothing happens, after it the undo is finished."""

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.history.tree import differences, read_tree, write
from tests.support.condition import DEADLINE, wait_until

from freehold.errors import FreeholdError
from freehold.history import History
from freehold.history.model import RestorePhase, RestoreProgress
from freehold.history.restore import Restorer
from freehold.history.restore_control import RestoreControl

FILES = 300


@pytest.fixture
def changed(history: History, workspace: Path) -> Path:
    """A folder that was deleted, and files that were rewritten."""
    for number in range(FILES):
        write(workspace / "gone" / f"{number}", f"old {number}")
        write(workspace / "kept" / f"{number}", f"old {number}")
    history.snapshot("turn")
    shutil.rmtree(workspace / "gone")
    for number in range(FILES):
        write(workspace / "kept" / f"{number}", f"a new text of {number}")
    history.snapshot("turn")
    return workspace


def on_step(monkeypatch: pytest.MonkeyPatch, act: Callable[[RestoreControl], object]) -> None:
    """Call `act` each time that the restore reports a step."""
    advance = RestoreControl.advance

    def watched(control: RestoreControl, steps: int) -> None:
        act(control)
        advance(control, steps)

    monkeypatch.setattr(RestoreControl, "advance", watched)


def test_an_undo_that_is_cancelled_before_the_first_change_changes_nothing(
    history: History, changed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, newest = read_tree(changed), history.newest()
    on_step(monkeypatch, lambda control: history.cancel_restore(control.id))
    with pytest.raises(FreeholdError, match=r"was cancelled\. Nothing was changed") as error:
        history.undo()
    assert error.value.code == "history.cancelled"
    assert not differences(before, read_tree(changed))
    assert history.newest() == newest
    assert history.interrupted() is None
    assert history.list_restores() == ()
    history.empty_staging()
    assert not any((history.folder / "staging").iterdir())
    monkeypatch.undo()
    assert history.undo().unsettled == ()


def test_an_undo_can_be_cancelled_up_to_the_moment_of_its_first_change(
    history: History, changed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_tree(changed)
    begin = Restorer.begin_changes

    def cancel_first(restorer: Restorer) -> None:
        assert history.cancel_restore("mine") == "cancelled"
        begin(restorer)

    monkeypatch.setattr(Restorer, "begin_changes", cancel_first)
    with pytest.raises(FreeholdError, match="Nothing was changed"):
        history.undo(restore_id="mine")
    assert not differences(before, read_tree(changed))


def test_an_undo_that_has_begun_to_change_files_is_finished(
    history: History, changed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Restorer.begin_changes

    def begin_then_cancel(restorer: Restorer) -> None:
        begin(restorer)
        assert history.cancel_restore("mine") == "too-late"

    monkeypatch.setattr(Restorer, "begin_changes", begin_then_cancel)
    assert history.undo(restore_id="mine").unsettled == ()
    assert (changed / "kept" / "7").read_text() == "old 7"
    assert (changed / "gone" / "7").read_text() == "old 7"


def test_the_progress_goes_through_each_phase_and_counts_up(
    history: History, changed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[RestoreProgress] = []

    def look(control: RestoreControl) -> None:
        (found,) = history.list_restores()
        seen.append(found)

    on_step(monkeypatch, look)
    enter = RestoreControl.enter
    phases: list[RestorePhase] = []

    def watched(control: RestoreControl, phase: RestorePhase, total: int = 0) -> None:
        enter(control, phase, total)
        phases.append(phase)

    monkeypatch.setattr(RestoreControl, "enter", watched)
    history.undo(restore_id="mine")
    assert phases == ["planning", "preparing", "changing", "recording"]
    assert {(each.id, each.kind) for each in seen} == {("mine", "undo")}
    preparing = [each for each in seen if each.phase == "preparing"]
    assert [each.done for each in preparing] == sorted(each.done for each in preparing)
    assert {each.total for each in preparing} == {2 * FILES + 1 + 1}  # the folder that comes back, and the root's time
    assert all(each.cancellable for each in preparing)
    assert not any(each.cancellable for each in seen if each.phase != "preparing")
    assert history.list_restores() == ()


@pytest.mark.parametrize("slow_seconds", [3600.0, -1.0], ids=["once", "built again"])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_progress_counts_what_is_done_in_every_thread_and_nothing_else(
    history: History, changed: Path, monkeypatch: pytest.MonkeyPatch, threads: int, slow_seconds: float
) -> None:
    """Also when creating files is so slow that a folder is built again in another place."""
    monkeypatch.setattr("freehold.history.folder_builder._SLOW_SECONDS", slow_seconds)
    monkeypatch.setattr("freehold.history.new_files._BATCH_STEPS", 8)
    monkeypatch.setattr("freehold.history.restore._STEPS_PER_THREAD", 1 if threads > 1 else 2 * FILES)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: range(threads))
    advance = RestoreControl.advance
    counted: list[tuple[RestorePhase, int]] = []

    def watched(control: RestoreControl, steps: int) -> None:
        advance(control, steps)
        progress = control.progress
        counted.append((progress.phase, progress.done))  # not in order: threads do this at the same time
        if progress.phase == "preparing":
            made = sum(len(folders) + len(files) for _, folders, files in os.walk(history.folder / "staging"))
            assert progress.done <= made

    monkeypatch.setattr(RestoreControl, "advance", watched)
    history.undo()
    everything = 2 * FILES + 1  # and the root's time, which needs no preparation
    most = {phase: max(done for found, done in counted if found == phase) for phase, _ in counted}
    assert most == {"preparing": everything, "changing": everything}


def test_a_restore_that_waits_for_another_is_cancelled_at_once_and_alone(
    history: History, changed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one holds the files until the second one has ended."""
    ended = threading.Event()
    errors: list[FreeholdError] = []
    begin = Restorer.begin_changes

    def ask_second() -> None:
        try:
            history.restore(1, restore_id="second")
        except FreeholdError as error:
            errors.append(error)
        ended.set()

    def hold(restorer: Restorer) -> None:
        threading.Thread(target=ask_second, daemon=True).start()
        wait_until(lambda: len(history.list_restores()) == 2)
        assert [(each.id, each.phase, each.cancellable) for each in history.list_restores()] == [
            ("first", "preparing", True),
            ("second", "waiting", True),
        ]
        assert history.cancel_restore("second") == "cancelled"
        assert ended.wait(DEADLINE)
        begin(restorer)

    monkeypatch.setattr(Restorer, "begin_changes", hold)
    assert history.undo(restore_id="first").unsettled == ()
    assert [error.code for error in errors] == ["history.cancelled"]
    assert (changed / "kept" / "7").read_text() == "old 7"


def test_a_restore_that_has_ended_is_not_found(history: History, changed: Path) -> None:
    assert history.cancel_restore("mine") == "not-found"
    history.undo(restore_id="mine")
    assert history.cancel_restore("mine") == "not-found"


@pytest.mark.parametrize("wrong", ["", "x" * 65, "a b", "../up", "zwölf"])
def test_an_id_of_another_form_is_refused_before_anything_happens(history: History, changed: Path, wrong: str) -> None:
    before = history.newest()
    with pytest.raises(FreeholdError, match="cannot be the id of a restore") as error:
        history.undo(restore_id=wrong)
    assert error.value.code == "history.bad-request"
    assert history.newest() == before


def test_two_restores_at_once_never_have_the_same_id(
    history: History, changed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Restorer.begin_changes

    def ask_again(restorer: Restorer) -> None:
        with pytest.raises(FreeholdError, match="the id mine has not ended") as error:
            history.redo(restore_id="mine")
        assert error.value.code == "history.already-running"
        begin(restorer)

    monkeypatch.setattr(Restorer, "begin_changes", ask_again)
    assert history.undo(restore_id="mine").unsettled == ()


def test_a_cancelled_recovery_can_be_asked_for_again(
    history: History, changed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(restorer: Restorer) -> None:
        raise OSError(5, "I/O error")

    with monkeypatch.context() as broken:
        broken.setattr(Restorer, "apply_steps", fail)
        with pytest.raises(FreeholdError, match="was interrupted"):
            history.undo()
    interrupted = history.interrupted()
    assert interrupted is not None
    with monkeypatch.context() as cancelling:
        on_step(cancelling, lambda control: history.cancel_restore(control.id))
        with pytest.raises(FreeholdError, match="was cancelled"):
            history.recover(finish=True)
    again = history.interrupted()
    assert again is not None
    assert (again.kind, again.target, again.before) == (interrupted.kind, interrupted.target, interrupted.before)
    assert history.recover(finish=True).unsettled == ()
    assert (changed / "gone" / "7").read_text() == "old 7"
