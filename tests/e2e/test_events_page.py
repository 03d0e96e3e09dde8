"""The page of events in a real browser: live, on a desk and a phone, with dead letters that are sent again."""

import subprocess
import sys

import pytest
from playwright.async_api import Page, ViewportSize, expect
from tests.support.browser import PHONE, OwnerPage
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
MANIFEST = '[slots]\nevents = "local"\n'
FREEHOLD = FreeholdOptions(manifest=MANIFEST)
DESK: ViewportSize = {"width": 1280, "height": 800}


def publish(freehold: RunningFreehold, type: str, data: str = "{}") -> None:
    command = [sys.executable, "-m", "freehold.cli.main", "events", "publish", type, "--data", data]
    subprocess.run([*command, "--home", str(freehold.home.root)], check=True, capture_output=True)


async def open_page(owner_page: OwnerPage, freehold: RunningFreehold) -> Page:
    page = owner_page.page
    await page.goto(freehold.pages + "/events")
    await page.get_by_text("Live", exact=True).wait_for(state="attached")
    await expect(page.get_by_role("heading", name="Events", exact=True)).to_be_visible()
    return page


async def test_an_event_is_shown_without_a_reload(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    page = await open_page(owner_page, freehold)
    await expect(page.get_by_text("sent nowhere")).to_be_visible()
    publish(freehold, "com.example.told", '{"words": "<b>hello</b>"}')
    item = page.get_by_role("listitem").filter(has_text="com.example.told")
    await expect(item).to_contain_text('{"words":"<b>hello</b>"}')


async def test_the_page_of_events_fits_on_a_phone(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    publish(freehold, "com.example." + "x" * 150, '{"words": "' + "y" * 500 + '"}')
    page = await open_page(owner_page, freehold)
    await page.set_viewport_size(PHONE)
    await expect(page.get_by_role("listitem").filter(has_text="x" * 150)).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    await page.set_viewport_size(DESK)
