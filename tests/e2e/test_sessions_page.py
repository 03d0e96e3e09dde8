"""The list of sessions: how each stands, and what can be done with it."""

import json
import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, expect
from tests.support.browser import PHONE, OwnerPage, open_owner_page
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("builtin",))


def row(owner_page: OwnerPage, title: str) -> Locator:
    return owner_page.page.get_by_role("complementary", name="Sessions").get_by_role("listitem").filter(has_text=title)


async def choose(owner_page: OwnerPage, title: str, what: str) -> None:
    await owner_page.page.get_by_role("complementary").get_by_role("button", name=f"Menu of {title}").click()
    await owner_page.page.get_by_role("menuitem", name=what).click()


async def test_the_default_is_one_click_away_and_others_are_chosen(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    """One that is not installed is shown with the way to add it, and cannot be chosen."""
    await owner_page.go("/sessions")
    await owner_page.page.get_by_role("button", name="New", exact=True).click()
    await expect(owner_page.message).to_be_visible()
    await owner_page.page.get_by_role("button", name="New session with another agent or model").click()
    dialog = owner_page.page.get_by_role("dialog", name="New session")
    await expect(dialog.get_by_role("radio", name="Freehold's own agent")).to_be_checked()
    await expect(dialog.get_by_role("radio", name="Claude Code")).to_be_disabled()
    await expect(dialog).to_contain_text("freehold agents add claude")
    await dialog.get_by_label("Model").select_option("local")
    await dialog.get_by_role("button", name="Start").click()
    await expect(dialog).to_have_count(0)
    await expect(owner_page.page.locator(".sessions-header")).to_contain_text("local")
    sessions = (await freehold.call("GET", "/v1/sessions"))["sessions"]
    assert sessions[0]["model"] == "local"
    assert sessions[0]["agent"] == "builtin"


async def test_each_says_how_it_stands_and_what_is_new(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    """Working, needs you, done and failed, as they happen in the list; reading takes the mark away."""
    mine, theirs = await freehold.open("builtin", title="mine"), await freehold.open("builtin", title="theirs")
    await owner_page.open_session(mine)
    async with freehold.watch(theirs) as watch:
        await freehold.prompt(theirs, "SLOW")
        await watch.until("turn.started")
        await expect(row(owner_page, "theirs")).to_contain_text("working")
        await freehold.call("POST", f"/v1/sessions/{theirs}/cancel")
        await watch.until("turn.ended")
        await expect(row(owner_page, "theirs")).to_contain_text("done")
        await expect(row(owner_page, "theirs").get_by_text("unread")).to_have_count(1)
        await freehold.prompt(theirs, "RUN true")
        await expect(row(owner_page, "theirs")).to_contain_text("needs you")
        await watch.answer("reject")
        await watch.until("turn.ended")
        await freehold.prompt(theirs, "FAIL 500")
        await expect(row(owner_page, "theirs")).to_contain_text("failed")
    # The open session has no mark, also before the gateway knows that it was read.
    async with owner_page.page.expect_response("**/seen"):
        await row(owner_page, "theirs").get_by_role("link").click()
    await expect(row(owner_page, "theirs").get_by_text("unread")).to_have_count(0)
    await owner_page.open_session(mine)
    await expect(row(owner_page, "theirs")).to_be_visible()
    await expect(row(owner_page, "theirs").get_by_text("unread")).to_have_count(0)


async def test_one_is_found_by_its_title_and_by_its_words(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    session = await freehold.open("builtin", title="a needle")
    other = await freehold.open("builtin", title="a haystack")
    async with freehold.watch(other) as watch:
        await freehold.prompt(other, "SAY zanzibar")
        await watch.until("turn.ended")
    await owner_page.open_session(session)
    find = owner_page.page.get_by_label("Find a session")
    await find.fill("needle")
    await expect(row(owner_page, "a haystack")).to_have_count(0)
    await expect(row(owner_page, "a needle")).to_have_count(1)
    await find.fill("zanzibar")
    await expect(row(owner_page, "a haystack")).to_have_count(1)
    await expect(row(owner_page, "a needle")).to_have_count(0)
    await find.fill("nowhere at all")
    await expect(owner_page.page.get_by_text("No session matches.")).to_be_visible()
    await find.fill("")
    await expect(row(owner_page, "a needle")).to_have_count(1)


async def test_what_was_said_is_found_from_everywhere(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    """The palette opens the conversation where the words are."""
    session = await freehold.open("builtin", title="Far away")
    async with freehold.watch(session) as watch:
        await freehold.run_turn(watch, session, "SAY the walrus reads at night")
    page = owner_page.page
    await owner_page.go("/network")
    await page.get_by_role("heading", name="Network").wait_for()
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name="Command").fill("walrus night")
    await page.get_by_role("option", name="Far away In the conversation").click()
    await expect(page.get_by_label("Find in this session")).to_have_value("walrus night")
    await expect(owner_page.transcript).to_contain_text("the walrus reads at night")


async def test_one_that_was_left_without_a_word_is_offered_nowhere(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    """Neither in the list, nor in the palette, nor beside another session, nor by a swipe."""
    empty = await freehold.open("builtin")
    named = await freehold.open("builtin", title="Named and kept")
    page = owner_page.page
    await page.set_viewport_size({"width": 1920, "height": 1080})
    await owner_page.open_session(named)
    await expect(row(owner_page, "Named and kept")).to_have_count(1)
    await expect(page.locator(f".sidebar-sessions a[href*='{empty}']")).to_have_count(0)
    await page.get_by_role("tab", name="Another session").click()
    beside = page.locator(f"select[aria-label='Session beside'] option[value='{empty}']")
    await expect(page.get_by_role("tabpanel", name="Another session")).to_contain_text(re.compile("session"))
    await expect(beside).to_have_count(0)
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name="Command").fill("New session")
    await expect(page.get_by_role("listbox", name="Commands").get_by_role("option").first).to_contain_text(
        "New session"
    )
    await expect(page.locator(f"#command-session-{empty}")).to_have_count(0)
    await page.get_by_role("combobox", name="Command").fill("Named and kept")
    await expect(page.locator(f"#command-session-{named}")).to_have_count(1)
    await page.keyboard.press("Escape")
    await page.set_viewport_size({"width": 1280, "height": 800})


async def test_one_is_renamed_forked_archived_and_deleted(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    session = await freehold.open("builtin", title="first name")
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, "SAY something to keep")
        await watch.until("turn.ended")
    await owner_page.open_session(session)
    await choose(owner_page, "first name", "Rename")
    await owner_page.page.get_by_label("Title").fill("<b>second</b> name")
    await owner_page.page.get_by_role("button", name="Rename").click()
    await expect(row(owner_page, "<b>second</b> name")).to_have_count(1)
    await choose(owner_page, "<b>second</b> name", "Fork")
    await expect(owner_page.page.locator(".sessions-header h2")).to_have_text("<b>second</b> name (fork)")
    await expect(owner_page.transcript).to_contain_text("something to keep")
    await choose(owner_page, "<b>second</b> name (fork)", "Archive")
    await expect(row(owner_page, "(fork)")).to_have_count(0)
    await owner_page.page.get_by_role("button", name="Sessions menu").click()
    await owner_page.page.get_by_role("menuitem", name="Show the archive").click()
    await expect(row(owner_page, "(fork)")).to_have_count(1)
    await choose(owner_page, "<b>second</b> name (fork)", "Move out of the archive")
    await expect(owner_page.page.get_by_text("The archive is empty.")).to_be_visible()
    await owner_page.page.get_by_role("button", name="Close the archive").click()
    await expect(row(owner_page, "(fork)")).to_have_count(1)
    await choose(owner_page, "<b>second</b> name (fork)", "Delete")
    dialog = owner_page.page.get_by_role("dialog", name="Delete this session?")
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(row(owner_page, "(fork)")).to_have_count(1)
    await choose(owner_page, "<b>second</b> name (fork)", "Delete")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(row(owner_page, "(fork)")).to_have_count(0)
    await expect(owner_page.page).to_have_url(owner_page.address("/sessions"))


async def test_one_is_taken_home_as_markdown_and_as_json(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    session = await freehold.open("builtin", title="to export")
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, "SAY words to keep")
        await watch.until("turn.ended")
    await owner_page.open_session(session)
    for what, ending in (("Export as Markdown", "md"), ("Export as JSON", "json")):
        async with owner_page.page.expect_download() as download:
            await choose(owner_page, "to export", what)
        file = await download.value
        assert file.suggested_filename == f"session-{session}.{ending}"
        text = Path(await file.path()).read_text()
        assert "words to keep" in text
        if ending == "json":
            json.loads(text)


async def test_the_list_and_its_menus_are_walked_by_keys(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    await owner_page.go("/sessions")
    links = owner_page.page.get_by_role("complementary").get_by_role("listitem").get_by_role("link")
    await links.first.focus()
    await owner_page.page.keyboard.press("ArrowDown")
    await expect(links.nth(1)).to_be_focused()
    await owner_page.page.get_by_role("button", name="Sessions menu").focus()
    await owner_page.page.keyboard.press("ArrowDown")
    await expect(owner_page.page.get_by_role("menuitem", name="Show the archive")).to_be_focused()
    await owner_page.page.keyboard.press("ArrowUp")
    await expect(owner_page.page.get_by_role("menuitem", name="Stop all agents now")).to_be_focused()
    await owner_page.page.keyboard.press("Escape")
    await expect(owner_page.page.get_by_role("menu")).to_have_count(0)
    await expect(owner_page.page.get_by_role("button", name="Sessions menu")).to_be_focused()


async def test_one_that_is_not_there_is_told_with_a_way_back(owner_page: OwnerPage) -> None:
    await owner_page.go("/sessions?id=nothing")
    await owner_page.page.get_by_role("button", name="Back to the sessions").click()
    await expect(owner_page.page).to_have_url(owner_page.address("/sessions"))


async def test_on_a_phone_one_goes_to_a_session_and_back(freehold: RunningFreehold, browser: Browser) -> None:
    await freehold.open("builtin", title="on the phone")
    async with open_owner_page(browser, freehold, PHONE, touch=True) as phone:
        await phone.go("/sessions")
        await row(phone, "on the phone").get_by_role("link").tap()
        await expect(phone.message).to_be_visible()
        await expect(phone.page.get_by_label("Find a session")).to_be_hidden()
        await phone.page.get_by_role("button", name="Back to the sessions").tap()
        await expect(phone.page.get_by_label("Find a session")).to_be_visible()
        wide = await phone.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= PHONE["width"]


async def test_a_session_that_was_started_and_not_used_leaves_no_row(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    page = owner_page.page
    await freehold.open("builtin", title="listed")
    await owner_page.go("/sessions")
    before = len((await freehold.call("GET", "/v1/sessions?limit=200"))["sessions"])
    rows = page.locator(".sidebar-sessions > li")
    await expect(row(owner_page, "listed")).to_be_visible()  # the list is there
    await expect(page.get_by_role("button", name="New", exact=True)).to_be_enabled()
    shown = await rows.count()
    await page.get_by_role("button", name="New", exact=True).click()
    await expect(owner_page.message).to_be_visible()
    first = page.url
    await expect(rows).to_have_count(shown + 1)
    await owner_page.go("/sessions")
    await expect(page.get_by_role("button", name="New", exact=True)).to_be_enabled()
    await expect(rows).to_have_count(shown)
    await page.get_by_role("button", name="New", exact=True).click()
    await expect(owner_page.message).to_be_visible()
    assert page.url == first
    assert len((await freehold.call("GET", "/v1/sessions?limit=200"))["sessions"]) <= before + 1
