"""A small tree with a history, and the three ways to take back its last turn: undo, restore and revert."""

import os
import shutil
from pathlib import Path
from typing import Literal

from tests.history.tree import TreeItem, differences, read_tree, write

from freehold.history import Author, History, HistorySettings, RestoreResult

Verb = Literal["undo", "restore", "revert"]
VERBS: tuple[Verb, ...] = ("undo", "restore", "revert")
AGENT = Author("agent", agent="claude", session="8d1f", turn="1", prompt="tidy up")
OWNER = Author("owner", via="command_line")


class RestoreScenario:
    """Entry 1 is the first state, entry 2 the turn of an agent that changed, removed and added files."""

    def __init__(self, base: Path, states: tuple[dict[bytes, TreeItem], ...]) -> None:
        self.base = base
        self.tree = base / "workspace"
        self.states = states

    @classmethod
    def make(cls, base: Path, *, bulk: int = 0) -> "RestoreScenario":
        """With `bulk`, the agent also removed a file of this many bytes."""
        tree = base / "workspace"
        write(tree / "goes" / "bulk", os.urandom(bulk))
        write(tree / "text", "one\n" * 200)
        write(tree / "goes" / "deep", "deep\n", 0o600)
        (tree / "same").hardlink_to(tree / "text")
        first = read_tree(tree)
        with cls(base, ()).open() as history:
            history.snapshot()
            history.mark("before", who=AGENT)
            write(tree / "text", "two\n" * 300)
            shutil.rmtree(tree / "goes")
            write(tree / "new", "new\n")
            history.mark("after", "turn", AGENT, "tidy up")
        return cls(base, (first, read_tree(tree)))

    def open(self) -> History:
        return History(self.base / "history", {"workspace": self.tree}, HistorySettings(quiet=0, quota=1 << 30))

    def copy(self, to: Path) -> "RestoreScenario":
        """The same state, with its times."""
        shutil.copytree(self.base, to, symlinks=True)
        (to / "workspace" / "same").unlink()
        (to / "workspace" / "same").hardlink_to(to / "workspace" / "text")
        shutil.copystat(self.base / "workspace", to / "workspace")
        return RestoreScenario(to, self.states)

    def is_before(self) -> bool:
        """Whether the tree has the state that the agent left, so that nothing was done."""
        return not differences(_without_times(self.states[1]), _without_times(read_tree(self.tree)))

    def is_done(self) -> bool:
        """Whether the turn is taken back. A revert sets no times of folders."""
        return not differences(_without_times(self.states[0]), _without_times(read_tree(self.tree)))


def run_verb(history: History, verb: Verb) -> RestoreResult:
    if verb == "undo":
        return history.undo(who=OWNER)
    return history.restore(1, who=OWNER) if verb == "restore" else history.revert(2, who=OWNER)


def _without_times(tree: dict[bytes, TreeItem]) -> dict[bytes, TreeItem]:
    return {path: item._replace(mtime=0) for path, item in tree.items()}
