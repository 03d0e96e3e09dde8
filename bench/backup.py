"""How fast and how small are backups, beside restic on the same tree and the same S3 server?"""

import asyncio
import os
import random
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from tests.support.backup_home import BackupHome
from tests.support.running_freehold import FreeholdOptions, run_freehold
from tests.support.s3 import BUCKET, KEY, S3Server, run_s3_server

from bench.harness import Figure, main
from freehold.backup.age import AgeIdentity
from freehold.backup.keys import KeyStore
from freehold.backup.local_index import LocalIndex
from freehold.backup.recovery_key import make_recovery_key
from freehold.backup.repository import BackupRepository, open_with_recovery_key
from freehold.backup.restore import HomeRestore, choose_snapshot
from freehold.backup.run import BackupRun
from freehold.backup.stores.s3 import S3Store
from freehold.egress.vault import Vault
from freehold.history import History, HistorySettings
from freehold.home import Home
from freehold.timeline import Timeline

FILES, QUICK_FILES = 10_000, 2_000
MIB, LARGE_FILE_MIB = 1 << 20, 256
TILE = 4096
MEMORY_CHILD = """
import sys
from freehold.backup.job import back_up
from freehold.home import find_home
assert back_up(find_home(sys.argv[1])).changed
print(next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def make_tree(folder: Path, count: int) -> None:
    """Text and binaries of 100 bytes to 60 KB, about 10.4 KB each, in folders of 100."""
    chance = random.Random(5)
    words = [bytes(chance.choices(b"abcdefghijklmnopqrstuvwxyz", k=chance.randrange(2, 10))) for _ in range(4000)]
    for number in range(count):
        place = folder / f"folder-{number // 100}"
        place.mkdir(exist_ok=True)
        size = min(60_000, int(chance.expovariate(1 / 10_400)) + 100)
        text = b" ".join(chance.choices(words, k=size // 6))[:size]
        content = chance.randbytes(size) if number % 4 == 0 else text
        (place / f"file-{number}").write_bytes(content)


def change_files(folder: Path, count: int, step: int) -> None:
    chance = random.Random(step)
    for path in chance.sample(sorted(folder.rglob("file-*")), count):
        path.write_bytes(chance.randbytes(8_000))


class Restic:
    def __init__(self, server: S3Server, folder: Path, tree: Path) -> None:
        self._tree = tree
        self.environment = {
            **os.environ,
            "RESTIC_REPOSITORY": f"s3:{server.endpoint}/{BUCKET}/restic",
            "RESTIC_PASSWORD": "a password",
            "RESTIC_CACHE_DIR": str(folder / "restic-cache"),
            "AWS_ACCESS_KEY_ID": KEY.access_key,
            "AWS_SECRET_ACCESS_KEY": KEY.secret,
        }
        self.environment.pop("AWS_CA_BUNDLE", None)
        self._run("init", "--repository-version", "2")

    def _run(self, *words: str) -> None:
        done = subprocess.run(
            ["restic", "-q", *words], env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def back_up(self) -> None:
        self._run("backup", str(self._tree))

    def restore(self, target: Path) -> None:
        self._run("restore", "latest", "--target", str(target))


class Ours:
    """As the program of backups does it: the home is watched, and the job begins with a snapshot of history."""

    def __init__(self, server: S3Server, home: Home) -> None:
        self.made = BackupHome(home, AgeIdentity.generate())
        self.store = S3Store(server.place("ours"))
        self.history = History(home.history, {"workspace": home.workspace}, HistorySettings())
        self.history.start()
        with Timeline(home.timeline) as timeline:
            timeline.append("test.noted", {})
        self.made.set_up(self.store)
        self.index = LocalIndex(home.root / "backup", "bench")

    def back_up(self) -> None:
        repository = BackupRepository(self.store, KeyStore(self.made.home).read())
        BackupRun(self.made.home, repository, self.index, self._take_snapshot).run()

    def _take_snapshot(self) -> None:
        self.history.snapshot()

    def restore(self, target: Path) -> None:
        repository = open_with_recovery_key(self.store, self.made.recovery)
        HomeRestore(repository, choose_snapshot(repository, None), target).run()

    def close(self) -> None:
        self.index.close()
        self.history.close()
        self.store.close()


def clock(action: object, *arguments: object) -> float:
    begin = time.perf_counter()
    action(*arguments)  # type: ignore[operator]
    return time.perf_counter() - begin


def measure_against_restic(folder: Path, server: S3Server, quick: bool) -> Iterator[Figure]:
    home = Home(folder / "home", folder / "run")
    for path in (home.root, home.vault, home.workspace):
        path.mkdir(mode=0o700)
    make_tree(home.workspace, QUICK_FILES if quick else FILES)
    restic = Restic(server, folder, home.workspace)
    ours = Ours(server, home)
    try:
        rounds = 3 if quick else 5
        yield _compare("first backup", clock(ours.back_up), clock(restic.back_up), 1.2)
        unchanged = [(clock(ours.back_up), clock(restic.back_up)) for _ in range(rounds)]
        yield _compare("nothing changed", *_medians(unchanged), 1 / 10)
        changed = []
        for step in range(rounds):
            change_files(home.workspace, 100, step)
            changed.append((clock(ours.back_up), clock(restic.back_up)))
        yield _compare(f"100 of {QUICK_FILES if quick else FILES:,} files changed", *_medians(changed), 1 / 5)
        restored = []
        for number in range(2):
            pair = clock(ours.restore, folder / f"a{number}"), clock(restic.restore, folder / f"b{number}")
            restored.append(pair)
        yield _compare("restore", *_medians(restored), 1.2)
        mine = sum(one.size for folder_ in ("packs/", "meta/") for one in ours.store.list_objects(folder_)) / 2**20
        with closing(S3Store(server.place("restic"))) as other:
            names = ("data/", "index/", "snapshots/", "keys/")
            theirs = sum(one.size for name in names for one in other.list_objects(name)) / 2**20
        yield Figure("repository", mine, "MiB", "restic", theirs, "at most 1.3 x", mine <= 1.3 * theirs)
    finally:
        ours.close()


def _medians(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median(one for one, _ in pairs), statistics.median(other for _, other in pairs)


def _compare(name: str, mine: float, theirs: float, factor: float) -> Figure:
    aim = f"at most {factor:.1f} x" if factor >= 1 else f"{1 / factor:.0f} x faster"
    return Figure(name, mine, "s", "restic", theirs, aim, mine <= factor * theirs)


def measure_memory(folder: Path, server: S3Server, quick: bool) -> Iterator[Figure]:
    """The peak of a first backup as the job makes it: files of the workspace that history has recorded, to a server of S3.

    Once files that do not compress, and once 50 GB that take little space in history and in the store.
    """
    size = 128 if quick else 2048
    filled = make_recorded_home(folder / "filled", server, size, lambda _: os.urandom(MIB))
    yield _describe_peak(f"peak memory, {size} MiB that do not compress", filled)
    size = 1_000 if quick else 50_000_000_000 // MIB
    large = make_recorded_home(folder / "large", server, size, make_small_text)
    yield _describe_peak(f"peak memory, {size * MIB / 1e9:.0f} GB of large files", large)


def make_small_text(number: int) -> bytes:
    """A MiB of which no chunk is like one of another number: a page that repeats, and the number in each of 16 pages."""
    pages = bytearray(random.Random(1).randbytes(TILE // 2).hex().encode() * (MIB // TILE))
    for at in range(0, MIB, 16 * TILE):
        pages[at : at + 16] = b"%016d" % (number * MIB + at)
    return bytes(pages)


def make_recorded_home(root: Path, server: S3Server, size: int, fill: Callable[[int], bytes]) -> Home:
    """`size` MiB in history, each made by `fill`, as files of 256 MiB, and a place for backups.

    Only the last file stays in the workspace, so that no disk must have all of them beside history. A backup reads what
    history has of each in the same way.
    """
    home = Home(root, root.with_name(f"{root.name}-run"))
    for path in (home.root, home.vault, home.workspace):
        path.mkdir(mode=0o700)
    home.manifest.write_text(
        f'[backup]\nto = "s3://{BUCKET}/{root.name}"\nendpoint = "{server.endpoint}"\nregion = "{KEY.region}"\n'
        f'user = "{KEY.access_key}"\nkey = "secret:backup"\n'
    )
    Vault(home.vault).set("backup", KEY.secret)
    with Timeline(home.timeline) as timeline:
        timeline.append("test.noted", {})
    with History(home.history, {"workspace": home.workspace}, HistorySettings()) as history:
        for first in range(0, size, LARGE_FILE_MIB):
            path = home.workspace / f"{first}.bin"
            with path.open("wb") as file:
                for number in range(first, min(first + LARGE_FILE_MIB, size)):
                    file.write(fill(number))
            history.snapshot()
            if first + LARGE_FILE_MIB < size:
                path.unlink()
    with closing(sqlite3.connect(home.history / "history.db")) as database:
        stored = database.execute("SELECT sum(size) FROM chunk").fetchone()[0]
    assert stored == size * MIB, f"history has {stored:,} bytes"
    make_recovery_key(home, lambda _: None)
    return home


def _describe_peak(name: str, home: Home) -> Figure:
    command = [sys.executable, "-c", MEMORY_CHILD, str(home.root)]
    environment = {**os.environ, "PYTHONPATH": "src:."}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    shutil.rmtree(home.root)
    peak = int(done.stdout) / 1e6
    return Figure(name, peak, "MB", aim="under 150 MB", met=peak < 150)


async def measure_requests(folder: Path, quick: bool) -> Figure:
    """The API of a Freehold that runs, while its own program makes the first backup."""
    options = FreeholdOptions(environment={"FREEHOLD_BACKUP_TO": "{home}-backups"})
    async with run_freehold(folder, options) as freehold:
        make_tree(freehold.home.workspace, 1_500 if quick else 5_000)
        assert freehold.harness.run("backup", "key").returncode == 0
        waits: list[float] = []
        await freehold.http.post("/v1/backup/runs", json={"work": "now"})
        deadline = time.perf_counter() + 60
        while time.perf_counter() < deadline:
            begin = time.perf_counter()
            (await freehold.http.get("/v1/sessions")).raise_for_status()
            waits.append(time.perf_counter() - begin)
            if len(waits) % 20 == 0:
                found = (await freehold.http.get("/v1/backup")).json()
                if found["last"] is not None and found["running"] is None:
                    break
            await asyncio.sleep(0.005)
        p99 = sorted(waits)[int(len(waits) * 0.99)] * 1000
        return Figure("request during a backup, p99", p99, "ms", aim="under 50 ms", met=p99 < 50)


def measure(quick: bool) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="freehold-bench-") as name:
        folder = Path(name)
        yield Figure("load of this machine", os.getloadavg()[0], "")
        for place in ("s3", "restic"):
            (folder / place).mkdir()
        with run_s3_server(folder / "s3") as server:
            yield from measure_against_restic(folder / "restic", server, quick)
            yield from measure_memory(folder, server, quick)
        (folder / "live").mkdir()
        yield asyncio.run(measure_requests(folder / "live", quick))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    main(__doc__ or "", measure)
