"""Talking to an agent from the control center: the real built-in agent, a scripted model, a real browser."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Page, async_playwright, expect
from tests.agents.whole import PATIENCE, Whole, prepare, running
from tests.e2e.house import FLAGS

from freehold.testing import ScriptedModel

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Whole]:
    async with ScriptedModel() as model:
        whole = Whole(prepare(tmp_path_factory.mktemp("whole"), model.url, ("builtin",)))
        with running(whole):
            yield whole
            await whole.http.aclose()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(whole: Whole) -> AsyncIterator[Page]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        page = await browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(PATIENCE * 1000)
        wrong: list[str] = []
        page.on("console", lambda said: wrong.append(said.text) if "Content Security" in said.text else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        link = whole.stead.run("open", "--print", check=True).stdout.strip()
        async with page.expect_response("**/v1/sign-in/link"):
            await page.goto(link)
        yield page
        assert wrong == []
        await browser.close()


async def test_a_prompt_is_approved_and_its_turn_is_taken_back(whole: Whole, page: Page) -> None:
    """New session, prompt, the exact command to approve, the file on disk, the words, and the undo beside them."""
    await page.goto(f"http://localhost:{whole.stead.gateway_port}/sessions")
    await page.get_by_role("button", name="New", exact=True).click()
    await page.get_by_label("Message").fill("ESCALATE\nRUN echo hello > said.txt")
    await page.get_by_label("Message").press("Enter")
    asked = page.get_by_role("alertdialog", name="The agent asks")
    await expect(asked).to_contain_text("echo hello > said.txt", timeout=PATIENCE * 1000)
    assert not whole.file("said.txt").exists()
    await asked.get_by_role("button", name="Once").click()
    talk = page.get_by_role("log")
    await expect(talk).to_contain_text("Done.", timeout=PATIENCE * 1000)
    await expect(talk).to_contain_text("added", timeout=PATIENCE * 1000)
    await expect(asked).to_have_count(0)
    assert whole.file("said.txt").read_text() == "hello\n"
    await page.get_by_label("Message").fill("half a thought")
    await page.reload()
    await expect(talk).to_contain_text("Done.")
    assert await page.get_by_label("Message").input_value() == "half a thought"
    await talk.get_by_role("button", name="Undo this turn").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("workspace/said.txt")
    await dialog.get_by_role("button", name="Take back").click()
    await expect(dialog).to_have_count(0)
    assert not whole.file("said.txt").exists()


async def test_what_an_agent_says_is_only_text(whole: Whole, page: Page) -> None:
    session = await whole.open("builtin", title="<img src=x onerror=window.pwned=1>")
    await page.goto(f"http://localhost:{whole.stead.gateway_port}/sessions?id={session}")
    words = "<script>window.pwned=1</script><img src=x onerror=window.pwned=1>"
    await page.get_by_label("Message").fill(words)
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_role("log")).to_contain_text(words)
    assert await page.evaluate("window.pwned") is None
    assert await page.locator("main img, main script").count() == 0
