"""The folder of an isolate counts what is in it, whatever the code does to hide it."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from freehold.guest.isolates import folder as isolate_folder
from freehold.guest.isolates.folder import ENTRY, IsolateFolder
from freehold.guest.loop import Loop

MOST = 100 * 1024


class JobLoop(Loop):
    """Keeps its jobs, which the test runs."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[Iterator[bool]] = []

    def add_job(self, job: Iterator[bool]) -> None:
        self.jobs.append(job)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> IsolateFolder:
    monkeypatch.setattr(isolate_folder, "PARENT", os.fsencode(tmp_path))
    monkeypatch.setattr(isolate_folder, "REST", 0)
    return IsolateFolder(JobLoop())


def jobs(folder: IsolateFolder) -> list[Iterator[bool]]:
    assert isinstance(folder._loop, JobLoop)
    return folder._loop.jobs


def count(folder: IsolateFolder, most: int = MOST) -> int:
    folder.measure(most, 0.0)
    assert not any(jobs(folder).pop())
    return folder.measure(most, 0.0)


def test_every_entry_counts_and_so_does_its_content(folder: IsolateFolder) -> None:
    assert count(folder) == 0
    place = Path(os.fsdecode(folder.path))
    for number in range(5):
        (place / str(number)).touch()
    assert count(folder) == 5 * ENTRY
    (place / "content").write_bytes(b"x" * MOST)
    assert count(folder) > MOST


def test_folders_that_are_too_deep_count_as_too_large(folder: IsolateFolder) -> None:
    at = os.open(folder.path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("a" * 250, dir_fd=at)
        below = os.open("a" * 250, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    assert count(folder, most=1 << 30) > 1 << 30


def test_an_entry_that_is_removed_meanwhile_hides_no_other(folder: IsolateFolder) -> None:
    place = Path(os.fsdecode(folder.path))
    for number in range(10):
        (place / str(number)).touch()
    _, *between, _ = place.iterdir()  # in the order in which they are counted
    folder.measure(MOST, 0.0)
    job = jobs(folder).pop()
    next(job)
    for path in between:
        path.unlink()
    assert not any(job)
    assert folder.measure(MOST, 0.0) == 2 * ENTRY


def test_what_an_earlier_execution_of_a_context_had_does_not_count(folder: IsolateFolder) -> None:
    large = Path(os.fsdecode(folder.path)) / "large"
    large.write_bytes(b"x" * MOST)
    assert count(folder) > MOST
    large.unlink()
    assert folder.measure(MOST, time.monotonic()) == 0
    assert count(folder) == 0
