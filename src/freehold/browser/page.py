"""One page of a browser: opened, read, looked at and used. What it says is never trusted."""

import base64
import binascii
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from freehold.agents.visible_text import make_visible
from freehold.browser.devtools import DevTools, Json
from freehold.errors import FreeholdError

OPEN_TIMEOUT = 90.0
"""Seconds for the first answer of a server. The owner may be asked for the network first."""
LOAD_TIMEOUT = 20.0
MAX_REDIRECTS = 8
MAX_SCREENSHOT = 1024 * 1024
MAX_TEXT = 20_000
MAX_URL = 2_000
WIDTH, HEIGHT = 1280, 800
WORLD = "freehold"
NO_SITE = "about:blank"
DEFAULT_PORTS = {"http": 80, "https": 443}
KEYS = {
    "Enter": (13, "\r"),
    "Tab": (9, ""),
    "Escape": (27, ""),
    "Backspace": (8, ""),
    "Delete": (46, ""),
    "ArrowUp": (38, ""),
    "ArrowDown": (40, ""),
    "ArrowLeft": (37, ""),
    "ArrowRight": (39, ""),
    "PageUp": (33, ""),
    "PageDown": (34, ""),
}
_READ = files("freehold.browser").joinpath("page_reader.js").read_text()
_LOADED = """new Promise((done) =>
  document.readyState === "complete" ? done() : addEventListener("load", () => done(), { once: true }))"""
_PLACE = """(() => {
  const one = (globalThis.freeholdElements ?? [])[%d];
  if (!one || !one.isConnected) return null;
  one.scrollIntoView({ block: "center", inline: "center" });
  const box = one.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
})()"""
_FOCUS = """(() => {
  const one = (globalThis.freeholdElements ?? [])[%d];
  if (!one || !one.isConnected) return null;
  one.focus();
  if (one.select) one.select();
  return true;
})()"""


@dataclass(frozen=True)
class PageElement:
    """Something on a page that can be used. Its number is its place in the list, from 1."""

    role: str
    name: str
    value: str


@dataclass(frozen=True)
class PageContent:
    url: str
    title: str
    text: str
    elements: tuple[PageElement, ...]


