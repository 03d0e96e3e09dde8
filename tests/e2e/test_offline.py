"""The page on a phone: its frame without a connection, what it says then, what other apps share, and swipes."""

import asyncio
import base64
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from playwright.async_api import Browser, FilePayload, Page, Route, WebSocket, expect
from tests.support.browser import DESKTOP, PHONE, OwnerPage, open_owner_page
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("builtin",))
SWIPE = """([from, to]) => {
  const header = document.querySelector('.sessions-header');
  const touch = (x) => new Touch({identifier: 1, target: header, clientX: x, clientY: 20});
  const send = (kind, x, touches) => header.dispatchEvent(new TouchEvent(kind, {
    bubbles: true, touches, changedTouches: [touch(x)]}));
  send('touchstart', from, [touch(from)]);
  send('touchend', to, []);
}"""
CLEARED = "caches.keys().then((kept) => kept.length === 1 && kept[0] !== 'freehold-older')"
# What a browser tells a page when its machine has no network.
ALONE = """() => {
  Object.defineProperty(navigator, 'onLine', {get: () => false});
  window.dispatchEvent(new Event('offline'));
}"""
# A picture of one pixel.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
LOUD = """
window.SpeechRecognition = class {
  start() { window.recognizer = this }
  stop() { this.onend() }
}
"""


@pytest_asyncio.fixture(loop_scope="module")
async def phone(browser: Browser, freehold: RunningFreehold) -> AsyncIterator[OwnerPage]:
    """One a test: a page that is opened while another worker of the same browser takes over may wait for minutes."""
    async with open_owner_page(browser, freehold, PHONE, touch=True, keeps_offline=True) as page:
        yield page


async def is_there(page: Page) -> None:
    await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    await page.get_by_text("Live", exact=True).wait_for(state="attached")


async def use_worker(page: Page) -> None:
    """A page that was being loaded while the worker took over is not controlled by it: the next load is."""
    await until(lambda: page.evaluate("navigator.serviceWorker.getRegistration().then((one) => Boolean(one?.active))"))
    await page.reload()
    # A function: the policy of the page lets a text be evaluated once, and not again.
    await page.wait_for_function("() => navigator.serviceWorker.controller !== null")
    await is_there(page)


async def test_the_frame_is_there_without_a_connection_and_says_so(phone: OwnerPage) -> None:
    """From the cache of the browser. When the connection is back the page goes on by itself."""
    page = phone.page
    await phone.go("/history")
    await use_worker(page)
    await phone.context.set_offline(True)
    await expect(page.get_by_role("status").filter(has_text="You are offline.")).to_be_visible()
    await page.goto(phone.address("/sessions"))
    await expect(page.get_by_role("alert")).to_contain_text("You are offline")
    await phone.context.set_offline(False)
    await is_there(page)
    await expect(page.get_by_text("You are offline")).to_have_count(0)


async def test_the_worker_keeps_no_answer_of_the_api(phone: OwnerPage) -> None:
    await phone.go("/history")
    await use_worker(phone.page)
    kept: list[str] = await phone.page.evaluate(
        """async () => { const all = []; for (const name of await caches.keys())
        for (const one of await (await caches.open(name)).keys()) all.push(new URL(one.url).pathname); return all }"""
    )
    assert "/" in kept
    assert [
        path for path in kept if path != "/" and not path.startswith(("/assets/", "/icon", "/apple", "/manifest"))
    ] == []


async def test_the_frame_is_drawn_before_the_gateway_has_answered(owner_page: OwnerPage) -> None:
    """It takes no press yet, and is not told to a screen reader."""
    page = owner_page.page
    await owner_page.go("/history")
    await is_there(page)
    arrives = asyncio.Event()

    async def hold(route: Route) -> None:
        await arrives.wait()
        await route.continue_()

    await page.route("**/v1/me", hold)
    await page.reload()
    await expect(page.get_by_text("Loading…")).to_be_visible()
    await expect(page.locator(".app-nav")).to_be_visible()
    await expect(page.get_by_role("navigation", name="Pages")).to_have_count(0)
    arrives.set()
    await page.unroute_all(behavior="wait")
    await is_there(page)


