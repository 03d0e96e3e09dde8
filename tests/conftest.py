"""Shared by all tests: the hooks, the check for leaked processes, and one complete Freehold for a module."""

import os
import signal
import time
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from tests.support.fleet import RunningFleet, shared_fleet
from tests.support.hooks import (
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_make_parametrize_id,
    pytest_runtest_setup,
    pytest_runtest_teardown,
    pytest_timeout_set_timer,
    pytest_unconfigure,
    pytest_xdist_auto_num_workers,
    pytest_xdist_make_scheduler,
)
from tests.support.processes import find_descendants
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

__all__ = [
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_make_parametrize_id",
    "pytest_runtest_setup",
    "pytest_runtest_teardown",
    "pytest_timeout_set_timer",
    "pytest_unconfigure",
    "pytest_xdist_auto_num_workers",
    "pytest_xdist_make_scheduler",
]
LEAK_DEADLINE = 30.0


def _wait_for_end(before: dict[int, str]) -> dict[int, str]:
    deadline = time.monotonic() + LEAK_DEADLINE
    while True:
        left = {pid: command for pid, command in find_descendants(os.getpid()).items() if pid not in before}
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def no_process_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that leaves a process running, and ends that process so that it harms no other test."""
    if request.node.get_closest_marker("shared_processes"):
        yield
        return
    before = find_descendants(os.getpid())
    yield
    left = _wait_for_end(before)
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    assert not left, f"processes left behind: {left}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def freehold(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningFreehold]:
    """One complete Freehold for a module, which says with `FREEHOLD = FreeholdOptions(...)` what it consists of."""
    options = getattr(request.module, "FREEHOLD", FreeholdOptions())
    async with run_freehold(tmp_path_factory.mktemp("freehold"), options) as freehold:
        yield freehold


@pytest.fixture(scope="module")
def fleet() -> RunningFleet:
    """The fleet of the group that the test belongs to (`tests/support/distribution.py`)."""
    assert shared_fleet.running is not None, "the file is not in the group `fleet`"
    return shared_fleet.running
