"""What was written reaches the agent once: it waits, steers, is stopped, outlives outages, and the owner is called."""

import asyncio
import base64
import os
import signal
from typing import Any

import pytest
from playwright.async_api import Browser, Route, expect
from tests.e2e.test_composer import DOT
from tests.support.browser import OwnerPage, open_owner_page
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("builtin",))


async def prompts(freehold: RunningFreehold, session: str) -> list[dict[str, Any]]:
    return [one["data"]["prompt"] for one in await freehold.events(session) if one["kind"] == "turn.started"]


async def test_while_it_works_words_wait_steer_or_stop(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    """Enter queues, Ctrl and Enter goes first and stops what is under way, Esc stops."""
    session = await freehold.open("builtin")
    await owner_page.open_session(session)
    async with freehold.watch(session) as watch:
        await owner_page.send_prompt("SLOW")
        await expect(owner_page.transcript).to_contain_text("tick 00")
        await expect(owner_page.page.get_by_role("button", name="Queue")).to_be_visible()
        await owner_page.send_prompt("SAY came last")
        await watch.until("queued", text="SAY came last")
        await owner_page.message.fill("SAY came first")
        await owner_page.message.press("Control+Enter")
        cut = await watch.until("turn.ended")
        assert cut["data"]["stop_reason"] == "cancelled"
        await watch.until("turn.ended")
        await watch.until("turn.ended")
        await expect(owner_page.transcript).to_contain_text("came last")
        assert [one["text"] for one in await prompts(freehold, session)] == ["SLOW", "SAY came first", "SAY came last"]
        for stop in ("key", "button"):
            await owner_page.send_prompt("SLOW")
            await watch.until("turn.started")
            await expect(owner_page.page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
            if stop == "key":
                await owner_page.message.press("Escape")
            else:
                await owner_page.page.get_by_role("button", name="Stop", exact=True).click()
            assert (await watch.until("turn.ended"))["data"]["stop_reason"] == "cancelled"
            await expect(owner_page.page.get_by_role("button", name="Send")).to_be_visible()


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)])
async def test_a_stop_is_shown_before_the_agent_has_ended_and_no_message_covers_the_buttons(
    freehold: RunningFreehold, browser: Browser, size: tuple[int, int]
) -> None:
    session = await freehold.open("builtin")
    answered = asyncio.Event()

    async def hold(route: Route) -> None:
        await answered.wait()
        await route.fulfill(status=500, json={"error": {"code": "x", "message": "It could not be stopped", "hint": ""}})

    async with open_owner_page(browser, freehold, {"width": size[0], "height": size[1]}) as owner_page:
        page = owner_page.page
        await page.route("**/cancel", hold)
        await owner_page.open_session(session)
        await owner_page.send_prompt("FAIL hang")
        await expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
        await owner_page.message.press("Escape")
        await expect(page.get_by_role("button", name="Stopping…")).to_be_disabled()
        await expect(owner_page.transcript).to_contain_text("Stopping…")
        answered.set()
        toast = page.get_by_text("It could not be stopped")
        await expect(toast).to_be_visible()
        await expect(page.get_by_role("button", name="Stop", exact=True)).to_be_enabled()
        shown = await page.locator(".toast").bounding_box()
        buttons = await page.locator(".composer").bounding_box()
        assert shown is not None
        assert buttons is not None
        is_above = shown["y"] + shown["height"] <= buttons["y"]
        is_beside = shown["x"] + shown["width"] <= buttons["x"]
        assert is_above or is_beside
        await page.unroute("**/cancel")
        await page.get_by_role("button", name="Stop", exact=True).click()
        await expect(page.get_by_role("button", name="Send")).to_be_visible()


