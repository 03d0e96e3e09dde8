"""The hooks of pytest that every test run has: time limits with stacks, and an end that leaves no process or connection."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.support import cancelled_streams, distribution, run_guard, shared_authorities, stacks
from tests.support.fleet import shared_fleet
from tests.support.processes import reap_orphans

# On a busy machine an example of a moment takes a second: no test fails because of time.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


def pytest_configure(config: pytest.Config) -> None:
    # As the product does before it loads numpy. Threads that wait for each other by spinning are slow on busy cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    cancelled_streams.close_with_cancelled_tasks()
    shared_authorities.read_once()
    run_guard.adopt_orphans()
    run_guard.end_on_signals()
    if not hasattr(config, "workerinput"):
        run_guard.start_guard()


def pytest_unconfigure() -> None:
    run_guard.stop_guard()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    distribution.begin_with_long_files(items)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are named by their argument and number: an archive has the time of its making in it, and each process
    that takes part in a run must find the same names."""
    return argname if isinstance(val, bytes) else None


def pytest_xdist_auto_num_workers() -> int:
    return distribution.count_workers()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> distribution.GroupScheduling:
    return distribution.make_scheduler(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before the fixtures, so that a fleet is none of the processes that the test itself starts."""
    if distribution.needs_fleet(item):
        shared_fleet.open()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if distribution.needs_fleet(item) and not distribution.needs_fleet(nextitem):
        shared_fleet.close()
    if nextitem is None or nextitem.path != item.path:
        reap_orphans()


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool:  # the names are pytest's
    return stacks.set_timer(item, settings.timeout)
