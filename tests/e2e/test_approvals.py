"""What an agent asks: shown exactly, answered where the owner is, once."""

import asyncio
import json
import re

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect
from tests.support.browser import DESKTOP, PHONE, OwnerPage, open_owner_page
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("builtin",))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(freehold: RunningFreehold) -> str:
    return await freehold.open("builtin")


async def ask_in(freehold: RunningFreehold, session: str, words: str) -> int:
    """Lets its agent ask, and says by which event. What a test that failed has left to wait is called off."""
    row = await freehold.call("GET", f"/v1/sessions/{session}")
    if row["status"] == "needs_you":
        await freehold.call("POST", f"/v1/sessions/{session}/cancel")
    seq = int(row["seq"])
    async with freehold.watch(session, seq) as watch:
        await freehold.prompt(session, words)
        asked = await watch.until("approval", state="pending")
    return int(asked["seq"])


async def ended(freehold: RunningFreehold, session: str, after: int) -> None:
    async with freehold.watch(session, after) as watch:
        await watch.until("turn.ended")


async def answers(freehold: RunningFreehold, session: str, after: int) -> list[str]:
    events = [one for one in await freehold.events(session) if one["kind"] == "approval" and one["seq"] > after]
    return [one["data"]["answer"] for one in events if one["data"]["state"] == "answered"]


async def test_a_number_answers_but_never_while_something_is_typed(
    freehold: RunningFreehold, owner_page: OwnerPage, session: str
) -> None:
    since = await ask_in(freehold, session, "RUN touch by-key.txt")
    await owner_page.open_session(session)
    await expect(owner_page.answer_button("Once")).to_be_enabled()
    await owner_page.message.press("1")
    await expect(owner_page.message).to_have_value("1")
    await owner_page.message.fill("")
    await expect(owner_page.permission_request).to_contain_text("touch by-key.txt")
    assert await answers(freehold, session, since) == []
    await owner_page.transcript.focus()
    await owner_page.page.keyboard.press("1")
    await expect(owner_page.permission_request).to_have_count(0)
    await ended(freehold, session, since)
    assert freehold.file("by-key.txt").exists()
    assert await answers(freehold, session, since) == ["once"]


async def test_alt_and_a_number_answer_while_one_types(
    freehold: RunningFreehold, owner_page: OwnerPage, session: str
) -> None:
    since = await ask_in(freehold, session, "RUN touch refused.txt")
    await owner_page.open_session(session)
    await owner_page.message.fill("a thought")
    await expect(owner_page.answer_button("No")).to_be_enabled()
    await owner_page.message.press("Alt+Digit4")
    await expect(owner_page.permission_request).to_have_count(0)
    await expect(owner_page.message).to_have_value("a thought")
    assert await answers(freehold, session, since) == ["reject"]
    assert not freehold.file("refused.txt").exists()
    await owner_page.message.fill("")


async def test_with_a_session_open_no_key_answers_what_another_asks(
    freehold: RunningFreehold, owner_page: OwnerPage, session: str
) -> None:
    other = await freehold.open("builtin")
    since = await ask_in(freehold, other, "RUN touch elsewhere.txt")
    await owner_page.open_session(session)
    await expect(owner_page.answer_button("Once")).to_be_enabled()
    await owner_page.message.press("Alt+Digit1")
    await owner_page.transcript.focus()
    await owner_page.page.keyboard.press("1")
    # Put aside it waits on, in one line, and comes back whole.
    await owner_page.permission_request.get_by_role("button", name="Later").click()
    await expect(owner_page.permission_request).to_have_count(0)
    await expect(owner_page.page.get_by_text("1 request needs you")).to_be_visible()
    await owner_page.page.get_by_role("button", name="Show", exact=True).click()
    await expect(owner_page.permission_request).to_contain_text("touch elsewhere.txt")
    assert await answers(freehold, other, since) == []
    await owner_page.answer_button("No").click()
    await expect(owner_page.permission_request).to_have_count(0)
    assert await answers(freehold, other, since) == ["reject"]