async def test_a_turn_that_failed_is_tried_again_or_continued(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    session = await freehold.open("builtin")
    await owner_page.open_session(session)
    again = owner_page.transcript.get_by_role("button", name="Try again")
    async with freehold.watch(session) as watch:
        await owner_page.send_prompt("FAIL 500")
        await watch.until("turn.ended")
        await again.click()
        await watch.until("turn.started")
        await watch.until("turn.ended")
        await expect(again).to_have_count(1)
        await owner_page.transcript.get_by_role("button", name="Continue").click()
        await watch.until("turn.started")
    assert [one["text"] for one in await prompts(freehold, session)] == ["FAIL 500", "FAIL 500", "Continue"]


async def test_a_turn_with_an_image_that_failed_is_tried_again_with_it(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    session = await freehold.open("builtin")
    await owner_page.open_session(session)
    picture = {"mime": "image/png", "data": base64.b64encode(DOT).decode()}
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, "FAIL 500", images=[picture])
        await watch.until("turn.ended")
        await owner_page.transcript.get_by_role("button", name="Try again").click()
        await watch.until("turn.started")
        await watch.until("turn.ended")
    first, again = await prompts(freehold, session)
    assert again == first
    for turn in (1, 2):
        shown = await freehold.http.get(f"/v1/sessions/{session}/turns/{turn}/images/0")
        assert shown.content == DOT


async def test_what_is_stopped_before_it_was_sent_comes_back_to_be_mended(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    session = await freehold.open("builtin")
    await owner_page.open_session(session)
    async with freehold.watch(session) as watch:
        await owner_page.send_prompt("SLOW")
        await watch.until("turn.started")
        await owner_page.send_prompt("SAY hastily")
        await watch.until("queued", text="SAY hastily")
        await expect(owner_page.message).to_have_value("")
        await owner_page.page.get_by_role("button", name="Stop", exact=True).click()
        await watch.until("turn.ended")
        await expect(owner_page.message).to_have_value("SAY hastily")
        await owner_page.message.press("Enter")
        await expect(owner_page.transcript.get_by_text("hastily", exact=True)).to_be_visible()
    assert [one["text"] for one in await prompts(freehold, session)] == ["SLOW", "SAY hastily"]


async def test_what_is_typed_outlives_a_kill_and_is_sent_once(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    """The gateway dies by -9 while words stand there; they are sent before it is back, and become one turn."""
    session = await freehold.open("builtin")
    await owner_page.open_session(session)
    await owner_page.message.fill("SAY I was here")
    assert freehold.keeper is not None
    os.kill(freehold.keeper.pid_of("gateway"), signal.SIGKILL)
    await expect(owner_page.message).to_have_value("SAY I was here")
    await owner_page.message.press("Enter")
    await expect(owner_page.transcript.get_by_text("I was here", exact=True)).to_be_visible()
    await owner_page.page.reload()
    await expect(owner_page.transcript.get_by_text("I was here", exact=True)).to_be_visible()
    await expect(owner_page.message).to_have_value("")
    assert [one["text"] for one in await prompts(freehold, session)] == ["SAY I was here"]


async def test_words_that_the_page_has_shown_stay_when_the_gateway_is_killed(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    """In the page that was open, and in one that opens later. The turn says that it was interrupted."""
    session = await freehold.open("builtin")
    await owner_page.open_session(session)
    await owner_page.send_prompt("SLOW")
    await expect(owner_page.transcript).to_contain_text("tick 02")
    await freehold.wait_stored(session, "tick 02")
    await freehold.kill_gateway()
    for opened in ("before", "after"):
        if opened == "after":
            await owner_page.page.reload()
        await expect(owner_page.transcript.get_by_role("button", name="Continue")).to_be_visible()
        await expect(owner_page.transcript.get_by_text("tick 02")).to_have_count(1)


async def test_a_prompt_whose_answer_was_lost_is_tried_again_and_not_doubled(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    """It arrives, the answer does not: the page says so, tries again by itself, and also after a reload."""
    session = await freehold.open("builtin")
    await owner_page.open_session(session)
    losing, lost = True, 0

    async def lose(route: Route) -> None:
        nonlocal lost
        if not losing:
            await route.continue_()
            return
        # Playwright fetches outside of the browser, where names below localhost may not be known.
        address = route.request.url.replace(freehold.pages, freehold.url)
        headers = {**route.request.headers, "host": freehold.pages.removeprefix("http://")}
        await route.fetch(url=address, headers=headers)
        lost += 1
        await route.abort()

    await owner_page.page.route("**/prompt", lose)
    await owner_page.send_prompt("SAY only once")
    await expect(owner_page.page.get_by_text("Not sent yet")).to_be_visible()
    await expect(owner_page.transcript.get_by_text("only once", exact=True)).to_be_visible()
    await owner_page.page.reload()
    await expect(owner_page.page.get_by_text("Not sent yet")).to_be_visible()
    losing = False
    await expect(owner_page.page.get_by_text("Not sent yet")).to_have_count(0)
    await owner_page.page.unroute_all(behavior="wait")
    assert lost >= 1
    assert [one["text"] for one in await prompts(freehold, session)] == ["SAY only once"]


async def test_when_everything_is_stopped_the_page_says_so_and_lifts_it(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    await owner_page.open_session(await freehold.open("builtin"))
    await owner_page.message.fill("SAY back at work")
    await freehold.call("POST", "/v1/stop", why="dinner")
    bar = owner_page.page.get_by_role("status").filter(has_text="All agents are stopped")
    await expect(bar).to_contain_text("dinner")
    await expect(owner_page.page.get_by_role("button", name="Send")).to_be_disabled()
    await bar.get_by_role("button", name="Let agents work again").click()
    await expect(bar).to_have_count(0)
    await owner_page.page.get_by_role("button", name="Send").click()
    await expect(owner_page.transcript.get_by_text("back at work", exact=True)).to_be_visible()


async def test_a_budget_that_is_used_up_is_told_with_its_way_out(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    session = await freehold.open("builtin")
    await owner_page.open_session(session)
    await freehold.call("PUT", "/v1/budgets", scope="*", day_tokens=1)
    try:
        await owner_page.send_prompt("SAY never said")
        note = owner_page.page.get_by_role("status").filter(has_text="is used up")
        await expect(note).to_contain_text("1 token per day")
        await note.get_by_role("button", name="Continue without it today").click()
        await expect(note).to_have_count(0)
        await expect(owner_page.page.get_by_role("button", name="Send")).to_be_visible()
        await owner_page.send_prompt("SAY said after all")
        await expect(owner_page.transcript.get_by_text("said after all", exact=True)).to_be_visible()
    finally:
        await freehold.call("PUT", "/v1/budgets", scope="*")


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


async def test_one_who_asked_for_it_is_called_when_the_page_is_out_of_sight(
    freehold: RunningFreehold, browser: Browser
) -> None:
    """Never asked on load; asked by a button while an agent works; called for a question and for the end."""
    session = await freehold.open("builtin", title="the long one")
    async with open_owner_page(browser, freehold) as owner_page:
        await owner_page.page.add_init_script(STUB)
        await owner_page.open_session(session)
        assert await owner_page.page.evaluate("window.asked") is None
        await owner_page.send_prompt("SLOW")
        await owner_page.page.get_by_role("button", name="Notify me when it is done").click()
        assert await owner_page.page.evaluate("window.asked") == 1
        await expect(owner_page.page.get_by_role("button", name="Notify me when it is done")).to_have_count(0)
        async with freehold.watch(session) as watch:
            await watch.until("turn.started")
            await owner_page.page.evaluate(HIDE, True)
            await freehold.call("POST", f"/v1/sessions/{session}/cancel")
            await expect(owner_page.page.locator("html")).to_have_attribute("data-called", "1")
            await freehold.prompt(session, "RUN true")
            await watch.until("approval", state="pending")
            await expect(owner_page.page.locator("html")).to_have_attribute("data-called", "2")
        assert await owner_page.page.evaluate("window.called") == [
            ["An agent is done", "the long one"],
            ["An agent needs you", "the long one"],
        ]
        # In sight nobody is called.
        await owner_page.page.evaluate(HIDE, False)
        await owner_page.answer_button("No").click()
        await expect(owner_page.page.get_by_role("button", name="Send")).to_be_visible()
        assert await owner_page.page.evaluate("window.called.length") == 2
