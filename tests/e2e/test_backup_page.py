"""The page of backups in a real browser: what is missing, a backup by keyboard, and all of it on a phone."""

import pytest
from playwright.async_api import Page, ViewportSize, expect
from tests.support.browser import PHONE, OwnerPage
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(environment={"FREEHOLD_BACKUP_TO": "{home}-backups"})
DESK: ViewportSize = {"width": 1280, "height": 800}


async def open_page(owner_page: OwnerPage, freehold: RunningFreehold) -> Page:
    page = owner_page.page
    await page.goto(freehold.pages + "/backup")
    await expect(page.get_by_role("heading", name="Backups", exact=True)).to_be_visible()
    return page


async def test_a_backup_is_made_by_keyboard(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    page = await open_page(owner_page, freehold)
    await expect(page.get_by_text("Backups are not set up yet.")).to_be_visible()
    await expect(page.get_by_role("button", name="Back up now")).to_be_disabled()
    assert freehold.harness.run("backup", "key").returncode == 0
    button = page.get_by_role("button", name="Back up now")
    await expect(button).to_be_enabled()
    await button.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Everything is backed up.")).to_be_visible(timeout=60_000)
    facts = page.get_by_role("region", name="Details")
    await expect(facts).to_contain_text("number")
    await expect(facts).to_contain_text("never tried")


async def test_the_page_of_backups_fits_on_a_phone(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    page = await open_page(owner_page, freehold)
    await page.set_viewport_size(PHONE)
    await expect(page.get_by_role("button", name="Verify backups")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    await page.set_viewport_size(DESK)
