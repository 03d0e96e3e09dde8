"""A tree that fights back while it is recorded and restored. A copy of the tree is the model of what must come back."""

import asyncio
import os
import shutil
import stat
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from random import Random

from tests.attack.target import RunRound
from tests.history.tree import TreeItem, differences, read_tree

from freehold.errors import FreeholdError
from freehold.history import Author, History, HistorySettings, RestoreResult

NAMES = ["a", "b", "c/d", "c/e", "f/g/h", "f/i", "j", "new\nline", "x" * 120]
MODES = [0, 0o300, 0o400, 0o644, 0o755, 0o4755]
ACTIONS = 40
AGENT = Author("agent", agent="hostile", session="1", turn="1")
Act = Callable[[], None]


class FightingTree:
    """Acts of an agent on one tree. Each act takes its arguments from the generator when it is made."""

    def __init__(self, root: Path, random: Random) -> None:
        self._root = root
        self._random = random
        self._numbers = count()

    def make_acts(self, number: int) -> list[Act]:
        return [self._make_act() for _ in range(number)]

    def _make_act(self) -> Act:
        at, to = (self._root / self._random.choice(NAMES) for _ in range(2))
        kinds = [self._write, self._append, self._link, self._rename, self._unlink, self._mode, self._swap, self._fifo]
        kind = self._random.choice([*kinds, self._grow, self._time, self._symlink])
        return kind(at, to)

    def _write(self, at: Path, _: Path) -> Act:
        data = f"{next(self._numbers)} {self._random.random()}".encode() * self._random.choice([1, 1, 9000])

        def act() -> None:
            at.parent.mkdir(parents=True, exist_ok=True)
            write_at(at, os.O_TRUNC, 0, data)

        return act

    def _append(self, at: Path, _: Path) -> Act:
        return lambda: write_at(at, os.O_APPEND, 0, b"8 bytes.")

    def _grow(self, at: Path, _: Path) -> Act:
        """Beyond the rate, or with a hole in it."""
        size, hole = self._random.choice([1 << 20, 300_000]), self._random.choice([0, 1 << 25])
        data = self._random.randbytes(size)

        def act() -> None:
            at.parent.mkdir(parents=True, exist_ok=True)
            write_at(at, os.O_TRUNC, hole, data)

        return act

    def _link(self, at: Path, to: Path) -> Act:
        return lambda: os.link(at, to, follow_symlinks=False)

    def _rename(self, at: Path, to: Path) -> Act:
        def act() -> None:
            at.replace(to)

        return act

    def _unlink(self, at: Path, _: Path) -> Act:
        return lambda: shutil.rmtree(at) if at.is_dir() and not at.is_symlink() else at.unlink()

    def _mode(self, at: Path, _: Path) -> Act:
        mode = self._random.choice(MODES)
        return lambda: at.chmod(mode, follow_symlinks=False) if not at.is_symlink() else None

    def _swap(self, at: Path, _: Path) -> Act:
        """A folder in the place of a file, or a file in the place of a folder."""

        def act() -> None:
            folder = at.is_dir()
            shutil.rmtree(at) if folder else at.unlink(missing_ok=True)
            at.write_text("was a folder") if folder else at.mkdir()

        return act

    def _fifo(self, at: Path, _: Path) -> Act:
        def act() -> None:
            at.unlink(missing_ok=True)
            os.mkfifo(at)

        return act

    def _time(self, at: Path, _: Path) -> Act:
        moment = self._random.randrange(1 << 60)
        return lambda: os.utime(at, ns=(moment, moment), follow_symlinks=False)

    def _symlink(self, at: Path, to: Path) -> Act:
        return lambda: at.symlink_to(to)


