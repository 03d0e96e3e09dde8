"""The page of channels in a real browser: paired by a code, and push messages that the browser's own keys decrypt."""

import asyncio
import base64
import functools
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect
from tests.support.browser import CHROMIUM, DESKTOP, PHONE, OwnerPage, open_owner_page, run_browser
from tests.support.condition import DEADLINE, until
from tests.support.push_service import PushService, running_push_service
from tests.support.running_freehold import RunningFreehold
from tests.support.telegram import OWNER, TOKEN, TelegramDouble, running_telegram

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
# Chromium subscribes with a push service of Google's, which a test does not reach. Its keys are Chromium's own, made by
# its cryptography; only the address is ours.
OWN_SERVICE = """
(address) => {
  const encode = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  PushManager.prototype.subscribe = async (options) => {
    window.keys = await crypto.subtle.generateKey({name: "ECDH", namedCurve: "P-256"}, true, ["deriveBits"]);
    window.auth = crypto.getRandomValues(new Uint8Array(16));
    window.applicationKey = options.applicationServerKey;
    const point = await crypto.subtle.exportKey("raw", window.keys.publicKey);
    return {toJSON: () => ({endpoint: address, keys: {p256dh: encode(point), auth: encode(window.auth)}})};
  };
}
"""
# RFC 8291, by Chromium's own cryptography.
DECRYPT = """
async (encoded) => {
  const body = Uint8Array.from(atob(encoded), (char) => char.charCodeAt(0));
  const salt = body.slice(0, 16), length = body[20], sender = body.slice(21, 21 + length);
  const point = await crypto.subtle.importKey("raw", sender, {name: "ECDH", namedCurve: "P-256"}, true, []);
  const shared = await crypto.subtle.deriveBits({name: "ECDH", public: point}, window.keys.privateKey, 256);
  const own = new Uint8Array(await crypto.subtle.exportKey("raw", window.keys.publicKey));
  const text = (words) => new TextEncoder().encode(words);
  const derive = async (secret, salt, info, bits) => {
    const key = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveBits"]);
    return crypto.subtle.deriveBits({name: "HKDF", hash: "SHA-256", salt, info}, key, bits);
  };
  const info = new Uint8Array([...text("WebPush: info\\0"), ...own, ...sender]);
  const secret = await derive(shared, window.auth, info, 256);
  const raw = await derive(secret, salt, text("Content-Encoding: aes128gcm\\0"), 128);
  const nonce = await derive(secret, salt, text("Content-Encoding: nonce\\0"), 96);
  const key = await crypto.subtle.importKey("raw", raw, "AES-GCM", false, ["decrypt"]);
  const plain = await crypto.subtle.decrypt({name: "AES-GCM", iv: nonce}, key, body.slice(21 + length));
  return new TextDecoder().decode(plain).replace(/\\u0002\\0*$/, "");
}
"""
SHOWN = """
async () => {
  const registration = await navigator.serviceWorker.getRegistration("/sw.js");
  return (await registration.getNotifications()).map(({title, body, tag, data}) => ({title, body, tag, link: data.link}));
}
"""


@pytest.fixture
def telegram() -> Iterator[TelegramDouble]:
    with running_telegram() as double:
        yield double


@pytest.fixture
def push_service() -> Iterator[PushService]:
    with running_push_service() as service:
        yield service


async def open_page(owner_page: OwnerPage, freehold: RunningFreehold) -> Page:
    page = owner_page.page
    await page.goto(freehold.pages + "/channels")
    await page.get_by_text("Live", exact=True).wait_for(state="attached")
    await expect(page.get_by_role("heading", name="Channels", exact=True)).to_be_visible()
    return page


