"""Kill -9 at every write of the store and of a restore: the state before is intact, and the next start says what happened."""

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
from tests.history.tree import Found, differences, look, write

from freehold.history import History, Settings

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

QUIET = Settings(quiet=0)


def die_at(number: int) -> None:
    """From now on, end this process with SIGKILL right before its `number`-th write."""
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
    """Run in a copy of this process that dies at its `number`-th write; False when it ended before."""
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


class Scene:
    """A tree with three states, all of them in history but the last, to be played anew for every kill."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.tree = base / "workspace"
        self.tree.mkdir(parents=True)
        write(self.tree / "text", "one\n")
        write(self.tree / "goes" / "deep", "deep\n", 0o600)
        write(self.tree / "large", bytes(range(256)) * 1200)
        (self.tree / "link").symlink_to("text")
        self.states: list[dict[bytes, Found]] = [look(self.tree)]
        with self.open() as history:
            history.snapshot()
        write(self.tree / "text", "two\n")
        shutil.rmtree(self.tree / "goes")
        write(self.tree / "new" / "folder" / "file", "new\n")
        write(self.tree / "large", bytes(range(256)) * 1200 + b"more")
        (self.tree / "link").unlink()
        (self.tree / "link").mkdir()
        self.states.append(look(self.tree))

    def open(self) -> History:
        return History(self.base / "history", {"workspace": self.tree}, QUIET)

    def copy(self, to: Path) -> "Scene":
        """As it was, times included."""
        shutil.copytree(self.base, to, symlinks=True)
        scene = object.__new__(Scene)
        scene.base, scene.tree, scene.states = to, to / "workspace", self.states
        return scene


@pytest.fixture
def stage() -> Iterator[Path]:
    """In memory where possible: hundreds of scenes are played, and what is tested is no power cut."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def scenes(stage: Path) -> Callable[[bool], Iterator[Scene]]:
    def play(taken: bool) -> Iterator[Scene]:
        first = Scene(stage / "first")
        if taken:
            with first.open() as history:
                history.snapshot("turn")
        for number in range(1, 2000):
            scene = first.copy(stage / str(number))
            yield scene
            shutil.rmtree(scene.base)

    return play


def test_a_snapshot_killed_at_any_write_leaves_every_earlier_state_and_can_be_taken_again(
    scenes: Callable[[bool], Iterator[Scene]],
) -> None:
    dropped = 0
    for number, scene in enumerate(scenes(False), 1):

        def action(scene: Scene = scene) -> None:
            with scene.open() as history:
                history.snapshot("turn")

        killed = was_killed(action, number)
        with scene.open() as history:
            dropped += any(notice.code == "history.half-taken" for notice in history.notices())
            assert history.verify().damages == ()
            second = history.snapshot("turn").entry
            assert second == 2
            assert history.restore(1).unsettled == ()
            assert not differences(scene.states[0], look(scene.tree))
            assert history.restore(second).unsettled == ()
            assert not differences(scene.states[1], look(scene.tree))
            history.collect()
            assert history.verify().damages == ()
        if not killed:
            break
    assert number > 20


def test_a_restore_killed_at_any_write_is_noticed_and_can_be_finished_or_taken_back(
    scenes: Callable[[bool], Iterator[Scene]],
) -> None:
    interrupted = 0
    for number, scene in enumerate(scenes(True), 1):

        def action(scene: Scene = scene) -> None:
            with scene.open() as history:
                history.undo()

        killed = was_killed(action, number)
        with scene.open() as history:
            assert history.verify().damages == ()
            found = history.interrupted()
            if found is not None:
                interrupted += 1
                finish = interrupted % 2 == 0
                assert (found.kind, found.before, found.target) == ("undo", 2, 1)
                assert any(notice.code == "history.interrupted" for notice in history.notices())
                assert history.recover(finish=finish).unsettled == ()
                assert not differences(scene.states[0 if finish else 1], look(scene.tree))
                assert history.interrupted() is None
                assert history.notices() == []
            for entry in (2, 1):
                assert history.restore(entry).unsettled == ()
                assert not differences(scene.states[entry - 1], look(scene.tree))
        assert not list((scene.base / "history" / "staging").iterdir())
        if not killed:
            break
    assert interrupted > 20


def test_a_collection_killed_at_any_write_loses_nothing_that_is_kept(stage: Path) -> None:
    base = stage / "first"
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
    state = look(tree)
    for number in range(1, 2000):
        scene = stage / str(number)
        shutil.copytree(base, scene, symlinks=True)

        def action(scene: Path = scene) -> None:
            with History(scene / "history", {"workspace": scene / "workspace"}, QUIET) as history:
                history.collect(now=time.time() + 30 * day)

        killed = was_killed(action, number)
        with History(scene / "history", {"workspace": scene / "workspace"}, QUIET) as history:
            assert history.verify().damages == ()
            (scene / "workspace" / "large").unlink()
            assert history.restore(newest).unsettled == ()
            assert not differences(state, look(scene / "workspace"))
            history.collect()
            assert history.verify().damages == ()
        shutil.rmtree(scene)
        if not killed:
            break
    assert number > 20
