"""The first visit, before there is an agent or a model, and addresses that lead nowhere."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect, sync_playwright
from tests.e2e.house import Freehold, freehold_up, launch, signed_in

pytestmark = pytest.mark.shared_processes
PATIENCE = 30_000


@pytest.fixture(scope="module")
def freehold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Freehold]:
    with freehold_up(tmp_path_factory.mktemp("up")) as running:
        yield running


@pytest.fixture(scope="module")
def context(freehold: Freehold) -> Iterator[BrowserContext]:
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield signed_in(browser, freehold)
        browser.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE)
    yield opened
    opened.close()


def test_no_session_begins_before_there_is_an_agent_and_a_model(freehold: Freehold, page: Page) -> None:
    page.goto(f"{freehold.url}/sessions")
    steps = page.get_by_role("region", name="Two steps before the first session")
    expect(steps.get_by_role("heading", name="Connect a model")).to_be_visible(timeout=PATIENCE)
    page.get_by_role("button", name="New", exact=True).click()
    expect(steps.get_by_role("button", name="Add Freehold's own agent")).to_be_focused(timeout=PATIENCE)
    listed = page.evaluate("fetch('/v1/sessions').then((answer) => answer.json())")
    assert listed["sessions"] == []
    page.set_viewport_size({"width": 390, "height": 844})
    expect(steps.get_by_role("button", name="Add Freehold's own agent")).to_be_in_viewport()
    steps.get_by_role("button", name="Models and keys").click()
    expect(page).to_have_url(f"{freehold.url}/settings/models")


def test_what_is_added_tells_how_far_it_is(freehold: Freehold, page: Page) -> None:
    """The answer is held back, and is a refusal: nothing is fetched from anywhere in a test."""
    held: list[Route] = []
    page.route("**/v1/agents/builtin/install", lambda route: held.append(route))
    page.goto(f"{freehold.url}/sessions")
    page.get_by_role("button", name="Add Freehold's own agent").click()
    expect(page.get_by_role("progressbar", name="Adding Freehold's own agent")).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_role("button", name="Adding Freehold's own agent")).to_be_disabled()
    held[0].fulfill(status=400, json={"error": {"code": "agent.x", "message": "No way", "hint": "Try again"}})
    expect(page.get_by_role("alert").filter(has_text="No way")).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_role("button", name="Add Freehold's own agent")).to_be_enabled()


def test_the_lines_for_the_manifest_are_copied_as_they_stand_there(
    freehold: Freehold, context: BrowserContext, page: Page
) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    for path in ("/settings/models", "/sessions"):
        page.goto(freehold.url + path)
        if path == "/sessions":
            page.get_by_text("How to connect one").click()
        page.locator(".code", has_text="models.local").get_by_role("button", name="Copy").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible(timeout=PATIENCE)
        lines = page.evaluate("navigator.clipboard.readText()").splitlines()
        assert lines[:2] == ["[models.local]", 'kind = "openai-compatible"']


def test_a_used_link_in_a_browser_that_is_signed_in_leads_on(freehold: Freehold, page: Page) -> None:
    link = freehold.new_link()
    page.goto(link)
    page.get_by_text("Live", exact=True).wait_for(state="attached")
    page.goto("about:blank")
    page.goto(link)
    page.get_by_role("button", name="Go on").click()
    expect(page).to_have_url(f"{freehold.url}/sessions", timeout=PATIENCE)


def test_a_wrong_address_has_a_way_back(freehold: Freehold, page: Page) -> None:
    page.goto(f"{freehold.url}/nowhere")
    page.get_by_role("link", name="To the control center").click()
    page.get_by_text("Live", exact=True).wait_for(state="attached")
