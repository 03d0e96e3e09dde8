"""A remote MCP server with a sign-in, from the page to an agent and back: added, signed in to by the button, used, signed out."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import expect
from tests.mcp.test_sign_in import signed_server
from tests.support.browser import OwnerPage
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

from freehold.egress.vault import Vault
from freehold.mcp.sign_in import McpSignIns

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
MANIFEST = """
[egress]
mode = "deny"
allow = ["127.0.0.1:{port}"]
[security.exceptions.private-egress]
reason = "the server of this test"
[agents]
default = "builtin"
[agents.builtin]
model = "local"
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def port() -> AsyncIterator[int]:
    async with signed_server(3600) as port:
        yield port


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def freehold(tmp_path_factory: pytest.TempPathFactory, port: int) -> AsyncIterator[RunningFreehold]:
    options = FreeholdOptions(agents=("builtin",), manifest=MANIFEST.format(port=port))
    async with run_freehold(tmp_path_factory.mktemp("fh"), options) as freehold:
        await until(freehold.is_connected)
        yield freehold


async def test_the_owner_adds_a_server_signs_in_by_the_button_and_out_again(
    freehold: RunningFreehold, owner_page: OwnerPage, port: int
) -> None:
    page = owner_page.page
    await page.goto(freehold.pages + "/mcp")
    await page.get_by_label("Kind").select_option("remote")
    await page.get_by_label("Name", exact=True).fill("signed")
    await page.get_by_label("Address").fill(f"http://127.0.0.1:{port}/mcp")
    await page.get_by_label("I sign in there").check()
    await page.get_by_role("button", name="Add", exact=True).click()
    await page.get_by_role("button", name="Try signed").click()
    await expect(page.locator(".notice")).to_contain_text("wants a key")
    # The authorization server of the SDK asks nothing more, and leads back.
    await page.get_by_role("button", name="Sign in to signed").click()
    await expect(page.get_by_text("Freehold may use signed now.")).to_be_visible()
    tokens = McpSignIns(Vault(freehold.home.vault)).read("signed")
    assert tokens is not None
    assert tokens.access not in await page.content()
    await page.get_by_role("link", name="Back to the tools").click()
    await page.get_by_role("button", name="Try signed").click()
    await page.get_by_role("button", name="Allow signed digest").click()
    await expect(page.get_by_text("Agents are offered 1 of 2 tools")).to_be_visible()
    session = await freehold.open("builtin")
    call = f"CALL freehold_signed__digest {json.dumps({})}\nSAY done"
    async with freehold.watch(session) as watch:
        await freehold.run_turn(watch, session, call)
    said = [event["data"] for event in await freehold.events(session) if event["kind"] == "tool"]
    assert tokens.access not in str(said)
    assert '"status": "completed"' in json.dumps(said)
    assert tokens.access not in await page.content()
    await page.get_by_role("button", name="Sign out of signed").click()
    await expect(page.get_by_role("button", name="Sign in to signed")).to_be_visible()
    assert McpSignIns(Vault(freehold.home.vault)).read("signed") is None
    assert owner_page.violations == []
