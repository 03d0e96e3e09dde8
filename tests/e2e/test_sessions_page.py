"""The list of sessions: how each stands, and what can be done with it."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect
from tests.agents.whole import Whole
from tests.e2e.owner import PHONE, Desk, at_desk, lived_in

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Whole]:
    async with lived_in(tmp_path_factory.mktemp("sessions")) as whole:
        yield whole


def row(desk: Desk, title: str) -> Locator:
    return desk.page.get_by_role("complementary", name="Sessions").get_by_role("listitem").filter(has_text=title)


async def choose(desk: Desk, title: str, what: str) -> None:
    await desk.page.get_by_role("complementary").get_by_role("button", name=f"More for {title}").click()
    await desk.page.get_by_role("menuitem", name=what).click()


async def test_the_default_is_one_click_away_and_others_are_chosen(whole: Whole, desk: Desk) -> None:
    """One that is not installed is shown with the way to add it, and cannot be chosen."""
    await desk.go("/sessions")
    await desk.page.get_by_role("button", name="New", exact=True).click()
    await expect(desk.message).to_be_visible()
    await desk.page.get_by_role("button", name="New with a choice of agent and model").click()
    dialog = desk.page.get_by_role("dialog", name="New session")
    await expect(dialog.get_by_role("radio", name="Freehold's own agent")).to_be_checked()
    await expect(dialog.get_by_role("radio", name="Claude Code")).to_be_disabled()
    await expect(dialog).to_contain_text("freehold agents add claude")
    await dialog.get_by_label("Model").select_option("local")
    await dialog.get_by_role("button", name="Start").click()
    await expect(dialog).to_have_count(0)
    await expect(desk.page.locator(".session-head")).to_contain_text("local")
    sessions = (await whole.call("GET", "/v1/sessions"))["sessions"]
    assert sessions[0]["model"] == "local"
    assert sessions[0]["agent"] == "builtin"


async def test_each_says_how_it_stands_and_what_is_new(whole: Whole, desk: Desk) -> None:
    """Working, needs you, done and failed, as they happen in the list; reading takes the mark away."""
    mine, theirs = await whole.open("builtin", title="mine"), await whole.open("builtin", title="theirs")
    await desk.open(mine)
    async with whole.watching(theirs) as watch:
        await whole.prompt(theirs, "SLOW")
        await watch.until("turn.started")
        await expect(row(desk, "theirs")).to_contain_text("working")
        await whole.call("POST", f"/v1/sessions/{theirs}/cancel")
        await watch.until("turn.ended")
        await expect(row(desk, "theirs")).to_contain_text("done")
        await expect(row(desk, "theirs").get_by_text("unread")).to_have_count(1)
        await whole.prompt(theirs, "RUN true")
        await expect(row(desk, "theirs")).to_contain_text("needs you")
        await watch.answer("reject")
        await watch.until("turn.ended")
        await whole.prompt(theirs, "FAIL 500")
        await expect(row(desk, "theirs")).to_contain_text("failed")
    await row(desk, "theirs").get_by_role("link").click()
    await expect(row(desk, "theirs").get_by_text("unread")).to_have_count(0)
    await desk.open(mine)
    await expect(row(desk, "theirs")).to_be_visible()
    await expect(row(desk, "theirs").get_by_text("unread")).to_have_count(0)


async def test_one_is_found_by_its_title_and_by_its_words(whole: Whole, desk: Desk) -> None:
    session = await whole.open("builtin", title="a needle")
    other = await whole.open("builtin", title="a haystack")
    async with whole.watching(other) as watch:
        await whole.prompt(other, "SAY zanzibar")
        await watch.until("turn.ended")
    await desk.open(session)
    find = desk.page.get_by_label("Find a session")
    await find.fill("needle")
    await expect(row(desk, "a haystack")).to_have_count(0)
    await expect(row(desk, "a needle")).to_have_count(1)
    await find.fill("zanzibar")
    await expect(row(desk, "a haystack")).to_have_count(1)
    await expect(row(desk, "a needle")).to_have_count(0)
    await find.fill("nowhere at all")
    await expect(desk.page.get_by_text("No session has these words.")).to_be_visible()
    await find.fill("")
    await expect(row(desk, "a needle")).to_have_count(1)


async def test_one_is_renamed_forked_archived_and_deleted(whole: Whole, desk: Desk) -> None:
    session = await whole.open("builtin", title="first name")
    async with whole.watching(session) as watch:
        await whole.prompt(session, "SAY something to keep")
        await watch.until("turn.ended")
    await desk.open(session)
    await choose(desk, "first name", "Rename")
    await desk.page.get_by_label("Title").fill("<b>second</b> name")
    await desk.page.get_by_role("button", name="Rename").click()
    await expect(row(desk, "<b>second</b> name")).to_have_count(1)
    await choose(desk, "<b>second</b> name", "Fork")
    await expect(desk.page.locator(".session-head h2")).to_have_text("<b>second</b> name (fork)")
    await expect(desk.talk).to_contain_text("something to keep")
    await choose(desk, "<b>second</b> name (fork)", "Archive")
    await expect(row(desk, "(fork)")).to_have_count(0)
    await desk.page.get_by_role("button", name="More about sessions").click()
    await desk.page.get_by_role("menuitem", name="Show the archive").click()
    await expect(row(desk, "(fork)")).to_have_count(1)
    await choose(desk, "<b>second</b> name (fork)", "Take out of the archive")
    await expect(desk.page.get_by_text("Nothing is archived.")).to_be_visible()
    await desk.page.get_by_role("button", name="Back to the others").click()
    await expect(row(desk, "(fork)")).to_have_count(1)
    await choose(desk, "<b>second</b> name (fork)", "Delete")
    dialog = desk.page.get_by_role("dialog", name="Delete this session?")
    await dialog.get_by_role("button", name="Keep it").click()
    await expect(row(desk, "(fork)")).to_have_count(1)
    await choose(desk, "<b>second</b> name (fork)", "Delete")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(row(desk, "(fork)")).to_have_count(0)
    await expect(desk.page).to_have_url(desk.address("/sessions"))


async def test_one_is_taken_home_as_markdown_and_as_json(whole: Whole, desk: Desk) -> None:
    session = await whole.open("builtin", title="to export")
    async with whole.watching(session) as watch:
        await whole.prompt(session, "SAY words to keep")
        await watch.until("turn.ended")
    await desk.open(session)
    for what, ending in (("Export as Markdown", "md"), ("Export as JSON", "json")):
        async with desk.page.expect_download() as download:
            await choose(desk, "to export", what)
        file = await download.value
        assert file.suggested_filename == f"session-{session}.{ending}"
        text = Path(await file.path()).read_text()
        assert "words to keep" in text
        if ending == "json":
            json.loads(text)


async def test_the_list_and_its_menus_are_walked_by_keys(whole: Whole, desk: Desk) -> None:
    await desk.go("/sessions")
    links = desk.page.get_by_role("complementary").get_by_role("listitem").get_by_role("link")
    await links.first.focus()
    await desk.page.keyboard.press("ArrowDown")
    await expect(links.nth(1)).to_be_focused()
    await desk.page.get_by_role("button", name="More about sessions").focus()
    await desk.page.keyboard.press("ArrowDown")
    await expect(desk.page.get_by_role("menuitem", name="Show the archive")).to_be_focused()
    await desk.page.keyboard.press("ArrowUp")
    await expect(desk.page.get_by_role("menuitem", name="Stop every agent now")).to_be_focused()
    await desk.page.keyboard.press("Escape")
    await expect(desk.page.get_by_role("menu")).to_have_count(0)
    await expect(desk.page.get_by_role("button", name="More about sessions")).to_be_focused()


async def test_one_that_is_not_there_is_told_with_a_way_back(desk: Desk) -> None:
    await desk.go("/sessions?id=nothing")
    await desk.page.get_by_role("button", name="Back to the sessions").click()
    await expect(desk.page).to_have_url(desk.address("/sessions"))


async def test_on_a_phone_one_goes_to_a_session_and_back(whole: Whole, browser: Browser) -> None:
    await whole.open("builtin", title="on the phone")
    async with at_desk(browser, whole, PHONE, touch=True) as phone:
        await phone.go("/sessions")
        await row(phone, "on the phone").get_by_role("link").tap()
        await expect(phone.message).to_be_visible()
        await expect(phone.page.get_by_label("Find a session")).to_be_hidden()
        await phone.page.get_by_role("button", name="Back to the sessions").tap()
        await expect(phone.page.get_by_label("Find a session")).to_be_visible()
        wide = await phone.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= PHONE["width"]
