"""Random writes by several writers, then undo and redo: the state of every entry is restored byte for byte."""

import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.history.tree import TreeItem, differences, read_tree

from freehold.errors import FreeholdError
from freehold.history import History, HistorySettings
from freehold.history.contents import MAX_INLINE_BYTES

NAMES = [b"a", b"b", b"sub", b".git", b"with space", b"new\nline", b"bad\xff\xfe", b"-rf", b"\xc3\xbc", b"x" * 200]
names = st.sampled_from(NAMES)
paths = st.lists(names, min_size=1, max_size=3).map(lambda parts: b"/".join(parts))
LARGE = {"edge": b"z" * MAX_INLINE_BYTES, "over": b"z" * (MAX_INLINE_BYTES + 1), "chunks": bytes(range(256)) * 700}
contents = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(["", "one\ntwo\nthree\n", *LARGE]).map(lambda key: LARGE.get(key, key.encode())),
)
modes = st.sampled_from([0o600, 0o644, 0o755, 0o444, 0o000, 0o4755])


def act(root: Path, kind: str, path: bytes, other: bytes, data: bytes, mode: int) -> None:
    """One change of the tree. A change that the kernel refuses is skipped."""
    at, to = root / os.fsdecode(path), root / os.fsdecode(other)
    try:
        if kind == "write" and not at.is_symlink():
            at.write_bytes(data)
        elif kind == "append" and not at.is_symlink():
            with at.open("ab") as file:
                file.write(data)
        elif kind == "folder":
            at.mkdir(parents=True)
        elif kind == "rename":
            at.rename(to)
        elif kind == "symlink":
            at.symlink_to(os.fsdecode(other))
        elif kind == "hardlink":
            os.link(at, to, follow_symlinks=False)
        elif kind == "mode" and not at.is_symlink():
            at.chmod(mode)
        elif kind == "unlink":
            at.unlink()
        elif kind == "remove":
            shutil.rmtree(at)
        elif kind == "time":
            os.utime(at, ns=(1, 1_000_000_007 * (mode + 1)), follow_symlinks=False)
        elif kind == "repository":
            (at / ".git" / "refs").mkdir(parents=True)
            (at / ".git" / "HEAD").write_bytes(b"ref: refs/heads/" + data.hex().encode())
    except (OSError, shutil.Error):
        return


kinds = st.sampled_from(
    [
        "write",
        "write",
        "append",
        "folder",
        "rename",
        "symlink",
        "hardlink",
        "mode",
        "unlink",
        "remove",
        "time",
        "repository",
    ]
)
actions = st.tuples(kinds, paths, paths, contents, modes)


def _without_times(tree: dict[bytes, TreeItem]) -> dict[bytes, TreeItem]:
    """Without times and hard-link groups, which a revert does not change."""
    return {path: found._replace(mtime=0, names=()) for path, found in tree.items()}


def _with_one_time(tree: dict[bytes, TreeItem]) -> dict[bytes, TreeItem]:
    """Times alone make no entry. They become a part of the newest one."""
    return {path: found._replace(mtime=0) for path, found in tree.items()}


class Model(RuleBasedStateMachine):
    """The model is a copy of the tree at each entry."""

    @initialize(watched=st.booleans())
    def begin(self, watched: bool) -> None:
        memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self.base = Path(tempfile.mkdtemp(prefix="freehold-model-", dir=memory))
        self.root = self.base / "workspace"
        self.root.mkdir()
        self.history = History(self.base / "history", {"workspace": self.root}, HistorySettings(quiet=0))
        if watched:
            self.history.start()
        self.history.snapshot()
        self.states: dict[int, dict[bytes, TreeItem]] = {1: read_tree(self.root)}

    def teardown(self) -> None:
        if hasattr(self, "history"):
            self.history.close()
            shutil.rmtree(self.base)

    @rule(action=actions)
    def one_writer(self, action: tuple[str, bytes, bytes, bytes, int]) -> None:
        act(self.root, *action)

    @rule(each=st.lists(st.lists(actions, max_size=5), min_size=2, max_size=3))
    def several_writers(self, each: list[list[Any]]) -> None:
        def run(some: list[Any]) -> None:
            for action in some:
                act(self.root, *action)

        writers = [threading.Thread(target=run, args=(some,)) for some in each]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()

    @rule()
    def take(self) -> None:
        found = read_tree(self.root)
        mark = self.history.snapshot("turn")
        if not mark.changed:
            assert not differences(_with_one_time(self.states[mark.entry]), _with_one_time(found))
        self.states[mark.entry] = found

    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        self.take()
        entry = data.draw(st.sampled_from(sorted(self.states)))
        self._settled(self.history.restore(entry), entry)

    @rule()
    def undo(self) -> None:
        self.take()
        if self.history.entry(self.history.newest()).equals == 1:
            with pytest.raises(FreeholdError, match="oldest"):
                self.history.undo()
            return
        plan = self.history.plan_undo()
        self._settled(self.history.undo(), plan.target)

    @rule()
    def redo(self) -> None:
        self.take()
        if self.history.entry(self.history.newest()).kind not in ("undo", "redo"):
            with pytest.raises(FreeholdError, match="nothing to redo"):
                self.history.redo()
            return
        try:
            plan = self.history.plan_redo()
        except FreeholdError:
            return  # everything undone is redone already
        self._settled(self.history.redo(), plan.target)

    @rule()
    def take_back_the_newest(self) -> None:
        self.take()
        newest = self.history.newest()
        if newest == 1:
            return
        self.history.revert(newest, {"": "old"})
        assert _without_times(read_tree(self.root)) == _without_times(self.states[newest - 1])
        self.states[self.history.newest()] = read_tree(self.root)

    @precondition(lambda self: hasattr(self, "history"))
    @rule(watched=st.booleans())
    def reopen(self, watched: bool) -> None:
        self.history.close()
        self.history = History(self.base / "history", {"workspace": self.root}, HistorySettings(quiet=0))
        if watched:
            self.history.start()

    @invariant()
    def nothing_is_left_in_staging(self) -> None:
        if hasattr(self, "history"):
            assert not list(self.root.glob(".freehold-restore*"))

    def _settled(self, outcome: Any, target: int) -> None:
        assert outcome.unsettled == ()
        assert not differences(self.states[target], read_tree(self.root)), f"entry {target}"
        self.states[outcome.entry.id] = self.states[target]


Model.TestCase.settings = settings(
    max_examples=80,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
)
TestEveryEntryComesBack = Model.TestCase
