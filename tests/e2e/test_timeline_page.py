"""The history page in a real browser: everything that happened in one list, and the way back from each of it."""

import json
import re
from typing import Any

import pytest
from playwright.async_api import Locator, expect
from tests.support.browser import DESKTOP, PHONE, OwnerPage
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.timeline import Timeline

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("builtin",))


async def state(freehold: RunningFreehold) -> int:
    """The entry that the files are in now."""
    return int((await freehold.call("GET", "/v1/history/compare"))["new"]["id"])


def entry(owner_page: OwnerPage, number: int) -> Locator:
    return owner_page.page.locator(".history-entry", has=owner_page.page.get_by_text(f"#{number}", exact=True))


async def opened(owner_page: OwnerPage, number: int) -> Locator:
    row = entry(owner_page, number)
    await row.get_by_role("button", expanded=False).first.click()
    return row


async def turn(freehold: RunningFreehold, prompt: str) -> tuple[str, dict[str, Any]]:
    """A turn of the built-in agent that asks once and is allowed to."""
    session = await freehold.open("builtin", title="A turn")
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, prompt)
        await watch.answer("once")
        return session, await watch.until("turn.ended")


async def test_a_turn_and_its_approval_stand_in_one_list_and_the_turn_is_rewound(owner_page: OwnerPage) -> None:
    """Who, why and what; the decision beside it; then files and conversation go back to before, as previewed."""
    session, ended = await turn(owner_page.freehold, "ESCALATE\nRUN echo rewound > turned.txt")
    number = ended["data"]["changes"]["entry"]
    await owner_page.go("/history")
    row = await opened(owner_page, number)
    await expect(row).to_contain_text("builtin")
    await expect(row).to_contain_text("1 added")
    decision = owner_page.page.locator(".history-event[data-kind='approval.answered']").first
    await expect(decision).to_contain_text("Permission given, once")
    await expect(decision).to_contain_text("echo rewound > turned.txt")

    await row.get_by_role("button", name="Show all changes").click()
    await expect(owner_page.page.get_by_role("heading", name="workspace/turned.txt")).to_be_visible()
    await owner_page.page.go_back()
    row = await opened(owner_page, number)
    await row.get_by_role("button", name="Rewind the conversation…").click()
    dialog = owner_page.page.get_by_role("dialog")
    await expect(dialog).to_contain_text("workspace/turned.txt")
    await dialog.get_by_label("Conversation only").check()
    await expect(dialog).not_to_contain_text("workspace/turned.txt")
    await dialog.get_by_label("Both").check()
    await expect(dialog).to_contain_text("workspace/turned.txt")
    assert owner_page.freehold.file("turned.txt").exists()
    await dialog.get_by_role("button", name="Rewind", exact=True).click()
    await expect(dialog).to_have_count(0)
    assert not owner_page.freehold.file("turned.txt").exists()
    assert [one["kind"] for one in await owner_page.freehold.events(session) if one["kind"] == "turn.started"] == []


async def test_a_path_is_restored_from_its_own_history(owner_page: OwnerPage) -> None:
    """From the file to what happened to it, and back to how it was then; other files stay as they are."""
    owner_page.freehold.file("story.txt").write_text("first\n")
    first = await state(owner_page.freehold)
    owner_page.freehold.file("story.txt").write_text("second\n")
    owner_page.freehold.file("other.txt").write_text("stays\n")
    await state(owner_page.freehold)
    await owner_page.go("/files?path=story.txt")
    await owner_page.page.get_by_role("button", name="History", exact=True).click()
    await expect(owner_page.page.get_by_text("Changes of")).to_contain_text("workspace/story.txt")
    rows = owner_page.page.locator(".history-entry")
    await expect(rows).to_have_count(2)
    row = await opened(owner_page, first)
    await expect(row.locator(".history-file")).to_have_count(1)
    await row.get_by_role("button", name="Restore workspace/story.txt as it was here").click()
    dialog = owner_page.page.get_by_role("dialog")
    await expect(dialog).not_to_contain_text("other.txt")
    await dialog.get_by_role("button", name="Restore", exact=True).click()
    await expect(dialog).to_have_count(0)
    assert owner_page.freehold.file("story.txt").read_text() == "first\n"
    assert owner_page.freehold.file("other.txt").read_text() == "stays\n"


