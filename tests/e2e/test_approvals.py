"""What an agent asks: shown exactly, answered where the owner is, once."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect
from tests.agents.whole import Whole
from tests.e2e.owner import DESK, PHONE, Desk, at_desk, lived_in

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Whole]:
    async with lived_in(tmp_path_factory.mktemp("approvals")) as whole:
        yield whole


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(whole: Whole) -> str:
    return await whole.open("builtin")


async def ask_in(whole: Whole, session: str, words: str) -> int:
    """Lets its agent ask, and says by which event. What a test that failed has left to wait is called off."""
    row = await whole.call("GET", f"/v1/sessions/{session}")
    if row["status"] == "needs_you":
        await whole.call("POST", f"/v1/sessions/{session}/cancel")
    seq = int(row["seq"])
    async with whole.watching(session, seq) as watch:
        await whole.prompt(session, words)
        asked = await watch.until("approval", state="pending")
    return int(asked["seq"])


async def ended(whole: Whole, session: str, after: int) -> None:
    async with whole.watching(session, after) as watch:
        await watch.until("turn.ended")


async def answers(whole: Whole, session: str, after: int) -> list[str]:
    events = [one for one in await whole.events(session) if one["kind"] == "approval" and one["seq"] > after]
    return [one["data"]["answer"] for one in events if one["data"]["state"] == "answered"]


async def test_a_number_answers_but_never_while_something_is_typed(whole: Whole, desk: Desk, session: str) -> None:
    since = await ask_in(whole, session, "RUN touch by-key.txt")
    await desk.open(session)
    await expect(desk.reply("Once")).to_be_enabled()
    await desk.message.press("1")
    await expect(desk.message).to_have_value("1")
    await desk.message.fill("")
    await expect(desk.asked).to_contain_text("touch by-key.txt")
    assert await answers(whole, session, since) == []
    await desk.talk.focus()
    await desk.page.keyboard.press("1")
    await expect(desk.asked).to_have_count(0)
    await ended(whole, session, since)
    assert whole.file("by-key.txt").exists()
    assert await answers(whole, session, since) == ["once"]


async def test_alt_and_a_number_answer_while_one_types(whole: Whole, desk: Desk, session: str) -> None:
    since = await ask_in(whole, session, "RUN touch refused.txt")
    await desk.open(session)
    await desk.message.fill("a thought")
    await expect(desk.reply("No")).to_be_enabled()
    await desk.message.press("Alt+Digit4")
    await expect(desk.asked).to_have_count(0)
    await expect(desk.message).to_have_value("a thought")
    assert await answers(whole, session, since) == ["reject"]
    assert not whole.file("refused.txt").exists()
    await desk.message.fill("")


async def test_with_a_session_open_no_key_answers_what_another_asks(whole: Whole, desk: Desk, session: str) -> None:
    other = await whole.open("builtin")
    since = await ask_in(whole, other, "RUN touch elsewhere.txt")
    await desk.open(session)
    await expect(desk.reply("Once")).to_be_enabled()
    await desk.message.press("Alt+Digit1")
    await desk.talk.focus()
    await desk.page.keyboard.press("1")
    # Put aside it waits on, in one line, and comes back whole.
    await desk.asked.get_by_role("button", name="Later").click()
    await expect(desk.asked).to_have_count(0)
    await expect(desk.page.get_by_text("1 waits for you")).to_be_visible()
    await desk.page.get_by_role("button", name="Show", exact=True).click()
    await expect(desk.asked).to_contain_text("touch elsewhere.txt")
    assert await answers(whole, other, since) == []
    await desk.reply("No").click()
    await expect(desk.asked).to_have_count(0)
    assert await answers(whole, other, since) == ["reject"]


async def test_what_is_hidden_in_a_command_is_seen(whole: Whole, desk: Desk, session: str) -> None:
    await ask_in(whole, session, "RUN echo harmless \u202egnp.exe\u200b")
    await desk.open(session)
    command = desk.asked.get_by_label("The exact command")
    await expect(command).to_have_text("echo harmless ⟨U+202E⟩gnp.exe⟨U+200B⟩")
    await desk.reply("No").click()
    await expect(desk.asked).to_have_count(0)


async def test_a_command_too_long_to_be_seen_at_once_says_so(whole: Whole, desk: Desk, session: str) -> None:
    lines = "\\n".join(["echo harmless", *[""] * 200, "rm -rf everything"])
    await ask_in(whole, session, f'CALL run {{"command": "{lines}"}}')
    await desk.open(session)
    more = desk.asked.get_by_role("button", name="Not all of it is seen")
    await expect(more).to_contain_text("202 lines")
    await more.click()
    await expect(more).to_have_count(0)
    # However long it is, the answers and the place to write stay in sight, on a phone too.
    for size in (PHONE, DESK):
        await desk.page.set_viewport_size({"width": size["width"], "height": size["height"]})
        await expect(desk.reply("No")).to_be_in_viewport(ratio=1)
        await expect(desk.message).to_be_in_viewport(ratio=1)
    await desk.reply("No").click()
    await expect(desk.asked).to_have_count(0)


async def test_the_bar_on_another_page_counts_answers_and_leads_there(whole: Whole, desk: Desk, session: str) -> None:
    """Two sessions wait: the title and the icon say so, one is answered on the spot, the other is gone to."""
    first, second = session, await whole.open("builtin")
    since = await ask_in(whole, first, "RUN touch first.txt")
    await ask_in(whole, second, "RUN touch second.txt")
    await desk.go("/files")
    await expect(desk.asked).to_contain_text("1 of 2")
    await expect(desk.asked).to_contain_text("touch first.txt")
    await expect(desk.page).to_have_title("(2) Files · Freehold")
    await expect(desk.page.locator("link[rel=icon]")).to_have_attribute("href", "/icon-waiting.svg")
    await expect(desk.page.get_by_role("link", name=re.compile("Sessions.*2.*waiting"))).to_be_visible()
    await desk.asked.get_by_role("button", name="The next question").click()
    await expect(desk.asked).to_contain_text("touch second.txt")
    await desk.asked.get_by_role("button", name="The question before").click()
    await expect(desk.asked).to_contain_text("touch first.txt")
    await desk.reply("Once").click()
    await expect(desk.asked).to_contain_text("touch second.txt")
    assert await answers(whole, first, since) == ["once"]
    await desk.asked.get_by_role("button", name="RUN touch second.txt").click()
    await expect(desk.page).to_have_url(desk.address(f"/sessions?id={second}"))
    # Now it stands in the dock, once.
    await expect(desk.asked).to_have_count(1)
    await expect(desk.page.locator(".ask-dock").get_by_role("alertdialog")).to_have_count(1)
    await desk.reply("No").click()
    await expect(desk.asked).to_have_count(0)
    await expect(desk.page).to_have_title("Sessions · Freehold")
    await expect(desk.page.locator("link[rel=icon]")).to_have_attribute("href", "/icon.svg")


async def test_of_two_tabs_one_answers_and_both_know(whole: Whole, desk: Desk, session: str) -> None:
    since = await ask_in(whole, session, "RUN touch two-tabs.txt")
    await desk.open(session)
    other = Desk(whole, desk.context, await desk.context.new_page())
    await other.open(session)
    await expect(desk.reply("Once")).to_be_enabled()
    await expect(other.reply("Once")).to_be_enabled()
    # Whichever is first takes the button of the other away: both are in hand before.
    buttons = [await each.reply("Once").element_handle() for each in (desk, other)]
    await asyncio.gather(*(button.evaluate("(one) => one.click()") for button in buttons))
    await expect(desk.asked).to_have_count(0)
    await expect(other.asked).to_have_count(0)
    await ended(whole, session, since)
    assert await answers(whole, session, since) == ["once"]
    await other.page.close()


async def test_always_becomes_a_rule_that_is_seen_and_can_be_forgotten(whole: Whole, desk: Desk, session: str) -> None:
    since = await ask_in(whole, session, "RUN touch lasting.txt")
    await desk.open(session)
    await desk.reply("Always").click()
    await ended(whole, session, since)
    await desk.say("RUN touch lasting.txt\nSAY unasked")
    await expect(desk.talk.get_by_text("unasked", exact=True)).to_be_visible()
    assert await answers(whole, session, since) == ["always"]
    await desk.page.get_by_role("button", name="More about sessions").click()
    await desk.page.get_by_role("menuitem", name="What agents may do").click()
    rules = desk.page.get_by_role("dialog", name="What agents may do")
    await expect(rules.get_by_role("listitem")).to_contain_text("touch lasting.txt")
    await rules.get_by_role("button", name="Forget").click()
    await expect(rules).to_contain_text("agents ask for everything")
    # One that would allow everything is not taken; one that names what it refuses is.
    await rules.get_by_label("Command or path").fill("*")
    await rules.get_by_role("button", name="Add").click()
    await expect(rules.get_by_role("alert")).to_contain_text("allows everything")
    await rules.get_by_label("What to do").select_option("Deny")
    await rules.get_by_label("Command or path").fill("shred *")
    await rules.get_by_role("button", name="Add").click()
    await expect(rules.get_by_role("listitem")).to_contain_text("shred *")
    await rules.get_by_role("button", name="Close").click()
    await desk.say("RUN touch lasting.txt")
    await expect(desk.asked).to_contain_text("touch lasting.txt")
    await desk.reply("No").click()


async def test_a_change_to_a_file_is_shown_line_by_line(whole: Whole, desk: Desk, session: str) -> None:
    since = await ask_in(whole, session, "WRITE notes.txt the new line")
    await desk.open(session)
    await expect(desk.asked).to_contain_text("notes.txt")
    await expect(desk.asked.locator(".ask-line[data-kind=added]")).to_contain_text("the new line")
    assert not whole.file("notes.txt").exists()
    await desk.reply("Once").click()
    await ended(whole, session, since)
    assert whole.file("notes.txt").read_text() == "the new line\n"


async def test_a_no_can_say_what_to_do_instead(whole: Whole, desk: Desk, session: str) -> None:
    since = await ask_in(whole, session, "RUN rm -rf everything")
    await desk.open(session)
    await desk.asked.get_by_role("button", name="tell it what to do instead").click()
    await desk.asked.get_by_label("What to do instead").fill("SAY I will look first")
    await desk.asked.get_by_role("button", name="No, do this").click()
    await expect(desk.talk).to_contain_text("I will look first")
    assert await answers(whole, session, since) == ["reject"]


async def test_a_question_is_answered_with_a_choice_or_with_words(whole: Whole, desk: Desk, session: str) -> None:
    ask = 'CALL ask_owner {"question": "Which colour?", "choices": ["red", "blue"], "free_text": true}'
    await ask_in(whole, session, ask)
    await desk.open(session)
    await expect(desk.asked).to_contain_text("The agent wants to ask you something")
    await expect(desk.asked).to_contain_text("Which colour?")
    await desk.reply("blue").click()
    await expect(desk.talk).to_contain_text("Tool said: blue")
    await desk.say(ask)
    await desk.asked.get_by_label("Your answer").fill("a warm grey")
    await desk.asked.get_by_role("button", name="Answer", exact=True).click()
    await expect(desk.talk).to_contain_text("Tool said: a warm grey")


async def test_on_a_phone_it_is_within_the_thumbs_reach(whole: Whole, browser: Browser, session: str) -> None:
    """Both in the dock and on another page: in the lower half, large enough, and nothing is cut off."""
    since = await ask_in(whole, session, "RUN touch by-thumb.txt")
    async with at_desk(browser, whole, PHONE, touch=True) as phone:
        for path in (f"/sessions?id={session}", "/files"):
            await phone.go(path)
            await expect(phone.reply("Once")).to_be_enabled()
            for name in ("Once", "This session", "Always", "No"):
                box = await phone.reply(name).bounding_box()
                assert box is not None
                assert box["height"] >= 44
                assert box["y"] > PHONE["height"] / 2
                assert box["x"] >= 0
                assert box["x"] + box["width"] <= PHONE["width"]
        await phone.reply("Once").tap()
        await expect(phone.asked).to_have_count(0)
    await ended(whole, session, since)
    assert whole.file("by-thumb.txt").exists()
