"""Every file call with odd paths, in a computer whose programs fight back: names, links and trees change all the time.

Each call is answered or refused with a known error, no page is longer than it was asked for, the names of a folder are
complete and in order, and the link never ends.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from tests.attack.target import RunRound

from freehold.computer import Computer
from freehold.errors import FreeholdError, find_kind

CALLS_IN_ROUND = 300
CALL_TIMEOUT = 60.0
STILL = [b"%03d\xff" % number if number % 7 == 0 else b"%03d" % number for number in range(200)]
"""Names that nobody changes, in the order of their bytes."""

FIGHTER = r"""
import os, random, sys
os.chdir("/workspace")
open("own", "w").close()
os.makedirs("/home/agent/still", exist_ok=True)
for number in range(200):
    name = b"/home/agent/still/%03d" % number + (b"\xff" if number % 7 == 0 else b"")
    open(name, "w").close()
print("ready", flush=True)
chance = random.Random(1)
names = ["race", "a", "b", "n" * 255, "\udcff" * 100, "\u00e4" * 120, "deep"]
while True:
    name = chance.choice(names)
    act = chance.randrange(9)
    try:
        if act == 0: os.symlink(chance.choice(["loop", "/", "..", "\U0001f600" * 1000, "/proc/self/mem", "x" * 4095]), name)
        elif act == 1: os.unlink(name)
        elif act == 2: os.rmdir(name)
        elif act == 3: os.mkdir(name)
        elif act == 4: os.mkfifo(name)
        elif act == 5: os.rename(name, chance.choice(names))
        elif act == 6: os.link("own", name)
        elif act == 7:
            with open(name, "wb") as file: file.write(chance.randbytes(chance.choice([0, 1, 100, 70_000])))
        else: os.makedirs("/".join(["deep"] * chance.choice([2, 20, 200])), exist_ok=True)
    except OSError:
        pass
"""

PATHS = (
    ".", "..", "", "/", "race", "a", "b", "deep", "deep/deep/deep", "race/a", "a/b/c", "n" * 255, "n" * 256, "x" * 4095,
    "x" * 4096, "x/" * 2047, "\udcff" * 100, "\udcff" * 4095, "ä" * 120, "/proc/self/mem", "/proc/1/environ", "/proc/self/fd/0",
    "/dev/zero", "/dev/null", "/etc/passwd", "/workspace/race/../own", "loop", "a\0b",
)  # fmt: skip

Call = Callable[[Computer, str, str, Random], Awaitable[Any]]


async def _stream(computer: Computer, path: str, _to: str, _random: Random) -> int:
    size = 0
    pieces = computer.files.stream(path, length=200_000)
    async for piece in pieces:
        size += len(piece)
    return size


CALLS: tuple[Call, ...] = (
    lambda c, path, to, r: c.files.read(path, length=r.choice([0, 1, 100_000]), offset=r.choice([0, 1, 2**40])),
    _stream,
    lambda c, path, to, r: c.files.write(path, r.randbytes(r.choice([0, 10, 90_000])), parents=r.random() < 0.3),
    lambda c, path, to, r: c.files.append(path, b"more") if not path.startswith("/") else c.files.stat(path),
    lambda c, path, to, r: c.files.stat(path, follow=r.random() < 0.5),
    lambda c, path, to, r: c.files.exists(path),
    lambda c, path, to, r: c.files.walk(path if path != "/" else "race", depth=r.choice([1, 3, None]), limit=500),
    lambda c, path, to, r: c.files.glob(r.choice(["*", "**/*", "[", "?" * 100]), path if path != "/" else "a", limit=500),
    lambda c, path, to, r: c.files.search(r.choice(["x", "\0", "("]), path if path != "/" else "b", limit=50),
    lambda c, path, to, r: c.files.mkdir(path, parents=r.random() < 0.5),
    lambda c, path, to, r: c.files.move(path, to, replace=r.random() < 0.5),
    lambda c, path, to, r: c.files.chmod(to, r.choice([0, 0o644, 0o7777])),
    lambda c, path, to, r: c.files.stat_many([path, to] * 20),
    lambda c, path, to, r: c.files.list_many([path if path != "/" else "a", to], limit=100),
)  # fmt: skip


async def _check_page(computer: Computer, path: str, random: Random) -> None:
    limit = random.choice([1, 2, 50, 1000])
    page = await computer.files.list_page(path, after=random.choice(["", "a", "\udcff", "zz", path[:200]]), limit=limit)
    assert len(page.entries) <= limit
    assert not page.more or len(page.entries) == limit


async def _check_still(computer: Computer, random: Random) -> None:
    """A folder that nobody changes is listed completely, in pages of any size."""
    limit, after = random.choice([1, 7, 64, 199, 200, 201]), b""
    found: list[bytes] = []
    while True:
        page = await computer.files.list_page("/home/agent/still", after=after, limit=max(limit, 7))
        found += [entry.name.encode("utf-8", "surrogateescape") for entry in page.entries]
        if not page.more:
            break
        after = found[-1]
    assert found == STILL


def _check_refusal(error: FreeholdError, path: str) -> None:
    shown = f"{path[:80]!r}: {error.code} {error.message[:500]}"
    assert find_kind(error.code) is not None, shown
    assert error.code.startswith("files.") or error.code == "computer.bad-request", shown
    assert len(error.message) < 5_000, shown


async def attack(computer: Computer, random: Random) -> int:
    link = computer._connection.link
    for _ in range(CALLS_IN_ROUND):
        path, to = random.choice(PATHS), random.choice(PATHS[4:12])
        call = random.choice(CALLS)
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                if random.random() < 0.3:
                    await _check_page(computer, path, random)
                else:
                    await call(computer, path, to, random)
        except FreeholdError as error:
            _check_refusal(error, path)
    await _check_still(computer, random)
    assert computer._connection.link is link, "the link was lost and made again"
    assert computer.state == "healthy"
    return CALLS_IN_ROUND


@asynccontextmanager
async def open_target(_folder: Path) -> AsyncIterator[RunRound]:
    async with Computer.start() as computer:
        fighter = await computer.spawn(["python3", "-c", FIGHTER])
        try:
            assert await fighter.stdout.read() == b"ready\n"

            async def run_round(random: Random) -> int:
                return await attack(computer, random)

            yield run_round
        finally:
            fighter.kill()
            await fighter.wait()