async def test_everything_is_restored_to_a_point_marked_as_known_good(owner_page: OwnerPage) -> None:
    owner_page.freehold.file("good.txt").write_text("good\n")
    number = await state(owner_page.freehold)
    await owner_page.go("/history")
    row = await opened(owner_page, number)
    await row.get_by_role("button", name="Mark as known good").click()
    await expect(row).to_contain_text("known good")
    await expect(owner_page.page.get_by_text(f"#{number} marked as known good")).to_be_visible()
    owner_page.freehold.file("good.txt").write_text("broken\n")
    newer = await state(owner_page.freehold)
    await expect(entry(owner_page, newer)).to_be_visible()
    await row.get_by_role("button", name="Restore this state").click()
    dialog = owner_page.page.get_by_role("dialog")
    await expect(dialog).to_contain_text("workspace/good.txt")
    await dialog.get_by_role("button", name="Restore", exact=True).click()
    await expect(dialog).to_have_count(0)
    assert owner_page.freehold.file("good.txt").read_text() == "good\n"
    await row.get_by_role("button", name="Remove the known-good mark").click()
    await expect(row.get_by_role("button", name="Mark as known good")).to_be_visible()


async def test_what_was_undone_is_dimmed(owner_page: OwnerPage) -> None:
    owner_page.freehold.file("undone.txt").write_text("one\n")
    number = await state(owner_page.freehold)
    await owner_page.go("/history")
    await expect(entry(owner_page, number)).not_to_have_attribute("data-undone", "true")
    await owner_page.page.get_by_role("button", name="Undo last change").click()
    dialog = owner_page.page.get_by_role("dialog")
    await expect(dialog).to_contain_text("workspace/undone.txt")
    await dialog.get_by_role("button", name="Undo", exact=True).click()
    await expect(entry(owner_page, number)).to_have_attribute("data-undone", "true")
    assert not owner_page.freehold.file("undone.txt").exists()


async def test_filters_show_what_they_say_and_a_long_past_is_searched(owner_page: OwnerPage) -> None:
    """Thousands of events: few rows are drawn, older ones come by scrolling, and words find what lies far back."""
    with Timeline(owner_page.freehold.harness.home.root / "timeline.db") as timeline, timeline.transaction() as tx:
        tx.append("identity.sign_in_refused", {"reason": "the needle of the haystack"})
        for number in range(2_000):
            tx.append("egress.denied", {"host": f"host{number}.example", "port": 443}, who="test")
    await owner_page.go("/history?show=network")
    events = owner_page.page.locator(".history-event")
    await expect(events.first).to_contain_text("host1999.example")
    assert await owner_page.page.locator(".history-entry").count() == 0
    assert await events.count() < 60
    await owner_page.page.locator("main").evaluate("(main) => main.scrollTo(0, main.scrollHeight)")

    async def shows_older_ones() -> bool:  # how far down depends on how many had been loaded
        found = re.search(r"host(\d+)\.example", await events.last.inner_text())
        return found is not None and int(found[1]) < 1_800

    await until(shows_older_ones)
    await owner_page.page.get_by_label("Find in the history").fill("host3.example")
    await expect(events).to_have_count(1)
    await expect(events).to_contain_text("host3.example")
    await owner_page.page.get_by_label("Find in the history").fill("needle")
    await expect(owner_page.page.get_by_text("Nothing matches.")).to_be_visible()
    await owner_page.page.get_by_role("button", name="Access").click()
    await expect(events).to_contain_text("the needle of the haystack")
    await owner_page.page.get_by_label("Find in the history").fill("")
    await owner_page.page.get_by_role("button", name="Network").click()
    await owner_page.page.get_by_role("button", name="Files").click()
    await expect(owner_page.page.locator(".history-entry").first).to_be_attached()


async def test_events_are_only_text_and_hide_nothing(owner_page: OwnerPage) -> None:
    with Timeline(owner_page.freehold.harness.home.root / "timeline.db") as timeline:
        timeline.append(
            "tool.ended", {"title": "<img src=x onerror=window.pwned=1>\u202egnp.exe", "status": "completed"}
        )
    await owner_page.go("/history?show=work")
    row = owner_page.page.locator(".history-event").first
    await expect(row).to_contain_text("<img src=x onerror=window.pwned=1>⟨U+202E⟩gnp.exe")
    assert await owner_page.page.evaluate("window.pwned") is None


async def test_the_page_fits_a_phone(owner_page: OwnerPage) -> None:
    number = json.loads((await owner_page.freehold.http.get("/v1/history?limit=1")).text)["entries"][0]["id"]
    await owner_page.page.set_viewport_size(PHONE)
    await owner_page.go("/history?show=files,decisions,work")
    row = await opened(owner_page, number)
    await expect(row.get_by_role("button", name="Undo this and later changes")).to_be_visible()
    assert not await owner_page.page.evaluate("document.querySelector('main').scrollWidth > innerWidth")
    await owner_page.page.set_viewport_size(DESKTOP)
