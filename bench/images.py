"""Is an image the same each time, how large is it, and what does a computer that starts from it cost?

    python -m bench.images [--quick] [--json]

Needs the Debian package sources and PyPI once, for the lock. `--quick` builds a small image once: no sizes, no second
build, and not the image of Freehold itself.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.harness import Figure, main
from freehold.computer import Computer
from freehold.images.artifacts import BUILT, ImageFolder, ImageRecord
from freehold.images.brain import choose_brain_packages
from freehold.images.build import build_image
from freehold.images.kinds import BRAIN
from freehold.images.lock import write_lock
from freehold.images.pool import PackagePool
from freehold.images.resolution import choose_packages
from freehold.images.section import ImageSection

MAX_PACKED_MB = 120
MAX_START_RATIO = 1.1
SECTION = ImageSection(packages=("git",), node="24")
SMALL_SECTION = ImageSection(packages=())


async def measure_starts(image: str | None, rounds: int) -> list[float]:
    """Milliseconds from nothing to the first output."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        async with Computer.start(image=image) as computer:
            await computer.run(["/bin/true"])
            found.append((time.perf_counter() - began) * 1e3)
    return found


async def compare_starts(image: str | None, rounds: int) -> tuple[float, float]:
    """Medians on the image and on this machine's /usr, taken in turns, so that a busy moment harms both."""
    own, host = [], []
    for _ in range(rounds):
        own += await measure_starts(image, 1)
        host += await measure_starts(None, 1)
    return statistics.median(own), statistics.median(host)


def measure(quick: bool) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="freehold-bench-images-") as name:
        images = ImageFolder(Path(name) / "images", Path(name) / "freehold.lock")
        began = time.perf_counter()
        lock = choose_packages(SMALL_SECTION if quick else SECTION, PackagePool(images.pool), list)
        write_lock(images.lock_path, lock)
        yield Figure("choose and fetch the packages", time.perf_counter() - began, "s")
        began = time.perf_counter()
        first = build_image(images, lock)
        yield Figure(f"build python{'' if quick else ' + node + git'}", time.perf_counter() - began, "s")
        if not quick:
            packed = first.files["image.tar"].size / 1e6
            yield Figure("packed", packed, "MB", aim=f"<= {MAX_PACKED_MB} MB", met=packed <= MAX_PACKED_MB)
            yield count_differences("second build", first, build_image(images, lock))
        began = time.perf_counter()
        images.check("bubblewrap")
        yield Figure("check at boot", (time.perf_counter() - began) * 1e3, "ms")
        own, host = asyncio.run(compare_starts(images.resolve(BUILT, "bubblewrap"), 15 if quick else 40))
        aim = f"<= {MAX_START_RATIO} x"
        yield Figure(
            "start to first output", own, "ms", "this machine's /usr", host, aim, own <= MAX_START_RATIO * host
        )
        if not quick:
            yield from measure_brain(images)


def measure_brain(computer: ImageFolder) -> Iterator[Figure]:
    """The image of Freehold itself."""
    images = ImageFolder(computer.folder / "brain", computer.folder / "brain.lock", computer.pool)
    lock = choose_brain_packages(SECTION.suite, PackagePool(images.pool))
    write_lock(images.lock_path, lock)
    began = time.perf_counter()
    first = build_image(images, lock, kind=BRAIN)
    yield Figure("build Freehold itself", time.perf_counter() - began, "s")
    yield Figure("Freehold itself, packed", first.files["image.tar"].size / 1e6, "MB")
    yield count_differences("second build of Freehold itself", first, build_image(images, lock, kind=BRAIN))


def count_differences(what: str, one: ImageRecord, other: ImageRecord) -> Figure:
    differ = sum(one.files.get(name) != other.files.get(name) for name in {*one.files, *other.files})
    return Figure(f"files that differ in a {what}", differ, "", aim="0", met=one == other)


if __name__ == "__main__":
    main(__doc__.splitlines()[0], measure)
