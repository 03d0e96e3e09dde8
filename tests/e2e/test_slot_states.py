"""What the owner sees of a slot that is off, cannot be reached, or refuses private data; on a desk and a phone."""

import pytest
from playwright.async_api import ViewportSize, expect
from tests.e2e.test_accessibility import find_faults
from tests.support.browser import PHONE, OwnerPage
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
MANIFEST = """
[slots.beads]
mode = "local"
privacy = "strict"
[slots.orchestrator]
mode = "external"
privacy = "soft"
[slots.orchestrator.settings]
url = "http://127.0.0.1:9"
token = "env:OTHER_FREEHOLD"
"""
FREEHOLD = FreeholdOptions(manifest=MANIFEST, environment={"OTHER_FREEHOLD": "fh_5Yb2Kq9sWx7Lm3Pz8QvT1"})
DESK: ViewportSize = {"width": 1280, "height": 800}


async def wait_for_slots(freehold: RunningFreehold) -> None:
    async def are_known() -> bool:
        found = {one["name"]: one["state"] for one in await freehold.call("GET", "/v1/slots")}
        return (found["beads"], found["orchestrator"]) == ("ok", "unavailable")

    await until(are_known)


async def test_the_settings_show_where_each_slot_is_kept_and_what_its_filter_does(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    await wait_for_slots(freehold)
    await owner_page.go("/settings/slots")
    page = owner_page.page
    rows = page.get_by_role("list", name="Slots").get_by_role("listitem")
    await expect(rows).to_have_count(5)
    await expect(rows.filter(has_text="Items for you")).to_contain_text("Kept in this home · Private data is refused")
    away = rows.filter(has_text="in parallel")
    await expect(away).to_contain_text("cannot be reached")
    await expect(away).to_contain_text("Run on another Freehold · Private data is replaced by pseudonyms")
    await expect(rows.filter(has_text="What agents remember")).to_contain_text('slots.memory = "local"')
    assert await find_faults(page) == []
    await page.set_viewport_size(PHONE)
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    await page.set_viewport_size(DESK)
    await page.get_by_role("button", name="Open Work").press("Enter")
    await expect(page.get_by_role("heading", name="Work", exact=True)).to_be_visible()


async def test_a_page_says_that_its_slot_is_off_and_how_to_turn_it_on(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    for path, name in (("/memory", "memory"), ("/pods", "pods"), ("/events", "events")):
        await owner_page.go(path)
        await expect(owner_page.page.get_by_text(f'slots.{name} = "local"')).to_be_visible()
    assert await find_faults(owner_page.page) == []


async def test_a_page_says_once_why_its_slot_cannot_be_reached(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    await wait_for_slots(freehold)
    await owner_page.go("/runs")
    notice = owner_page.page.locator(".notice")
    await expect(notice).to_contain_text("freehold slots try orchestrator")
    assert (await notice.inner_text()).count("cannot be reached") == 1
    await expect(notice.get_by_role("button", name="Try again")).to_be_visible()
    assert await find_faults(owner_page.page) == []


async def test_private_data_is_refused_with_what_was_seen_and_without_the_value(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    await wait_for_slots(freehold)
    await owner_page.go("/beads")
    page = owner_page.page
    await page.get_by_label("New item").fill("Write to anna.smith@example.org")
    await page.get_by_label("New item").press("Enter")
    notice = page.locator(".notice")
    await expect(notice).to_contain_text("mail")
    assert "anna.smith" not in await notice.inner_text()
    # What was typed is still there.
    await expect(page.get_by_label("New item")).to_have_value("Write to anna.smith@example.org")
