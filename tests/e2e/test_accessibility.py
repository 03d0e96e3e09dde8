"""Accessibility: axe-core finds nothing serious on any page, in both sizes and both themes."""

import json
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect
from tests.support.browser import DESKTOP, PHONE, open_owner_page
from tests.support.example_freehold import run_example_freehold
from tests.support.freehold import ROOT
from tests.support.running_freehold import RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
AXE = (ROOT / "web/node_modules/axe-core/axe.min.js").read_text()
# A terminal uses new colours from its next frame on.
LOOK = """() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))).then(() => axe.run(document, {resultTypes: ['violations'], iframes: false})).then((found) => found.violations
  .filter((one) => one.impact === 'serious' || one.impact === 'critical')
  .map((one) => [one.id, one.nodes.map((node) => [node.target.join(' '), node.failureSummary])]))"""
# Animations are switched off: a colour in the middle of one has no meaning.
STILL = "*, ::before, ::after { transition: none !important; animation: none !important; }"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def freehold(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningFreehold]:
    async with run_example_freehold(tmp_path_factory.mktemp("freehold")) as freehold:
        yield freehold


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(browser: Browser, freehold: RunningFreehold) -> AsyncIterator[Page]:
    async with open_owner_page(browser, freehold) as owner_page:
        await owner_page.page.get_by_role("navigation", name="Pages").wait_for()
        yield owner_page.page


async def go(page: Page, freehold: RunningFreehold, path: str) -> None:
    await page.goto(f"{freehold.url}{path}")
    await page.get_by_text("Live", exact=True).wait_for(state="attached")
    await expect(page.locator("main .loading")).to_have_count(0)


async def find_faults(page: Page) -> list[Any]:
    """What is wrong, in both sizes and both themes."""
    await page.evaluate(
        "(css) => { const sheet = new CSSStyleSheet(); sheet.replaceSync(css); document.adoptedStyleSheets = [sheet] }",
        STILL,
    )
    await page.evaluate(AXE)
    found = []
    for size in (DESKTOP, PHONE):
        await page.set_viewport_size(size)
        for scheme in SCHEMES:
            await page.emulate_media(color_scheme=scheme)
            found += [(size["width"], scheme, *one) for one in await page.evaluate(LOOK)]
    await page.set_viewport_size(DESKTOP)
    return found


async def check(page: Page, shown: Locator) -> None:
    await shown.first.wait_for()
    found = await find_faults(page)
    assert found == [], json.dumps(found, indent=1)


@pytest.mark.parametrize(("navigation", "count"), [("Pages", 8), ("Settings", 8)])
async def test_every_page_of_the_navigation(freehold: RunningFreehold, page: Page, navigation: str, count: int) -> None:
    await go(page, freehold, "/settings")
    links = page.get_by_role("navigation", name=navigation).get_by_role("link")
    paths = [await link.get_attribute("href") or "" for link in await links.all()]
    assert len(paths) >= count
    wrong = {}
    for path in paths:
        await go(page, freehold, path)
        await page.locator("main h1, main h2, main button").first.wait_for()
        if found := await find_faults(page):
            wrong[path] = found
    assert wrong == {}, json.dumps(wrong, indent=1)


async def test_a_session_whose_turn_has_ended(freehold: RunningFreehold, page: Page) -> None:
    session = await find_session(freehold, "A dark page")
    await go(page, freehold, f"/sessions?id={session}")
    await check(page, page.get_by_role("log").get_by_text("The page is dark now"))


async def test_a_permission_request(freehold: RunningFreehold, page: Page) -> None:
    session = await find_session(freehold, "The price of a basket")
    await go(page, freehold, f"/sessions?id={session}")
    await check(page, page.get_by_text("npm test").first)


async def test_an_open_file_and_an_image(freehold: RunningFreehold, page: Page) -> None:
    await go(page, freehold, "/files?path=src/App.tsx")
    await check(page, page.locator(".cm-content").get_by_text("Hello from the computer"))
    await go(page, freehold, "/files?path=images/leaf.png")
    await check(page, page.locator("main img"))


async def test_an_open_terminal(freehold: RunningFreehold, page: Page) -> None:
    await go(page, freehold, "/terminal?new=1")
    await check(page, page.locator(".terminal-screen:not([hidden]) .xterm-rows").get_by_text("$"))


async def test_the_preview_of_an_undo(freehold: RunningFreehold, page: Page) -> None:
    await go(page, freehold, "/history")
    await page.get_by_role("button", name="Undo last change").click()
    dialog = page.get_by_role("dialog")
    await check(page, dialog.get_by_role("button", name="Undo", exact=True))
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


async def test_the_diff_of_two_states(freehold: RunningFreehold, page: Page) -> None:
    await go(page, freehold, "/history/diff?old=1&new=now")
    await check(page, page.locator("main").get_by_role("heading", level=2))


async def test_the_command_palette_and_the_list_of_shortcuts(freehold: RunningFreehold, page: Page) -> None:
    await go(page, freehold, "/history")
    await page.keyboard.press("Control+k")
    await check(page, page.get_by_role("combobox", name="Command"))
    await page.keyboard.press("Escape")
    await page.keyboard.press("?")
    await check(page, page.get_by_role("dialog", name="Keyboard shortcuts"))
    await page.keyboard.press("Escape")


async def test_a_page_whose_data_or_script_cannot_be_loaded(freehold: RunningFreehold, page: Page) -> None:
    await page.route("**/v1/egress", lambda route: route.fulfill(status=500, body="{}"))
    await go(page, freehold, "/network")
    await check(page, page.get_by_role("button", name="Try again"))
    await page.unroute("**/v1/egress")
    await page.route("**/assets/ConnectPage-*", lambda route: route.abort())
    await page.goto(f"{freehold.url}/connect")
    await check(page, page.get_by_role("button", name="Reload"))
    await page.unroute("**/assets/ConnectPage-*")
    await page.get_by_role("button", name="Reload").click()
    await page.get_by_role("heading", name="Connect").wait_for()


async def test_the_sign_in_pages(freehold: RunningFreehold, page: Page) -> None:
    """Also with a link that does not work, and the page where a program asks for a token."""
    await go(page, freehold, "/settings")
    await page.goto(f"{freehold.url}/device#BCDF-GHJK")
    await check(page, page.get_by_label("Code"))
    await page.goto(f"{freehold.url}/sign-in")
    await check(page, page.get_by_role("heading"))
    await page.goto(f"{freehold.url}/sign-in#{'x' * 43}")
    await check(page, page.get_by_role("heading"))


async def find_session(freehold: RunningFreehold, title: str) -> str:
    rows = (await freehold.call("GET", "/v1/sessions"))["sessions"]
    return str(next(row["id"] for row in rows if row["title"] == title))
