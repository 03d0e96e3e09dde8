"""code-server itself, in a whole Freehold: the owner edits a file in VS Code, and history has the change."""

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect
from tests.support.browser import OwnerPage, open_owner_page, run_browser
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

INSTALL = Path(__file__).parents[2] / "tools/install-code-server"
FOLDER = "/mnt/code-server"
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.shared_processes,
]
MANIFEST = f"""
[editor]
enabled = true
program = "{FOLDER}/code-server"

[[computer.mounts]]
source = "{{installed}}"
target = "{FOLDER}"

[security.exceptions.editor]
reason = "I edit in the browser"
"""


@pytest.fixture(scope="module")
def installed() -> str:
    return subprocess.run([INSTALL], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def freehold(installed: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningFreehold]:
    options = FreeholdOptions(manifest=MANIFEST.format(installed=installed))
    async with run_freehold(tmp_path_factory.mktemp("code-server"), options) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with run_browser() as browser:
        yield browser


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def owner_page(browser: Browser, freehold: RunningFreehold) -> AsyncIterator[OwnerPage]:
    async with open_owner_page(browser, freehold) as owner_page:
        yield owner_page


async def test_the_owner_edits_a_file(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    await until(freehold.is_connected)
    freehold.file("notes.txt").write_text("one line\n")
    freehold.file("notes.txt").chmod(0o666)  # written here by another user than the one of the computer
    await owner_page.go("/editor")
    async with owner_page.context.expect_page() as opened:
        await owner_page.page.get_by_role("button", name="Open the editor").click()
    editor = await opened.value
    await editor.get_by_role("treeitem", name="notes.txt").dblclick()
    text = editor.locator(".editor-instance .monaco-editor .view-lines")
    await expect(text).to_contain_text("one line")
    await text.click()
    await editor.keyboard.press("Control+End")
    await editor.keyboard.type("written in VS Code")
    await editor.keyboard.press("Control+s")
    await until(lambda: "written in VS Code" in freehold.file("notes.txt").read_text())
    assert "//editor.preview.localhost:" in editor.url
    assert await editor.evaluate("localStorage.getItem('freehold.sign-in')") is None
    assert "code-server-session" not in await editor.evaluate("document.cookie")
    asked = f"fetch('{freehold.pages}/v1/me', {{credentials: 'include'}}).then(() => 'read', () => 'refused')"
    assert await editor.evaluate(asked) == "refused"
    assert await editor.evaluate("opener") is None
    await editor.close()
    await owner_page.go("/editor")
    await owner_page.page.get_by_role("button", name="Stop the editor").click()
    await expect(owner_page.page.get_by_role("button", name="Stop the editor")).to_have_count(0)
