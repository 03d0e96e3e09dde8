"""Memory from an agent to the page and back: stored by a tool, seen, corrected, pinned, and given to the next session."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from playwright.async_api import Locator, Page, ViewportSize, expect
from tests.e2e.test_accessibility import find_faults
from tests.support.browser import PHONE, OwnerPage
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(
    agents=("builtin",),
    manifest='[slots]\nmemory = "local"\n[agents]\ndefault = "builtin"\n[agents.builtin]\nmodel = "local"\n',
)
DESK: ViewportSize = {"width": 1280, "height": 800}


def memory(freehold: RunningFreehold, *words: str) -> Any:
    """`freehold memory`, as the owner runs it beside the Freehold that runs."""
    command = [sys.executable, "-m", "freehold.cli.main", "memory", *words, "--json", "--home", str(freehold.home.root)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


async def open_memory(owner_page: OwnerPage, freehold: RunningFreehold) -> Page:
    page = owner_page.page
    await page.goto(freehold.pages + "/memory")
    await page.get_by_text("Live", exact=True).wait_for(state="attached")
    await expect(page.get_by_role("heading", name="Memory", exact=True)).to_be_visible()
    return page


def card(page: Page, text: str) -> Locator:
    return page.get_by_role("list", name="Memories").get_by_role("listitem").filter(has_text=text)


async def test_what_an_agent_remembers_is_seen_corrected_pinned_and_told_to_the_next_session(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    page = await open_memory(owner_page, freehold)
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        call = json.dumps({"text": "The user drinks coffee"})
        await freehold.run_turn(watch, session, f"CALL remember {call}\nSAY noted")
    shown = card(page, "The user drinks coffee")
    await expect(shown).to_contain_text("from an agent")
    await expect(shown).to_contain_text("never used")
    (stored,) = memory(freehold)
    assert (stored["origin"]["session"], stored["origin"]["turn"]) == (session, 1)
    await page.get_by_role("button", name="Correct: The user drinks coffee").press("Enter")
    await page.get_by_role("textbox", name="Memory", exact=True).fill("I drink tea, never coffee")
    await page.get_by_role("button", name="Save").press("Enter")
    await expect(card(page, "I drink tea")).to_contain_text("from you")
    await page.get_by_role("button", name="Pin: I drink tea, never coffee").press("Enter")
    await expect(card(page, "I drink tea")).to_contain_text("pinned")
    second = await freehold.open("builtin")
    async with freehold.watch(second) as watch:
        asked = json.dumps({"question": "What is her favourite drink in the morning?"})
        await freehold.run_turn(watch, second, f"CALL recall {asked}\nSAY done")
    told = "".join(request.body.decode() for request in freehold.model.requests)
    assert "The user's notes for every conversation" in told
    assert "from the user" in told
    page = await open_memory(owner_page, freehold)
    await expect(card(page, "I drink tea")).to_contain_text("used 1 time")
    await card(page, "I drink tea").get_by_role("button", name="Open session").click()
    await expect(page.get_by_role("log")).to_contain_text("noted")


async def test_what_an_agent_learnt_from_a_tool_is_marked(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        command, text = json.dumps({"command": "echo hello"}), json.dumps({"text": "The greeting is hello"})
        await freehold.run_turn(watch, session, f"CALL run {command}\nCALL remember {text}\nSAY noted")
    page = await open_memory(owner_page, freehold)
    mark = card(page, "The greeting is hello").locator(".chip")
    await expect(mark).to_have_text("from the output of a tool")
    await expect(page.get_by_text("Only what is from you is told to agents as your word")).to_be_visible()


async def test_a_memory_is_added_found_by_meaning_and_forgotten_by_keys(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    memory(freehold, "add", "The gate code is QX-4471", "-n", "project:house")
    page = await open_memory(owner_page, freehold)
    await page.get_by_label("New memory").fill("Anna's passport runs out in November")
    await page.get_by_label("New memory").press("Enter")
    await expect(card(page, "Anna's passport")).to_contain_text("from you")
    await page.get_by_label("Search memories").fill("When do the travel documents expire?")
    await page.get_by_label("Search memories").press("Enter")
    await expect(card(page, "QX-4471")).to_have_count(0)
    await expect(card(page, "Anna's passport")).to_be_visible()
    await page.get_by_label("Search memories").fill("")
    await page.get_by_label("Namespace").select_option("project:house")
    await expect(card(page, "Anna's passport")).to_have_count(0)
    forget = page.get_by_role("button", name=re.compile("^Forget: The gate code is QX-4471"))
    await forget.focus()
    for _ in range(200):  # a press that comes too soon after the first does nothing, and one that comes late is a first
        await page.keyboard.press("Enter")
        await page.wait_for_timeout(400)
        if not await forget.count():
            break
        # It may go at this moment: then there is nothing left to focus.
        await forget.evaluate_all("found => found.forEach((one) => one.focus())")
    await expect(card(page, "QX-4471")).to_have_count(0)
    assert [one["text"] for one in memory(freehold, "--text", "QX-4471")] == []


async def test_the_page_fits_on_a_phone(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    memory(freehold, "add", "y" * 300)
    page = await open_memory(owner_page, freehold)
    await page.set_viewport_size(PHONE)
    await expect(card(page, "y" * 300)).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert await find_faults(page) == []
    await page.set_viewport_size(PHONE)
    await page.get_by_role("link", name="History").click()
    await page.get_by_role("button", name="More").press("Enter")
    pages = page.get_by_role("dialog", name="More pages")
    await expect(pages.get_by_role("link", name="Work", exact=True)).to_have_count(0)  # its slot is off
    await pages.get_by_role("link", name="Memory").press("Enter")
    await expect(page.get_by_role("heading", name="Memory", exact=True)).to_be_visible()
    await expect(pages).to_have_count(0)
    await page.set_viewport_size(DESK)
