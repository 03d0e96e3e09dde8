"""What does an undo point cost? Snapshots, undo and restore beside a shadow git on the same tree, with `cp -a` as the limit."""

import asyncio
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.harness import Figure, main
from freehold.history import History, Settings

CHANGES = 10
ROUNDS = 5
QUICK_SIZES = (1_000, 4_000)
SIZES = (1_000, 10_000, 50_000, 200_000)
AIMED_AT = 50_000
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


class Rivals:
    """Both stores on one tree, asked in turns, so that what else the machine does troubles both alike."""

    def __init__(self, base: Path, tree: Path) -> None:
        self._base = base
        self._tree = tree
        self._files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
        self._chance = random.Random(1)

    def measure(self, once: int, often: int) -> Pair:
        """`once`: how often what takes long is measured; `often`: how often what is quick."""
        firsts, stalls = self._firsts(once)
        with History(self._base / f"history{once - 1}", {"workspace": self._tree}, Settings(quiet=0)) as history:
            history.start()
            history.snapshot()
            git = ShadowGit(self._base / f"git{once - 1}", self._tree)
            kept = git.snapshot()
            snapshots, undos = self._changes(history, git, kept, often)
            history.collect()
            sizes = weigh(history.folder), weigh(self._base / f"git{once - 1}")
            restores = self._restores(history, git, kept, once)
        ours, theirs = (
            Costs(
                middle(firsts, side), middle(snapshots, side), middle(undos, side), middle(restores, side), sizes[side]
            )
            for side in (0, 1)
        )
        return Pair(ours, theirs, statistics.median(stalls))

    def _firsts(self, rounds: int) -> tuple[list[tuple[float, float]], list[float]]:
        found, stalls = [], []
        for number in range(rounds):
            with History(self._base / f"history{number}", {"workspace": self._tree}, Settings(quiet=0)) as history:

                def begin(history: History = history) -> None:
                    history.start()
                    history.snapshot()

                start = time.perf_counter()
                stalls.append(asyncio.run(longest_wait(begin)))
                mine = time.perf_counter() - start
            git = ShadowGit(self._base / f"git{number}", self._tree)
            found.append((mine, clock(git.snapshot)))
            if number < rounds - 1:
                shutil.rmtree(self._base / f"history{number}")
                shutil.rmtree(self._base / f"git{number}")
        return found, stalls

    def _changes(
        self, history: History, git: ShadowGit, kept: str, rounds: int
    ) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        snapshots, undos = [], []
        for _ in range(rounds):
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
        found = []
        for _ in range(rounds):
            empty(self._tree)
            history.snapshot("turn")
            mine = clock(history.undo)
            git.snapshot()
            empty(self._tree)
            theirs = clock(lambda: git.restore(kept))
            history.snapshot("turn")
            found.append((mine, theirs))
        return found


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


def measure_notification(base: Path) -> float:
    """The 95th percentile of the time from a write to the reader of the stream, in seconds."""
    tree = base / "watched"
    tree.mkdir()
    with History(base / "watched-history", {"workspace": tree}, Settings(quiet=0)) as history:
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


def compared(size: str, ours: Costs, git: Costs, copied: float, *, aims: bool) -> Iterator[Figure]:
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
    yield figure(f"snapshot after {CHANGES} changes", ours.snapshot, git.snapshot, 20, 0.02)
    yield figure(f"undo of {CHANGES} changes", ours.undo, git.undo, 20, 0.02)
    yield figure("full restore", ours.restore, git.restore, 1.5)
    yield Figure(f"{size}: the limit of a full restore", copied * 1000, "ms", "cp -a")
    yield Figure(f"{size}: store", ours.size / 1e6, "MB", "git", git.size / 1e6)


def measure_tree(
    base: Path, name: str, grow: Callable[[Path], None], *, aims: bool, once: int
) -> Iterator[tuple[Figure, Costs]]:
    place = base / name
    tree = place / "tree"
    tree.mkdir(parents=True)
    try:
        grow(tree)
        pair = Rivals(place, tree).measure(once, ROUNDS)
        copied = clock(lambda: subprocess.run(["cp", "-a", tree, place / "copy"], check=True))
        for figure in compared(name, pair.ours, pair.git, copied, aims=aims):
            yield figure, pair.ours
        stall = pair.stall
        yield (
            Figure(
                f"{name}: longest stall of the keeper's loop",
                stall * 1000,
                "ms",
                "during the first snapshot",
                None,
                "≤ 100 ms",
                stall <= 0.1,
            ),
            pair.ours,
        )
    finally:
        shutil.rmtree(place)


def measure(quick: bool) -> Iterator[Figure]:
    base = Path(tempfile.mkdtemp(prefix="freehold-bench-"))
    try:
        costs: dict[int, Costs] = {}
        for size in QUICK_SIZES if quick else SIZES:
            once = 1 if quick or size > AIMED_AT else 3
            grow = partial(grow_tree, count=size)
            for figure, ours in measure_tree(base, f"{size:,} files", grow, aims=size == AIMED_AT, once=once):
                costs[size] = ours
                yield figure
        small, large = min(costs), max(costs)
        for name, few, many in (
            ("snapshot", costs[small].snapshot, costs[large].snapshot),
            ("undo", costs[small].undo, costs[large].undo),
        ):
            yield Figure(
                f"flat: {name} at {large:,} over {small:,} files", many / few, "×", "", None, "≤ 2 ×", many / few <= 2
            )
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

    for figure, _ in measure_tree(base, "node_modules", grow, aims=False, once=1):
        yield figure


if __name__ == "__main__":
    main(__doc__ or "", measure)
