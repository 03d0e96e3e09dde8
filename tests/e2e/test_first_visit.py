"""The first visit, before there is an agent or a model, and addresses that do not exist."""

import pytest
from playwright.sync_api import Page, Route, expect
from tests.support.browser import wait_for_events
from tests.support.running_freehold import RunningFreehold

pytestmark = pytest.mark.shared_processes


def test_no_session_begins_before_there_is_an_agent_and_a_model(freehold: RunningFreehold, page: Page) -> None:
    page.goto(f"{freehold.pages}/sessions")
    steps = page.get_by_role("region", name="Two steps to your first session")
    expect(steps.get_by_role("heading", name="Connect a model")).to_be_visible()
    page.get_by_role("button", name="New", exact=True).click()
    expect(steps.get_by_role("button", name="Add Freehold's own agent")).to_be_focused()
    listed = page.evaluate("asOwner('/v1/sessions').then((answer) => answer.json())")
    assert listed["sessions"] == []
    page.set_viewport_size({"width": 390, "height": 844})
    expect(steps.get_by_role("button", name="Add Freehold's own agent")).to_be_in_viewport()
    steps.get_by_role("button", name="Connect a model").click()
    dialog = page.get_by_role("dialog", name="Connect a model")
    expect(dialog.get_by_role("button", name="Anthropic")).to_be_in_viewport()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_the_installation_of_an_agent_shows_its_progress(freehold: RunningFreehold, page: Page) -> None:
    """The request is held and then refused, so that nothing is downloaded."""
    held: list[Route] = []
    page.route("**/v1/agents/builtin/install", lambda route: held.append(route))
    page.goto(f"{freehold.pages}/sessions")
    page.get_by_role("button", name="Add Freehold's own agent").click()
    expect(page.get_by_role("progressbar", name="Adding Freehold's own agent")).to_be_visible()
    expect(page.get_by_role("button", name="Adding Freehold's own agent")).to_be_disabled()
    wait_for_events(page, lambda: len(held) == 1)
    held[0].fulfill(status=400, json={"error": {"code": "agent.x", "message": "No way", "hint": "Try again"}})
    expect(page.get_by_role("alert").filter(has_text="No way")).to_be_visible()
    expect(page.get_by_role("button", name="Add Freehold's own agent")).to_be_enabled()


def test_a_used_link_in_a_signed_in_browser_leads_to_the_control_center(freehold: RunningFreehold, page: Page) -> None:
    link = freehold.harness.make_sign_in_link()
    page.goto(link)
    page.get_by_text("Live", exact=True).wait_for(state="attached")
    page.goto("about:blank")
    page.goto(link)
    page.get_by_role("button", name="Continue").click()
    expect(page).to_have_url(f"{freehold.pages}/sessions")


def test_a_wrong_address_links_to_the_control_center(freehold: RunningFreehold, page: Page) -> None:
    page.goto(f"{freehold.pages}/nowhere")
    page.get_by_role("link", name="Open the control center").click()
    page.get_by_text("Live", exact=True).wait_for(state="attached")
