"""The place to write: files, commands, images, options and drafts."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect
from tests.agents.whole import Whole
from tests.e2e.owner import PHONE, Desk, at_desk, lived_in

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAF0lEQVR4nGOQj/EiCTGMahjVMKphqGoAAEFCSgFvN3OjAAAAAElFTkSuQmCC"
)
GIVE = """([how, name, type, data]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const given = new DataTransfer();
  given.items.add(new File([bytes], name, { type }));
  const target = document.querySelector(how === "paste" ? ".composer textarea" : ".composer");
  const more = { bubbles: true, cancelable: true };
  target.dispatchEvent(how === "paste" ? new ClipboardEvent("paste", { ...more, clipboardData: given })
                                       : new DragEvent("drop", { ...more, dataTransfer: given }));
}"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Whole]:
    async with lived_in(tmp_path_factory.mktemp("composer")) as whole:
        for name in ("src/main.ts", "src/domain.ts", "docs/the plan.md"):
            whole.file(name).parent.mkdir(exist_ok=True)
            whole.file(name).write_text("x\n")
        yield whole


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(whole: Whole) -> str:
    """One that has met its agent."""
    session = await whole.open("builtin")
    async with whole.watching(session) as watch:
        await whole.prompt(session, "SAY hello")
        await watch.until("turn.ended")
    return session


async def prompts(whole: Whole, session: str) -> list[dict[str, Any]]:
    return [one["data"]["prompt"] for one in await whole.events(session) if one["kind"] == "turn.started"]


async def test_a_file_is_picked_and_goes_along(whole: Whole, desk: Desk, session: str) -> None:
    """By keys: @, some letters, the second of two, and Enter; then one with a space in its name, and out again."""
    await desk.open(session)
    await desk.message.press_sequentially("SAY read @mai")
    files = desk.page.get_by_role("listbox", name="Files")
    await expect(files.get_by_role("option")).to_have_text(["src/main.ts", "src/domain.ts"])
    await desk.message.press("ArrowDown")
    await expect(files.get_by_role("option", selected=True)).to_have_text("src/domain.ts")
    await desk.message.press("ArrowUp")
    await desk.message.press("Enter")
    await expect(files).to_have_count(0)
    await expect(desk.message).to_have_value("SAY read @src/main.ts ")
    await desk.message.press_sequentially("@plan")
    await expect(files.get_by_role("option")).to_have_count(1)
    await desk.message.press("Tab")
    along = desk.page.get_by_role("list", name="Goes along")
    await expect(along.get_by_role("listitem")).to_have_count(2)
    await along.get_by_role("button", name="Leave out docs/the plan.md").click()
    await expect(desk.message).to_have_value("SAY read @src/main.ts ")
    await desk.message.press("Enter")
    await expect(desk.message).to_have_value("")
    await expect(desk.talk).to_contain_text("read @src/main.ts")
    assert (await prompts(whole, session))[-1]["files"] == ["src/main.ts"]


async def test_an_open_list_is_closed_by_escape_and_not_the_turn(desk: Desk, session: str) -> None:
    await desk.open(session)
    await desk.message.press_sequentially("@")
    await expect(desk.page.get_by_role("listbox", name="Files")).to_be_visible()
    await desk.message.press("Escape")
    await expect(desk.page.get_by_role("listbox", name="Files")).to_have_count(0)
    await expect(desk.message).to_have_value("@")
    await desk.message.fill("")


async def test_a_command_of_the_agent_is_offered_and_sent(whole: Whole, desk: Desk, session: str) -> None:
    """Also in a session that has not met its agent yet: another has."""
    for each in (session, await whole.open("builtin")):
        await desk.open(each)
        await desk.message.press_sequentially("/com")
        await expect(desk.page.get_by_role("listbox", name="Commands of the agent")).to_contain_text("compact")
        await desk.message.press("Enter")
        await expect(desk.message).to_have_value("/compact ")
        await desk.message.fill("")
    await desk.open(session)
    async with whole.watching(session, (await whole.events(session))[-1]["seq"]) as watch:
        await desk.message.press_sequentially("/compact")
        await desk.message.press("Enter")
        await watch.until("turn.ended")
    assert (await prompts(whole, session))[-1]["text"] == "/compact"