async def test_a_channel_is_paired_tried_and_set_in_the_page(
    freehold: RunningFreehold, owner_page: OwnerPage, telegram: TelegramDouble
) -> None:
    body = {"kind": "telegram", "settings": {"api": telegram.url}, "secret": TOKEN}
    assert (await freehold.http.post("/v1/channels", json=body)).status_code == 201
    await until(lambda: telegram.polls > 1)
    page = await open_page(owner_page, freehold)
    card = page.get_by_role("region", name="telegram")
    await expect(card).to_contain_text("Not paired with you yet")
    await card.get_by_role("button", name="Pair with me").click()
    await page.get_by_role("button", name="Get a code").click()
    code = await page.locator(".channels-code").inner_text()
    telegram.say(f"/pair {code}")
    await until(lambda: any("paired" in text for text in telegram.texts()))
    await page.get_by_role("button", name="Done").click()
    await expect(card).to_contain_text(f"Paired with {OWNER}")
    await card.get_by_role("button", name="Send a test").click()
    await until(lambda: any("This is a test" in text for text in telegram.texts()))
    await card.get_by_text("What is told, and when").click()
    await card.get_by_label("An agent has finished").uncheck()

    async def is_set() -> bool:
        (row,) = await freehold.call("GET", "/v1/channels")
        return "finished" not in row["preferences"]["tells"]

    await until(is_set)
    await page.set_viewport_size(PHONE)
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    await page.set_viewport_size(DESKTOP)
    await card.get_by_role("button", name="Remove telegram").click()
    await page.wait_for_timeout(500)  # a double click is no confirmation
    await card.get_by_role("button", name="Remove telegram").click()
    await expect(page.get_by_text("No channels yet.")).to_be_visible()


@pytest_asyncio.fixture(loop_scope="module")
async def page_with_worker(freehold: RunningFreehold) -> AsyncIterator[OwnerPage]:
    async with (
        run_browser(program=CHROMIUM) as browser,
        open_owner_page(browser, freehold, DESKTOP, keeps_offline=True) as page,
    ):
        yield page


async def test_a_push_message_is_decrypted_by_the_browsers_keys_and_shown_once(
    freehold: RunningFreehold, page_with_worker: OwnerPage, push_service: PushService
) -> None:
    """By the same worker that keeps the page for when there is no connection."""
    page = await open_page(page_with_worker, freehold)
    await page.context.grant_permissions(["notifications"], origin=freehold.pages)
    await page.evaluate(OWN_SERVICE, f"{push_service.url}/chromium")
    await page.get_by_role("button", name="Turn on in this browser").click()
    card = page.get_by_role("region", name="webpush")
    await expect(card).to_contain_text("Sends to your browsers")
    await card.get_by_role("button", name="Send a test").click()
    await until(lambda: push_service.pushes)
    (_, body, _) = push_service.pushes[0]
    content = await page.evaluate(DECRYPT, base64.b64encode(body).decode())
    message = json.loads(content)
    assert message["body"] == "This is a test. Messages reach you here."
    assert message["link"] == freehold.pages
    # The browser's own worker gets it, twice, as after a crash.
    session = await page.context.new_cdp_session(page)
    found: list[str] = []
    session.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: found.extend(one["registrationId"] for one in event["registrations"]),
    )
    await session.send("ServiceWorker.enable")
    await until(lambda: found)
    shown: dict[str, dict[str, str]] = {}

    async def is_shown(tag: str) -> bool:
        # Chromium takes a message away after some seconds: each is looked for before the next is sent.
        now = await page.evaluate(SHOWN)
        assert len({one["tag"] for one in now}) == len(now)
        shown.update({one["tag"]: one for one in now})
        return tag in shown

    async def deliver(data: str, tag: str) -> None:
        # Chromium loses what it gives to a worker that is about to end: as a push service does, this sends it again.
        async with asyncio.timeout(DEADLINE):
            while True:
                await session.send(
                    "ServiceWorker.deliverPushMessage",
                    {"origin": freehold.pages, "registrationId": found[-1], "data": data},
                )
                with suppress(TimeoutError):
                    await until(functools.partial(is_shown, tag), 10)
                    return

    for data, tag in ((content, message["tag"]), (content, message["tag"]), ("not json", "freehold")):
        shown.pop(tag, None)
        await deliver(data, tag)
    assert shown.keys() == {message["tag"], "freehold"}
    assert shown[message["tag"]] == message
    assert shown["freehold"]["title"] == "Freehold"
    await session.detach()
