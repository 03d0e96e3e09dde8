"""What does an undo point cost? Snapshots, undo and restore beside a shadow git on the same tree, with `cp -a` as the limit."""

import asyncio
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.harness import Figure, main
from freehold.history import History, HistorySettings
from freehold.keeper.processes import read_resident_bytes

CHANGES = 10
ROUNDS = 5
FLAT_ROUNDS = 30
PATIENCE = 45.0
QUICK_PATIENCE = 4.0
QUICK_SIZES = (1_000, 10_000)
SIZES = (1_000, 10_000, 50_000, 200_000)
AIMED_AT = 50_000
QUICK_LINKS, MAX_LINKS = 10_000, 62_000  # ext4 allows 65,000 names of one file
QUICK_DELETED, MAX_DELETED = 4_000, 60_000
KEPT_MB = 35
NODE_MODULES = Path(__file__).parent.parent / "web" / "node_modules"


@dataclass(frozen=True)
class Costs:
    """Seconds for each, and bytes of the store."""

    first: float
    snapshot: float
    undo: float
    restore: float
    size: int


def clock(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def grow_tree(root: Path, count: int) -> None:
    """`count` files of 100 to 4,000 bytes, twenty in a folder."""
    chance = random.Random(count)
    words = [chance.randbytes(3).hex() for _ in range(3000)]
    for number in range(count):
        folder = root / f"a{number // 2000}" / f"b{number // 20 % 100}"
        if number % 20 == 0:
            folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{number}.txt").write_text(" ".join(chance.choices(words, k=chance.randint(14, 570))))


class ShadowGit:
    def __init__(self, folder: Path, tree: Path) -> None:
        self._environment = {
            "GIT_DIR": str(folder), "GIT_WORK_TREE": str(tree), "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
            "PATH": os.environ["PATH"], "HOME": str(folder.parent),
        }  # fmt: skip
        self._tree = tree
        self._git("init", "-q")

    def _git(self, *words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=self._tree, env=self._environment, check=True, capture_output=True, text=True
        ).stdout.strip()

    def snapshot(self) -> str:
        self._git("add", "-A")
        return self._git("write-tree")

    def restore(self, tree: str) -> None:
        self._git("read-tree", "--reset", tree)
        self._git("checkout-index", "-a", "-f", "-u")


def change_some(files: list[Path], chance: random.Random) -> None:
    for path in chance.sample(files, CHANGES):
        path.write_text(f"changed {chance.random()}\n")


def empty(root: Path) -> None:
    for path in root.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def weigh(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@dataclass(frozen=True)
class Pair:
    """Medians of what was measured in turns, ours and git's, on the same tree at the same time."""

    ours: Costs
    git: Costs
    stall: float
    flat: tuple[float, float] | None
    """How many times longer a snapshot and an undo take here than on a small tree."""


class Rivals:
    """Both stores on one tree, asked in turns, so that what else the machine does troubles both alike."""

    def __init__(self, base: Path, tree: Path, *, patience: float, beside: int | None) -> None:
        self._base = base
        self._tree = tree
        self._files = regular_files(tree)
        self._chance = random.Random(1)
        self._patience = patience
        self._beside = beside

    def measure(self, once: int, often: int) -> Pair:
        """`once`: how often what takes long is measured, while patience lasts; `often`: how often what is quick."""
        firsts, stalls = self._firsts(once)
        kept_last = len(firsts) - 1
        with History(
            self._base / f"history{kept_last}", {"workspace": self._tree}, HistorySettings(quiet=0)
        ) as history:
            history.start()
            history.snapshot()
            git = ShadowGit(self._base / f"git{kept_last}", self._tree)
            kept = git.snapshot()
            snapshots, undos = self._changes(history, git, kept, often)
            flat = self._flatness(history) if self._beside is not None else None
            history.collect()
            sizes = weigh(history.folder), weigh(self._base / f"git{kept_last}")
            restores = self._restores(history, git, kept, once)
        ours, theirs = (
            Costs(
                middle(firsts, side), middle(snapshots, side), middle(undos, side), middle(restores, side), sizes[side]
            )
            for side in (0, 1)
        )
        return Pair(ours, theirs, statistics.median(stalls), flat)

    def _firsts(self, rounds: int) -> tuple[list[tuple[float, float]], list[float]]:
        found, stalls = [], []
        until = time.perf_counter() + self._patience
        for number in range(rounds):
            with History(
                self._base / f"history{number}", {"workspace": self._tree}, HistorySettings(quiet=0)
            ) as history:

                def begin(history: History = history) -> None:
                    history.start()
                    history.snapshot()

                start = time.perf_counter()
                stalls.append(asyncio.run(longest_wait(begin)))
                mine = time.perf_counter() - start
            git = ShadowGit(self._base / f"git{number}", self._tree)
            found.append((mine, clock(git.snapshot)))
            if number == rounds - 1 or time.perf_counter() > until:
                break
            shutil.rmtree(self._base / f"history{number}")
            shutil.rmtree(self._base / f"git{number}")
        return found, stalls

    def _flatness(self, large: History) -> tuple[float, float]:
        """Here and on a small tree in turns, since what a machine does in one minute says little about the next."""
        assert self._beside is not None
        tree = self._base / "beside"
        grow_tree(tree, self._beside)
        files = regular_files(tree)
        snapshots: list[tuple[float, float]] = []
        undos: list[tuple[float, float]] = []
        with History(self._base / "beside-history", {"workspace": tree}, HistorySettings(quiet=0)) as small:
            small.start()
            small.snapshot()
            for _ in range(FLAT_ROUNDS):
                took = []
                for history, some in ((small, files), (large, self._files)):
                    change_some(some, self._chance)
                    took.append((clock(partial(history.snapshot, "turn")), clock(history.undo)))
                snapshots.append((took[0][0], took[1][0]))
                undos.append((took[0][1], took[1][1]))
        return middle(snapshots, 1) / middle(snapshots, 0), middle(undos, 1) / middle(undos, 0)

    def _changes(
        self, history: History, git: ShadowGit, kept: str, rounds: int
    ) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        snapshots: list[tuple[float, float]] = []
        undos: list[tuple[float, float]] = []
        until = time.perf_counter() + self._patience
        for _ in range(rounds):
            if snapshots and time.perf_counter() > until:
                break
            change_some(self._files, self._chance)
            snapshots.append((clock(lambda: history.snapshot("turn")), clock(git.snapshot)))
            mine = clock(history.undo)
            change_some(self._files, self._chance)
            history.snapshot("turn")
            git.snapshot()
            undos.append((mine, clock(lambda: git.restore(kept))))
            history.snapshot("turn")
        return snapshots, undos

    def _restores(self, history: History, git: ShadowGit, kept: str, rounds: int) -> list[tuple[float, float]]:
        found: list[tuple[float, float]] = []
        until = time.perf_counter() + self._patience
        for _ in range(rounds):
            if found and time.perf_counter() > until:
                break
            empty(self._tree)
            history.snapshot("turn")
            mine = clock(history.undo)
            git.snapshot()
            empty(self._tree)
            theirs = clock(lambda: git.restore(kept))
            history.snapshot("turn")
            found.append((mine, theirs))
        return found


def regular_files(tree: Path) -> list[Path]:
    return sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())


def middle(pairs: list[tuple[float, float]], side: int) -> float:
    return statistics.median(pair[side] for pair in pairs)


async def longest_wait(work: Callable[[], object]) -> float:
    """Run the work in a thread, and see how long a loop that wants to run every millisecond has to wait for its turn."""
    task = asyncio.create_task(asyncio.to_thread(work))
    worst = 0.0
    while not task.done():
        before = time.perf_counter()
        await asyncio.sleep(0.001)
        worst = max(worst, time.perf_counter() - before - 0.001)
    await task
    return worst


def stat_all(folder: Path) -> None:
    """What any scan has to do at least."""
    with os.scandir(folder) as entries:
        for entry in entries:
            entry.stat(follow_symlinks=False)


class HostileTree:
    """One file with very many names: it is built, appended to through one name, restored, and its names are removed."""

    def __init__(self, base: Path, links: int) -> None:
        self._links = links
        self._tree = base / "links"
        self._many = self._tree / "many"
        self._base = base
        self._holds: list[float] = []

    def measure(self) -> Iterator[Figure]:
        self._many.mkdir(parents=True)
        settings = HistorySettings(quiet=0)
        with History(self._base / "links-history", {"workspace": self._tree}, settings) as history:
            history.start()
            history.snapshot()
            yield from self._measure_steps(history)
        worst = max(self._holds)
        name = f"{self._links:,} links: longest hold of the keeper's loop"
        yield Figure(name, worst * 1000, "ms", "in all of these", None, "≤ 100 ms", worst <= 0.1)

    def _measure_steps(self, history: History) -> Iterator[Figure]:
        name = f"{self._links:,} links"
        linked = clock(self._make_links)
        yield Figure(f"{name}: build", linked * 1000, "ms", "link(2)")
        built = self._run(history.snapshot)
        yield Figure(
            f"{name}: snapshot", built * 1000, "ms", "stat(2) of each", clock(lambda: stat_all(self._many)) * 1000
        )
        used = history.size().used
        with (self._many / "7").open("a") as file:
            file.write("8 bytes.")
        appended = self._run(lambda: history.snapshot("turn"))
        grown = history.size().used - used
        yield Figure(f"{name}: snapshot after an append", appended * 1000, "ms")
        yield Figure(f"{name}: history of an append", grown / 1000, "kB", "", None, "≤ 64 kB", grown <= 64 << 10)
        undone = self._run(history.undo)
        copied = clock(lambda: subprocess.run(["cp", "-a", self._many, self._base / "links-copy"], check=True))
        yield Figure(f"{name}: undo of the append", undone * 1000, "ms", "cp -a", copied * 1000)
        (self._many / "3").unlink()
        yield Figure(f"{name}: snapshot after one name is gone", self._run(history.snapshot) * 1000, "ms")
        removed = clock(lambda: shutil.rmtree(self._many))
        gone = self._run(lambda: history.snapshot("turn"))
        yield Figure(f"{name}: snapshot after all are gone", gone * 1000, "ms", "rm -rf", removed * 1000)
        shutil.rmtree(self._base / "links-copy")

    def _make_links(self) -> None:
        first = self._many / "0"
        first.write_text("x" * 1000)
        for number in range(1, self._links):
            os.link(first, self._many / str(number))

    def _run(self, work: Callable[[], object]) -> float:
        start = time.perf_counter()
        self._holds.append(asyncio.run(longest_wait(work)))
        return time.perf_counter() - start


def remove_all(folder: Path) -> None:
    """In a process of its own, as programs in the computer do: threads of one Python process would wait for each other."""
    subprocess.run(["rm", "-rf", *folder.iterdir()], check=True)


def change_all(folder: Path) -> None:
    """A line more in each file, written by a process of its own."""
    append = (
        "import sys, pathlib\nfor path in pathlib.Path(sys.argv[1]).rglob('*.txt'):\n    path.open('a').write('more')"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", append, folder], check=True)


def copy_all(folder: Path, to: Path) -> None:
    subprocess.run(["cp", "-a", folder, to], check=True)


class LargeUndo:
    """Undo of very many files that were deleted, changed and added, beside `cp -a` of them, and what it leaves in memory.

    The copy goes to a folder that was never used, before anything is deleted: ext4 is slow next to inodes that were just
    deleted. Both trees are on disk before they are deleted: a file that is not costs much less, as the disk is told of
    freed blocks.
    """

    def __init__(self, base: Path, files: int) -> None:
        self._base = base / "large"
        self._tree = self._base / "tree"
        self._files = files

    def measure(self) -> Iterator[Figure]:
        self._tree.mkdir(parents=True)
        grow_tree(self._tree, self._files)
        os.sync()
        copied = clock(lambda: copy_all(self._tree, self._base / "copy"))
        os.sync()
        with History(self._base / "history", {"workspace": self._tree}, HistorySettings(quiet=0)) as history:
            history.start()
            history.snapshot()
            history.release_memory()
            began = read_resident_bytes(os.getpid()) or 0
            unwatched = clock(lambda: remove_all(self._base / "copy"))
            watched = clock(lambda: remove_all(self._tree))
            name = f"{self._files:,} files deleted"
            yield Figure(f"{name}: rm -rf while history watches", watched * 1000, "ms", "unwatched", unwatched * 1000)
            yield from self._undo(history, "deleted", copied)
            history.release_memory()
            kept = max(0, (read_resident_bytes(os.getpid()) or 0) - began) / 1e6
            yield Figure(
                f"{name}: memory kept after the undo", kept, "MB", "", None, f"≤ {KEPT_MB} MB", kept <= KEPT_MB
            )
            change_all(self._tree)
            yield from self._undo(history, "changed", copied)
            copy_all(self._tree / "a0", self._base / "added")
            for number in range(self._files // 2000):
                copy_all(self._base / "added", self._tree / f"added{number}")
            yield from self._undo(history, "added", copied)
        shutil.rmtree(self._base)

    def _undo(self, history: History, word: str, copied: float) -> Iterator[Figure]:
        name = f"{self._files:,} files {word}"
        yield Figure(f"{name}: snapshot of it", clock(lambda: history.snapshot("turn")) * 1000, "ms")
        undone = clock(history.undo)
        met = undone <= 1.5 * copied
        yield Figure(f"{name}: undo", undone * 1000, "ms", "cp -a", copied * 1000, "≤ 1.5 × cp -a", met)
        history.empty_staging()


def measure_notification(base: Path) -> float:
    """The 95th percentile of the time from a write to the reader of the stream, in seconds."""
    tree = base / "watched"
    tree.mkdir()
    with History(base / "watched-history", {"workspace": tree}, HistorySettings(quiet=0)) as history:
        history.start()
        history.snapshot()
        taken = []
        at = history.stream.sequence
        for number in range(200):
            start = time.perf_counter()
            (tree / f"f{number % 20}").write_text(str(number))
            at = history.stream.read(at, 5.0).sequence
            taken.append(time.perf_counter() - start)
            at = max(at, history.stream.read(at, 0.03).sequence)
    return statistics.quantiles(taken, n=20)[18]


def compared(size: str, ours: Costs, git: Costs, copied: float, *, aims: bool, twenty: bool) -> Iterator[Figure]:
    """`twenty`: the tree is so large that a few changes are to cost a twentieth of what they cost git."""
    few = 20 if twenty else 2

    def figure(
        name: str, mine: float, theirs: float, least: float, most: float | None = None, unit: str = "ms"
    ) -> Figure:
        scale = 1000 if unit == "ms" else 1
        wish = f"≥ {least:g} × git" + (f", < {most * 1000:g} ms" if most else "")
        met = (theirs / mine >= least and (most is None or mine < most)) if aims else None
        return Figure(
            f"{size}: {name}",
            mine * scale,
            unit,
            f"git ({theirs / mine:.1f} ×)",
            theirs * scale,
            wish if aims else "",
            met,
        )

    yield figure("first snapshot", ours.first, git.first, 3)
    yield figure(f"snapshot after {CHANGES} changes", ours.snapshot, git.snapshot, few, 0.02)
    yield figure(f"undo of {CHANGES} changes", ours.undo, git.undo, few, 0.02)
    yield figure("full restore", ours.restore, git.restore, 1.5)
    yield Figure(f"{size}: the limit of a full restore", copied * 1000, "ms", "cp -a")
    yield Figure(f"{size}: store", ours.size / 1e6, "MB", "git", git.size / 1e6)


def measure_tree(
    base: Path,
    name: str,
    grow: Callable[[Path], None],
    *,
    aims: bool,
    twenty: bool = False,
    once: int,
    patience: float,
    beside: int | None = None,
) -> Iterator[Figure]:
    place = base / name
    tree = place / "tree"
    tree.mkdir(parents=True)
    try:
        grow(tree)
        pair = Rivals(place, tree, patience=patience, beside=beside).measure(once, ROUNDS)
        copied = clock(lambda: subprocess.run(["cp", "-a", tree, place / "copy"], check=True))
        yield from compared(name, pair.ours, pair.git, copied, aims=aims, twenty=twenty)
        yield Figure(
            f"{name}: longest stall of the keeper's loop",
            pair.stall * 1000,
            "ms",
            "during the first snapshot",
            None,
            "≤ 100 ms",
            pair.stall <= 0.1,
        )
        for what, times in zip(("snapshot", "undo"), pair.flat or (), strict=False):
            yield Figure(f"flat: {what} at {name} over {beside:,}", times, "×", "", None, "≤ 2 ×", times <= 2)
    finally:
        shutil.rmtree(place)


def measure(quick: bool) -> Iterator[Figure]:
    base = Path(tempfile.mkdtemp(prefix="freehold-bench-"))
    try:
        sizes = QUICK_SIZES if quick else SIZES
        for size in sizes:
            yield from measure_tree(
                base,
                f"{size:,} files",
                partial(grow_tree, count=size),
                aims=size == (max(sizes) if quick else AIMED_AT),
                twenty=not quick,
                once=3 if not quick and size <= AIMED_AT else 1,
                patience=QUICK_PATIENCE if quick else PATIENCE,
                beside=min(sizes) if size == max(sizes) else None,
            )
        yield from HostileTree(base, QUICK_LINKS if quick else MAX_LINKS).measure()
        yield from LargeUndo(base, QUICK_DELETED if quick else MAX_DELETED).measure()
        told = measure_notification(base)
        yield Figure("change to notification, p95", told * 1000, "ms", "", None, "≤ 100 ms", told <= 0.1)
        if not quick:
            yield from measure_node_modules(base)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def measure_node_modules(base: Path) -> Iterator[Figure]:
    if not NODE_MODULES.is_dir():
        yield Figure("node_modules: left out, web/node_modules is not there", 0, "")
        return

    def grow(root: Path) -> None:
        subprocess.run(["cp", "-a", NODE_MODULES, root / "node_modules"], check=True)

    yield from measure_tree(base, "node_modules", grow, aims=False, once=1, patience=PATIENCE)


if __name__ == "__main__":
    main(__doc__ or "", measure)