async def test_images_are_pasted_dropped_left_out_and_sent(whole: Whole, desk: Desk, session: str) -> None:
    await desk.open(session)
    picture = base64.b64encode(DOT).decode()
    thumbs = desk.page.get_by_role("list", name="Goes along").get_by_role("img")
    await desk.page.evaluate(GIVE, ["paste", "dot.png", "image/png", picture])
    await expect(thumbs).to_have_count(1)
    await desk.page.evaluate(GIVE, ["drop", "other.png", "image/png", picture])
    await expect(thumbs).to_have_count(2)
    # What only calls itself an image is refused, and so is one that could run.
    liar = base64.b64encode(b"<svg onload='window.pwned=1' xmlns='http://www.w3.org/2000/svg'/>").decode()
    await desk.page.evaluate(GIVE, ["drop", "liar.png", "image/png", liar])
    await expect(desk.page.get_by_text("liar.png is no image that can be sent")).to_be_visible()
    await desk.page.get_by_role("button", name="Put away").click()
    await expect(thumbs).to_have_count(2)
    await desk.page.get_by_role("button", name="Leave out other.png").click()
    await expect(thumbs).to_have_count(1)
    await desk.say("SAY a dot")
    await expect(thumbs).to_have_count(0)
    await expect(desk.talk).to_contain_text("a dot")
    images = (await prompts(whole, session))[-1]["images"]
    assert [image["mime"] for image in images] == ["image/png"]


async def test_an_option_of_the_agent_is_chosen(whole: Whole, desk: Desk, session: str) -> None:
    await desk.open(session)
    async with whole.watching(session, (await whole.events(session))[-1]["seq"]) as watch:
        await desk.page.get_by_role("button", name="Options of the agent").click()
        mode = desk.page.get_by_role("dialog", name="Options of the agent").get_by_role("combobox")
        await mode.select_option("Read only")
        await watch.until("options", mode="read-only")
    await expect(desk.page.get_by_role("button", name="Options of the agent: Read only")).to_be_visible()
    await mode.select_option("Ask")
    await expect(desk.page.get_by_role("button", name="Options of the agent: Ask")).to_be_visible()
    await mode.press("Escape")
    await expect(desk.page.get_by_role("dialog")).to_have_count(0)
    # Of a session that has not met its agent it is known what can be chosen, and not what is; choosing starts the agent.
    fresh = await whole.open("builtin")
    await desk.open(fresh)
    await desk.page.get_by_role("button", name="Options of the agent: Options").click()
    await mode.select_option("Accept edits")
    await expect(desk.page.get_by_role("button", name="Options of the agent: Accept edits")).to_be_visible()
    assert [one["kind"] for one in await whole.events(fresh)].count("turn.started") == 0


async def test_a_draft_belongs_to_its_session_and_stays(whole: Whole, desk: Desk) -> None:
    first, second = await whole.open("builtin"), await whole.open("builtin")
    await desk.open(first)
    await desk.message.fill("half a thought")
    await desk.open(second)
    await expect(desk.message).to_have_value("")
    await desk.open(first)
    await expect(desk.message).to_have_value("half a thought")
    await desk.message.fill("")


async def test_signing_out_leaves_no_draft_behind(whole: Whole, browser: Browser) -> None:
    session = await whole.open("builtin")
    async with at_desk(browser, whole) as desk:
        await desk.open(session)
        await desk.message.fill("for my eyes only")
        await desk.page.keyboard.press("Control+k")
        await desk.page.get_by_role("option", name="Sign out").click()
        await expect(desk.message).to_have_count(0)
        kept = await desk.page.evaluate("JSON.stringify(localStorage)")
        assert "for my eyes only" not in kept


async def test_an_archived_session_takes_no_words_until_it_is_taken_out(whole: Whole, desk: Desk) -> None:
    session = await whole.open("builtin")
    await whole.call("PATCH", f"/v1/sessions/{session}", archived=True)
    await desk.go(f"/sessions?id={session}")
    await expect(desk.page.get_by_text("This session is archived.")).to_be_visible()
    await expect(desk.message).to_have_count(0)
    await desk.page.get_by_role("button", name="Take it out").click()
    await expect(desk.message).to_be_visible()


async def test_on_a_phone_everything_is_in_reach(whole: Whole, browser: Browser, session: str) -> None:
    async with at_desk(browser, whole, PHONE, touch=True) as phone:
        await phone.open(session)
        await phone.message.press_sequentially("SAY see @domain")
        await phone.page.get_by_role("option", name="src/domain.ts").tap()
        await expect(phone.message).to_have_value("SAY see @src/domain.ts ")
        await phone.page.get_by_role("button", name="Send").tap()
        await expect(phone.talk).to_contain_text("see @src/domain.ts")
        await phone.say("SLOW")
        for name in ("Add images", "Options of the agent", "Stop", "Steer", "Queue"):
            button = phone.page.get_by_role("button", name=name)
            await expect(button).to_be_visible()
            box = await button.bounding_box()
            assert box is not None
            assert box["height"] >= 44, name
            assert box["x"] >= 0, name
            assert box["x"] + box["width"] <= PHONE["width"], name
        await phone.page.get_by_role("button", name="Stop").tap()
        await expect(phone.page.get_by_role("button", name="Send")).to_be_visible()
