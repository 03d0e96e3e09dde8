"""Providers in the page: the model of a session, the default, and what is disconnected."""

import pytest
from playwright.async_api import expect
from tests.support.browser import OwnerPage
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("builtin",), is_connected=False)


async def test_the_model_of_a_session_is_changed_in_the_composer_and_shown_in_the_header(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    body = {"kind": "openai-compatible", "base_url": f"{freehold.model.url}/v1", "model": "second"}
    await freehold.call("PUT", "/v1/models/other", **body)
    page = owner_page.page
    session = await freehold.open("builtin")
    await owner_page.open_session(session)
    await page.get_by_role("button", name="Agent and model").click()
    choice = page.get_by_role("dialog", name="Agent and model")
    await choice.get_by_label("Provider").select_option("other")
    await expect(page.locator(".sessions-agent")).to_contain_text("other/second")
    await choice.get_by_label("Model").fill("third")
    await choice.get_by_label("Model").press("Enter")
    await expect(page.locator(".sessions-agent")).to_contain_text("other/third")
    await page.keyboard.press("Escape")
    async with freehold.watch(session) as watch:
        await owner_page.send_prompt("SAY changed")
        await watch.until("turn.ended")
    assert [each for each in freehold.model.requests if each.method == "POST"][-1].json["model"] == "third"


async def test_a_provider_is_made_the_default_and_disconnected_in_the_settings(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    body = {"kind": "openai-compatible", "base_url": f"{freehold.model.url}/v1"}
    await freehold.call("PUT", "/v1/models/spare", **body)
    page = owner_page.page
    await owner_page.go("/settings/models")
    row = page.locator("[data-model=spare]")
    await row.get_by_role("button", name="Make default: spare").click()
    await expect(row).to_contain_text("default")
    disconnect = page.get_by_role("button", name="Disconnect spare")
    # The page ignores a second press that comes at once.
    await disconnect.evaluate(
        "(it) => { it.click(); return new Promise((on) => setTimeout(on, 500)).then(() => it.click()) }"
    )
    await expect(row).to_have_count(0)
    assert "spare" not in freehold.home.manifest.read_text()
