"""The whole story, as one: in by Bluesky's own door, a wish, a yes, a page that changes before the eyes, and all of it undone."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Frame, Page, async_playwright, expect
from tests.agents.whole import CACHE, PATIENCE, Whole, prepare
from tests.e2e.atproto.localnet import PASSWORD, local_network
from tests.e2e.beside_pds import tell
from tests.e2e.house import FLAGS
from tests.identity.nameserver import nameserver
from tests.keeper.running import KeeperProcess

from freehold.home import Home
from freehold.identity.atproto.fetch import Network
from freehold.starter.kit import NAME, fetch_kit
from freehold.testing import Call, Say, ScriptedModel, play

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

SECONDS = PATIENCE * 1000
LIGHT, DARK = "rgb(251, 250, 247)", "rgb(16, 20, 18)"
THEME = ":root {\n  color-scheme: dark;\n  --paper: #101412;\n  --ink: #e8e6df;\n}\n"
WISH = "Make it dark."
SCRIPT = play([Call("write", {"path": "src/theme.css", "content": THEME}), Say("It is dark now.")], when=WISH)
MANIFEST = '[owner]\ndid = "{did}"\nhandle = "alice.test"\nplc_url = "{directory}"\n'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Whole]:
    """With the first project planted, its owner at a real PDS, and nobody signed in."""
    folder = tmp_path_factory.mktemp("story")
    with ExitStack() as stack:
        net = await asyncio.to_thread(stack.enter_context, local_network(folder / "pds", ["alice.test"]))
        directory = f"http://localhost:{net.directory_port}"
        network = Network(
            routes={"alice.test": ("127.0.0.1", net.pds_port)},
            plain=frozenset({f"http://localhost:{net.pds_port}", directory}),
            nameserver=stack.enter_context(nameserver({})),
        )
        async with ScriptedModel(SCRIPT) as model:
            manifest = MANIFEST.format(did=net.dids["alice.test"], directory=directory)
            await asyncio.to_thread(fetch_kit, Home(root=CACHE.parent, run=CACHE.parent))
            stead = prepare(folder / "stead", model.url, ("builtin", NAME), manifest)
            stead.environment |= tell(network)
            await asyncio.to_thread(stead.run, "starter", check=True)
            whole = Whole(stead)
            keeper = KeeperProcess(stead, (), [sys.executable, "-m", "tests.e2e.beside_pds", "keeper"])
            try:
                await asyncio.to_thread(keeper.next, "ready")
                yield whole
                await whole.http.aclose()
            finally:
                keeper.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        yield browser
        await browser.close()


async def come_in(context: BrowserContext, whole: Whole) -> Page:
    page = await context.new_page()
    await page.goto(f"http://localhost:{whole.stead.gateway_port}/")
    await page.get_by_role("button", name="Sign in").click()
    await page.locator("input[autocomplete=current-password]").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("button", name="Authorize").click()
    await page.locator(".connection[data-state=live]").wait_for()
    return page


async def watch_preview(context: BrowserContext, origin: str) -> Frame:
    """The page as it runs, with a mark on it that no reload would leave."""
    page = await context.new_page()
    await page.goto(f"{origin}/preview")
    await page.frame_locator("iframe").get_by_role("heading", name="This page is yours.").wait_for()
    (frame,) = [one for one in page.frames if one != page.main_frame]
    await frame.get_by_role("button", name="Clicked 0 times").click()
    await frame.evaluate("window.marked = true")
    return frame


async def turns(frame: Frame, colour: str) -> None:
    """By hot reload: the mark and what was clicked are still there."""
    await frame.wait_for_function(
        "(colour) => getComputedStyle(document.body).backgroundColor === colour", arg=colour, timeout=SECONDS
    )
    assert await frame.evaluate("window.marked") is True
    await expect(frame.get_by_role("button", name="Clicked 1 time")).to_be_visible()


async def test_the_whole_story(whole: Whole, browser: Browser) -> None:
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(SECONDS)
    theme = whole.file("src/theme.css")
    before = theme.read_text()

    page = await come_in(context, whole)
    origin = page.url.partition("/sessions")[0]
    preview = await watch_preview(context, origin)
    await turns(preview, LIGHT)
    files = await context.new_page()
    await files.goto(f"{origin}/files?path=src/theme.css")
    editor = files.locator(".editor-host .cm-content")
    await expect(editor).to_contain_text("--paper: #fbfaf7", timeout=SECONDS)

    await page.get_by_role("button", name="New", exact=True).click()
    await page.get_by_label("Message").fill(WISH)
    await page.get_by_label("Message").press("Enter")
    asked = page.get_by_role("alertdialog", name="The agent asks")
    await expect(asked).to_contain_text("src/theme.css", timeout=SECONDS)
    assert theme.read_text() == before
    await asked.get_by_role("button", name="Once").click()
    await expect(page.get_by_role("log")).to_contain_text("It is dark now.", timeout=SECONDS)

    assert theme.read_text() == THEME
    await turns(preview, DARK)
    await expect(editor).to_contain_text("--paper: #101412", timeout=SECONDS)

    await page.get_by_role("link", name="Terminal").click()
    await page.get_by_role("button", name="Open a terminal").click()
    screen = page.locator(".screen:not([hidden]) .xterm-rows")
    await screen.get_by_text("$").first.wait_for()
    await page.locator(".screen:not([hidden]) textarea").focus()
    await page.keyboard.type("grep paper src/theme.css; echo in-$((40+2))\n")
    await expect(screen).to_contain_text("in-42", timeout=SECONDS)
    await expect(screen).to_contain_text("--paper: #101412")

    await page.get_by_role("link", name="History").click()
    await page.get_by_role("button", name="Undo last change").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("workspace/src/theme.css", timeout=SECONDS)
    await dialog.get_by_role("button", name="Undo", exact=True).click()
    await expect(dialog).to_have_count(0, timeout=SECONDS)

    assert theme.read_text() == before
    await turns(preview, LIGHT)
    await expect(editor).to_contain_text("--paper: #fbfaf7", timeout=SECONDS)
    await context.close()
