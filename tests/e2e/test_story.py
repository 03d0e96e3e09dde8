"""The whole story in one test: sign in with a PDS, prompt, approve, see the change in the preview, and undo it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Frame, Page, expect
from tests.e2e.atproto.localnet import PASSWORD, local_network
from tests.identity.nameserver import nameserver
from tests.support.agents import AGENT_CACHE
from tests.support.browser import DESKTOP, PAGE_TIMEOUT
from tests.support.pds_gateway import network_environment
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, prepare_harness, run_harness

from freehold.home import Home
from freehold.identity.atproto.fetcher import NetworkOverrides
from freehold.starter.packages import NAME, install_packages
from freehold.testing import Call, Say, ScriptedModel, make_script

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

LIGHT, DARK = "rgb(251, 250, 247)", "rgb(16, 20, 18)"
THEME = ":root {\n  color-scheme: dark;\n  --paper: #101412;\n  --ink: #e8e6df;\n}\n"
PROMPT = "Make it dark."
SCRIPT = make_script([Call("write", {"path": "src/theme.css", "content": THEME}), Say("It is dark now.")], when=PROMPT)
MANIFEST = '[owner]\ndid = "{did}"\nhandle = "alice.test"\nplc_url = "{directory}"\n'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def freehold(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningFreehold]:
    """With the first project in the workspace, and an owner whose account is on a local PDS."""
    folder = tmp_path_factory.mktemp("story")
    with ExitStack() as stack:
        net = await asyncio.to_thread(stack.enter_context, local_network(folder / "pds", ["alice.test"]))
        directory = f"http://localhost:{net.directory_port}"
        network = NetworkOverrides(
            routes={"alice.test": ("127.0.0.1", net.pds_port)},
            plain=frozenset({f"http://localhost:{net.pds_port}", directory}),
            nameserver=stack.enter_context(nameserver({})),
        )
        async with ScriptedModel(SCRIPT) as model:
            await asyncio.to_thread(install_packages, Home(root=AGENT_CACHE.parent, run=AGENT_CACHE.parent))
            options = FreeholdOptions(
                agents=("builtin", NAME),
                manifest=MANIFEST.format(did=net.dids["alice.test"], directory=directory),
                environment=network_environment(network),
            )
            harness = await asyncio.to_thread(prepare_harness, folder / "freehold", options, model.url)
            await asyncio.to_thread(harness.run, "starter", check=True)
            with ExitStack() as running:
                starting = run_harness(harness, "tests.support.pds_keeper")
                yield await asyncio.to_thread(running.enter_context, starting)


async def sign_in(context: BrowserContext, freehold: RunningFreehold) -> Page:
    page = await context.new_page()
    await page.goto(freehold.pages)
    await page.get_by_role("button", name="Sign in").click()
    await page.locator("input[autocomplete=current-password]").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("button", name="Authorize").click()
    await page.locator(".app-connection[data-state=live]").wait_for()
    return page


async def watch_preview(context: BrowserContext, origin: str) -> Frame:
    """The preview, with a mark that a reload would remove."""
    page = await context.new_page()
    await page.goto(f"{origin}/preview")
    await page.frame_locator("iframe").get_by_role("heading", name="This page is yours.").wait_for()
    (frame,) = [one for one in page.frames if one != page.main_frame]
    await frame.get_by_role("button", name="Clicked 0 times").click()
    await frame.evaluate("window.marked = true")
    return frame


async def expect_colour(frame: Frame, colour: str) -> None:
    """It changes without a reload: the mark and the state of the page are still there."""
    await frame.wait_for_function("(colour) => getComputedStyle(document.body).backgroundColor === colour", arg=colour)
    assert await frame.evaluate("window.marked") is True
    await expect(frame.get_by_role("button", name="Clicked 1 time")).to_be_visible()


async def test_the_whole_story(freehold: RunningFreehold, browser: Browser) -> None:
    context = await browser.new_context(viewport=DESKTOP)
    context.set_default_timeout(PAGE_TIMEOUT)
    theme = freehold.file("src/theme.css")
    before = theme.read_text()

    page = await sign_in(context, freehold)
    origin = page.url.partition("/sessions")[0]
    preview = await watch_preview(context, origin)
    await expect_colour(preview, LIGHT)
    files = await context.new_page()
    await files.goto(f"{origin}/files?path=src/theme.css")
    editor = files.locator(".files-editor .cm-content")
    await expect(editor).to_contain_text("--paper: #fbfaf7")

    await page.get_by_role("button", name="New", exact=True).click()
    await page.get_by_label("Message").fill(PROMPT)
    await page.get_by_label("Message").press("Enter")
    asked = page.get_by_role("alertdialog", name="Permission request")
    await expect(asked).to_contain_text("src/theme.css")
    assert theme.read_text() == before
    await asked.get_by_role("button", name="Once").click()
    await expect(page.get_by_role("log")).to_contain_text("It is dark now.")

    assert theme.read_text() == THEME
    await expect_colour(preview, DARK)
    await expect(editor).to_contain_text("--paper: #101412")

    await page.get_by_role("link", name="Terminal").click()
    await page.get_by_role("button", name="Open a terminal").click()
    screen = page.locator(".terminal-screen:not([hidden]) .xterm-rows")
    await screen.get_by_text("$").first.wait_for()
    await page.locator(".terminal-screen:not([hidden]) textarea").focus()
    await page.keyboard.type("grep paper src/theme.css; echo in-$((40+2))\n")
    await expect(screen).to_contain_text("in-42")
    await expect(screen).to_contain_text("--paper: #101412")

    await page.get_by_role("link", name="History").click()
    await page.get_by_role("button", name="Undo last change").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("workspace/src/theme.css")
    await dialog.get_by_role("button", name="Undo", exact=True).click()
    await expect(dialog).to_have_count(0)

    assert theme.read_text() == before
    await expect_colour(preview, LIGHT)
    await expect(editor).to_contain_text("--paper: #fbfaf7")
    await context.close()
