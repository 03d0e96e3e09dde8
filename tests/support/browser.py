"""The owner at a browser: signed in, at a desk or with a phone, on a Freehold with the built-in agent and a scripted model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, BrowserContext, Locator, Page, async_playwright, expect
from tests.agents.whole import PATIENCE, Whole, prepare, running
from tests.e2e.house import FLAGS

from freehold.testing import ScriptedModel

DESK = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}


@asynccontextmanager
async def lived_in(folder: Path, agents: tuple[str, ...] = ("builtin",), manifest: str = "") -> AsyncIterator[Whole]:
    async with ScriptedModel() as model:
        whole = Whole(prepare(folder, model.url, agents, manifest))
        with running(whole):
            yield whole
            await whole.http.aclose()


@asynccontextmanager
async def browser_running() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        yield browser
        await browser.close()


class Desk:
    """One signed-in browser and a page of its; `wrong` gathers what a page must never do."""

    def __init__(self, whole: Whole, context: BrowserContext, page: Page) -> None:
        self.whole = whole
        self.context = context
        self.page = page
        self.wrong: list[str] = []
        page.set_default_timeout(PATIENCE * 1000)
        page.on("console", lambda said: self.wrong.append(said.text) if "Content Security" in said.text else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))

    def address(self, path: str) -> str:
        return f"http://localhost:{self.whole.stead.gateway_port}{path}"

    async def go(self, path: str) -> None:
        await self.page.goto(self.address(path))

    async def open(self, session: str) -> None:
        """Until all of it is drawn: what still moves may slip away from under a click."""
        await self.go(f"/sessions?id={session}")
        await expect(self.message).to_be_visible()
        await expect(self.page.get_by_role("log")).to_have_attribute("aria-busy", "false")

    @property
    def message(self) -> Locator:
        return self.page.get_by_label("Message")

    @property
    def talk(self) -> Locator:
        return self.page.get_by_role("log")

    @property
    def asked(self) -> Locator:
        return self.page.get_by_role("alertdialog", name="The agent asks")

    def reply(self, name: str) -> Locator:
        return self.asked.get_by_role("button", name=name, exact=True)

    async def say(self, words: str) -> None:
        await self.message.fill(words)
        await self.message.press("Enter")


@asynccontextmanager
async def at_desk(
    browser: Browser, whole: Whole, size: dict[str, int] | None = None, *, touch: bool = False
) -> AsyncIterator[Desk]:
    width, height = (size or DESK)["width"], (size or DESK)["height"]
    context = await browser.new_context(viewport={"width": width, "height": height}, has_touch=touch)
    try:
        page = await context.new_page()
        desk = Desk(whole, context, page)
        link = whole.stead.run("open", "--print", check=True).stdout.strip()
        async with page.expect_response("**/v1/sign-in/link"):
            await page.goto(link)
        yield desk
        assert desk.wrong == []
    finally:
        await context.close()
