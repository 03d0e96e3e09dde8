"""A disk that is full, or fills up at any moment, while an undo, restore or revert runs: it is done, or it is not done."""

import errno
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.faults.restore_scenario import OWNER, VERBS, RestoreScenario, Verb, run_verb
from tests.faults.test_history_disk import needs_root, small_disk
from tests.faults.test_history_kills import WRAPPED, WRITES, die_at

from freehold.errors import FreeholdError
from freehold.history import History, calls
from freehold.history.service import HistoryService

ALLOCATING = WRITES - {"open", "unlink", "remove", "rmdir"}
"""To open a file that exists and to remove one need no space."""
DISK_BYTES = 12 << 20
STEP = 112 << 10


@pytest.fixture
def scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    yield folder
    shutil.rmtree(folder)


def authors(history: History) -> list[str]:
    """The newest first, without the first state."""
    return [str(entry.who.by) for entry in history.log()][:-1]


def check_truth(scenario: RestoreScenario, history: History, error: FreeholdError | None) -> bool:
    """What was said is what is so. Returns whether it was done."""
    interrupted = history.interrupted()
    if error is None:
        assert scenario.is_done()
        assert interrupted is None
        assert history.log()[0].kind in VERBS
        assert history.log()[0].who == OWNER
        return True
    if "Nothing was changed" in error.message:
        assert scenario.is_before()
        if interrupted is None:
            assert [entry.id for entry in history.log()] == [2, 1], "no entry was made of it"
        return False
    assert error.code in ("history.restore-not-recorded", "history.restore-interrupted")
    if interrupted is None:
        assert "done and recorded" in error.message
        assert scenario.is_done()
        return True
    assert interrupted.who == OWNER
    return False


@needs_root
@pytest.mark.parametrize("verb", VERBS)
def test_with_any_amount_of_free_space_it_is_done_or_not_done_and_the_retry_is_the_same(
    tmp_path: Path, scratch: Path, verb: Verb
) -> None:
    first = RestoreScenario.make(scratch / "first", bulk=2 << 20)
    refused = 0
    with small_disk(tmp_path / "disk", str(DISK_BYTES)) as disk:
        for number in range(200):
            scenario = first.copy(disk / "home")
            with scenario.open() as history:
                ballast = fill(disk, number * STEP)
                error: FreeholdError | None = None
                try:
                    assert run_verb(history, verb).unsettled == ()
                except FreeholdError as raised:
                    error = raised
                    refused += 1
                check_truth(scenario, history, error)
                ballast.unlink()
                if error is not None:
                    assert run_verb(history, verb).unsettled == ()
                assert scenario.is_done()
                assert history.interrupted() is None
                assert "agent" not in authors(history)[:-1], "only the turn itself is the agent's"
                assert history.verify().damages == ()
            shutil.rmtree(scenario.base)
            if error is None and number > 3:
                break
    assert 1 < refused < 190


def fill(disk: Path, free: int) -> Path:
    """A file that leaves this many bytes free."""
    ballast = disk / "ballast"
    with ballast.open("wb") as file:
        room = os.statvfs(disk)
        os.posix_fallocate(file.fileno(), 0, max(4096, room.f_bavail * room.f_frsize - free))
    return ballast


@needs_root
def test_a_small_undo_works_on_a_disk_without_a_free_byte(tmp_path: Path, scratch: Path) -> None:
    """History has set a little space aside for it."""
    first = RestoreScenario.make(scratch / "first")
    with small_disk(tmp_path / "disk", str(DISK_BYTES)) as disk:
        scenario = first.copy(disk / "home")
        with scenario.open() as history:
            fill(disk, 0)
            assert os.statvfs(disk).f_bavail == 0
            assert history.restore(1, ["workspace/text", "workspace/same"], OWNER).unsettled == ()
            assert (scenario.tree / "text").read_text() == "one\n" * 200


class FailingDisk:
    """The write with this number fails as on a full disk."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.count = 0

    def __enter__(self) -> "FailingDisk":
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, function: Any) -> None:
        name = function.__name__ if event == "c_call" else frame.f_code.co_name if event == "call" else ""
        if not (event == "c_call" and name in ALLOCATING) and not (event == "call" and name in WRAPPED):
            return
        self.count += 1
        if self.count == self._number:
            if name in ("execute", "executemany"):
                raise sqlite3.OperationalError("database or disk is full")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def service_answer(history: History, verb: Verb) -> calls.RestoreReport:
    """As the API, the command line and the recovery page ask."""
    who = calls.RequestAuthor(by="owner", via="command_line")
    call = {
        "undo": calls.UndoChanges(who=who),
        "restore": calls.RestoreEntry(1, who=who),
        "revert": calls.RevertEntry(2, who=who),
    }[verb]
    return HistoryService(history).answer(call)


@pytest.mark.parametrize("verb", VERBS)
def test_a_write_that_fails_at_any_place_leaves_it_done_or_not_done(scratch: Path, verb: Verb) -> None:
    first = RestoreScenario.make(scratch / "first")
    done = refused = 0
    for number in range(1, 2000):
        scenario = first.copy(scratch / str(number))
        with scenario.open() as history:
            error: FreeholdError | None = None
            try:
                with FailingDisk(number) as disk:
                    outcome = service_answer(history, verb)
            except FreeholdError as raised:
                error = raised
            if error is None and outcome.unsettled:
                is_done = scenario.is_done()  # or only the time of a folder could not be set
            else:
                is_done = check_truth(scenario, history, error)
            if not is_done:
                refused += 1
                assert run_verb(history, verb).unsettled == (), f"write {number}"
            else:
                done += 1
            assert scenario.is_done(), f"write {number}"
            assert "agent" not in authors(history)[:-1]
        shutil.rmtree(scenario.base)
        if disk.count < number:
            break
    assert refused > 5
    assert done > 5


def is_killed(scenario: RestoreScenario, verb: Verb, number: int) -> bool:
    """Run it in a fork that is killed at the `number`-th write of the verb itself. False when it finished before."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            history = scenario.open()
            die_at(number)
            run_verb(history, verb)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("verb", VERBS)
def test_a_kill_at_any_write_is_attributed_to_who_asked_and_asking_again_finishes_it(scratch: Path, verb: Verb) -> None:
    first = RestoreScenario.make(scratch / "first")
    interrupted = 0
    for number in range(1, 2000):
        scenario = first.copy(scratch / str(number))

        killed = is_killed(scenario, verb, number)
        with scenario.open() as history:
            found = history.interrupted()
            if found is not None:
                interrupted += 1
                assert (found.kind, found.who) == (verb, OWNER)
                history.snapshot("quiet")
                assert "agent" not in authors(history)[:-1], "who did it is in the journal"
            if found is not None or scenario.is_before():
                assert run_verb(history, verb).unsettled == ()
            assert scenario.is_done(), f"write {number}"
            assert history.interrupted() is None
            assert "agent" not in authors(history)[:-1]
        kept = scenario.base / "history" / "set-aside"
        assert not list(kept.rglob("*")), "everything is in history"
        shutil.rmtree(scenario.base)
        if not killed:
            break
    assert interrupted > 15
