"""Kill -9 at every write of the store and of a restore: earlier entries stay intact, and the next start reports it."""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.history.tree import TreeItem, differences, read_tree, write

from freehold.history import History, HistorySettings

# What changes something on disk, by the name under which the interpreter reports the call.
WRITES = frozenset(
    [
        "write",
        "pwrite",
        "open",
        "mkdir",
        "rmdir",
        "rename",
        "replace",
        "unlink",
        "remove",
        "link",
        "symlink",
        "chmod",
        "fchmod",
        "chown",
        "fchown",
        "utime",
        "fsync",
        "execute",
        "executemany",
    ]
)
WRAPPED = frozenset({"_rename", "sync"})  # foreign functions, reported by the function around them

QUIET = HistorySettings(quiet=0)


def die_at(number: int) -> None:
    """End this process with SIGKILL just before its `number`-th write from now on."""
    count = 0

    def profile(frame: FrameType, event: str, function: Any) -> None:
        nonlocal count
        name = function.__name__ if event == "c_call" else frame.f_code.co_name if event in ("call", "return") else ""
        if (event == "c_call" and name in WRITES) or (event != "c_call" and name in WRAPPED):
            count += 1
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(profile)


def was_killed(action: Callable[[], object], number: int) -> bool:
    """Run in a fork that is killed at its `number`-th write. False when it finished before."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            die_at(number)
            action()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


class KillScenario:
    """A tree with three states, of which the last is not recorded yet. It is set up again for every kill."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.tree = base / "workspace"
        self.tree.mkdir(parents=True)
        write(self.tree / "text", "one\n")
        write(self.tree / "goes" / "deep", "deep\n", 0o600)
        write(self.tree / "large", bytes(range(256)) * 1200)
        (self.tree / "link").symlink_to("text")
        self.states: list[dict[bytes, TreeItem]] = [read_tree(self.tree)]
        with self.open() as history:
            history.snapshot()
        write(self.tree / "text", "two\n")
        shutil.rmtree(self.tree / "goes")
        write(self.tree / "new" / "folder" / "file", "new\n")
        write(self.tree / "large", bytes(range(256)) * 1200 + b"more")
        (self.tree / "link").unlink()
        (self.tree / "link").mkdir()
        self.states.append(read_tree(self.tree))

    def open(self) -> History:
        return History(self.base / "history", {"workspace": self.tree}, QUIET)

    def copy(self, to: Path) -> "KillScenario":
        """The original state, with its times."""
        shutil.copytree(self.base, to, symlinks=True)
        scenario = object.__new__(KillScenario)
        scenario.base, scenario.tree, scenario.states = to, to / "workspace", self.states
        return scenario


@pytest.fixture
def scratch() -> Iterator[Path]:
    """In memory where possible: there are hundreds of scenarios, and a power cut is not tested."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def make_scenarios(scratch: Path) -> Callable[[bool], Iterator[KillScenario]]:
    def generate(recorded: bool) -> Iterator[KillScenario]:
        first = KillScenario(scratch / "first")
        if recorded:
            with first.open() as history:
                history.snapshot("turn")
        for number in range(1, 2000):
            scenario = first.copy(scratch / str(number))
            yield scenario
            shutil.rmtree(scenario.base)

    return generate


def test_a_snapshot_killed_at_any_write_keeps_earlier_entries_and_can_be_repeated(
    make_scenarios: Callable[[bool], Iterator[KillScenario]],
) -> None:
    dropped = 0
    for number, scenario in enumerate(make_scenarios(False), 1):

        def action(scenario: KillScenario = scenario) -> None:
            with scenario.open() as history:
                history.snapshot("turn")

        killed = was_killed(action, number)
        with scenario.open() as history:
            dropped += any(notice.code == "history.half-recorded" for notice in history.notices())
            assert history.verify().damages == ()
            second = history.snapshot("turn").entry
            assert second == 2
            assert history.restore(1).unsettled == ()
            assert not differences(scenario.states[0], read_tree(scenario.tree))
            assert history.restore(second).unsettled == ()
            assert not differences(scenario.states[1], read_tree(scenario.tree))
            history.collect()
            assert history.verify().damages == ()
        if not killed:
            break
    assert number > 20


def test_a_restore_killed_at_any_write_is_reported_and_can_be_finished_or_reversed(
    make_scenarios: Callable[[bool], Iterator[KillScenario]],
) -> None:
    interrupted = 0
    for number, scenario in enumerate(make_scenarios(True), 1):

        def action(scenario: KillScenario = scenario) -> None:
            with scenario.open() as history:
                history.undo()

        killed = was_killed(action, number)
        with scenario.open() as history:
            assert history.verify().damages == ()
            found = history.interrupted()
            if found is not None:
                interrupted += 1
                finish = interrupted % 2 == 0
                assert (found.kind, found.before, found.target) == ("undo", 2, 1)
                assert any(notice.code == "history.interrupted" for notice in history.notices())
                assert history.recover(finish=finish).unsettled == ()
                assert not differences(scenario.states[0 if finish else 1], read_tree(scenario.tree))
                assert history.interrupted() is None
                assert history.notices() == []
            for entry in (2, 1):
                assert history.restore(entry).unsettled == ()
                assert not differences(scenario.states[entry - 1], read_tree(scenario.tree))
        assert not list((scenario.base / "history" / "staging").iterdir())
        if not killed:
            break
    assert interrupted > 20


def test_a_garbage_collection_killed_at_any_write_loses_nothing_that_is_kept(scratch: Path) -> None:
    base = scratch / "first"
    tree = base / "workspace"
    tree.mkdir(parents=True)
    day = 86_400.0
    with History(base / "history", {"workspace": tree}, QUIET) as history:
        for number in range(4):
            write(tree / "large", bytes([number]) * 200_000 + bytes(range(256)))
            write(tree / f"only-in-{number}", str(number))
            history.snapshot("turn")
            (tree / f"only-in-{number}").unlink()
        history.snapshot("turn")
        newest = history.newest()
    state = read_tree(tree)
    for number in range(1, 2000):
        scenario = scratch / str(number)
        shutil.copytree(base, scenario, symlinks=True)

        def action(scenario: Path = scenario) -> None:
            with History(scenario / "history", {"workspace": scenario / "workspace"}, QUIET) as history:
                history.collect(now=time.time() + 30 * day)

        killed = was_killed(action, number)
        with History(scenario / "history", {"workspace": scenario / "workspace"}, QUIET) as history:
            assert history.verify().damages == ()
            (scenario / "workspace" / "large").unlink()
            assert history.restore(newest).unsettled == ()
            assert not differences(state, read_tree(scenario / "workspace"))
            history.collect()
            assert history.verify().damages == ()
        shutil.rmtree(scenario)
        if not killed:
            break
    assert number > 20
