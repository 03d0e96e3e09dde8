"""Browsers among other tests on a small machine: what is to be seen may take a while, and a failure is told late."""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser
from playwright.async_api import expect as expect_later
from playwright.sync_api import expect
from tests.agents.whole import Whole
from tests.e2e.owner import Desk, at_desk, browser_running

PATIENCE = 60_000

# One setting for all modules: it belongs to the process, and what one module sets another would lose.
expect.set_options(timeout=PATIENCE)
expect_later.set_options(timeout=PATIENCE)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with browser_running() as browser:
        yield browser


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(browser: Browser, whole: Whole) -> AsyncIterator[Desk]:
    """The owner at a browser, on the Freehold that the module calls `whole`."""
    async with at_desk(browser, whole) as desk:
        yield desk
