"""One browser a module, signed in to the Freehold of the module, for async tests and for others."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright import sync_api
from playwright.async_api import Browser
from playwright.sync_api import BrowserContext, Page
from tests.support.browser import OwnerPage, open_owner_page, run_browser, run_sync_browser, sign_in_browser
from tests.support.running_freehold import RunningFreehold


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with run_browser() as browser:
        yield browser


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def owner_page(browser: Browser, freehold: RunningFreehold) -> AsyncIterator[OwnerPage]:
    """A page of the owner's that lives as long as the module."""
    async with open_owner_page(browser, freehold) as owner_page:
        yield owner_page


@pytest.fixture(scope="module")
def sync_browser(freehold: RunningFreehold) -> Iterator[sync_api.Browser]:
    """Starts after the Freehold: while it runs, the thread counts as having a running event loop."""
    with run_sync_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def context(sync_browser: sync_api.Browser, freehold: RunningFreehold) -> BrowserContext:
    """A signed-in browser."""
    return sign_in_browser(sync_browser, freehold)


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A tab. Fails if the content policy stopped anything, a script failed, or a planted script ran."""
    page = context.new_page()
    violations: list[str] = []
    page.on("console", lambda line: violations.append(line.text) if "Content Security" in line.text else None)
    page.on("pageerror", lambda error: violations.append(str(error)))
    yield page
    assert violations == []
    assert page.evaluate("window.pwned") is None
    page.close(run_before_unload=False)
