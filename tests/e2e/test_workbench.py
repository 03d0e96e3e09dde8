"""The pane beside a conversation: changes, preview, files, terminal and plan, by pointer and by keyboard."""

from collections.abc import Mapping, Sequence

import pytest
from playwright.async_api import Browser, Locator, Page, ViewportSize, expect
from tests.support.browser import PHONE, OwnerPage, open_owner_page
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.testing import Call, Conversation, Say, Step, make_script

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
PLANNED, PLANNED_ANEW = "Plan and begin.", "Go on with it."


def plan(*steps: tuple[str, str]) -> Call:
    return Call("plan", {"entries": [{"content": content, "status": status} for content, status in steps]})


SCRIPTS: Mapping[str, Sequence[Step]] = {
    PLANNED: [plan(("Look", "completed"), ("Change <b>it</b>", "pending")), Say("Begun.")],
    PLANNED_ANEW: [plan(("Look", "completed"), ("Check", "in_progress"), ("Tell", "pending")), Say("On.")],
}


def choose_step(conversation: Conversation) -> Step | None:
    """The script of the newest prompt; None leaves the choice to its words."""
    prompts = [turn.text for turn in conversation.turns if turn.role == "user"]
    words = next((words for words in SCRIPTS if prompts and words in prompts[-1]), None)
    return None if words is None else make_script(SCRIPTS[words], when=words)(conversation)


FREEHOLD = FreeholdOptions(agents=("builtin",), script=choose_step)
WIDE: ViewportSize = {"width": 1920, "height": 1000}
START = """async (line) => {
  const headers = {'content-type': 'application/json'}
  const made = await asOwner('/v1/terminals', {method: 'POST', headers, body: '{}'}).then((answer) => answer.json())
  const socket = ownSocket(`/v1/terminals/${made.id}/socket`)
  await new Promise((done) => { socket.onmessage = done })
  socket.send(new TextEncoder().encode(line))
  return made.id
}"""
STOP = "(id) => asOwner('/v1/terminals/' + id, {method: 'DELETE'}).then((answer) => answer.status)"


def panel(page: Page, name: str) -> Locator:
    return page.get_by_role("tabpanel", name=name)


def tab(page: Page, name: str) -> Locator:
    return page.get_by_role("complementary", name="Beside the conversation").get_by_role("tab", name=name)


async def write_file(owner_page: OwnerPage, freehold: RunningFreehold, session: str, name: str, text: str) -> None:
    """A turn that changes a file."""
    async with freehold.watch(session) as watch:
        await owner_page.send_prompt(f"!echo {text} > {name}")
        await watch.until("turn.ended")


async def test_changes_and_files_open_beside_the_conversation(freehold: RunningFreehold, browser: Browser) -> None:
    session = await freehold.open("builtin")
    async with open_owner_page(browser, freehold, WIDE) as owner_page:
        page = owner_page.page
        await owner_page.open_session(session)
        await expect(panel(page, "Changes")).to_be_visible()
        await write_file(owner_page, freehold, session, "first.txt", "one")
        await expect(panel(page, "Changes").get_by_role("heading", name="workspace/first.txt")).to_be_visible()
        await write_file(owner_page, freehold, session, "second.txt", "two")
        await expect(panel(page, "Changes").get_by_role("heading", name="workspace/second.txt")).to_be_visible()
        await owner_page.transcript.get_by_role("button", name="Show changes").first.click()
        await expect(panel(page, "Changes").get_by_role("heading", name="workspace/first.txt")).to_be_visible()
        await tab(page, "Files").click()
        await panel(page, "Files").get_by_text("second.txt").click()
        await expect(panel(page, "Files").locator(".cm-content")).to_contain_text("two")
        await expect(owner_page.message).to_be_visible()
        assert page.url == owner_page.address(f"/sessions?id={session}")
        await tab(page, "Plan").click()
        await expect(panel(page, "Plan")).to_contain_text("no plan in this session")


async def test_the_newest_plan_of_the_agent_is_in_the_pane(freehold: RunningFreehold, browser: Browser) -> None:
    session, other = await freehold.open("builtin"), await freehold.open("builtin")
    async with open_owner_page(browser, freehold, WIDE) as owner_page:
        page = owner_page.page
        await owner_page.open_session(session)
        await tab(page, "Plan").click()
        shown = panel(page, "Plan")
        await expect(shown).to_contain_text("no plan in this session")
        steps, marks = shown.get_by_role("listitem"), shown.get_by_role("listitem").get_by_role("img")
        await owner_page.send_prompt(PLANNED)
        await expect(shown).to_contain_text("1 of 2 done")
        await expect(steps).to_have_text(["Look", "Change <b>it</b>"])
        await expect(owner_page.transcript).to_contain_text("Begun.")
        await owner_page.send_prompt(PLANNED_ANEW)
        await expect(shown).to_contain_text("1 of 3 done")
        await expect(steps).to_have_text(["Look", "Check", "Tell"])
        assert await marks.evaluate_all("marks => marks.map(one => one.ariaLabel)") == ["done", "in progress", "to do"]
        await owner_page.open_session(other)
        await expect(shown).to_contain_text("no plan in this session")
        await owner_page.open_session(session)
        await expect(steps).to_have_text(["Look", "Check", "Tell"])


