"""The page of personal data in a real browser: browse, grant, revoke, see who reached what, on a desk and a phone."""

import subprocess
import sys
from pathlib import Path

import pytest
from playwright.async_api import Page, ViewportSize, expect
from tests.support.browser import PHONE, OwnerPage
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.identity.tokens import ApiTokens

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(manifest='[slots]\npods = "local"\n')
DESK: ViewportSize = {"width": 1280, "height": 800}


def pods(freehold: RunningFreehold, *words: str, text: str = "") -> str:
    """`freehold pods`, as the owner runs it beside the Freehold that runs."""
    command = [sys.executable, "-m", "freehold.cli.main", "pods", *words, "--home", str(freehold.home.root)]
    return subprocess.run(command, check=True, capture_output=True, text=True, input=text).stdout


async def open_page(owner_page: OwnerPage, freehold: RunningFreehold) -> Page:
    page = owner_page.page
    await page.goto(freehold.pages + "/pods")
    await page.get_by_text("Live", exact=True).wait_for(state="attached")
    await expect(page.get_by_role("heading", name="Data", exact=True)).to_be_visible()
    return page


async def test_documents_are_browsed_added_and_deleted(
    freehold: RunningFreehold, owner_page: OwnerPage, tmp_path: Path
) -> None:
    page = await open_page(owner_page, freehold)
    pods(freehold, "put", "notes/today.md", "-", text="words")
    await page.get_by_role("button", name="Open notes/").click()
    await expect(page.get_by_role("listitem").filter(has_text="today.md")).to_be_visible()
    (tmp_path / "new.txt").write_text("new")
    await page.get_by_label("Documents to add").set_input_files(tmp_path / "new.txt")
    await expect(page.get_by_role("listitem").filter(has_text="new.txt")).to_be_visible()
    assert pods(freehold, "get", "notes/new.txt") == "new"
    pods(freehold, "delete", "notes/today.md")
    await expect(page.get_by_role("listitem").filter(has_text="today.md")).to_have_count(0)
    await page.get_by_role("button", name="All documents").click()
    await expect(page.get_by_role("button", name="Open notes/")).to_be_visible()


async def test_access_is_granted_and_revoked(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    page = await open_page(owner_page, freehold)
    await page.get_by_label("Agent", exact=True).fill("claude")
    await page.get_by_label("Agent", exact=True).press("Enter")
    await expect(page.get_by_text("claude may read everything")).to_be_visible()
    assert "claude" in pods(freehold, "grants")
    await page.get_by_role("button", name="Revoke: claude, everything").press("Enter")
    await expect(page.get_by_text("No agent has access.")).to_be_visible()


async def test_a_document_is_read_on_the_page_and_the_owner_sees_who_else_read_it(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    pods(freehold, "put", "plan.md", "-", text="Mend the roof\u202e")
    with ApiTokens(freehold.home.identity, owner=None) as tokens:
        secret = tokens.create("reader", ["pods"], None)[1]
    answer = await freehold.http.get("/v1/slots/pods/data/plan.md", headers={"authorization": f"Bearer {secret}"})
    assert answer.status_code == 200
    page = await open_page(owner_page, freehold)
    await expect(page.get_by_role("region", name="Who reached what")).to_contain_text("token reader read plan.md")
    await page.get_by_role("button", name="Read plan.md").press("Enter")
    dialog = page.get_by_role("dialog", name="plan.md")
    await expect(dialog).to_contain_text("Mend the roof⟨U+202E⟩")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


async def test_the_page_of_personal_data_fits_on_a_phone(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    pods(freehold, "put", "x" * 150 + ".txt", "-", text="words")
    page = await open_page(owner_page, freehold)
    await page.set_viewport_size(PHONE)
    await expect(page.get_by_role("listitem").filter(has_text="x" * 150)).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    await page.set_viewport_size(DESK)