class BrowserPage:
    """The page that agents use. `target` and `session` are its names in the protocol."""

    def __init__(self, tools: DevTools, target: str, session: str) -> None:
        self._tools = tools
        self.target = target
        self.session = session
        self._world: int | None = None
        """In which the numbered elements are. None before the page was read."""

    async def prepare(self) -> None:
        await self._call("Page.enable")
        size: Json = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        await self._call("Emulation.setDeviceMetricsOverride", size)

    async def open(self, url: str) -> None:
        """Raises `browser.not-opened` with Chromium's reason."""
        self._world = None
        answer = await self._call("Page.navigate", {"url": url}, timeout=OPEN_TIMEOUT)
        reason = answer.get("errorText")
        if isinstance(reason, str) and reason:
            raise _not_opened(url, reason)
        await self.wait_loaded()

    async def wait_loaded(self) -> None:
        """Until the document is complete, for a while. A page that never ends loading is used as it is."""
        for _ in range(MAX_REDIRECTS):
            try:
                wait: Json = {"expression": _LOADED, "awaitPromise": True}
                await self._call("Runtime.evaluate", wait, timeout=LOAD_TIMEOUT)
            except FreeholdError as error:
                if error.code == "browser.failed":
                    continue  # the document was replaced by another one
                if error.code != "browser.slow":
                    raise
            return

    async def find_url(self) -> str:
        answer = await self._tools.call("Target.getTargetInfo", {"targetId": self.target})
        info = answer.get("targetInfo")
        return str(info.get("url"))[:MAX_URL] if isinstance(info, dict) else ""

    async def read(self) -> PageContent:
        """What it shows, and what can be used on it. The numbers of elements hold until it is read again."""
        frame = await self._call("Page.getFrameTree")
        top = _dig(frame, "frameTree", "frame", "id")
        made = await self._call("Page.createIsolatedWorld", {"frameId": top, "worldName": WORLD})
        world = made.get("executionContextId")
        if not isinstance(world, int):
            raise FreeholdError("browser.failed", "The browser has no page that can be read")
        self._world = world
        found = await self._evaluate(_READ)
        if not isinstance(found, dict):
            raise FreeholdError("browser.failed", "The page cannot be read")
        listed = found.get("elements")
        rows = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        return PageContent(
            _line(found.get("url"), MAX_URL),
            _line(found.get("title"), 300),
            make_visible(str(found.get("text") or "")[:MAX_TEXT]),
            tuple(
                PageElement(*(_line(one.get(name), 120) for name in ("role", "name", "value"))) for one in rows[:150]
            ),
        )

    async def take_screenshot(self) -> bytes:
        """A JPEG of what can be seen without scrolling."""
        for quality in (75, 40, 10):
            answer = await self._call("Page.captureScreenshot", {"format": "jpeg", "quality": quality})
            try:
                picture = base64.b64decode(str(answer.get("data") or ""), validate=True)
            except binascii.Error:
                picture = b""
            if picture.startswith(b"\xff\xd8") and len(picture) <= MAX_SCREENSHOT:
                return picture
        raise FreeholdError("browser.failed", "The browser could not take a picture of the page")

    async def click(self, element: int) -> None:
        place = await self._evaluate(_PLACE % (element - 1))
        if not isinstance(place, list) or len(place) != 2 or not all(isinstance(one, int | float) for one in place):
            raise _no_element(element)
        for kind in ("mousePressed", "mouseReleased"):
            event: Json = {"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1}
            await self._call("Input.dispatchMouseEvent", event)
        await self._settle()

    async def type_text(self, element: int, text: str) -> None:
        """Replaces what a field holds."""
        if await self._evaluate(_FOCUS % (element - 1)) is not True:
            raise _no_element(element)
        await self._call("Input.insertText", {"text": text})

    async def press(self, key: str) -> None:
        code, text = KEYS[key]
        event: Json = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        await self._call("Input.dispatchKeyEvent", {"type": "keyDown", **event, **({"text": text} if text else {})})
        await self._call("Input.dispatchKeyEvent", {"type": "keyUp", **event})
        await self._settle()

    async def _settle(self) -> None:
        """A click or a key may lead to another page: begin to wait after the browser has handled it."""
        with suppress(FreeholdError):  # the page is gone
            tick: Json = {"expression": "new Promise((done) => setTimeout(done, 150))", "awaitPromise": True}
            await self._call("Runtime.evaluate", tick, timeout=5)
        await self.wait_loaded()

    async def _evaluate(self, expression: str) -> Any:
        if self._world is None:
            raise FreeholdError("browser.not-read", "Read the page first: browser_read numbers its elements")
        try:
            answer = await self._call(
                "Runtime.evaluate", {"expression": expression, "contextId": self._world, "returnByValue": True}
            )
        except FreeholdError as error:
            if error.code != "browser.failed":
                raise
            self._world = None
            raise FreeholdError("browser.not-read", "The page has changed: read it again") from None
        return _dig(answer, "result", "value")

    async def _call(self, method: str, params: Json | None = None, *, timeout: float = 30.0) -> Json:
        return await self._tools.call(method, params, session=self.session, timeout=timeout)


def check_url(url: str) -> str:
    """The origin of a web address. Raises `browser.bad-address` for any other."""
    is_plain = url.isascii() and url.isprintable() and " " not in url and len(url) <= MAX_URL
    site = find_site(url) if is_plain and "@" not in url.partition("//")[2].partition("/")[0] else NO_SITE
    if site == NO_SITE:
        raise FreeholdError(
            "browser.bad-address", f"{url[:100]!a} is not a web address", hint="https://example.org/page"
        )
    return site


def find_site(url: str) -> str:
    """The origin of the page with this address; `NO_SITE` for what is no web page, such as the browser's own."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return NO_SITE
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        return NO_SITE
    return f"{parts.scheme}://{parts.hostname}" + ("" if port in (None, DEFAULT_PORTS[parts.scheme]) else f":{port}")


def _line(value: object, length: int) -> str:
    return make_visible(str(value or "")[:length], lines=False)


def _dig(value: object, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _no_element(element: int) -> FreeholdError:
    return FreeholdError("browser.no-element", f"There is no element {element} on the page: read it again")


def _not_opened(url: str, reason: str) -> FreeholdError:
    hint = (
        "The page is not allowed by the rules of egress, or its server cannot be reached" if "TUNNEL" in reason else ""
    )
    return FreeholdError("browser.not-opened", f"{url[:200]} cannot be opened: {make_visible(reason[:200])}", hint=hint)
