"""The place to write: files, commands, images, options and drafts."""

import asyncio
import base64
import re
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, FloatRect, Route, expect
from tests.support.browser import PHONE, OwnerPage, open_owner_page
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("builtin",))

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

PASTE_TEXT = """(text) => {
  const given = new DataTransfer();
  given.setData("text/plain", text);
  const pasted = new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData: given });
  document.querySelector(".composer textarea").dispatchEvent(pasted);
}"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(freehold: RunningFreehold) -> str:
    """A session that has had a turn, in a workspace with files."""
    for name in ("src/main.ts", "src/domain.ts", "docs/the plan.md"):
        freehold.file(name).parent.mkdir(exist_ok=True)
        freehold.file(name).write_text("x\n")
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, "SAY hello")
        await watch.until("turn.ended")
    return session


async def prompts(freehold: RunningFreehold, session: str) -> list[dict[str, Any]]:
    return [one["data"]["prompt"] for one in await freehold.events(session) if one["kind"] == "turn.started"]


async def test_a_file_is_picked_and_goes_along(freehold: RunningFreehold, owner_page: OwnerPage, session: str) -> None:
    """By keys: @, some letters, the second of two, and Enter; then one with a space in its name, and out again."""
    await owner_page.open_session(session)
    await owner_page.message.press_sequentially("SAY read @mai")
    files = owner_page.page.get_by_role("listbox", name="Files")
    await expect(files.get_by_role("option")).to_have_text(["src/main.ts", "src/domain.ts"])
    await owner_page.message.press("ArrowDown")
    await expect(files.get_by_role("option", selected=True)).to_have_text("src/domain.ts")
    await owner_page.message.press("ArrowUp")
    await owner_page.message.press("Enter")
    await expect(files).to_have_count(0)
    await expect(owner_page.message).to_have_value("SAY read @src/main.ts ")
    await owner_page.message.press_sequentially("@plan")
    await expect(files.get_by_role("option")).to_have_count(1)
    await owner_page.message.press("Tab")
    along = owner_page.page.get_by_role("list", name="Attachments")
    await expect(along.get_by_role("listitem")).to_have_count(2)
    await along.get_by_role("button", name="Remove docs/the plan.md").click()
    await expect(owner_page.message).to_have_value("SAY read @src/main.ts ")
    async with freehold.watch_new(session) as watch:
        await owner_page.message.press("Enter")
        await expect(owner_page.message).to_have_value("")
        await expect(owner_page.transcript).to_contain_text("read @src/main.ts")
        await watch.until("turn.started")  # the page shows a prompt that is still queued as well
    assert (await prompts(freehold, session))[-1]["files"] == ["src/main.ts"]


async def test_an_open_list_is_closed_by_escape_and_not_the_turn(owner_page: OwnerPage, session: str) -> None:
    await owner_page.open_session(session)
    await owner_page.message.press_sequentially("@")
    await expect(owner_page.page.get_by_role("listbox", name="Files")).to_be_visible()
    await owner_page.message.press("Escape")
    await expect(owner_page.page.get_by_role("listbox", name="Files")).to_have_count(0)
    await expect(owner_page.message).to_have_value("@")
    await owner_page.message.fill("")


async def test_a_command_of_the_agent_is_offered_and_sent(
    freehold: RunningFreehold, owner_page: OwnerPage, session: str
) -> None:
    """Also in a session that has not met its agent yet: another has."""
    for each in (session, await freehold.open("builtin")):
        await owner_page.open_session(each)
        await owner_page.message.press_sequentially("/com")
        await expect(owner_page.page.get_by_role("listbox", name="Commands of the agent")).to_contain_text("compact")
        await owner_page.message.press("Enter")
        await expect(owner_page.message).to_have_value("/compact ")
        await owner_page.message.fill("")
    await owner_page.open_session(session)
    async with freehold.watch(session, (await freehold.events(session))[-1]["seq"]) as watch:
        await owner_page.message.press_sequentially("/compact")
        await owner_page.message.press("Enter")
        await watch.until("turn.ended")
    assert (await prompts(freehold, session))[-1]["text"] == "/compact"


async def test_images_are_pasted_dropped_left_out_and_sent(
    freehold: RunningFreehold, owner_page: OwnerPage, session: str
) -> None:
    await owner_page.open_session(session)
    picture = base64.b64encode(DOT).decode()
    thumbs = owner_page.page.get_by_role("list", name="Attachments").get_by_role("img")
    await owner_page.page.evaluate(GIVE, ["paste", "dot.png", "image/png", picture])
    await expect(thumbs).to_have_count(1)
    await owner_page.page.evaluate(GIVE, ["drop", "other.png", "image/png", picture])
    await expect(thumbs).to_have_count(2)
    # What only calls itself an image is refused, and so is one that could run.
    liar = base64.b64encode(b"<svg onload='window.pwned=1' xmlns='http://www.w3.org/2000/svg'/>").decode()
    await owner_page.page.evaluate(GIVE, ["drop", "liar.png", "image/png", liar])
    await expect(owner_page.page.get_by_text("liar.png is not an image that can be sent")).to_be_visible()
    await owner_page.page.get_by_role("button", name="Dismiss").click()
    await expect(thumbs).to_have_count(2)
    await owner_page.page.get_by_role("button", name="Remove other.png").click()
    await expect(thumbs).to_have_count(1)
    async with freehold.watch_new(session) as watch:
        await owner_page.send_prompt("SAY a dot")
        await watch.until("turn.ended")
    await expect(thumbs).to_have_count(0)
    images = (await prompts(freehold, session))[-1]["images"]
    assert [image["mime"] for image in images] == ["image/png"]
    # An image needs no text.
    await owner_page.page.evaluate(GIVE, ["paste", "dot.png", "image/png", picture])
    await expect(thumbs).to_have_count(1)
    async with freehold.watch_new(session) as watch:
        await owner_page.message.press("Enter")
        await watch.until("turn.ended")
    last = (await prompts(freehold, session))[-1]
    assert (last["text"], len(last["images"])) == ("", 1)


async def test_other_files_and_long_texts_are_put_into_the_workspace_and_named(
    freehold: RunningFreehold, owner_page: OwnerPage, session: str
) -> None:
    await owner_page.open_session(session)
    table = base64.b64encode(b"a,b\n1,2\n").decode()
    await owner_page.page.evaluate(GIVE, ["drop", "table 1.csv", "text/csv", table])
    await expect(owner_page.message).to_have_value(re.compile(r"^@attachments/[\d-]+table-1\.csv $"))
    await owner_page.page.evaluate(PASTE_TEXT, "word " * 5_000)
    await expect(owner_page.message).to_have_value(re.compile(r"pasted\.txt $"))
    async with freehold.watch_new(session) as watch:
        await owner_page.message.press("Enter")
        await watch.until("turn.ended")
    last = (await prompts(freehold, session))[-1]
    assert [freehold.file(path).read_text()[:10] for path in last["files"]] == ["a,b\n1,2\n", "word word "]


async def test_a_message_waits_for_its_files_and_an_upload_can_be_cancelled(
    freehold: RunningFreehold, owner_page: OwnerPage, session: str
) -> None:
    """A message that was sent before its file would go without it, and name it in the next one."""
    page = owner_page.page
    await owner_page.open_session(session)
    arriving: asyncio.Queue[Route] = asyncio.Queue()
    await page.route("**/v1/files/content*", arriving.put)
    table = base64.b64encode(b"a,b\n1,2\n").decode()
    await page.evaluate(GIVE, ["drop", "slow.csv", "text/csv", table])
    await page.evaluate(GIVE, ["drop", "unwanted.csv", "text/csv", table])
    slow = await arriving.get()
    await owner_page.message.fill("SAY the table")
    await expect(page.get_by_role("progressbar", name="Upload of slow.csv")).to_be_visible()
    await expect(page.get_by_text("You can send the message when 2 files have arrived.")).to_be_visible()
    await owner_page.message.press("Enter")
    await expect(owner_page.message).to_have_value("SAY the table")
    await expect(page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
    await page.get_by_role("button", name="Cancel unwanted.csv").click()
    await expect(page.get_by_role("progressbar")).to_have_count(1)
    await slow.continue_()
    await expect(owner_page.message).to_have_value(re.compile(r"^SAY the table @attachments/\S+slow\.csv $"))
    await page.unroute("**/v1/files/content*")
    async with freehold.watch_new(session) as watch:
        await owner_page.message.press("Enter")
        await watch.until("turn.ended")
    await expect(owner_page.message).to_have_value("")
    last = (await prompts(freehold, session))[-1]
    assert [freehold.file(path).read_text() for path in last["files"]] == ["a,b\n1,2\n"]
    assert not list(freehold.file("attachments").glob("*unwanted*"))


async def test_an_option_of_the_agent_is_chosen(freehold: RunningFreehold, owner_page: OwnerPage, session: str) -> None:
    await owner_page.open_session(session)
    async with freehold.watch(session, (await freehold.events(session))[-1]["seq"]) as watch:
        await owner_page.page.get_by_role("button", name="Agent options").click()
        mode = owner_page.page.get_by_role("dialog", name="Agent options").get_by_role("combobox")
        await mode.select_option("Read only")
        await watch.until("options", mode="read-only")
    await expect(owner_page.page.get_by_role("button", name="Agent options: Read only")).to_be_visible()
    await mode.select_option("Ask")
    await expect(owner_page.page.get_by_role("button", name="Agent options: Ask")).to_be_visible()
    await mode.press("Escape")
    await expect(owner_page.page.get_by_role("dialog")).to_have_count(0)
    # Of a session that has not met its agent it is known what can be chosen, and not what is; choosing starts the agent.
    fresh = await freehold.open("builtin")
    await owner_page.open_session(fresh)
    await owner_page.page.get_by_role("button", name="Agent options: Options").click()
    await mode.select_option("Read only")
    await expect(owner_page.page.get_by_role("button", name="Agent options: Read only")).to_be_visible()
    assert [one["kind"] for one in await freehold.events(fresh)].count("turn.started") == 0


async def test_a_draft_belongs_to_its_session_and_stays(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    first, second = await freehold.open("builtin"), await freehold.open("builtin")
    await owner_page.open_session(first)
    await owner_page.message.fill("half a thought")
    await owner_page.open_session(second)
    await expect(owner_page.message).to_have_value("")
    await owner_page.open_session(first)
    await expect(owner_page.message).to_have_value("half a thought")
    await owner_page.message.fill("")


async def test_signing_out_leaves_no_draft_behind(freehold: RunningFreehold, browser: Browser) -> None:
    session = await freehold.open("builtin")
    async with open_owner_page(browser, freehold) as owner_page:
        await owner_page.open_session(session)
        await owner_page.message.fill("for my eyes only")
        await owner_page.page.keyboard.press("Control+k")
        await owner_page.page.get_by_role("option", name="Sign out").click()
        await expect(owner_page.message).to_have_count(0)
        kept = await owner_page.page.evaluate("JSON.stringify(localStorage)")
        assert "for my eyes only" not in kept


async def test_a_sign_out_that_fails_keeps_the_draft(freehold: RunningFreehold, browser: Browser) -> None:
    session = await freehold.open("builtin")
    async with open_owner_page(browser, freehold) as owner_page:
        await owner_page.open_session(session)
        await owner_page.message.fill("half a thought")
        await owner_page.page.route("**/v1/sign-out", lambda route: route.abort())
        await owner_page.page.keyboard.press("Control+k")
        async with owner_page.page.expect_event("requestfailed"):
            await owner_page.page.get_by_role("option", name="Sign out").click()
        # A function: the policy of the page lets a text be evaluated once, and not again.
        await owner_page.page.wait_for_function(
            "() => Object.entries(localStorage).some(([key, value]) => /draft/.test(key) && /half a thought/.test(value))"
        )
        await owner_page.page.reload()
        await expect(owner_page.message).to_have_value("half a thought")


async def test_an_archived_session_takes_no_words_until_it_is_taken_out(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    session = await freehold.open("builtin")
    await freehold.call("PATCH", f"/v1/sessions/{session}", archived=True)
    await owner_page.go(f"/sessions?id={session}")
    await expect(owner_page.page.get_by_text("This session is archived.")).to_be_visible()
    await expect(owner_page.message).to_have_count(0)
    await owner_page.page.get_by_role("button", name="Move out of the archive").click()
    await expect(owner_page.message).to_be_visible()


def do_overlap(one: FloatRect, other: FloatRect) -> bool:
    return (
        one["x"] < other["x"] + other["width"]
        and other["x"] < one["x"] + one["width"]
        and one["y"] < other["y"] + other["height"]
        and other["y"] < one["y"] + one["height"]
    )


async def test_on_a_phone_everything_is_in_reach(freehold: RunningFreehold, browser: Browser, session: str) -> None:
    async with open_owner_page(browser, freehold, PHONE, touch=True) as phone:
        await phone.open_session(session)
        await phone.message.press_sequentially("SAY see @domain")
        await phone.page.get_by_role("option", name="src/domain.ts").tap()
        await expect(phone.message).to_have_value("SAY see @src/domain.ts ")
        async with freehold.watch_new(session) as watch:
            await phone.page.get_by_role("button", name="Send").tap()
            await expect(phone.transcript).to_contain_text("see @src/domain.ts")
            await watch.until("turn.ended")
        await phone.send_prompt("SLOW")
        boxes: dict[str, FloatRect] = {}
        buttons = {
            name: phone.page.get_by_role("button", name=name)
            for name in ("Add files", "Agent options", "Stop", "Send now", "Queue")
        }
        # Each that appears moves the others: none is measured before all are there.
        for button in buttons.values():
            await expect(button).to_be_visible()
        for name, button in buttons.items():
            box = await button.bounding_box()
            assert box is not None
            assert box["height"] >= 44, name
            assert box["x"] >= 0, name
            assert box["x"] + box["width"] <= PHONE["width"], name
            assert [other for other, place in boxes.items() if do_overlap(box, place)] == [], name
            boxes[name] = box
        await phone.page.get_by_role("button", name="Stop").tap()
        await expect(phone.page.get_by_role("button", name="Send")).to_be_visible()
