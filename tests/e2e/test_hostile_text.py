"""Texts that would keep a page from being drawn: each is one plain message, and the owner can still stop and answer."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import expect
from tests.e2e.hostile_texts import HOSTILE_TEXTS
from tests.support.browser import OwnerPage
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

from freehold.agents.sessions.store import SessionStore
from freehold.testing import Call, Say, make_script
from freehold.timeline import Timeline

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
Json = dict[str, Any]
ATTACK = "Say it, then ask."
DEEP = "> " * 2_000
LONG = "x" * 100_000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def freehold(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningFreehold]:
    script = make_script([Call("run", {"command": "touch asked.txt"}), Say(DEEP + "\n\nlive **words**")], when=ATTACK)
    async with run_freehold(tmp_path_factory.mktemp("freehold"), FreeholdOptions(("builtin",), script)) as freehold:
        yield freehold


def _message(text: str) -> tuple[str, Json]:
    return "message", {"id": "m", "role": "agent", "text": text}


def _hostile_events() -> list[tuple[str, Json]]:
    """Every text as a message, and the worst in every other place where an agent's words are drawn.

    Each event holds several times of what is taken of an agent (`tool_call.MAX_CONTENT`).
    """
    diff = {"type": "diff", "path": DEEP, "old": LONG, "new": "\n".join([LONG] * 10)}
    small = {"type": "diff", "path": DEEP, "old": "", "new": LONG[:10_000]}
    tool = {"id": "t", "title": LONG, "kind": "edit", "status": "completed", "content": [diff, *[small] * 39]}
    entry = {"content": LONG[:4_000], "status": "pending"}
    return [
        _message("**before**"),
        *(_message(text) for text in HOSTILE_TEXTS.values()),
        ("thought", {"id": "t", "text": DEEP + LONG}),
        ("tool", {**tool, "raw_input": {"x": LONG}, "locations": [LONG, *[DEEP] * 39]}),
        ("plan", {"entries": [{"content": LONG, "status": "pending"}, *[entry] * 499]}),
        ("error", {"code": "x", "message": LONG, "hint": DEEP}),
        _message("**after**"),
    ]


@pytest.fixture(scope="module")
def session(freehold: RunningFreehold) -> str:
    """A session whose agent said all of them, between two ordinary messages."""
    with Timeline(freehold.home.timeline) as timeline:
        store = SessionStore(timeline)
        session = store.create("builtin", DEEP + LONG, None, who="owner").id
        prompt: Json = {"text": "Attack", "files": [], "images": []}
        turn, _ = store.turns.add(session, "k", prompt, first=False, waits=False, who="owner")
        store.turns.begin(session, turn, None, who="owner")
        ended = ("turn.ended", {"stop_reason": "end_turn", "changes": None, "usage": None})
        store.append(session, turn.turn, [*_hostile_events(), ended], status="idle", ended=True)
        return session


async def scroll_to_first_message(page: OwnerPage) -> None:
    """Long messages come in several pages, each when the one before has been scrolled through."""

    async def look() -> bool:
        await page.transcript.evaluate("log => log.scrollTop = 0")
        return await page.transcript.locator("strong").get_by_text("before").is_visible()

    await until(look)


async def test_hostile_messages_stop_neither_the_page_nor_the_owner(
    freehold: RunningFreehold, session: str, owner_page: OwnerPage
) -> None:
    """Opened, scrolled through, reloaded; then the agent asks, is answered, asks again and is stopped."""
    await owner_page.open_session(session)
    await expect(owner_page.transcript.locator("strong").get_by_text("after")).to_be_visible()
    await scroll_to_first_message(owner_page)
    await expect(owner_page.transcript.get_by_text("This part is too complex to format.").first).to_be_attached()
    await owner_page.page.reload()
    await expect(owner_page.transcript.locator("strong").get_by_text("after")).to_be_visible()

    await freehold.prompt(session, ATTACK)
    await owner_page.answer_button("Once").click()
    await expect(owner_page.transcript.locator("strong").get_by_text("words", exact=True)).to_be_visible()
    await expect(owner_page.transcript.get_by_role("button", name="Undo this turn")).to_be_visible()
    assert freehold.file("asked.txt").exists()

    await freehold.prompt(session, ATTACK)
    await expect(owner_page.permission_request).to_be_visible()
    await owner_page.page.reload()
    await expect(owner_page.permission_request).to_contain_text("touch asked.txt")
    await owner_page.page.get_by_role("button", name="Stop", exact=True).click()
    await expect(owner_page.permission_request).to_have_count(0)
    await expect(owner_page.transcript).to_contain_text("Stopped")


async def test_every_hostile_text_is_few_elements(
    freehold: RunningFreehold, session: str, owner_page: OwnerPage
) -> None:
    """However long a message is, what is drawn of it is limited."""
    await owner_page.open_session(session)
    log = owner_page.transcript
    await expect(log.locator("strong").get_by_text("after")).to_be_visible()
    await scroll_to_first_message(owner_page)
    place = await log.evaluate("log => log.scrollHeight")
    seen: set[str] = set()
    while place > 0:
        place = max(0, place - 1500)
        rows = await log.evaluate(
            """(log, place) => {
                log.scrollTop = place;
                return new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(
                    [...log.querySelectorAll('.conversation-row')].map((row) =>
                        [row.dataset.index, row.querySelectorAll('*').length, row.textContent.length])))));
            }""",
            place,
        )
        for index, elements, length in rows:
            seen.add(index)
            assert elements < 6_000, (index, elements)
            assert length < 400_000, (index, length)
    assert len(seen) >= len(HOSTILE_TEXTS) + 6
