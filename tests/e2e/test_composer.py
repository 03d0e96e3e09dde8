"""The place to write: files, commands, images and options; waiting, steering and stopping; and nothing lost or doubled."""

import base64
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Route, expect
from tests.agents.whole import Whole
from tests.e2e.owner import PHONE, Desk, at_desk, browser_running, lived_in

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAF0lEQVR4nGOQj/EiCTGMahjVMKphqGoAAEFCSgFvN3OjAAAAAElFTkSuQmCC"
)
GIVE = """([how, name, type, data]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const given = new DataTransfer();
  given.items.add(new File([bytes], name, { type }));
  const target = document.querySelector(how === "paste" ? ".composer textarea" : ".composer");
  const more = { bubbles: true, cancelable: true };
  target.dispatchEvent(how === "paste" ? new ClipboardEvent("paste", { ...more, clipboardData: given })
                                       : new DragEvent("drop", { ...more, dataTransfer: given }));
}"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Whole]:
    async with lived_in(tmp_path_factory.mktemp("composer")) as whole:
        for name in ("src/main.ts", "src/domain.ts", "docs/the plan.md"):
            whole.file(name).parent.mkdir(exist_ok=True)
            whole.file(name).write_text("x\n")
        yield whole


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with browser_running() as browser:
        yield browser


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(browser: Browser, whole: Whole) -> AsyncIterator[Desk]:
    async with at_desk(browser, whole) as desk:
        yield desk


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(whole: Whole) -> str:
    """One that has met its agent."""
    session = await whole.open("builtin")
    async with whole.watching(session) as watch:
        await whole.prompt(session, "SAY hello")
        await watch.until("turn.ended")
    return session


async def prompts(whole: Whole, session: str) -> list[dict[str, Any]]:
    return [one["data"]["prompt"] for one in await whole.events(session) if one["kind"] == "turn.started"]


async def test_a_file_is_picked_and_goes_along(whole: Whole, desk: Desk, session: str) -> None:
    """By keys: @, some letters, the second of two, and Enter; then one with a space in its name, and out again."""
    await desk.open(session)
    await desk.message.press_sequentially("SAY read @mai")
    files = desk.page.get_by_role("listbox", name="Files")
    await expect(files.get_by_role("option")).to_have_text(["src/main.ts", "src/domain.ts"])
    await desk.message.press("ArrowDown")
    await expect(files.get_by_role("option", selected=True)).to_have_text("src/domain.ts")
    await desk.message.press("ArrowUp")
    await desk.message.press("Enter")
    await expect(files).to_have_count(0)
    await expect(desk.message).to_have_value("SAY read @src/main.ts ")
    await desk.message.press_sequentially("@plan")
    await expect(files.get_by_role("option")).to_have_count(1)
    await desk.message.press("Tab")
    along = desk.page.get_by_role("list", name="Goes along")
    await expect(along.get_by_role("listitem")).to_have_count(2)
    await along.get_by_role("button", name="Leave out docs/the plan.md").click()
    await expect(desk.message).to_have_value("SAY read @src/main.ts ")
    await desk.message.press("Enter")
    await expect(desk.message).to_have_value("")
    await expect(desk.talk).to_contain_text("read @src/main.ts")
    assert (await prompts(whole, session))[-1]["files"] == ["src/main.ts"]


async def test_an_open_list_is_closed_by_escape_and_not_the_turn(desk: Desk, session: str) -> None:
    await desk.open(session)
    await desk.message.press_sequentially("@")
    await expect(desk.page.get_by_role("listbox", name="Files")).to_be_visible()
    await desk.message.press("Escape")
    await expect(desk.page.get_by_role("listbox", name="Files")).to_have_count(0)
    await expect(desk.message).to_have_value("@")
    await desk.message.fill("")


async def test_a_command_of_the_agent_is_offered_and_sent(whole: Whole, desk: Desk, session: str) -> None:
    """Also in a session that has not met its agent yet: another has."""
    for each in (session, await whole.open("builtin")):
        await desk.open(each)
        await desk.message.press_sequentially("/com")
        await expect(desk.page.get_by_role("listbox", name="Commands of the agent")).to_contain_text("compact")
        await desk.message.press("Enter")
        await expect(desk.message).to_have_value("/compact ")
        await desk.message.fill("")
    await desk.open(session)
    async with whole.watching(session, (await whole.events(session))[-1]["seq"]) as watch:
        await desk.message.press_sequentially("/compact")
        await desk.message.press("Enter")
        await watch.until("turn.ended")
    assert (await prompts(whole, session))[-1]["text"] == "/compact"


async def test_images_are_pasted_dropped_left_out_and_sent(whole: Whole, desk: Desk, session: str) -> None:
    await desk.open(session)
    picture = base64.b64encode(DOT).decode()
    thumbs = desk.page.get_by_role("list", name="Goes along").get_by_role("img")
    await desk.page.evaluate(GIVE, ["paste", "dot.png", "image/png", picture])
    await expect(thumbs).to_have_count(1)
    await desk.page.evaluate(GIVE, ["drop", "other.png", "image/png", picture])
    await expect(thumbs).to_have_count(2)
    # What only calls itself an image is refused, and so is one that could run.
    liar = base64.b64encode(b"<svg onload='window.pwned=1' xmlns='http://www.w3.org/2000/svg'/>").decode()
    await desk.page.evaluate(GIVE, ["drop", "liar.png", "image/png", liar])
    await expect(desk.page.get_by_text("liar.png is no image that can be sent")).to_be_visible()
    await desk.page.get_by_role("button", name="Put away").click()
    await expect(thumbs).to_have_count(2)
    await desk.page.get_by_role("button", name="Leave out other.png").click()
    await expect(thumbs).to_have_count(1)
    await desk.say("SAY a dot")
    await expect(thumbs).to_have_count(0)
    await expect(desk.talk).to_contain_text("a dot")
    images = (await prompts(whole, session))[-1]["images"]
    assert [image["mime"] for image in images] == ["image/png"]


async def test_an_option_of_the_agent_is_chosen(whole: Whole, desk: Desk, session: str) -> None:
    await desk.open(session)
    async with whole.watching(session, (await whole.events(session))[-1]["seq"]) as watch:
        await desk.page.get_by_role("button", name="Options of the agent").click()
        mode = desk.page.get_by_role("dialog", name="Options of the agent").get_by_role("combobox")
        await mode.select_option("Read only")
        await watch.until("options", mode="read-only")
    await expect(desk.page.get_by_role("button", name="Options of the agent: Read only")).to_be_visible()
    await mode.select_option("Ask")
    await expect(desk.page.get_by_role("button", name="Options of the agent: Ask")).to_be_visible()
    await mode.press("Escape")
    await expect(desk.page.get_by_role("dialog")).to_have_count(0)


async def test_while_it_works_words_wait_steer_or_stop(whole: Whole, desk: Desk) -> None:
    """Enter queues, Ctrl and Enter goes first and stops what is under way, Esc stops."""
    session = await whole.open("builtin")
    await desk.open(session)
    async with whole.watching(session) as watch:
        await desk.say("SLOW")
        await expect(desk.talk).to_contain_text("tick 00")
        await expect(desk.page.get_by_role("button", name="Queue")).to_be_visible()
        await desk.say("SAY came last")
        await watch.until("queued", text="SAY came last")
        await desk.message.fill("SAY came first")
        await desk.message.press("Control+Enter")
        cut = await watch.until("turn.ended")
        assert cut["data"]["stop_reason"] == "cancelled"
        await watch.until("turn.ended")
        await watch.until("turn.ended")
        await expect(desk.talk).to_contain_text("came last")
        assert [one["text"] for one in await prompts(whole, session)] == ["SLOW", "SAY came first", "SAY came last"]
        for stop in ("key", "button"):
            await desk.say("SLOW")
            await watch.until("turn.started")
            await expect(desk.page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
            if stop == "key":
                await desk.message.press("Escape")
            else:
                await desk.page.get_by_role("button", name="Stop", exact=True).click()
            assert (await watch.until("turn.ended"))["data"]["stop_reason"] == "cancelled"
            await expect(desk.page.get_by_role("button", name="Send")).to_be_visible()


async def test_what_is_stopped_before_it_was_sent_comes_back_to_be_mended(whole: Whole, desk: Desk) -> None:
    session = await whole.open("builtin")
    await desk.open(session)
    async with whole.watching(session) as watch:
        await desk.say("SLOW")
        await watch.until("turn.started")
        await desk.say("SAY hastily")
        await watch.until("queued", text="SAY hastily")
        await expect(desk.message).to_have_value("")
        await desk.page.get_by_role("button", name="Stop", exact=True).click()
        await watch.until("turn.ended")
        await expect(desk.message).to_have_value("SAY hastily")
        await desk.message.press("Enter")
        await expect(desk.talk.get_by_text("hastily", exact=True)).to_be_visible()
    assert [one["text"] for one in await prompts(whole, session)] == ["SLOW", "SAY hastily"]


async def test_what_is_typed_outlives_a_kill_and_is_sent_once(whole: Whole, desk: Desk) -> None:
    """The gateway dies by -9 while words stand there; they are sent before it is back, and become one turn."""
    session = await whole.open("builtin")
    await desk.open(session)
    await desk.message.fill("SAY I was here")
    assert whole.keeper is not None
    os.kill(whole.keeper.pid_of("gateway"), signal.SIGKILL)
    await expect(desk.message).to_have_value("SAY I was here")
    await desk.message.press("Enter")
    await expect(desk.talk.get_by_text("I was here", exact=True)).to_be_visible()
    await desk.page.reload()
    await expect(desk.talk.get_by_text("I was here", exact=True)).to_be_visible()
    await expect(desk.message).to_have_value("")
    assert [one["text"] for one in await prompts(whole, session)] == ["SAY I was here"]


async def test_a_prompt_whose_answer_was_lost_is_tried_again_and_not_doubled(whole: Whole, desk: Desk) -> None:
    """It arrives, the answer does not: the page says so, tries again by itself, and also after a reload."""
    session = await whole.open("builtin")
    await desk.open(session)
    losing, lost = True, 0

    async def lose(route: Route) -> None:
        nonlocal lost
        if not losing:
            await route.continue_()
            return
        await route.fetch()
        lost += 1
        await route.abort()

    await desk.page.route("**/prompt", lose)
    await desk.say("SAY only once")
    await expect(desk.page.get_by_text("Not sent yet")).to_be_visible()
    await expect(desk.talk.get_by_text("only once", exact=True)).to_be_visible()
    await desk.page.reload()
    await expect(desk.page.get_by_text("Not sent yet")).to_be_visible()
    losing = False
    await expect(desk.page.get_by_text("Not sent yet")).to_have_count(0)
    await desk.page.unroute_all(behavior="wait")
    assert lost >= 1
    assert [one["text"] for one in await prompts(whole, session)] == ["SAY only once"]


async def test_a_draft_belongs_to_its_session_and_stays(whole: Whole, desk: Desk) -> None:
    first, second = await whole.open("builtin"), await whole.open("builtin")
    await desk.open(first)
    await desk.message.fill("half a thought")
    await desk.open(second)
    await expect(desk.message).to_have_value("")
    await desk.open(first)
    await expect(desk.message).to_have_value("half a thought")
    await desk.message.fill("")


async def test_signing_out_leaves_no_draft_behind(whole: Whole, browser: Browser) -> None:
    session = await whole.open("builtin")
    async with at_desk(browser, whole) as desk:
        await desk.open(session)
        await desk.message.fill("for my eyes only")
        await desk.page.keyboard.press("Control+k")
        await desk.page.get_by_role("option", name="Sign out").click()
        await expect(desk.message).to_have_count(0)
        kept = await desk.page.evaluate("JSON.stringify(localStorage)")
        assert "for my eyes only" not in kept


async def test_when_everything_is_stopped_the_page_says_so_and_lifts_it(whole: Whole, desk: Desk, session: str) -> None:
    await desk.open(session)
    await desk.message.fill("SAY back at work")
    await whole.call("POST", "/v1/stop", why="dinner")
    bar = desk.page.get_by_role("status").filter(has_text="Everything is stopped")
    await expect(bar).to_contain_text("dinner")
    await expect(desk.page.get_by_role("button", name="Send")).to_be_disabled()
    await bar.get_by_role("button", name="Let agents work again").click()
    await expect(bar).to_have_count(0)
    await desk.page.get_by_role("button", name="Send").click()
    await expect(desk.talk.get_by_text("back at work", exact=True)).to_be_visible()


async def test_a_budget_that_is_used_up_is_told_with_its_way_out(whole: Whole, desk: Desk) -> None:
    session = await whole.open("builtin")
    await desk.open(session)
    await whole.call("PUT", "/v1/budgets", scope="*", day_tokens=1)
    try:
        await desk.say("SAY never said")
        note = desk.page.get_by_role("status").filter(has_text="is used up")
        await expect(note).to_contain_text("1 tokens a day")
        await note.get_by_role("button", name="Go on today").click()
        await expect(note).to_have_count(0)
        await expect(desk.page.get_by_role("button", name="Send")).to_be_visible()
        await desk.say("SAY said after all")
        await expect(desk.talk.get_by_text("said after all", exact=True)).to_be_visible()
    finally:
        await whole.call("PUT", "/v1/budgets", scope="*")


async def test_an_archived_session_takes_no_words_until_it_is_taken_out(whole: Whole, desk: Desk) -> None:
    session = await whole.open("builtin")
    await whole.call("PATCH", f"/v1/sessions/{session}", archived=True)
    await desk.go(f"/sessions?id={session}")
    await expect(desk.page.get_by_text("This session is archived.")).to_be_visible()
    await expect(desk.message).to_have_count(0)
    await desk.page.get_by_role("button", name="Take it out").click()
    await expect(desk.message).to_be_visible()


async def test_on_a_phone_everything_is_in_reach(whole: Whole, browser: Browser, session: str) -> None:
    async with at_desk(browser, whole, PHONE, touch=True) as phone:
        await phone.open(session)
        await phone.message.press_sequentially("SAY see @domain")
        await phone.page.get_by_role("option", name="src/domain.ts").tap()
        await expect(phone.message).to_have_value("SAY see @src/domain.ts ")
        await phone.page.get_by_role("button", name="Send").tap()
        await expect(phone.talk).to_contain_text("see @src/domain.ts")
        await phone.say("SLOW")
        for name in ("Add images", "Options of the agent", "Stop", "Steer", "Queue"):
            button = phone.page.get_by_role("button", name=name)
            await expect(button).to_be_visible()
            box = await button.bounding_box()
            assert box is not None
            assert box["height"] >= 44, name
            assert box["x"] >= 0, name
            assert box["x"] + box["width"] <= PHONE["width"], name
        await phone.page.get_by_role("button", name="Stop").tap()
        await expect(phone.page.get_by_role("button", name="Send")).to_be_visible()


HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
STUB = """(() => {
  window.called = [];
  let permission = "default";
  window.Notification = class {
    static get permission() { return permission; }
    static async requestPermission() { window.asked = (window.asked ?? 0) + 1; permission = "granted"; return permission; }
    constructor(title, { body }) { window.called.push([title, body]); document.documentElement.dataset.called = window.called.length; }
    close() {}
  };
})()"""


async def test_one_who_asked_for_it_is_called_when_the_page_is_out_of_sight(whole: Whole, browser: Browser) -> None:
    """Never asked on load; asked by a button while an agent works; called for a question and for the end."""
    session = await whole.open("builtin", title="the long one")
    async with at_desk(browser, whole) as desk:
        await desk.page.add_init_script(STUB)
        await desk.open(session)
        assert await desk.page.evaluate("window.asked") is None
        await desk.say("SLOW")
        await desk.page.get_by_role("button", name="Notify me when it is done").click()
        assert await desk.page.evaluate("window.asked") == 1
        await expect(desk.page.get_by_role("button", name="Notify me when it is done")).to_have_count(0)
        async with whole.watching(session) as watch:
            await watch.until("turn.started")
            await desk.page.evaluate(HIDE, True)
            await whole.call("POST", f"/v1/sessions/{session}/cancel")
            await expect(desk.page.locator("html")).to_have_attribute("data-called", "1")
            await whole.prompt(session, "RUN true")
            await watch.until("approval", state="pending")
            await expect(desk.page.locator("html")).to_have_attribute("data-called", "2")
        assert await desk.page.evaluate("window.called") == [
            ["An agent is done", "the long one"],
            ["An agent needs you", "the long one"],
        ]
        # In sight nobody is called.
        await desk.page.evaluate(HIDE, False)
        await desk.reply("No").first.click()
        await expect(desk.page.get_by_role("button", name="Send")).to_be_visible()
        assert await desk.page.evaluate("window.called.length") == 2
