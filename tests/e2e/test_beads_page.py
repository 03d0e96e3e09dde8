"""The board of work items in a real browser: columns, drag, keys and live updates."""

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest
from playwright.async_api import Locator, Page, ViewportSize, expect
from tests.support.browser import PHONE, OwnerPage
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.identity.tokens import ApiTokens

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("builtin",), manifest='[slots]\nbeads = "local"\n[agents]\ndefault = "builtin"\n')
DESK: ViewportSize = {"width": 1280, "height": 800}


def beads(freehold: RunningFreehold, *words: str) -> Any:
    """`freehold beads`, as the owner runs it beside the Freehold that runs."""
    command = [sys.executable, "-m", "freehold.cli.main", "beads", *words, "--json", "--home", str(freehold.home.root)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


async def open_board(owner_page: OwnerPage, freehold: RunningFreehold) -> Page:
    page = owner_page.page
    await page.goto(freehold.pages + "/beads")
    await page.get_by_text("Live", exact=True).wait_for(state="attached")
    await expect(page.get_by_role("heading", name="Work", exact=True)).to_be_visible()
    return page


def column(page: Page, title: str) -> Locator:
    return page.get_by_role("region", name=title, exact=True)


async def press_enter(button: Locator) -> None:
    """The board can show a change before the answer to it has come, and takes no press until then."""
    await expect(button).to_be_enabled()
    await button.press("Enter")


async def test_an_item_is_added_taken_and_closed_by_keys(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    page = await open_board(owner_page, freehold)
    await page.get_by_label("New item").fill("Mend the roof")
    await page.get_by_label("New item").press("Enter")
    await expect(column(page, "Open")).to_contain_text("Mend the roof")
    await press_enter(page.get_by_role("button", name="Take it: Mend the roof"))
    await expect(column(page, "In progress")).to_contain_text("held by you")
    await press_enter(page.get_by_role("button", name="Close: Mend the roof"))
    await page.get_by_label("Reason").fill("It no longer leaks")
    await page.get_by_label("Reason").press("Enter")
    await expect(column(page, "Closed")).to_contain_text("It no longer leaks")


async def test_an_item_is_dragged_to_another_column(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    beads(freehold, "create", "Drag me")
    page = await open_board(owner_page, freehold)
    await page.set_viewport_size(DESK)
    card = column(page, "Open").get_by_role("listitem").filter(has_text="Drag me")
    await card.drag_to(column(page, "In progress"))
    await expect(column(page, "In progress")).to_contain_text("Drag me")
    assert next(one for one in beads(freehold) if one["title"] == "Drag me")["holder"] == "owner"


async def test_a_change_elsewhere_is_shown_without_a_reload(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    page = await open_board(owner_page, freehold)
    first = beads(freehold, "create", "From the shell")
    await expect(column(page, "Open")).to_contain_text("From the shell")
    second = beads(freehold, "create", "Waits for it", "--needs", first["id"])
    card = column(page, "Open").get_by_role("listitem").filter(has_text="Waits for it")
    await expect(card).to_contain_text("blocked")
    beads(freehold, "close", first["id"], "done")
    await expect(card).not_to_contain_text("blocked")
    beads(freehold, "close", second["id"], "done")
    await expect(card).to_have_count(0)


async def test_the_board_fits_on_a_phone(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    beads(freehold, "create", "x" * 300)
    page = await open_board(owner_page, freehold)
    await page.set_viewport_size(PHONE)
    await expect(column(page, "Open")).to_contain_text("x" * 300)
    wide = await page.evaluate("document.documentElement.scrollWidth")
    assert wide <= PHONE["width"]
    await page.set_viewport_size(DESK)


async def test_an_agent_that_is_started_on_an_item_gets_it_and_closes_it_with_evidence(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    item = beads(freehold, "create", "Sweep the yard")["id"]
    closing = json.dumps({"id": item, "reason": "swept", "evidence": "The yard is clean"})
    writing = json.dumps({"path": "yard.txt", "content": "clean"})
    steps = f"CALL write {writing}\nCALL beads_close {closing}\nSAY I swept it."
    beads(freehold, "update", item, "--description", steps)
    page = await open_board(owner_page, freehold)
    await page.get_by_role("button", name="Start an agent: Sweep the yard").click()
    log = page.get_by_role("log")
    await page.get_by_role("button", name="Once").click()
    await expect(log).to_contain_text(f"Work on this item, which you hold now: {item}")

    async def is_closed() -> bool:
        return bool((await freehold.call("GET", f"/v1/slots/beads/items/{item}"))["bead"]["status"] == "closed")

    await until(is_closed)
    await expect(log).to_contain_text("I swept it.")
    bead = beads(freehold, "show", item)["bead"]
    assert (bead["evidence"], bead["holder"]) == ("The yard is clean", None)
    session = await freehold.call("GET", f"/v1/sessions/{bead['sessions'][0]}")
    assert session["title"] == "Sweep the yard"
    await page.goto(freehold.pages + "/beads")
    card = column(page, "Closed").get_by_role("listitem").filter(has_text="Sweep the yard")
    await card.get_by_role("button", name="Open session").click()
    await expect(log).to_contain_text("I swept it.")

    with ApiTokens(freehold.home.identity, owner=None) as tokens:
        token = tokens.create("board", ["beads"], None)[1]
    headers = {"authorization": f"Bearer {token}"}

    async def has_changes() -> Any:
        return (await freehold.http.get(f"/v1/slots/beads/items/{item}/changes", headers=headers)).json()

    [change] = await until(has_changes)
    assert (change["session"], change["added"]) == (bead["sessions"][0], 1)
    await page.goto(freehold.pages + "/beads")
    await card.get_by_role("button", name="Sweep the yard", exact=True).press("Enter")
    details = page.get_by_role("dialog", name="Sweep the yard")
    await expect(details).to_contain_text("The yard is clean")
    await details.get_by_label("New comment").fill("Well done")
    await details.get_by_label("New comment").press("Enter")
    await expect(details.get_by_role("listitem").filter(has_text="Well done")).to_be_visible()
    await details.get_by_role("link", name="1 file added").click()
    await expect(page.get_by_text("yard.txt").first).to_be_visible()


async def test_keys_go_through_the_items_and_move_one(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    first = beads(freehold, "create", "Keys one", "-p", "0")["id"]
    beads(freehold, "create", "Keys two", "-p", "0")
    page = await open_board(owner_page, freehold)
    await page.set_viewport_size(DESK)

    def title(text: str) -> Locator:
        return page.get_by_role("button", name=text, exact=True)

    await title("Keys one").focus()
    await page.keyboard.press("ArrowDown")
    await expect(title("Keys two")).to_be_focused()
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("Shift+ArrowRight")
    await expect(column(page, "In progress")).to_contain_text("Keys one")
    await expect(page.get_by_role("button", name="Close: Keys one")).to_be_enabled()
    await expect(title("Keys one")).to_be_focused()
    await page.keyboard.press("Shift+ArrowLeft")
    await expect(column(page, "Open")).to_contain_text("Keys one")
    await expect(title("Keys one")).to_be_focused()
    await until(lambda: beads(freehold, "show", first)["bead"]["holder"] is None)  # the page shows it before it is so


async def test_an_item_is_edited_on_the_page(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    item = beads(freehold, "create", "Edit me")["id"]
    page = await open_board(owner_page, freehold)
    await page.get_by_role("button", name="Edit me", exact=True).click()
    dialog = page.get_by_role("dialog", name="Edit me")
    await dialog.get_by_role("button", name="Edit").click()
    await dialog.get_by_label("Description").fill("With\nlines")
    await dialog.get_by_label("Priority").select_option("0")
    await dialog.get_by_label("Labels").fill("house, urgent")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_contain_text("You: updated")
    await dialog.get_by_role("button", name="Done").click()
    card = column(page, "Open").get_by_role("listitem").filter(has_text="Edit me")
    await expect(card).to_contain_text("urgent")
    bead = beads(freehold, "show", item)["bead"]
    assert (bead["description"], bead["priority"], bead["labels"]) == ("With\nlines", 0, ["house", "urgent"])


async def test_on_a_phone_one_column_is_shown_at_a_time(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    item = beads(freehold, "create", "On a phone")["id"]
    beads(freehold, "claim", item)
    page = await open_board(owner_page, freehold)
    await page.set_viewport_size(PHONE)
    await expect(column(page, "In progress")).to_have_count(0)
    await page.get_by_role("group", name="Column").get_by_role("button", name="In progress").press("Enter")
    await expect(column(page, "In progress")).to_contain_text("On a phone")
    await expect(column(page, "Open")).to_have_count(0)
    await page.set_viewport_size(DESK)


async def test_the_command_sets_an_agent_on_an_item_and_lists_what_it_changed(freehold: RunningFreehold) -> None:
    steps = "CALL write " + json.dumps({"path": "shed.txt", "content": "dry"}) + "\nSAY Done."
    item = beads(freehold, "create", "Mend the shed", "--description", steps)["id"]

    async def command(*words: str) -> str:
        return (await asyncio.to_thread(freehold.harness.run, "beads", *words, check=True)).stdout

    assert await command("changes", item) == "No session has changed files for this item.\n"
    session = json.loads(await command("work", item, "--json"))["session"]

    async def answer() -> bool:
        asked = [one for one in await freehold.call("GET", "/v1/approvals") if one["session"] == session]
        for one in asked:
            await freehold.call("POST", f"/v1/approvals/{one['id']}", answer="once")
        return bool(asked)

    await until(answer)

    await until(lambda: freehold.call("GET", f"/v1/slots/beads/items/{item}/changes"))
    told = await command("changes", item)
    assert session in told
    assert "1 added, 0 changed, 0 removed" in told
