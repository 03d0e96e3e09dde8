"""The hooks of pytest that every test run has: time limits with stacks, and an end that leaves no process."""

from typing import Any

import pytest
from tests.support import run_guard, stacks


def pytest_configure(config: pytest.Config) -> None:
    run_guard.adopt_orphans()
    run_guard.end_on_signals()
    if not hasattr(config, "workerinput"):
        run_guard.start_guard()


def pytest_unconfigure() -> None:
    run_guard.stop_guard()


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool:
    return stacks.set_timer(item, settings.timeout)
