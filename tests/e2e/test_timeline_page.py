"""The history page in a real browser: everything that happened in one list, and the way back from each of it."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Locator, expect
from tests.agents.whole import Whole
from tests.e2e.owner import DESK, PHONE, Desk, at_desk, browser_running, lived_in

from freehold.timeline import Timeline

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    folder = tmp_path_factory.mktemp("timeline")
    async with lived_in(folder) as whole, browser_running() as browser, at_desk(browser, whole) as desk:
        yield desk


async def state(whole: Whole) -> int:
    """The entry that the files are in now."""
    return int((await whole.call("GET", "/v1/history/compare"))["new"]["id"])


def entry(desk: Desk, number: int) -> Locator:
    return desk.page.locator(".entry", has=desk.page.get_by_text(f"#{number}", exact=True))


async def opened(desk: Desk, number: int) -> Locator:
    row = entry(desk, number)
    await row.get_by_role("button", expanded=False).first.click()
    return row


async def turn(whole: Whole, prompt: str) -> tuple[str, dict[str, Any]]:
    """A turn of the built-in agent that asks once and is allowed to."""
    session = await whole.open("builtin", title="A turn")
    async with whole.watching(session) as watch:
        await whole.prompt(session, prompt)
        await watch.answer("once")
        return session, await watch.until("turn.ended")


async def test_a_turn_and_its_approval_stand_in_one_list_and_the_turn_is_rewound(desk: Desk) -> None:
    """Who, why and what; the decision beside it; then files and conversation go back to before, as previewed."""
    session, ended = await turn(desk.whole, "ESCALATE\nRUN echo rewound > turned.txt")
    number = ended["data"]["changes"]["entry"]
    await desk.go("/history")
    row = await opened(desk, number)
    await expect(row).to_contain_text("builtin")
    await expect(row).to_contain_text("1 added")
    decision = desk.page.locator(".event[data-kind='approval.answered']").first
    await expect(decision).to_contain_text("Allowed what the agent asked, once")
    await expect(decision).to_contain_text("echo rewound > turned.txt")

    await row.get_by_role("button", name="See all changes").click()
    await expect(desk.page.get_by_role("heading", name="workspace/turned.txt")).to_be_visible()
    await desk.page.go_back()
    row = await opened(desk, number)
    await row.get_by_role("button", name="Rewind the conversation…").click()
    dialog = desk.page.get_by_role("dialog")
    await expect(dialog).to_contain_text("workspace/turned.txt")
    await dialog.get_by_label("Conversation only").check()
    await expect(dialog).not_to_contain_text("workspace/turned.txt")
    await dialog.get_by_label("Both").check()
    await expect(dialog).to_contain_text("workspace/turned.txt")
    assert desk.whole.file("turned.txt").exists()
    await dialog.get_by_role("button", name="Rewind", exact=True).click()
    await expect(dialog).to_have_count(0)
    assert not desk.whole.file("turned.txt").exists()
    assert [one["kind"] for one in await desk.whole.events(session) if one["kind"] == "turn.started"] == []


async def test_a_path_is_restored_from_its_own_history(desk: Desk) -> None:
    """From the file to what happened to it, and back to how it was then; other files stay as they are."""
    desk.whole.file("story.txt").write_text("first\n")
    first = await state(desk.whole)
    desk.whole.file("story.txt").write_text("second\n")
    desk.whole.file("other.txt").write_text("stays\n")
    await state(desk.whole)
    await desk.go("/files?path=story.txt")
    await desk.page.get_by_role("button", name="History", exact=True).click()
    await expect(desk.page.get_by_text("What happened to")).to_contain_text("workspace/story.txt")
    rows = desk.page.locator(".entry")
    await expect(rows).to_have_count(2)
    row = await opened(desk, first)
    await expect(row.locator(".changed")).to_have_count(1)
    await row.get_by_role("button", name="Restore workspace/story.txt as it was here").click()
    dialog = desk.page.get_by_role("dialog")
    await expect(dialog).not_to_contain_text("other.txt")
    await dialog.get_by_role("button", name="Restore", exact=True).click()
    await expect(dialog).to_have_count(0)
    assert desk.whole.file("story.txt").read_text() == "first\n"
    assert desk.whole.file("other.txt").read_text() == "stays\n"


async def test_everything_is_restored_to_a_point_marked_as_known_good(desk: Desk) -> None:
    desk.whole.file("good.txt").write_text("good\n")
    number = await state(desk.whole)
    await desk.go("/history")
    row = await opened(desk, number)
    await row.get_by_role("button", name="Mark as known good").click()
    await expect(row).to_contain_text("known good")
    await expect(desk.page.get_by_text(f"Marked #{number} as known good")).to_be_visible()
    desk.whole.file("good.txt").write_text("broken\n")
    newer = await state(desk.whole)
    await expect(entry(desk, newer)).to_be_visible()
    await row.get_by_role("button", name="Restore this state").click()
    dialog = desk.page.get_by_role("dialog")
    await expect(dialog).to_contain_text("workspace/good.txt")
    await dialog.get_by_role("button", name="Restore", exact=True).click()
    await expect(dialog).to_have_count(0)
    assert desk.whole.file("good.txt").read_text() == "good\n"
    await row.get_by_role("button", name="No longer known good").click()
    await expect(row.get_by_role("button", name="Mark as known good")).to_be_visible()


async def test_what_was_undone_is_dimmed(desk: Desk) -> None:
    desk.whole.file("undone.txt").write_text("one\n")
    number = await state(desk.whole)
    await desk.go("/history")
    await expect(entry(desk, number)).not_to_have_attribute("data-undone", "true")
    await desk.page.get_by_role("button", name="Undo last change").click()
    dialog = desk.page.get_by_role("dialog")
    await expect(dialog).to_contain_text("workspace/undone.txt")
    await dialog.get_by_role("button", name="Undo", exact=True).click()
    await expect(entry(desk, number)).to_have_attribute("data-undone", "true")
    assert not desk.whole.file("undone.txt").exists()


async def test_filters_show_what_they_say_and_a_long_past_is_searched(desk: Desk) -> None:
    """Thousands of events: few rows are drawn, older ones come by scrolling, and words find what lies far back."""
    with Timeline(desk.whole.stead.home.root / "timeline.db") as timeline, timeline.transaction() as tx:
        tx.append("identity.sign_in_refused", {"reason": "the needle of the haystack"})
        for number in range(2_000):
            tx.append("egress.denied", {"host": f"host{number}.example", "port": 443}, who="test")
    await desk.go("/history?show=network")
    events = desk.page.locator(".event")
    await expect(events.first).to_contain_text("host1999.example")
    assert await desk.page.locator(".entry").count() == 0
    assert await events.count() < 60
    await desk.page.locator("main").evaluate("(main) => main.scrollTo(0, main.scrollHeight)")
    await expect(desk.page.get_by_text("host1795.example")).to_be_attached()
    await desk.page.get_by_label("Find in the history").fill("host3.example")
    await expect(events).to_have_count(1)
    await expect(events).to_contain_text("host3.example")
    await desk.page.get_by_label("Find in the history").fill("needle")
    await expect(desk.page.get_by_text("Nothing here says that.")).to_be_visible()
    await desk.page.get_by_role("button", name="Sign-ins").click()
    await expect(events).to_contain_text("the needle of the haystack")
    await desk.page.get_by_label("Find in the history").fill("")
    await desk.page.get_by_role("button", name="Network").click()
    await desk.page.get_by_role("button", name="Files").click()
    await expect(desk.page.locator(".entry").first).to_be_attached()


async def test_events_are_only_text_and_hide_nothing(desk: Desk) -> None:
    with Timeline(desk.whole.stead.home.root / "timeline.db") as timeline:
        timeline.append(
            "tool.ended", {"title": "<img src=x onerror=window.pwned=1>\u202egnp.exe", "status": "completed"}
        )
    await desk.go("/history?show=work")
    row = desk.page.locator(".event").first
    await expect(row).to_contain_text("<img src=x onerror=window.pwned=1>⟨U+202E⟩gnp.exe")
    assert await desk.page.evaluate("window.pwned") is None


async def test_the_page_fits_a_phone(desk: Desk) -> None:
    number = json.loads((await desk.whole.http.get("/v1/history?limit=1")).text)["entries"][0]["id"]
    await desk.page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    await desk.go("/history?show=files,decisions,work")
    row = await opened(desk, number)
    await expect(row.get_by_role("button", name="Go back to before this")).to_be_visible()
    assert not await desk.page.evaluate("document.querySelector('main').scrollWidth > innerWidth")
    await desk.page.set_viewport_size(DESK)  # type: ignore[arg-type]