async def test_what_is_hidden_in_a_command_is_seen(
    freehold: RunningFreehold, owner_page: OwnerPage, session: str
) -> None:
    await ask_in(freehold, session, "RUN echo harmless \u202egnp.exe\u200b")
    await owner_page.open_session(session)
    command = owner_page.permission_request.get_by_label("Exact command")
    await expect(command).to_have_text("echo harmless ⟨U+202E⟩gnp.exe⟨U+200B⟩")
    await owner_page.answer_button("No").click()
    await expect(owner_page.permission_request).to_have_count(0)


async def test_a_command_too_long_to_be_seen_at_once_says_so(
    freehold: RunningFreehold, owner_page: OwnerPage, session: str
) -> None:
    lines = "\\n".join(["echo harmless", *[""] * 200, "rm -rf everything"])
    await ask_in(freehold, session, f'CALL run {{"command": "{lines}"}}')
    await owner_page.open_session(session)
    more = owner_page.permission_request.get_by_role("button", name="Show all")
    await expect(more).to_contain_text(re.compile(r"\b2\d\d lines"))
    await more.click()
    await expect(more).to_have_count(0)
    # However long it is, the answers and the place to write stay in sight, on a phone too.
    for size in (PHONE, DESKTOP):
        await owner_page.page.set_viewport_size({"width": size["width"], "height": size["height"]})
        await expect(owner_page.answer_button("No")).to_be_in_viewport(ratio=1)
        await expect(owner_page.message).to_be_in_viewport(ratio=1)
    await owner_page.answer_button("No").click()
    await expect(owner_page.permission_request).to_have_count(0)


async def test_the_bar_on_another_page_counts_answers_and_leads_there(
    freehold: RunningFreehold, owner_page: OwnerPage, session: str
) -> None:
    """Two sessions wait: the title and the icon say so, one is answered on the spot, the other is gone to."""
    first, second = session, await freehold.open("builtin")
    since = await ask_in(freehold, first, "RUN touch first.txt")
    await ask_in(freehold, second, "RUN touch second.txt")
    await owner_page.go("/files")
    await expect(owner_page.permission_request).to_contain_text("1 of 2")
    await expect(owner_page.permission_request).to_contain_text("touch first.txt")
    await expect(owner_page.page).to_have_title("(2) Files · Freehold")
    await expect(owner_page.page.locator("link[rel=icon]")).to_have_attribute("href", "/icon-waiting.svg")
    await expect(owner_page.page.get_by_role("link", name=re.compile("Sessions.*2.*waiting"))).to_be_visible()
    await owner_page.permission_request.get_by_role("button", name="Next request").click()
    await expect(owner_page.permission_request).to_contain_text("touch second.txt")
    await owner_page.permission_request.get_by_role("button", name="Previous request").click()
    await expect(owner_page.permission_request).to_contain_text("touch first.txt")
    await owner_page.answer_button("Once").click()
    await expect(owner_page.permission_request).to_contain_text("touch second.txt")
    assert await answers(freehold, first, since) == ["once"]
    await owner_page.permission_request.get_by_role("button", name="RUN touch second.txt").click()
    await expect(owner_page.page).to_have_url(owner_page.address(f"/sessions?id={second}"))
    # Now it stands in the dock, once.
    await expect(owner_page.permission_request).to_have_count(1)
    await expect(owner_page.page.locator(".approvals-dock").get_by_role("alertdialog")).to_have_count(1)
    await owner_page.answer_button("No").click()
    await expect(owner_page.permission_request).to_have_count(0)
    await expect(owner_page.page).to_have_title("Sessions · Freehold")
    await expect(owner_page.page.locator("link[rel=icon]")).to_have_attribute("href", "/icon.svg")


