"""An MCP server from the page to an agent: added, tried, allowed tool by tool, asked for, changed, switched off."""

import json
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from tests.e2e.test_accessibility import find_faults
from tests.support.browser import PHONE, OwnerPage
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(
    agents=("builtin",), manifest='[agents]\ndefault = "builtin"\n[agents.builtin]\nmodel = "local"\n'
)
SERVER = Path(__file__).parents[1] / "mcp" / "odd_server.py"


async def open_tools(owner_page: OwnerPage, freehold: RunningFreehold) -> Page:
    page = owner_page.page
    await page.goto(freehold.pages + "/mcp")
    await page.get_by_text("Live", exact=True).wait_for(state="attached")
    await expect(page.get_by_role("heading", name="Tools", exact=True)).to_be_visible()
    return page


async def test_a_server_is_added_tried_allowed_used_by_an_agent_and_switched_off(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    freehold.file("odd_server.py").write_bytes(SERVER.read_bytes())
    page = await open_tools(owner_page, freehold)
    await page.get_by_label("Name", exact=True).fill("notes")
    await page.get_by_label("Command").fill("/usr/bin/python3 /workspace/odd_server.py lies")
    await page.get_by_role("button", name="Add", exact=True).press("Enter")
    await expect(page.get_by_text("Its tools were not seen yet.")).to_be_visible()
    assert "[mcp.notes]" in freehold.home.manifest.read_text()
    await page.get_by_role("button", name="Try notes").press("Enter")
    await expect(page.get_by_text("Says it again.")).to_be_visible()
    await page.get_by_role("button", name="Show notes echo").press("Enter")
    await page.get_by_label("Arguments of notes echo").fill('{"text": "hello"}')
    await page.get_by_role("button", name="Call notes echo").press("Enter")
    await expect(page.locator("pre").filter(has_text="hello")).to_be_visible()
    await page.get_by_role("button", name="Allow notes echo").press("Enter")
    await expect(page.get_by_text("Agents are offered 1 of 1 tool")).to_be_visible()
    session = await freehold.open("builtin")
    given = json.dumps({"text": "from the agent"})
    async with freehold.watch(session) as watch:
        await freehold.run_turn(watch, session, f"CALL freehold_notes__echo {given}\nSAY done")
    events = await freehold.events(session)
    asked = [event["data"] for event in events if event["kind"] == "approval"]
    assert asked[0]["title"] == "notes: echo"
    assert "from the agent" in freehold.model.requests[-1].body.decode()
    # The server describes it in another way from its third list on.
    async with freehold.watch_new(session) as watch:
        call = f"CALL freehold_notes__echo {given}"
        await freehold.run_turn(watch, session, f"{call}\n{call}\nSAY done")
    assert "in another way than the owner has allowed" in freehold.model.requests[-1].body.decode()
    await expect(page.get_by_text("changed", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Switch off notes").press("Enter")
    await expect(page.get_by_text("Switched off")).to_be_visible()


async def test_the_page_fits_on_a_phone_and_a_mistake_is_told(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    page = await open_tools(owner_page, freehold)
    await page.get_by_label("Kind").select_option("remote")
    await page.get_by_label("Name", exact=True).fill("far")
    await page.get_by_label("Address").fill("ftp://far.example")
    await page.get_by_role("button", name="Add", exact=True).press("Enter")
    await expect(page.locator(".notice")).to_contain_text("ftp://far.example")
    assert "far" not in freehold.home.manifest.read_text()
    await page.set_viewport_size(PHONE)
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert await find_faults(page) == []
