"""Five steps, all in the browser: from an empty home to a change that was asked for, approved and undone.

`make up` has done what it does: the agent is installed, and the first link was printed. Each way begins with a home of its own.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Locator, Page, ViewportSize, expect
from tests.support.browser import DESKTOP, PAGE_TIMEOUT, PHONE, OwnerPage
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
EMPTY = FreeholdOptions(agents=("builtin",), is_connected=False)
MAX_TABS = 80
Press = Callable[[Locator], Awaitable[None]]


@pytest_asyncio.fixture(loop_scope="module")
async def freehold(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningFreehold]:
    """For one test: nobody has ever signed in, and there is no manifest."""
    async with run_freehold(tmp_path_factory.mktemp("freehold"), EMPTY) as freehold:
        assert not freehold.home.manifest.exists()
        yield freehold


@asynccontextmanager
async def open_first_link(
    browser: Browser, freehold: RunningFreehold, size: ViewportSize, *, touch: bool = False
) -> AsyncIterator[OwnerPage]:
    """What the owner has before them after `make up`: the link in the terminal, and a browser that knows nothing."""
    context: BrowserContext = await browser.new_context(viewport=size, has_touch=touch, reduced_motion="reduce")
    context.set_default_timeout(PAGE_TIMEOUT)
    try:
        page = OwnerPage(freehold, context, await context.new_page())
        await page.page.goto(freehold.first_link)
        yield page
        assert page.violations == []
    finally:
        await context.close()


async def test_with_the_mouse_only(browser: Browser, freehold: RunningFreehold) -> None:
    """Text is typed, and nothing else is done with a key."""
    async with open_first_link(browser, freehold, DESKTOP) as owner:
        await do_the_five_steps(freehold, owner, click)


async def test_on_a_phone(browser: Browser, freehold: RunningFreehold) -> None:
    async with open_first_link(browser, freehold, PHONE, touch=True) as owner:
        await do_the_five_steps(freehold, owner, tap)


async def test_by_keyboard_only(browser: Browser, freehold: RunningFreehold) -> None:
    """Also what is typed goes where the focus is, without a look at where that is."""
    async with open_first_link(browser, freehold, DESKTOP) as owner:
        page = owner.page
        await press_by_tab(page.get_by_role("button", name="New", exact=True))
        await press_by_tab(page.get_by_role("dialog").get_by_role("button", name="Another server"))
        form = page.get_by_role("dialog", name="Another server")
        await expect(form.get_by_label("Base URL")).to_be_focused()
        await page.keyboard.type(f"{freehold.model.url}/v1")
        await page.keyboard.press("Enter")
        await expect(form.get_by_label("Model")).to_be_focused()
        await page.keyboard.press("ArrowDown")
        await press_by_tab(form.get_by_role("button", name="Connect", exact=True))
        await expect(form).to_have_count(0)
        await press_by_tab(page.get_by_role("button", name="New", exact=True))
        await expect(owner.message).to_be_focused()
        await page.keyboard.type("WRITE five.txt steps")
        await page.keyboard.press("Enter")
        await press_by_tab(owner.answer_button("Once"))
        await until(freehold.file("five.txt").exists)
        await expect(owner.transcript).to_contain_text("Undo this turn")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("undo the last")
        await page.keyboard.press("Enter")
        await press_by_tab(page.get_by_role("dialog").get_by_role("button", name="Undo", exact=True))
        await until(lambda: not freehold.file("five.txt").exists())


async def do_the_five_steps(freehold: RunningFreehold, owner: OwnerPage, press: Press) -> None:
    """The first two, clone and `make up`, are done. The link is open."""
    page = owner.page
    await press(page.get_by_role("button", name="New", exact=True))
    await press(page.get_by_role("dialog", name="Connect a model").get_by_role("button", name="Another server"))
    form = page.get_by_role("dialog", name="Another server")
    await form.get_by_label("Base URL").fill("http://127.0.0.1:9/v1")
    await press(form.get_by_role("button", name="Test", exact=True))
    await expect(form.get_by_role("alert")).to_contain_text("cannot be reached")
    await form.get_by_label("Base URL").fill(f"{freehold.model.url}/v1")
    await press(form.get_by_role("button", name="Test", exact=True))
    await expect(form.get_by_role("status")).to_contain_text("It responds and offers 1 model")
    await form.get_by_label("Model").select_option("scripted")
    await press(form.get_by_role("button", name="Connect", exact=True))
    await expect(form).to_have_count(0)

    await press(page.get_by_role("button", name="New", exact=True))
    await expect(page.locator(".sessions-agent")).to_contain_text("custom/scripted")
    await owner.message.fill("WRITE five.txt steps")
    await press(page.get_by_role("button", name="Send", exact=True))
    await press(owner.answer_button("Once"))
    file = freehold.file("five.txt")
    await until(file.exists)
    await press(page.get_by_role("button", name="Undo this turn"))
    undo = page.get_by_role("dialog")
    await press(undo.get_by_role("button", name="Undo", exact=True))
    await until(lambda: not file.exists())


async def click(wanted: Locator) -> None:
    await wanted.click()


async def tap(wanted: Locator) -> None:
    await wanted.tap()


async def press_by_tab(wanted: Locator) -> None:
    """Moves the focus with the Tab key until it is there, and presses Enter."""
    await wanted.wait_for()
    page: Page = wanted.page
    for _ in range(MAX_TABS):
        if await wanted.evaluate("(one) => one === document.activeElement"):
            await page.keyboard.press("Enter")
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"{wanted} cannot be reached with the Tab key")
