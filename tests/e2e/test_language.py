"""The page in another language: chosen in Settings, kept, and nothing that the catalogue has is left in English."""

import json
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.e2e.test_accessibility import find_faults
from tests.support.browser import OwnerPage
from tests.support.running_freehold import FreeholdOptions

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("builtin",))
LANGUAGE = Path(__file__).parents[2] / "web/src/language"
GERMAN: dict[str, str] = json.loads((LANGUAGE / "de.json").read_text())
# Single small words are names of folders and programs too, and very short ones are parts of other texts.
TRANSLATED = {
    text
    for text, german in GERMAN.items()
    if text != german and text not in GERMAN.values() and len(text) > 3 and (text[0].isupper() or " " in text)
}
PAGES = (
    "/sessions", "/history", "/history/diff", "/files", "/terminal", "/preview", "/git", "/code", "/pods", "/skills",
    "/mcp", "/memory", "/beads", "/runs", "/routines", "/workflows", "/channels", "/events", "/network", "/credentials",
    "/connect", "/neighbours", "/fleet", "/backup", "/settings/health", "/settings/isolation", "/settings/models", "/settings/budgets",
    "/settings/agents", "/settings/slots", "/settings/access", "/settings/storage", "/settings/manifest",
    "/settings/appearance",
)  # fmt: skip
# What is seen or read out.
WORDS = """
() => {
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node !== null; node = walk.nextNode())
    if (!node.parentElement.closest("code, kbd, pre")) found.push(node.data);
  for (const name of ["aria-label", "title", "placeholder"])
    for (const element of document.querySelectorAll(`[${name}]`)) found.push(element.getAttribute(name));
  return found;
}
"""


async def test_the_page_is_shown_in_the_language_that_was_chosen(owner_page: OwnerPage) -> None:
    page = owner_page.page
    await owner_page.go("/settings/appearance")
    await page.get_by_role("button", name="Deutsch").click()
    await expect(page.get_by_role("heading", name="Sprache")).to_be_visible()
    await expect(page.locator("html")).to_have_attribute("lang", "de")
    for path in PAGES:
        await owner_page.go(path)
        await page.get_by_role("navigation", name="Seiten").wait_for()
        await page.get_by_text("Live", exact=True).wait_for(state="attached")
        await page.wait_for_load_state("networkidle")
        assert sorted(TRANSLATED.intersection(word.strip() for word in await page.evaluate(WORDS))) == [], path
    assert await find_faults(page) == []


async def test_english_comes_back(owner_page: OwnerPage) -> None:
    page = owner_page.page
    await owner_page.go("/settings/appearance")
    await page.get_by_role("button", name="Deutsch").click()
    await page.get_by_role("heading", name="Sprache").wait_for()
    await page.get_by_role("button", name="English").click()
    await expect(page.get_by_role("heading", name="Language")).to_be_visible()
    await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
