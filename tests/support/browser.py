"""Chromium, and the owner's pages in it. The only place that starts a browser."""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from playwright import async_api, sync_api
from playwright.async_api import Browser, BrowserContext, Locator, Page, ViewportSize, async_playwright, expect
from playwright.sync_api import sync_playwright
from tests.support.condition import wait_until
from tests.support.running_freehold import RunningFreehold

HEADLESS_SHELL = "/usr/bin/chromium-headless-shell"
"""Chromium without windows: a page costs a third of the processor time that the whole program takes."""
CHROMIUM = "/usr/bin/chromium"
"""The whole program, for what the shell does not have: push messages, and whether a page can be installed."""
PAGE_TIMEOUT = 60_000
"""How long a page may take to show something, in milliseconds. A loaded machine needs it; a failure just comes late."""
DESKTOP: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}
ONLY_LOCAL = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE *.localhost, EXCLUDE 127.0.0.1"
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# What a script of our own page does: it sends the key that the page keeps.
OWN_REQUESTS = """
window.asOwner = (path, init = {}) => fetch(path, {
  ...init, headers: {...init.headers, authorization: `Sign-In ${localStorage.getItem('freehold.sign-in')}`}})
window.ownSocket = (path) => new WebSocket(`ws://${location.host}${path}`,
  ['freehold', `freehold.key.${localStorage.getItem('freehold.sign-in')}`])
"""
# The default belongs to the process: one value for all modules, because what one module sets another would lose.
sync_api.expect.set_options(timeout=PAGE_TIMEOUT)
async_api.expect.set_options(timeout=PAGE_TIMEOUT)


def _describe_launch(program: str, flags: tuple[str, ...]) -> dict[str, Any]:
    """Without HTTP/3 unless it is asked for."""
    general = [flag for flag in _FLAGS if flag != "--disable-quic" or "--enable-quic" not in flags]
    return {
        "executable_path": Path(__file__).with_name("browser_program.py"),
        "env": {**os.environ, "BROWSER_PROGRAM": program},
        "args": [*general, *(flags or (ONLY_LOCAL,))],
    }


@asynccontextmanager
async def run_browser(*flags: str, program: str = HEADLESS_SHELL) -> AsyncIterator[Browser]:
    """Until the block ends. Without flags it resolves no name of the internet."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**_describe_launch(program, flags))
        try:
            yield browser
        finally:
            await browser.close()


@contextmanager
def run_sync_browser(*flags: str) -> Iterator[sync_api.Browser]:
    """The same for tests that are not async."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**_describe_launch(HEADLESS_SHELL, flags))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def run_browser_beside(
    browser: sync_api.Browser, *flags: str, program: str = HEADLESS_SHELL
) -> Iterator[sync_api.Browser]:
    """A second one with other flags or another program, while one of `run_sync_browser` runs."""
    second = browser.browser_type.launch(**_describe_launch(program, flags))
    try:
        yield second
    finally:
        second.close()


def sign_in_browser(
    browser: sync_api.Browser, freehold: RunningFreehold, *, keeps_offline: bool = False
) -> sync_api.BrowserContext:
    """A browser context of its own that has signed in by a link. Without service workers unless it `keeps_offline`."""
    context = browser.new_context(service_workers="allow" if keeps_offline else "block")
    context.set_default_timeout(PAGE_TIMEOUT)
    context.add_init_script(OWN_REQUESTS)
    page = context.new_page()
    page.goto(freehold.harness.make_sign_in_link())
    page.wait_for_function("() => localStorage.getItem('freehold.sign-in') !== null")
    page.close()
    return context


def wait_for_promise(page: sync_api.Page, expression: str, arg: Any = None) -> Any:
    """Evaluate this until its promise gives a true value. For `wait_for_function` every promise is true."""
    return wait_until(lambda: page.evaluate(expression, arg), pause=lambda: page.wait_for_timeout(20))


def wait_for_events(page: sync_api.Page, condition: Callable[[], bool]) -> None:
    """Wait until events of the page have made this true. They are delivered only while Playwright waits."""
    wait_until(condition, pause=lambda: page.wait_for_timeout(20))


class OwnerPage:
    """A page of a signed-in browser. `violations` collects what a page must never do."""

    def __init__(self, freehold: RunningFreehold, context: BrowserContext, page: Page) -> None:
        self.freehold = freehold
        self.context = context
        self.page = page
        self.violations: list[str] = []
        page.on("console", lambda line: self.violations.append(line.text) if "Content Security" in line.text else None)
        page.on("pageerror", lambda error: self.violations.append(str(error)))

    def address(self, path: str) -> str:
        return f"{self.freehold.pages}{path}"

    async def go(self, path: str) -> None:
        await self.page.goto(self.address(path))

    async def open_session(self, session: str) -> None:
        """Returns when all of it is drawn; before, a click could miss what still moves."""
        await self.go(f"/sessions?id={session}")
        await expect(self.message).to_be_visible()
        await expect(self.transcript).to_have_attribute("aria-busy", "false")

    @property
    def message(self) -> Locator:
        return self.page.get_by_label("Message", exact=True)

    @property
    def transcript(self) -> Locator:
        return self.page.get_by_role("log")

    @property
    def permission_request(self) -> Locator:
        return self.page.get_by_role("alertdialog", name="Permission request")

    def answer_button(self, name: str) -> Locator:
        return self.permission_request.get_by_role("button", name=name, exact=True)

    async def send_prompt(self, text: str) -> None:
        await self.message.fill(text)
        await self.message.press("Enter")


@asynccontextmanager
async def open_owner_page(
    browser: Browser,
    freehold: RunningFreehold,
    size: ViewportSize = DESKTOP,
    *,
    touch: bool = False,
    keeps_offline: bool = False,
) -> AsyncIterator[OwnerPage]:
    """A page in a browser context of its own that has signed in by a link. Fails at the end if it has violations.

    Without its service worker unless it `keeps_offline`: Playwright does not see requests that a worker answers.
    """
    context = await browser.new_context(
        viewport=size,
        has_touch=touch,
        reduced_motion="reduce",
        service_workers="allow" if keeps_offline else "block",
    )
    context.set_default_timeout(PAGE_TIMEOUT)
    await context.add_init_script(OWN_REQUESTS)
    try:
        page = await context.new_page()
        owner_page = OwnerPage(freehold, context, page)
        await page.goto(freehold.harness.make_sign_in_link())
        await page.wait_for_function("() => localStorage.getItem('freehold.sign-in') !== null")
        yield owner_page
        assert owner_page.violations == []
    finally:
        await context.close()