async def test_an_address_that_does_not_exist_is_not_answered_from_the_cache(phone: OwnerPage) -> None:
    await phone.go("/nowhere")
    await expect(phone.page.get_by_role("link", name="Open the control center")).to_be_visible()
    await phone.go("/docs/faq.html")
    await expect(phone.page.get_by_role("heading", name="Questions and answers")).to_be_visible()


@asynccontextmanager
async def open_stopped_clock(browser: Browser, freehold: RunningFreehold) -> AsyncIterator[tuple[OwnerPage, list[str]]]:
    """A page whose time goes on only when the test says so, and the pings of its socket that have no answer yet."""
    unanswered: list[str] = []

    def watch(socket: WebSocket) -> None:
        socket.on("framesent", lambda text: unanswered.append("ping") if "ping" in str(text) else None)
        socket.on("framereceived", lambda text: unanswered.clear() if "pong" in str(text) else None)

    async with open_owner_page(browser, freehold) as owner:
        page = owner.page
        page.on("websocket", watch)
        await page.clock.install()
        await page.clock.pause_at(datetime.now(UTC) + timedelta(hours=1))
        await owner.go("/history")

        async def is_live() -> bool:
            await page.clock.run_for(100)
            return await page.get_by_text("Live", exact=True).count() == 1

        await until(is_live)
        await until(lambda: unanswered == [])
        yield owner, unanswered


async def test_a_lost_network_is_said_within_five_seconds(browser: Browser, freehold: RunningFreehold) -> None:
    """The seconds are those of the page's own clock. At another machine than the browser's it is said at once."""
    async with open_stopped_clock(browser, freehold) as (owner, _):
        await owner.context.set_offline(True)
        await owner.page.clock.run_for(5_000)
        await expect(owner.page.get_by_role("status").filter(has_text="You are offline.")).to_be_visible()


async def test_a_machine_without_a_network_uses_its_own_freehold(browser: Browser, freehold: RunningFreehold) -> None:
    """As on a train, with a model on the same machine: the browser says that it is offline, and Freehold answers."""
    async with open_stopped_clock(browser, freehold) as (owner, unanswered):
        await owner.page.evaluate(ALONE)
        for _ in range(50):
            await owner.page.clock.run_for(100)
            await until(lambda: unanswered == [])
        await expect(owner.page.get_by_text("Live", exact=True)).to_be_attached()
        await expect(owner.page.get_by_text("You are offline")).to_have_count(0)


async def test_a_gateway_that_does_not_answer_is_told_within_five_seconds(
    browser: Browser, freehold: RunningFreehold
) -> None:
    """The socket is still open: only the answer to a ping is missing. The seconds are those of the page's own clock."""
    async with open_stopped_clock(browser, freehold) as (owner, unanswered):
        told = owner.page.get_by_role("status").filter(has_text="Freehold has not answered")
        gateway = freehold.harness.pid_of("gateway")
        os.kill(gateway, signal.SIGSTOP)
        try:
            await owner.page.clock.run_for(5_000)
            await expect(told).to_be_visible()
        finally:
            os.kill(gateway, signal.SIGCONT)
        await until(lambda: unanswered == [])
        await owner.page.clock.run_for(1_000)
        await expect(told).to_have_count(0)


async def test_an_update_is_told_and_the_old_files_are_gone(phone: OwnerPage) -> None:
    """As after an update and a restart: another worker takes the place of the one that the page began with."""
    page = phone.page
    await phone.go("/history")
    await use_worker(page)
    await page.evaluate("caches.open('freehold-older').then((cache) => cache.put('/', new Response('old')))")
    await page.evaluate("navigator.serviceWorker.register('/sw.js?next').then(() => true)")
    await expect(page.get_by_role("status").filter(has_text="Freehold was updated.")).to_be_visible()
    # It takes over before it has cleared away.
    await until(lambda: page.evaluate(CLEARED))
    await page.evaluate("window.isOld = true")
    await page.get_by_role("button", name="Reload the page").click()
    await page.wait_for_function("() => window.isOld === undefined")
    await is_there(page)


async def test_what_another_app_shares_begins_a_message_and_is_not_sent(
    freehold: RunningFreehold, phone: OwnerPage
) -> None:
    await phone.go("/sessions?share_title=A+page&share_url=https%3A%2F%2Fexample.org%2F")
    await expect(phone.message).to_have_value("A page\nhttps://example.org/")
    listed = (await freehold.call("GET", "/v1/sessions"))["sessions"]
    assert [row["seq"] for row in listed] == [0]