async def test_the_pane_is_used_by_keyboard_and_remembered(freehold: RunningFreehold, browser: Browser) -> None:
    session = await freehold.open("builtin")
    async with open_owner_page(browser, freehold, WIDE) as owner_page:
        page = owner_page.page
        await owner_page.open_session(session)
        edge = page.get_by_role("slider", name="Width of the pane")
        await edge.focus()
        before = int(await edge.get_attribute("aria-valuenow") or 0)
        await page.keyboard.press("ArrowLeft")
        await expect(edge).not_to_have_attribute("aria-valuenow", str(before))
        after = await edge.get_attribute("aria-valuenow")
        assert after is not None
        assert int(after) > before
        await tab(page, "Changes").focus()
        await page.keyboard.press("ArrowDown")
        await expect(tab(page, "Preview")).to_be_focused()
        await expect(panel(page, "Preview")).to_be_visible()
        await owner_page.open_session(session)
        await expect(panel(page, "Preview")).to_be_visible()
        await expect(edge).to_have_attribute("aria-valuenow", after)
        await owner_page.message.focus()
        await page.keyboard.press("Control+j")
        await expect(page.get_by_role("tabpanel")).to_have_count(0)
        await expect(owner_page.message).to_be_focused()
        await owner_page.open_session(session)
        await expect(page.get_by_role("tabpanel")).to_have_count(0)
        await page.keyboard.press("Control+j")
        await expect(panel(page, "Preview")).to_be_visible()
        await expect(tab(page, "Preview")).to_be_focused()
        await edge.focus()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("tabpanel")).to_have_count(0)


async def test_on_a_phone_the_pane_is_a_sheet(freehold: RunningFreehold, browser: Browser) -> None:
    session = await freehold.open("builtin")
    async with open_owner_page(browser, freehold, PHONE, touch=True) as phone:
        page = phone.page
        await phone.open_session(session)
        await expect(page.get_by_role("tabpanel")).to_have_count(0)
        await page.get_by_role("button", name="Changes, preview, files, git, terminal and plan").tap()
        await expect(panel(page, "Changes")).to_be_visible()
        await tab(page, "Files").tap()
        await expect(panel(page, "Files")).to_be_visible()
        box = await panel(page, "Files").bounding_box()
        assert box is not None
        assert box["width"] == PHONE["width"]
        await expect(panel(page, "Files").get_by_label("Find by name")).to_be_visible()
        await expect(phone.message).not_to_be_visible()
        await (
            page.get_by_role("complementary", name="Beside the conversation")
            .get_by_role("button", name="Close", exact=True)
            .tap()
        )
        await expect(phone.message).to_be_visible()


async def test_on_a_phone_the_changes_of_a_turn_are_shown_over_the_conversation_and_back_leads_to_it(
    freehold: RunningFreehold, browser: Browser
) -> None:
    session = await freehold.open("builtin")
    async with open_owner_page(browser, freehold, PHONE, touch=True) as phone:
        page = phone.page
        await phone.open_session(session)
        await write_file(phone, freehold, session, "seen-on-a-phone.txt", "words")
        for leave in ("Close", "Back"):
            await phone.open_session(session)
            await page.get_by_role("button", name="Show changes").tap()
            await expect(panel(page, "Changes")).to_contain_text("seen-on-a-phone.txt")
            if leave == "Back":
                await page.go_back()
            else:
                await page.get_by_role("button", name="Close", exact=True).tap()
            await expect(phone.message).to_be_visible()
            await expect(page.get_by_role("tabpanel")).to_have_count(0)
            assert page.url.endswith(f"/sessions?id={session}")


