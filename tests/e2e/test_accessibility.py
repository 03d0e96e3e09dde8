"""Everyone can use the control center: axe-core finds nothing serious on any page, at either size, in either theme."""

import json
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, ViewportSize, async_playwright, expect
from tests.agents.whole import PATIENCE, Whole
from tests.e2e.house import FLAGS, REPOSITORY
from tests.e2e.lived_in import lived_in, sign_in_link

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

DESKTOP: ViewportSize = {"width": 1280, "height": 800}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
PHONE: ViewportSize = {"width": 390, "height": 844}
AXE = (REPOSITORY / "web/node_modules/axe-core/axe.min.js").read_text()
# A terminal takes new colours with its next picture.
LOOK = """() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))).then(() => axe.run(document, {resultTypes: ['violations'], iframes: false})).then((found) => found.violations
  .filter((one) => one.impact === 'serious' || one.impact === 'critical')
  .map((one) => [one.id, one.nodes.map((node) => [node.target.join(' '), node.failureSummary])]))"""
# What moves is looked at when it has arrived: a colour half way is nobody's choice.
STILL = "*, ::before, ::after { transition: none !important; animation: none !important; }"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Whole]:
    async with lived_in(tmp_path_factory.mktemp("lived")) as whole:
        yield whole


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(whole: Whole) -> AsyncIterator[Page]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        page = await browser.new_page(viewport=DESKTOP, reduced_motion="reduce")
        page.set_default_timeout(PATIENCE * 1000)
        async with page.expect_response("**/v1/sign-in/link"):
            await page.goto(await sign_in_link(whole))
        await page.get_by_role("navigation", name="Pages").wait_for()
        yield page
        await browser.close()


async def go(page: Page, whole: Whole, path: str) -> None:
    await page.goto(f"http://localhost:{whole.stead.gateway_port}{path}")
    await page.get_by_text("Live", exact=True).wait_for(state="attached")
    await expect(page.locator("main .loading")).to_have_count(0)


async def faults(page: Page) -> list[Any]:
    """At both sizes, in both themes."""
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


async def look(page: Page, shown: Locator) -> None:
    await shown.first.wait_for()
    found = await faults(page)
    assert found == [], json.dumps(found, indent=1)


@pytest.mark.parametrize(("navigation", "count"), [("Pages", 8), ("Settings", 8)])
async def test_every_page_of_the_navigation(whole: Whole, page: Page, navigation: str, count: int) -> None:
    await go(page, whole, "/settings")
    links = page.get_by_role("navigation", name=navigation).get_by_role("link")
    paths = [await link.get_attribute("href") or "" for link in await links.all()]
    assert len(paths) >= count
    wrong = {}
    for path in paths:
        await go(page, whole, path)
        await page.locator("main h1, main h2, main button").first.wait_for()
        if found := await faults(page):
            wrong[path] = found
    assert wrong == {}, json.dumps(wrong, indent=1)


async def test_a_talk_that_is_done(whole: Whole, page: Page) -> None:
    session = await titled(whole, "A dark page")
    await go(page, whole, f"/sessions?id={session}")
    await look(page, page.get_by_role("log").get_by_text("The page is dark now"))


async def test_a_question_of_an_agent(whole: Whole, page: Page) -> None:
    session = await titled(whole, "The price of a basket")
    await go(page, whole, f"/sessions?id={session}")
    await look(page, page.get_by_text("npm test").first)


async def test_an_open_file_and_an_image(whole: Whole, page: Page) -> None:
    await go(page, whole, "/files?path=src/App.tsx")
    await look(page, page.locator(".cm-content").get_by_text("Hello from the computer"))
    await go(page, whole, "/files?path=images/leaf.png")
    await look(page, page.locator("main img"))


async def test_an_open_terminal(whole: Whole, page: Page) -> None:
    await go(page, whole, "/terminal?new=1")
    await look(page, page.locator(".screen:not([hidden]) .xterm-rows").get_by_text("$"))


async def test_what_an_entry_of_history_changed_and_its_undo(whole: Whole, page: Page) -> None:
    await go(page, whole, "/history")
    await page.get_by_role("button", name="Undo last change").click()
    dialog = page.get_by_role("dialog")
    await look(page, dialog.get_by_role("button", name="Undo", exact=True))
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


async def test_what_differs_between_two_states(whole: Whole, page: Page) -> None:
    await go(page, whole, "/history/diff?old=1&new=now")
    await look(page, page.locator("main").get_by_role("heading", level=2))


async def test_the_palette_and_the_sheet_of_keys(whole: Whole, page: Page) -> None:
    await go(page, whole, "/history")
    await page.keyboard.press("Control+k")
    await look(page, page.get_by_role("combobox", name="Command"))
    await page.keyboard.press("Escape")
    await page.keyboard.press("?")
    await look(page, page.get_by_role("dialog", name="Keyboard shortcuts"))
    await page.keyboard.press("Escape")


async def test_a_page_that_is_not_answered_or_does_not_come(whole: Whole, page: Page) -> None:
    await page.route("**/v1/egress", lambda route: route.fulfill(status=500, body="{}"))
    await go(page, whole, "/network")
    await look(page, page.get_by_role("button", name="Try again"))
    await page.unroute("**/v1/egress")
    await page.route("**/assets/ConnectPage-*", lambda route: route.abort())
    await page.goto(f"http://localhost:{whole.stead.gateway_port}/connect")
    await look(page, page.get_by_role("button", name="Reload"))
    await page.unroute("**/assets/ConnectPage-*")
    await page.get_by_role("button", name="Reload").click()
    await page.get_by_role("heading", name="Connect").wait_for()


async def test_the_door(whole: Whole, page: Page) -> None:
    """Last: whoever is outside sees the sign-in page and one who brings a used link is told."""
    await go(page, whole, "/settings")
    await page.goto(f"http://localhost:{whole.stead.gateway_port}/device#BCDF-GHJK")
    await look(page, page.get_by_label("Code"))
    await page.goto(f"http://localhost:{whole.stead.gateway_port}/sign-in")
    await look(page, page.get_by_role("heading"))
    await page.goto(f"http://localhost:{whole.stead.gateway_port}/sign-in#{'x' * 43}")
    await look(page, page.get_by_role("heading"))


async def titled(whole: Whole, title: str) -> str:
    rows = (await whole.call("GET", "/v1/sessions"))["sessions"]
    return str(next(row["id"] for row in rows if row["title"] == title))
