"""The transcript of a session in a real browser: every kind of event is drawn, and output of an agent stays text."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, Route, expect
from tests.support.browser import DESKTOP, PHONE, OwnerPage
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

from freehold.agents.sessions.store import SessionStore
from freehold.testing import Call, Conversation, Say, Step, make_script
from freehold.timeline import Timeline

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
MAX_NODES = 1_500
Json = dict[str, Any]

DOT = "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAF0lEQVR4nGOQj/EiCTGMahjVMKphqGoAAEFCSgFvN3OjAAAAAElFTkSuQmCC"
DRAW = "Draw everything."
MARKDOWN = """# Findings

The **theme** is in [the file](src/theme.css:3), see [the docs](https://docs.example/page).

| token | light |
|---|---|
| `--ink` | black |

- [x] looked

```python
def main() -> int:
    return 0
```
"""
ATTACK = "Attack the page."
HOSTILE = """<script>window.pwned = 1</script>
<img src=x onerror="window.pwned = 2"><iframe src="https://evil.example/frame"></iframe>
<style>body { display: none }</style><form action="https://evil.example"><button>Allow</button></form>

![tracker](https://evil.example/pixel.png) [press](javascript:window.pwned=3) [data](data:text/html,hi)
[stop](/v1/stop) [bank.example](https://evil.example/login) <https://plain.example/>

[ref]: https://evil.example/ref.png
![by reference][ref]
"""
IMITATION = """## Permission request

**Allow `rm -rf /`?**

<div role="alertdialog" aria-label="Permission request" class="approvals-card"><button>Once</button><button>Always</button></div>

[Once](#once) [This conversation](#conversation) [Always](#always) [No](#no)
"""
PLANNED = "Plan and do."


def _plan(*states: str) -> Call:
    steps = ("Look", "Change", "Check")
    return Call("plan", {"entries": [{"content": s, "status": state} for s, state in zip(steps, states, strict=True)]})


SCRIPTS: tuple[Callable[[Conversation], Step | None], ...] = (
    make_script([Say(MARKDOWN, piece=9)], when=DRAW),
    make_script([Say(HOSTILE)], when=ATTACK),
    make_script([_plan("completed", "in_progress", "pending"), Say("Planned.")], when=PLANNED),
)


def choose_step(conversation: Conversation) -> Step | None:
    return next((step for choose in SCRIPTS if (step := choose(conversation)) is not None), None)


class Seeded:
    """Sessions with events in the store, as an agent would have caused them."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self.rich = self._open("<img src=x onerror=window.pwned=4>\u202egnp.exe")
        self._turn(self.rich, 1, "Look at this", _rich(), images=[{"mime": "image/png", "data": DOT}])
        self.long = self._open("Long")
        for turn in range(1, 11):
            messages = [_message(f"message {turn}-{n}: {'word ' * (n * 37 % 180)}") for n in range(500)]
            self._turn(self.long, turn, f"prompt {turn}", messages)
        self.short = self._open("Short")
        for turn in range(1, 31):
            self._turn(self.short, turn, f"prompt {turn}", [_message(f"answer {turn}")])

    def _open(self, title: str) -> str:
        return self._store.create("builtin", title, None, who="owner").id

    def _turn(self, session: str, number: int, text: str, events: list[tuple[str, Json]], images: Any = ()) -> None:
        prompt = {"text": text, "files": ["src/theme.css"] if images else [], "images": list(images)}
        turn, _ = self._store.turns.add(session, f"k{number}", prompt, first=False, waits=False, who="owner")
        self._store.turns.begin(session, turn, None, who="owner")
        ended = {"stop_reason": "end_turn", "changes": None, "usage": None}
        self._store.append(session, turn.turn, [*events, ("turn.ended", ended)], status="idle", ended=True)


def _message(text: str) -> tuple[str, Json]:
    return "message", {"id": "m", "role": "agent", "text": text}


def _rich() -> list[tuple[str, Json]]:
    css = {"type": "diff", "path": "/workspace/src/theme.css", "old": "a\nb\nc\n", "new": "a\nB\nc\n"}
    loud = "<script>window.pwned = 5</script>\u001b[31m\u202e" + "\n".join(f"line {n}" for n in range(500))
    return [
        ("thought", {"id": "t", "text": "First I look.\nThen I think about <b>it</b>."}),
        _tool("1", "Edit src/theme.css", "edit", "completed", [css], ["/workspace/src/theme.css"]),
        _tool("2", "cat \u202elog\u200b", "execute", "failed", [{"type": "text", "text": loud}], ["/etc/passwd"]),
        _tool("3", "sleep 100", "execute", "in_progress", [], []),
        _message(IMITATION),
        ("error", {"code": "model.overloaded", "message": "The model is overloaded", "hint": "Try again in a minute"}),
    ]


def _tool(name: str, title: str, kind: str, status: str, content: list[Json], places: list[str]) -> tuple[str, Json]:
    call = {"id": name, "title": title, "kind": kind, "status": status, "content": content, "locations": places}
    return "tool", call


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def freehold(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningFreehold]:
    options = FreeholdOptions(("builtin",), choose_step)
    async with run_freehold(tmp_path_factory.mktemp("freehold"), options) as freehold:
        yield freehold


@pytest.fixture(scope="module")
def seeded(freehold: RunningFreehold) -> Seeded:
    with Timeline(freehold.home.timeline) as timeline:
        return Seeded(SessionStore(timeline))


@pytest.fixture
def page(owner_page: OwnerPage) -> Page:
    return owner_page.page


async def shown(page: Page, freehold: RunningFreehold, session: str) -> Locator:
    await page.goto(f"{freehold.pages}/sessions?id={session}")
    return page.get_by_role("log")


async def prompted(page: Page, freehold: RunningFreehold, text: str, **more: Any) -> tuple[str, Locator]:
    session = await freehold.open("builtin", **more)
    log = await shown(page, freehold, session)
    await freehold.prompt(session, text)
    return session, log


async def nodes(log: Locator) -> int:
    return int(await log.evaluate("log => log.querySelectorAll('*').length"))


async def test_markdown_is_drawn_as_it_comes(freehold: RunningFreehold, page: Page) -> None:
    _, log = await prompted(page, freehold, DRAW)
    said = log.get_by_role("article", name="Agent")
    await expect(said.get_by_role("heading", name="Findings")).to_be_visible()
    await expect(said.get_by_role("cell", name="black")).to_be_visible()
    await expect(said.get_by_label("done")).to_have_text("☑")
    await expect(said.locator(".code-block .tok-keyword").first).to_have_text("def")
    await expect(said.get_by_role("button", name="Copy")).to_be_visible()
    docs = said.get_by_role("link", name="the docs")
    assert await docs.get_attribute("rel") == "noopener noreferrer"
    assert await docs.get_attribute("target") == "_blank"
    assert await said.get_by_role("link", name="the file").get_attribute("href") == "/files?path=src%2Ftheme.css"
    await expect(log).to_contain_text("no file changed")
    await expect(log).to_contain_text(re.compile(r"tokens in, .* out · (cost unknown|\$|under)"))


async def test_hostile_markdown_runs_nothing_and_loads_nothing(freehold: RunningFreehold, page: Page) -> None:
    """Script, handlers, frames, styles, forms, pictures from elsewhere and odd links: words, and no request leaves."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    _, log = await prompted(page, freehold, ATTACK)
    said = log.get_by_role("article", name="Agent")
    await expect(said).to_contain_text("<script>window.pwned = 1</script>")
    await expect(log).to_contain_text("no file changed")
    inner = await said.evaluate("said => [...said.querySelectorAll('*')].map(one => one.localName)")
    assert not set(inner) & {"script", "img", "iframe", "style", "form", "input", "button", "object", "embed", "svg"}
    links = await said.evaluate("said => [...said.querySelectorAll('a')].map(one => one.getAttribute('href'))")
    assert links == [
        "https://evil.example/pixel.png",
        "https://evil.example/login",
        "https://plain.example/",
        "https://evil.example/ref.png",
    ]
    await expect(said).to_contain_text("bank.example (opens evil.example)")
    assert await page.evaluate("window.pwned") is None
    assert [url for url in asked if not url.startswith(f"{freehold.pages}/")] == []


async def test_what_an_agent_says_cannot_pass_for_a_question(
    freehold: RunningFreehold, seeded: Seeded, page: Page
) -> None:
    """Words that look like the dock stay an article of the log, with nothing in them to press."""
    log = await shown(page, freehold, seeded.rich)
    said = log.get_by_role("article", name="Agent")
    await expect(said).to_contain_text("Allow rm -rf /?")
    await expect(said).to_contain_text('<div role="alertdialog"')
    assert await said.get_by_role("button").count() == 0
    assert await said.get_by_role("link").count() == 0
    assert await page.get_by_role("alertdialog").count() == 0
    assert await said.evaluate("said => said.querySelector('[class*=approvals], [role]')") is None
    assert await log.evaluate("(log, said) => log.contains(said)", await said.element_handle())
    title = "<img src=x onerror=window.pwned=4>⟨U+202E⟩gnp.exe"
    await expect(page.get_by_role("heading", name=title)).to_be_visible()
    assert await page.locator("main img[src=x]").count() == 0
    assert await page.evaluate("window.pwned") is None


async def test_tools_show_exactly_what_they_did_and_no_more_than_is_good(
    freehold: RunningFreehold, seeded: Seeded, page: Page
) -> None:
    log = await shown(page, freehold, seeded.rich)
    edit = log.get_by_label("Tool: Edit src/theme.css")
    await expect(edit.locator("tr[data-kind=added]")).to_contain_text("B")
    await expect(edit.locator("tr[data-kind=removed]")).to_contain_text("b")
    assert await edit.get_by_role("link", name="src/theme.css").get_attribute("href") == "/files?path=src%2Ftheme.css"
    loud = log.get_by_label("Tool: cat")
    head = loud.get_by_role("button", name="cat")
    await expect(head).to_contain_text("cat ⟨U+202E⟩log⟨U+200B⟩")
    await expect(head).to_contain_text("failed")
    await head.click()
    output = loud.get_by_label("Output", exact=True)
    await expect(output).to_contain_text("line 499")
    await expect(output).not_to_contain_text("line 100\n")
    await loud.get_by_role("button", name=re.compile("more lines above")).click()
    await expect(output).to_contain_text("<script>window.pwned = 5</script>⟨U+001B⟩[31m⟨U+202E⟩line 0")
    await expect(loud).to_contain_text("/etc/passwd")
    assert await loud.get_by_role("link").count() == 0
    await expect(log.get_by_label("Tool: sleep 100")).to_contain_text("stopped")
    assert await page.evaluate("window.pwned") is None


async def test_thoughts_are_folded_and_errors_have_a_way_out(
    freehold: RunningFreehold, seeded: Seeded, page: Page
) -> None:
    log = await shown(page, freehold, seeded.rich)
    thought = log.get_by_role("group", name="Thought")
    await expect(thought).to_contain_text("First I look.")
    await expect(thought).not_to_contain_text("Then I think")
    await thought.get_by_role("button").click()
    await expect(thought).to_contain_text("Then I think about <b>it</b>.")
    await expect(log).to_contain_text("The model is overloaded")
    await expect(log).to_contain_text("Try again in a minute")
    about = log.get_by_role("link", name="About this error")
    await expect(about).to_have_attribute("href", "/docs/errors.html#model.overloaded")
    await expect(log).to_contain_text("tokens unknown · cost unknown")


async def test_a_prompt_has_its_pictures_and_files(freehold: RunningFreehold, seeded: Seeded, page: Page) -> None:
    log = await shown(page, freehold, seeded.rich)
    mine = log.get_by_role("article", name="You")
    picture = mine.get_by_role("img", name="Image 1 of 1")
    await expect(picture).to_be_visible()
    await expect(picture).to_have_js_property("naturalWidth", 16)
    await expect(mine.get_by_role("link", name="src/theme.css")).to_be_visible()
    answer = await freehold.http.get(f"/v1/sessions/{seeded.rich}/turns/1/images/0")
    assert answer.content == base64.b64decode(DOT)
    assert answer.headers["content-type"] == "image/png"
    assert (await freehold.http.get(f"/v1/sessions/{seeded.rich}/turns/1/images/1")).status_code == 404


async def test_nothing_is_wider_than_a_phone(freehold: RunningFreehold, seeded: Seeded, page: Page) -> None:
    await page.set_viewport_size(PHONE)
    try:
        log = await shown(page, freehold, seeded.rich)
        await expect(log).to_contain_text("The model is overloaded")
        assert await page.evaluate("document.scrollingElement.scrollWidth") <= 390
        assert await log.evaluate("log => log.scrollWidth <= log.clientWidth")
    finally:
        await page.set_viewport_size(DESKTOP)


async def test_five_thousand_messages_are_few_nodes_and_all_there(
    freehold: RunningFreehold, seeded: Seeded, page: Page
) -> None:
    """From the end to the very first and back, reading older ones on the way; only what is in view is drawn."""
    log = await shown(page, freehold, seeded.long)
    await expect(log).to_contain_text("message 10-499")
    first = log.get_by_text("prompt 1", exact=True)
    while await first.count() == 0:
        assert await nodes(log) < MAX_NODES
        before = await log.evaluate("log => (log.scrollTop = 0, log.scrollHeight)")
        await page.wait_for_function(
            """before => {
                const log = document.querySelector('[role=log]');
                const first = log.querySelector('.conversation-prompt')?.textContent === 'prompt 1';
                return first || log.scrollHeight > before;
            }""",
            arg=before,
        )
    await expect(log).to_contain_text("message 1-0")
    assert await nodes(log) < MAX_NODES
    await page.get_by_role("button", name="Latest").click()
    await expect(log).to_contain_text("message 10-499")
    assert await nodes(log) < MAX_NODES
    await expect(page.get_by_role("button", name="Latest")).to_have_count(0)


async def test_words_are_found_in_the_whole_session(freehold: RunningFreehold, seeded: Seeded, page: Page) -> None:
    """Ctrl-F sees what is not drawn, and what is not even read yet."""
    log = await shown(page, freehold, seeded.long)
    await expect(log).to_contain_text("message 10-499")
    await log.press("Control+f")
    field = page.get_by_role("searchbox", name="Find in this session")
    await field.fill("message 2-250:")
    await expect(page.get_by_role("search")).to_contain_text(re.compile(r"1 of 1$"))
    await expect(log.locator("[data-found]")).to_contain_text("message 2-250:")
    assert await nodes(log) < MAX_NODES
    await field.press("Escape")
    await expect(field).to_have_count(0)


IS_AT_END = """() => {
  const log = document.querySelector('[role=log]');
  return log.scrollTop > 300 && log.scrollHeight - log.scrollTop - log.clientHeight < 80;
}"""
DRAWN = "() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"


GO = """(path) => {
  history.pushState(null, '', path);
  window.dispatchEvent(new Event('freehold:route'));
}"""


async def test_a_session_that_was_open_before_is_there_without_a_reply_and_then_has_what_came(
    freehold: RunningFreehold, seeded: Seeded, page: Page
) -> None:
    log = await shown(page, freehold, seeded.short)
    await expect(log).to_contain_text("answer 30")
    await page.evaluate(GO, f"/sessions?id={seeded.rich}")
    await expect(log).to_contain_text("The model is overloaded")
    async with freehold.watch(seeded.short) as watch:
        await freehold.prompt(seeded.short, "SAY while it was closed")
        await watch.until("turn.ended")
    go_on = asyncio.Event()

    async def hold(route: Route) -> None:
        await go_on.wait()
        await route.continue_()

    await page.route("**/events?limit=*", hold)
    await page.evaluate(GO, f"/sessions?id={seeded.short}")
    await expect(log).to_have_attribute("aria-busy", "false")
    await expect(log).to_contain_text("answer 30")
    await page.wait_for_function(IS_AT_END)
    await expect(log).not_to_contain_text("while it was closed")
    go_on.set()
    await expect(log).to_contain_text("while it was closed")
    await page.wait_for_function(IS_AT_END)
    await page.unroute("**/events?limit=*")


async def test_who_reads_above_is_not_moved_and_is_told_of_new_words(
    freehold: RunningFreehold, seeded: Seeded, page: Page
) -> None:
    log = await shown(page, freehold, seeded.short)
    await expect(log).to_contain_text("answer 30")
    # Only one who was at the end can leave it.
    await page.wait_for_function(IS_AT_END)
    await log.evaluate(f"log => ({DRAWN})().then(() => {{ log.scrollTop = 300 }}).then({DRAWN})")
    await expect(page.get_by_role("button", name="Latest")).to_be_visible()
    place = "log => [...log.querySelectorAll('.conversation-row')].map(row => [row.textContent, row.getBoundingClientRect().top])"
    before = {words: top for words, top in await log.evaluate(place) if words.startswith("answer")}
    await freehold.prompt(seeded.short, "SAY the newest words")
    await expect(page.get_by_role("button", name="New messages")).to_be_visible()
    after = {words: top for words, top in await log.evaluate(place) if words.startswith("answer")}
    assert before
    assert {words: after.get(words) for words in before} == before
    await page.get_by_role("button", name="New messages").click()
    await expect(log).to_contain_text("the newest words")
    await expect(log).to_be_visible()


async def test_who_comes_in_the_middle_of_a_message_has_all_of_it(freehold: RunningFreehold, page: Page) -> None:
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, "SLOW")
        await watch.until("turn.started")
        log = await shown(page, freehold, session)
        await expect(log).to_contain_text("tick 04")
        await page.reload()
        await expect(log).to_contain_text(re.compile(r"^.*tick 00 tick 01 tick 02 tick 03 tick 04 tick 05"))
        await freehold.call("POST", f"/v1/sessions/{session}/cancel")
        await watch.until("turn.ended")
    await expect(log).to_contain_text("Stopped")


async def test_a_plan_shows_where_it_is(freehold: RunningFreehold, page: Page) -> None:
    _, log = await prompted(page, freehold, PLANNED)
    plan = log.get_by_role("group", name="Plan")
    await expect(plan).to_contain_text("1 of 3 done")
    assert await plan.get_by_role("img").evaluate_all("marks => marks.map(one => one.ariaLabel)") == [
        "done",
        "in progress",
        "to do",
    ]
    await expect(log).to_contain_text("Planned.")


async def test_a_turn_is_undone_and_done_again_beside_its_words(freehold: RunningFreehold, page: Page) -> None:
    """The state of the files is history's, so that it is the same after a reload; other files stay as they are."""
    session = await freehold.open("builtin")
    log = await shown(page, freehold, session)
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, "RUN mkdir made && echo one > made/one.txt && echo two > two.txt")
        await watch.answer("once")
        await watch.until("turn.ended")
    files = log.get_by_role("group", name="Files changed in this turn")
    await expect(files).to_contain_text("added")
    await files.get_by_role("button", name=re.compile("added")).click()
    await expect(files.get_by_role("link", name="workspace/made/one.txt")).to_be_visible()
    freehold.file("other.txt").write_text("the owner's own")
    await files.get_by_role("button", name="Undo this turn").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("workspace/made/one.txt")
    await dialog.get_by_role("button", name="Undo", exact=True).click()
    await expect(dialog).to_have_count(0)
    assert not freehold.file("two.txt").exists()
    assert not freehold.file("made").exists()
    assert freehold.file("other.txt").exists()
    await expect(files).to_contain_text("undone")
    await page.reload()
    await expect(files).to_contain_text("undone")
    await files.get_by_role("button", name="Redo this turn").click()
    await dialog.get_by_role("button", name="Redo").click()
    await expect(dialog).to_have_count(0)
    assert freehold.file("made/one.txt").read_text() == "one\n"
    await expect(files.get_by_role("button", name="Undo this turn")).to_be_visible()
    await expect(files).not_to_contain_text("undone")


async def test_a_conversation_is_rewound_and_its_files_stay(freehold: RunningFreehold, page: Page) -> None:
    session = await freehold.open("builtin")
    log = await shown(page, freehold, session)
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, "SAY the first answer")
        await watch.until("turn.ended")
        await freehold.prompt(session, "RUN echo kept > rewound.txt\nSAY the second answer")
        await watch.answer("once")
        await watch.until("turn.ended")
    await expect(log).to_contain_text("the second answer")
    second = log.get_by_role("article", name="You").filter(has_text="rewound.txt")
    await second.hover()
    await second.get_by_role("button", name="Rewind to before this").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("workspace/rewound.txt")
    await dialog.get_by_role("radio", name=re.compile("Conversation only")).check()
    await expect(dialog).not_to_contain_text("workspace/rewound.txt")
    await dialog.get_by_role("button", name="Rewind").click()
    await expect(dialog).to_have_count(0)
    await expect(log).not_to_contain_text("the second answer")
    await expect(log).to_contain_text("the first answer")
    await expect(log).to_contain_text("rewound to here")
    assert freehold.file("rewound.txt").read_text() == "kept\n"