async def test_a_preview_beside_the_conversation_is_loaded_again_when_files_change(
    freehold: RunningFreehold, browser: Browser
) -> None:
    session = await freehold.open("builtin")
    freehold.file("index.html").write_text("<h1>before</h1>")
    async with open_owner_page(browser, freehold, WIDE) as owner_page:
        page = owner_page.page
        await owner_page.open_session(session)
        terminal = await page.evaluate(START, "exec python3 -m http.server 8123 --bind 127.0.0.1\n")
        await tab(page, "Preview").click()
        framed = panel(page, "Preview").frame_locator("iframe").get_by_role("heading")
        await expect(framed).to_have_text("before")
        freehold.file("index.html").write_text("<h1>after</h1>")
        await expect(framed).to_have_text("after")
        await page.evaluate(STOP, terminal)


async def test_two_sessions_are_used_side_by_side(freehold: RunningFreehold, browser: Browser) -> None:
    first, second = await freehold.open("builtin", title="First"), await freehold.open("builtin", title="Second")
    async with open_owner_page(browser, freehold, WIDE) as owner_page:
        page = owner_page.page
        await owner_page.open_session(first)
        await tab(page, "Another session").click()
        beside = panel(page, "Another session")
        await beside.get_by_label("Session beside").select_option("Second")
        field = beside.get_by_label("Message")
        await field.fill("WRITE beside.txt one")
        await field.press("Enter")
        question = beside.get_by_role("alertdialog", name="Permission request")
        await expect(question).to_be_visible()
        main = page.get_by_role("region", name="First", exact=True)
        await expect(main.get_by_role("alertdialog")).to_have_count(0)
        async with freehold.watch(first) as watch:
            await main.get_by_label("Message").fill("SAY hello")
            await main.get_by_label("Message").press("Enter")
            await watch.until("turn.ended")
        await page.keyboard.press("Escape")
        await page.keyboard.press("Alt+1")
        await expect(question).to_be_visible()
        assert not freehold.file("beside.txt").exists(), "a key in one session does not answer the other"
        async with freehold.watch(second) as watch:
            await question.get_by_role("button", name="Once", exact=True).click()
            await watch.until("turn.ended")
        assert freehold.file("beside.txt").exists()
        third = await freehold.open("builtin", title="Third")
        await owner_page.go(f"/sessions?id={third}")
        await expect(page.get_by_role("region", name="Third", exact=True)).to_be_visible()
        await expect(panel(page, "Another session").get_by_role("region", name="Second", exact=True)).to_be_visible()


async def open_in_list(page: Page, title: str) -> None:
    """Goes to a session without loading the page again."""
    sessions = page.get_by_role("complementary", name="Sessions")
    await sessions.get_by_role("link", name=title).click()
    await expect(page.get_by_role("region", name=title, exact=True)).to_be_visible()


async def test_the_pane_stays_when_another_session_is_opened(freehold: RunningFreehold, browser: Browser) -> None:
    first = await freehold.open("builtin", title="One that is left")
    await freehold.open("builtin", title="One that is opened")
    freehold.file("stays.txt").write_text("stays")
    async with open_owner_page(browser, freehold, WIDE) as owner_page:
        page = owner_page.page
        await owner_page.open_session(first)
        await tab(page, "Files").click()
        files = panel(page, "Files")
        await files.get_by_label("Find by name").fill("stays")
        await open_in_list(page, "One that is opened")
        await expect(files.get_by_label("Find by name")).to_have_value("stays")
        await expect(files.locator(".cm-content")).to_have_count(0)
        await open_in_list(page, "One that is left")
        await files.get_by_role("treeitem", name="stays.txt").click()
        await expect(files.locator(".cm-content")).to_contain_text("stays")
        await open_in_list(page, "One that is opened")
        await expect(files.locator(".cm-content")).to_have_count(0)
        await open_in_list(page, "One that is left")
        await expect(files.locator(".cm-content"), "each session has what was chosen beside it").to_contain_text(
            "stays"
        )


async def test_the_last_changes_beside_another_session_are_those_of_now(
    freehold: RunningFreehold, browser: Browser
) -> None:
    changing = await freehold.open("builtin", title="One that changes a file")
    first = await freehold.open("builtin", title="First without changes")
    await freehold.open("builtin", title="Second without changes")
    async with open_owner_page(browser, freehold, WIDE) as owner_page:
        page = owner_page.page
        await owner_page.open_session(changing)
        await write_file(owner_page, freehold, changing, "earlier.txt", "one")
        async with page.expect_websocket() as opened:
            await owner_page.open_session(first)
        shown = panel(page, "Changes")
        await expect(shown).to_contain_text("earlier.txt")
        async with (await opened.value).expect_event("framereceived", lambda frame: "later.txt" in str(frame)):
            freehold.file("later.txt").write_text("two")
        await expect(shown, "nothing changes under the eyes of its reader").not_to_contain_text("later.txt")
        await open_in_list(page, "Second without changes")
        await expect(shown).to_contain_text("later.txt")