async def test_of_two_tabs_one_answers_and_both_know(
    freehold: RunningFreehold, owner_page: OwnerPage, session: str
) -> None:
    since = await ask_in(freehold, session, "RUN touch two-tabs.txt")
    await owner_page.open_session(session)
    other = OwnerPage(freehold, owner_page.context, await owner_page.context.new_page())
    await other.open_session(session)
    await expect(owner_page.answer_button("Once")).to_be_enabled()
    await expect(other.answer_button("Once")).to_be_enabled()
    # Whichever is first takes the button of the other away: both are in hand before.
    buttons = [await each.answer_button("Once").element_handle() for each in (owner_page, other)]
    await asyncio.gather(*(button.evaluate("(one) => one.click()") for button in buttons))
    await expect(owner_page.permission_request).to_have_count(0)
    await expect(other.permission_request).to_have_count(0)
    await ended(freehold, session, since)
    assert await answers(freehold, session, since) == ["once"]
    await other.page.close()


async def test_always_becomes_a_rule_that_is_seen_and_can_be_forgotten(
    freehold: RunningFreehold, owner_page: OwnerPage, session: str
) -> None:
    since = await ask_in(freehold, session, "RUN touch lasting.txt")
    await owner_page.open_session(session)
    await owner_page.answer_button("Always").click()
    await ended(freehold, session, since)
    await owner_page.send_prompt("RUN touch lasting.txt\nSAY unasked")
    await expect(owner_page.transcript.get_by_text("unasked", exact=True)).to_be_visible()
    assert await answers(freehold, session, since) == ["always"]
    await owner_page.page.get_by_role("button", name="Sessions menu").click()
    await owner_page.page.get_by_role("menuitem", name="Permission rules").click()
    rules = owner_page.page.get_by_role("dialog", name="Permission rules")
    await expect(rules.get_by_role("listitem")).to_contain_text("touch lasting.txt")
    await rules.get_by_role("button", name="Remove").click()
    await expect(rules).to_contain_text("Agents ask before every action")
    # One that would allow everything is not taken; one that names what it refuses is.
    await rules.get_by_label("Command or path").fill("*")
    await rules.get_by_role("button", name="Add").click()
    await expect(rules.get_by_role("alert")).to_contain_text("would allow everything")
    await rules.get_by_label("Rule", exact=True).select_option("Deny")
    await rules.get_by_label("Command or path").fill("shred *")
    await rules.get_by_role("button", name="Add").click()
    await expect(rules.get_by_role("listitem")).to_contain_text("shred *")
    await rules.get_by_role("button", name="Close").click()
    await owner_page.send_prompt("RUN touch lasting.txt")
    await expect(owner_page.permission_request).to_contain_text("touch lasting.txt")
    await owner_page.answer_button("No").click()


async def test_a_change_to_a_file_is_shown_line_by_line(
    freehold: RunningFreehold, owner_page: OwnerPage, session: str
) -> None:
    since = await ask_in(freehold, session, "WRITE notes.txt the new line")
    await owner_page.open_session(session)
    await expect(owner_page.permission_request).to_contain_text("notes.txt")
    await expect(owner_page.permission_request.locator(".diff-table tr[data-kind=added]")).to_contain_text(
        "the new line"
    )
    assert not freehold.file("notes.txt").exists()
    await owner_page.answer_button("Once").click()
    await ended(freehold, session, since)
    assert freehold.file("notes.txt").read_text() == "the new line\n"