async def test_files_that_another_app_shares_are_sent_by_the_owner_only(
    freehold: RunningFreehold, phone: OwnerPage
) -> None:
    """As the system does it: by a form, from outside of the page. The worker takes it; the gateway never sees it.

    A page of the web could send the same form. Until the owner adds it, a file is not in the workspace.
    """
    await phone.go("/history")
    await use_worker(phone.page)
    app = await phone.context.new_page()
    await app.set_content(
        f"""<form method=post enctype=multipart/form-data action="{phone.address("/share")}">
        <input name=title value="Two drawings"><input name=files type=file multiple></form>"""
    )
    script: FilePayload = {"name": "run.sh", "mimeType": "application/x-sh", "buffer": b"echo"}
    picture: FilePayload = {"name": "drawing.png", "mimeType": "image/png", "buffer": base64.b64decode(PIXEL)}
    await app.locator("[type=file]").set_input_files([script, picture])
    await app.evaluate("document.forms[0].submit()")
    await expect(app.get_by_role("textbox", name="Message")).to_have_value("Two drawings")
    await expect(app.get_by_role("list", name="Attachments").get_by_role("img")).to_have_count(1)
    assert await app.evaluate("caches.has('shared')") is False
    assert {row["seq"] for row in (await freehold.call("GET", "/v1/sessions"))["sessions"]} == {0}
    await expect(app.get_by_text("Another app shared run.sh (4 B).")).to_be_visible()
    assert not (freehold.home.workspace / "attachments").exists()
    await app.get_by_role("button", name="Add to the message").click()
    await expect(app.get_by_role("textbox", name="Message")).to_have_value(re.compile(r"^Two drawings @\S+run\.sh $"))
    assert [one.read_text() for one in (freehold.home.workspace / "attachments").iterdir()] == ["echo"]
    await app.close()


async def test_a_swipe_over_the_header_leads_to_the_next_session(freehold: RunningFreehold, phone: OwnerPage) -> None:
    first = await freehold.open("builtin", title="First of two")
    second = await freehold.open("builtin", title="Second of two")
    await phone.open_session(second)
    header = phone.page.locator(".sessions-header")
    await expect(header).to_contain_text("Second of two")
    await phone.page.evaluate(SWIPE, [300, 100])
    await expect(header).to_contain_text("First of two")
    await phone.page.evaluate(SWIPE, [300, 290])
    await phone.page.evaluate(SWIPE, [100, 300])
    await expect(header).to_contain_text("Second of two")
    assert first != second


async def test_the_bar_of_a_phone_has_five_pages_and_more(phone: OwnerPage) -> None:
    await phone.go("/history")
    bar = phone.page.get_by_role("navigation", name="Pages")
    await expect(bar.get_by_role("link").filter(visible=True)).to_have_count(5)
    await bar.get_by_role("button", name="More").tap()
    more = phone.page.get_by_role("dialog", name="More pages")
    await expect(more.get_by_role("link", name="Help")).to_be_visible()
    await expect(more.get_by_text("Live", exact=True)).to_be_visible()
    await more.get_by_role("button", name="Commands").tap()
    await expect(more).to_have_count(0)
    await phone.page.get_by_role("combobox", name="Command").fill("theme")
    await phone.page.get_by_role("option", name="Use the dark theme").tap()
    await expect(phone.page.locator("html")).to_have_attribute("data-theme", "dark")


async def test_what_is_said_becomes_the_message(browser: Browser, freehold: RunningFreehold) -> None:
    """With a recogniser in the place of the browser's, which needs a microphone."""
    session = await freehold.open("builtin")
    async with open_owner_page(browser, freehold, DESKTOP) as owner:
        await owner.context.add_init_script(LOUD)
        await owner.open_session(session)
        await owner.message.fill("Please")
        button = owner.page.get_by_role("button", name="Dictate")
        await button.click()
        await owner.page.evaluate(
            "recognizer.onresult({resultIndex: 0, results: [{isFinal: true, 0: {transcript: 'make it dark'}}]})"
        )
        await expect(owner.message).to_have_value("Please make it dark ")
        await button.click()
        await expect(button).to_have_attribute("aria-pressed", "false")
        await owner.message.fill("")
