"""Shared by all tests: time limits, the end of a test run, the check for leaked processes, and one complete Freehold."""

import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from tests.support import run_guard, stacks
from tests.support.processes import find_descendants
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

LEAK_DEADLINE = 30.0


def pytest_configure(config: pytest.Config) -> None:
    run_guard.adopt_orphans()
    if not hasattr(config, "workerinput"):
        run_guard.start_guard()


def pytest_unconfigure() -> None:
    run_guard.stop_guard()


def pytest_keyboard_interrupt() -> None:
    run_guard.end_descendants()


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool:
    return stacks.set_timer(item, settings.timeout)


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