async def test_the_change_that_is_asked_for_and_the_one_that_was_made_are_the_same_diff(
    freehold: RunningFreehold, owner_page: OwnerPage, session: str
) -> None:
    """Two changes far from each other. Both have the numbers of their lines, and what is between them is counted."""
    lines = [f"line {number}" for number in range(1, 21)]
    freehold.file("twenty.txt").write_text("\n".join(lines) + "\n")
    freehold.file("twenty.txt").chmod(0o666)
    changed = [{"line 2": "second", "line 18": "eighteenth"}.get(line, line) for line in lines]
    call = json.dumps({"path": "twenty.txt", "content": "\n".join(changed) + "\n"})
    since = await ask_in(freehold, session, f"CALL write {call}")
    await owner_page.open_session(session)
    asked = owner_page.permission_request.locator(".diff-table tr")
    await expect(asked).to_have_count(14)
    rows = await asked.all_inner_texts()
    await expect(asked.nth(6).get_by_role("button", name="Show 9 unchanged lines")).to_be_visible()
    await owner_page.answer_button("Once").click()
    await ended(freehold, session, since)
    made = owner_page.transcript.locator(".conversation-tool", has_text="twenty.txt").locator(".diff-table tr")
    await expect(made).to_have_count(14)
    assert [row.replace("Show ", "") for row in rows] == await made.all_inner_texts()
    assert [row.split() for row in rows if "line" not in row] == [["2", "+", "second"], ["18", "+", "eighteenth"]]


async def test_a_no_can_say_what_to_do_instead(freehold: RunningFreehold, owner_page: OwnerPage, session: str) -> None:
    since = await ask_in(freehold, session, "RUN rm -rf everything")
    await owner_page.open_session(session)
    await owner_page.permission_request.get_by_role("button", name="say what to do instead").click()
    await owner_page.permission_request.get_by_label("What to do instead").fill("SAY I will look first")
    await owner_page.permission_request.get_by_role("button", name="Refuse and send").click()
    await expect(owner_page.transcript).to_contain_text("I will look first")
    assert await answers(freehold, session, since) == ["reject"]


async def test_a_question_is_answered_with_a_choice_or_with_words(
    freehold: RunningFreehold, owner_page: OwnerPage, session: str
) -> None:
    ask = 'CALL ask_owner {"question": "Which colour?", "choices": ["red", "blue"], "free_text": true}'
    await ask_in(freehold, session, ask)
    await owner_page.open_session(session)
    await expect(owner_page.permission_request).to_contain_text("The agent wants to ask you a question")
    await expect(owner_page.permission_request).to_contain_text("Which colour?")
    await owner_page.answer_button("blue").click()
    await expect(owner_page.transcript).to_contain_text("Tool said: blue")
    await owner_page.send_prompt(ask)
    await owner_page.permission_request.get_by_label("Your answer").fill("a warm grey")
    await owner_page.permission_request.get_by_role("button", name="Send answer").click()
    await expect(owner_page.transcript).to_contain_text("Tool said: a warm grey")


async def test_on_a_phone_it_is_within_the_thumbs_reach(
    freehold: RunningFreehold, browser: Browser, session: str
) -> None:
    """Both in the dock and on another page: in the lower half, large enough, and a command of two lines is not cut off."""
    since = await ask_in(freehold, session, "RUN echo what is in the second line counts as well > by-thumb.txt")
    async with open_owner_page(browser, freehold, PHONE, touch=True) as phone:
        for path in (f"/sessions?id={session}", "/files"):
            await phone.go(path)
            await expect(phone.answer_button("Once")).to_be_enabled()
            for name in ("Once", "This conversation", "Always", "No"):
                box = await phone.answer_button(name).bounding_box()
                assert box is not None
                assert box["height"] >= 44
                assert box["y"] > PHONE["height"] / 2
                assert box["x"] >= 0
                assert box["x"] + box["width"] <= PHONE["width"]
            # Both are measured at once: the page around them may still be loading, and move them.
            assert await phone.page.locator(".approvals-details").evaluate(
                """(details) => details.querySelector("figure[data-kind=command] pre").getBoundingClientRect().bottom
                  <= details.getBoundingClientRect().bottom"""
            )
        await phone.answer_button("Once").tap()
        await expect(phone.permission_request).to_have_count(0)
    await ended(freehold, session, since)
    assert freehold.file("by-thumb.txt").exists()
