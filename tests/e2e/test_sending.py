"""What was written reaches the agent once: it waits, steers, is stopped, outlives outages, and the owner is called."""

import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Route, expect
from tests.agents.whole import Whole
from tests.e2e.owner import Desk, at_desk, lived_in

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Whole]:
    async with lived_in(tmp_path_factory.mktemp("sending")) as whole:
        yield whole


async def prompts(whole: Whole, session: str) -> list[dict[str, Any]]:
    return [one["data"]["prompt"] for one in await whole.events(session) if one["kind"] == "turn.started"]


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


async def test_when_everything_is_stopped_the_page_says_so_and_lifts_it(whole: Whole, desk: Desk) -> None:
    await desk.open(await whole.open("builtin"))
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
        await desk.reply("No").click()
        await expect(desk.page.get_by_role("button", name="Send")).to_be_visible()
        assert await desk.page.evaluate("window.called.length") == 2
