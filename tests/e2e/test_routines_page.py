"""The page of routines in a real browser: added by keys, run now, with the strip of its runs, also on a phone."""

import pytest
from playwright.async_api import Page, ViewportSize, expect
from tests.support.browser import PHONE, OwnerPage
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(
    agents=("builtin",),
    manifest='[agents]\ndefault = "builtin"\n[routines.nightly]\ncron = "0 3 * * *"\ncommand = "true"\n',
)
DESK: ViewportSize = {"width": 1280, "height": 800}


async def open_routines(owner_page: OwnerPage, freehold: RunningFreehold) -> Page:
    page = owner_page.page
    await page.goto(freehold.pages + "/routines")
    await page.get_by_text("Live", exact=True).wait_for(state="attached")
    await expect(page.get_by_role("heading", name="Routines", exact=True)).to_be_visible()
    return page


async def test_a_routine_is_planned_added_run_and_removed_by_keys(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    page = await open_routines(owner_page, freehold)
    await page.get_by_role("button", name="Add a routine").press("Enter")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("hello")
    await dialog.get_by_label("When", exact=True).fill("0 7 * * *")
    await dialog.get_by_role("button", name="Show the next ten times").press("Enter")
    await expect(dialog.get_by_role("list", name="Next times").get_by_role("listitem")).to_have_count(10)
    await dialog.locator("label", has_text="Work").get_by_role("combobox").select_option("command")
    await dialog.get_by_label("Command", exact=True).fill("echo It worked")
    await dialog.get_by_role("button", name="Add routine").press("Enter")
    card = page.get_by_role("article", name="hello")
    await expect(card).to_contain_text("next ")
    await card.get_by_role("button", name="Run now").press("Enter")
    await expect(card).to_contain_text("Last run: done – It worked")
    await expect(card.get_by_role("list", name="Last runs of hello").get_by_role("listitem")).to_have_count(1)
    await card.get_by_role("button", name="Pause").press("Enter")
    await expect(card).to_contain_text("paused")
    await card.get_by_role("button", name="Remove: hello").press("Enter")
    await page.wait_for_timeout(400)  # the second press of a double click does not confirm
    await card.get_by_role("button", name="Remove: hello").press("Enter")
    await expect(card).to_have_count(0)


async def test_a_run_that_works_is_ended_in_the_page(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    page = await open_routines(owner_page, freehold)
    routine = {"webhook": True, "command": "sleep 600"}
    assert (await freehold.http.post("/v1/routines", json={"name": "slow", "routine": routine})).status_code == 201
    card = page.get_by_role("article", name="slow")
    await expect(card).to_contain_text("Command: sleep 600")
    await card.get_by_role("button", name="Run now").click()
    await expect(card).to_contain_text("Last run: working")
    await card.get_by_role("button", name="End this run").click()
    await expect(card).to_contain_text("Last run: ended")
    await expect(card.get_by_role("button", name="End this run")).to_have_count(0)


async def test_a_budget_that_is_no_number_is_not_taken_for_none(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    page = await open_routines(owner_page, freehold)
    await page.get_by_role("button", name="Add a routine").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("dear")
    await dialog.get_by_label("When", exact=True).fill("0 7 * * *")
    await dialog.get_by_label("Prompt", exact=True).fill("x")
    await dialog.get_by_label("Budget of a run in US dollars").fill("one dollar")
    await dialog.get_by_role("button", name="Add routine").click()
    assert await dialog.locator(":invalid").count() > 0
    assert (await freehold.http.get("/v1/routines/dear")).status_code == 404
    await dialog.get_by_role("button", name="Cancel").click()


async def test_a_wrong_routine_is_refused_in_the_form_with_the_reason(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    page = await open_routines(owner_page, freehold)
    await page.get_by_role("button", name="Add a routine").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("wrong")
    await dialog.get_by_label("When", exact=True).fill("0 99 * * *")
    await dialog.get_by_label("Prompt", exact=True).fill("x")
    await dialog.get_by_role("button", name="Add routine").click()
    await expect(dialog).to_contain_text("is not a time of cron")
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(dialog).to_have_count(0)


async def test_routines_fit_on_a_phone(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    page = await open_routines(owner_page, freehold)
    await page.set_viewport_size(PHONE)
    card = page.get_by_role("article", name="nightly")
    await expect(card).to_contain_text("from freehold.toml")
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    await page.get_by_role("button", name="Add a routine").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    await page.set_viewport_size(DESK)
