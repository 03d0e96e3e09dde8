"""A long undo in a real browser: its progress, its cancellation and its end. It is held where it reads a stored content."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.support.axe import AXE, LOOK
from tests.support.browser import DESKTOP, PHONE
from tests.support.held_restore import hold_undo
from tests.support.running_freehold import RunningFreehold

from freehold.identity.sign_ins import SignIns

pytestmark = pytest.mark.shared_processes

PREPARING = re.compile(r"Preparing the files: [1-9]\d* of 3\d\d")
Open = Callable[[str], None]


@pytest.fixture
def open_page(freehold: RunningFreehold, page: Page) -> Open:
    def go(path: str) -> None:
        page.goto(freehold.pages + path)
        page.get_by_text("Live", exact=True).wait_for(state="attached")

    return go


def large_file(freehold: RunningFreehold) -> Path:
    return max(freehold.home.workspace.glob("held-*/large"), key=lambda path: path.stat().st_mtime_ns)


def expect_no_barriers(page: Page) -> None:
    page.evaluate(AXE)
    for size in (DESKTOP, PHONE):
        page.set_viewport_size(size)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert page.evaluate(LOOK) == [], (size, scheme)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (size, scheme)


def test_a_long_undo_shows_how_far_it_is_and_closes_its_dialog_when_it_is_done(
    freehold: RunningFreehold, page: Page, open_page: Open
) -> None:
    with hold_undo(freehold.home) as held:
        open_page("/history")
        page.get_by_role("button", name="Undo last change").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Undo", exact=True).click()
        held.wait()
        expect(dialog.get_by_role("progressbar", name=PREPARING)).to_be_visible()
        expect(dialog.get_by_role("status")).to_contain_text("No file has changed yet.")
        expect_no_barriers(page)
        held.release()
        expect(dialog).to_have_count(0)
    expect(page.locator(".history-entry").first).to_contain_text("Undo of entry")
    assert large_file(freehold).stat().st_size > 3


def test_a_long_undo_is_cancelled_on_a_phone_by_keyboard_and_no_file_changes(
    freehold: RunningFreehold, page: Page, open_page: Open
) -> None:
    page.set_viewport_size(PHONE)
    with hold_undo(freehold.home) as held:
        open_page("/history?undo=last")
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("button", name="Undo", exact=True)).to_be_enabled()
        dialog.get_by_role("button", name="Undo", exact=True).focus()
        page.keyboard.press("Enter")
        held.wait()
        expect(dialog.get_by_role("progressbar", name=PREPARING)).to_be_visible()
        expect(dialog.get_by_role("group", name="Progress")).to_be_focused()
        page.keyboard.press("Tab")
        expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
        page.keyboard.press("Enter")
        expect(dialog).to_contain_text("Cancelling. No file has changed.")
        held.release()
        expect(dialog).to_have_count(0)
        assert large_file(freehold).read_text() == "new"
    expect(page.locator(".history-entry").first).not_to_contain_text("Undo of entry")


def test_an_undo_that_another_door_began_is_shown_on_the_page_and_can_be_cancelled_there(
    freehold: RunningFreehold, page: Page, open_page: Open
) -> None:
    with hold_undo(freehold.home) as held:
        command = freehold.harness.start("undo")
        held.wait()
        open_page("/history")
        running = page.get_by_role("region", name="Running undo")
        expect(running.get_by_role("progressbar", name=PREPARING)).to_be_visible()
        expect_no_barriers(page)
        running.get_by_role("button", name="Cancel").click()
        expect(running).to_contain_text("Cancelling. No file has changed.")
        held.release()
        _, said = command.communicate(timeout=60)
        assert "The undo was cancelled. Nothing was changed" in said
        expect(running).to_have_count(0)
        assert large_file(freehold).read_text() == "new"


def test_the_recovery_page_shows_a_long_undo_and_cancels_it(freehold: RunningFreehold, page: Page) -> None:
    """No script runs there: the page loads itself again, and the focus stays on its button."""
    with SignIns(freehold.home.identity) as sign_ins:
        code = sign_ins.create_link("keeper")
    page.goto(f"{freehold.keeper_url}/sign-in")
    page.get_by_label("code").fill(code)
    page.keyboard.press("Enter")
    with hold_undo(freehold.home) as held:
        page.get_by_role("link", name="Freehold keeper").click()
        page.get_by_role("link", name="Undo the last change").click()
        page.get_by_role("button", name="Undo").click()
        held.wait()
        expect(page.get_by_role("progressbar", name=PREPARING)).to_be_visible()
        stop = page.get_by_role("link", name="Stop updating this page")
        stop.click()
        again = page.get_by_role("link", name="Update by itself")
        expect(again).to_be_visible()
        expect_no_barriers(page)
        again.click()
        expect(stop).to_be_visible()
        cancel = page.get_by_role("button", name="Cancel the undo")
        expect(cancel).to_be_focused()
        # A key that comes while the page is loaded again is lost.
        stop.click()
        expect(again).to_be_visible()
        expect(cancel).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_text("It was cancelled, and no file has changed.")).to_be_visible()
        held.release()
        expect(page.get_by_text("The undo was cancelled. Nothing was changed")).to_be_visible()
        assert large_file(freehold).read_text() == "new"
