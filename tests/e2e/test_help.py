"""Help in the page: the guide of each page, the page of an error, and the search of the documentation."""

import asyncio
import json

import pytest
from playwright.async_api import Page, Route, expect
from tests.e2e.test_accessibility import find_faults
from tests.support.browser import OwnerPage
from tests.support.running_freehold import RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]


async def open_tab(owner_page: OwnerPage, name: str) -> Page:
    async with owner_page.context.expect_page() as opened:
        await owner_page.page.get_by_role("link", name=name).first.click()
    return await opened.value


async def test_help_opens_the_guide_of_the_page_that_is_shown(owner_page: OwnerPage) -> None:
    await owner_page.go("/history")
    guide = await open_tab(owner_page, "Help")
    await expect(guide.get_by_role("heading", level=1)).to_contain_text("History")
    await expect(guide).to_have_url(owner_page.address("/docs/guides/history.html"))
    await guide.get_by_label("Search the documentation").fill("known good")
    await expect(guide.locator("#found a").first).to_be_visible()
    await guide.close()


async def test_what_is_typed_before_the_script_is_there_is_searched(owner_page: OwnerPage) -> None:
    """And a search that could not be loaded says so, and is loaded again."""
    page, typed = await owner_page.context.new_page(), asyncio.Event()

    async def send_late(route: Route) -> None:
        await typed.wait()
        await route.continue_()

    await page.route("**/site*.js", send_late)
    await page.route("**/search.json", lambda route: route.abort())
    await page.goto(owner_page.address("/docs/guides/history.html"), wait_until="commit")
    search = page.get_by_label("Search the documentation")
    await search.fill("known good")
    typed.set()
    await expect(page.locator("#found")).to_contain_text("cannot be loaded")
    await page.unroute("**/search.json")
    await search.fill("known goo")
    await expect(page.locator("#found a").first).to_be_visible()
    await page.close()


async def test_an_error_links_to_its_place_on_the_page_of_errors(owner_page: OwnerPage) -> None:
    refused = {"error": {"code": "egress.not-found", "message": "There is no rule", "hint": "Look again"}}
    await owner_page.page.route("**/v1/egress", lambda route: route.fulfill(status=404, json=refused))
    await owner_page.go("/network")
    about = await open_tab(owner_page, "About this error")
    await expect(about).to_have_url(owner_page.address("/docs/errors.html#egress.not-found"))
    await about.close()
    await owner_page.page.unroute("**/v1/egress")


async def test_the_palette_finds_pages_of_the_documentation(owner_page: OwnerPage) -> None:
    await owner_page.go("/history")
    await owner_page.page.get_by_text("Live", exact=True).wait_for(state="attached")
    await owner_page.page.keyboard.press("Control+k")
    await owner_page.page.get_by_role("combobox", name="Command").fill("troubleshooting")
    async with owner_page.context.expect_page() as opened:
        await owner_page.page.get_by_role("option", name="Troubleshooting Help").click()
    page = await opened.value
    await expect(page.get_by_role("heading", level=1)).to_have_text("Troubleshooting")
    await page.close()


@pytest.mark.parametrize("path", ["/docs", "/docs/guides/models.html", "/docs/errors.html"])
async def test_the_documentation_needs_no_sign_in_and_has_no_faults(
    freehold: RunningFreehold, owner_page: OwnerPage, path: str
) -> None:
    """In both sizes and both themes. It fits a phone."""
    context = await owner_page.context.browser.new_context()  # type: ignore[union-attr]
    page = await context.new_page()
    await page.goto(freehold.pages + path)
    await page.get_by_role("heading", level=1).wait_for()
    found = await find_faults(page)
    assert found == [], json.dumps(found, indent=1)
    await page.set_viewport_size({"width": 390, "height": 844})
    assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
    await context.close()