def write_at(path: Path, flags: int, offset: int, data: bytes) -> None:
    """Without waiting for a reader when the path is a FIFO."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | flags, 0o644)
    try:
        if offset:
            os.lseek(handle, offset, os.SEEK_SET)
        os.write(handle, data)
    finally:
        os.close(handle)


def run_acts(acts: Sequence[Act]) -> None:
    for act in acts:
        with suppress(OSError):
            act()


def read_kept(history: History, entry: int, outcome: RestoreResult, path: bytes) -> bytes | None:
    """The bytes that a path had before the restore: from history, or from where it was set aside."""
    version = history.version(entry, "workspace/" + path.decode("utf-8", "surrogateescape"))
    if version is not None and version.content is not None:
        return history.read(version.content)
    kept_as = dict(outcome.set_aside).get(b"workspace/" + path)
    return None if kept_as is None else Path(kept_as.replace(r"\x0a", "\n")).read_bytes()  # it is text for people


def without_special(tree: dict[bytes, TreeItem]) -> dict[bytes, TreeItem]:
    """FIFOs are left alone when nothing was in their place, and keep their folders."""
    return {path: item._replace(mtime=0) for path, item in tree.items() if not stat.S_ISFIFO(item.kind)}


def fight(base: Path, random: Random) -> int:
    workspace = base / "workspace"
    workspace.mkdir(parents=True)
    tree = FightingTree(workspace, random)
    settings = HistorySettings(quiet=0, quota=64 << 20, rate=random.choice([1 << 20, 1 << 30]))
    with History(base / "history", {"workspace": workspace}, settings) as history:
        if random.random() < 0.7:
            history.start()
        run_acts([tree._write(workspace / name, workspace) for name in NAMES if random.random() < 0.8])
        model = read_tree(workspace)
        first = history.snapshot().entry
        tried = 0
        for _ in range(3):
            acts = tree.make_acts(ACTIONS)
            tried += len(acts)
            history.mark("before", who=AGENT)
            run_acts(acts[: ACTIONS // 2])
            if random.random() < 0.5:
                history.mark("after", who=AGENT)
            race(history, acts[ACTIONS // 2 :])
        check_restore(history, first, model, workspace)
    return tried


def race(history: History, acts: Sequence[Act]) -> None:
    """Undo while the agent goes on. It ends, or says why not; it never raises anything else."""
    racing = threading.Thread(target=run_acts, args=(acts,))
    racing.start()
    try:
        with suppress(FreeholdError):
            history.undo(who=Author("owner"))
    finally:
        racing.join()


def check_restore(history: History, first: int, model: dict[bytes, TreeItem], workspace: Path) -> None:
    before = history.snapshot().entry
    held = read_small_files(workspace)
    outcome = history.restore(first, who=Author("owner"))
    after = read_tree_without_fifos(workspace)
    lost = differences(without_special(model), without_special(after))
    unsettled = {path.removeprefix(b"workspace/") for path, _ in outcome.unsettled}
    assert not {path: item for path, item in lost.items() if not explained(path, unsettled)}, lost.keys()
    for path, data in held.items():
        if path not in model or model[path].data != data:
            assert read_kept(history, before, outcome, path) == data, f"{path!r} is lost"
    assert not [
        path for path in (history.folder / "staging").rglob("*") if path.is_file() and not history._staging._trash
    ]
    assert history.verify().damages == ()


def explained(path: bytes, unsettled: set[bytes]) -> bool:
    """Only a FIFO that was left alone, or a folder that it is in, may differ, and it must be named."""
    return any(named == path or named.startswith(path + b"/") for named in unsettled)


def read_small_files(workspace: Path) -> dict[bytes, bytes]:
    found = {}
    for path in workspace.rglob("*"):
        with suppress(OSError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_size < 1 << 22:
                found[os.fsencode(path.relative_to(workspace))] = path.read_bytes()
    return found


def read_tree_without_fifos(workspace: Path) -> dict[bytes, TreeItem]:
    return {path: item for path, item in read_tree(workspace).items() if not stat.S_ISFIFO(item.kind)}


@asynccontextmanager
async def open_target(folder: Path) -> AsyncIterator[RunRound]:
    rounds = count()

    async def run_round(random: Random) -> int:
        base = folder / f"round{next(rounds)}"
        tried = await asyncio.to_thread(fight, base, random)
        shutil.rmtree(base)
        return tried

    yield run_round
