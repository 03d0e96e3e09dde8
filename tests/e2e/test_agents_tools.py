"""Real agents with what the house gives them: its tools, called by name, and the options that the owner sets."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.agents.whole import KEY, Json, Watch, Whole, prepare, running

from freehold.testing import ScriptedModel

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
AGENTS = ("opencode", "claude", "codex", "builtin")
GEMINI = """
[agents.builtin]
model = "local"

[models.gemini]
kind = "gemini"
base_url = "{url}"
key = "secret:scripted"
model = "gemini-2.5-flash"
"""
SEARCH = {
    "claude": 'CALL ToolSearch {"query": "select:mcp__freehold__history_log,mcp__freehold__ask_owner", "max_results": 5}\n'
}
"""What a model does first where tools of others are only shown to it when it looks for them."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model() -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel() as model:
        yield model


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(model: ScriptedModel, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Whole]:
    manifest = GEMINI.format(url=model.url)
    whole = Whole(prepare(tmp_path_factory.mktemp("tools"), model.url, (*AGENTS, "gemini"), manifest))
    with running(whole):
        yield whole
        await whole.http.aclose()


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def nobody_left_at_work(whole: Whole) -> AsyncIterator[None]:
    yield
    for row in (await whole.call("GET", "/v1/sessions"))["sessions"]:
        await whole.call("DELETE", f"/v1/sessions/{row['id']}")


async def allowed_to_the_end(watch: Watch, whole: Whole) -> list[Json]:
    """What was asked on the way to the end of the turn; all of it was allowed."""
    asked: list[Json] = []
    while True:
        event = await watch.next()
        if event["kind"] == "turn.ended":
            return asked
        if event["kind"] == "approval" and event["data"]["state"] == "pending":
            asked.append(event["data"])
            await whole.call("POST", f"/v1/approvals/{event['data']['id']}", answer="once")


@pytest.mark.parametrize("agent", AGENTS)
async def test_the_tools_of_the_house_are_called_by_name(agent: str, whole: Whole) -> None:
    """Over MCP, by whatever prefix the agent gives them: one that tells at once, and one that asks the owner."""
    session = await whole.open(agent)
    async with whole.watching(session) as watch:
        await whole.prompt(session, f'{SEARCH.get(agent, "")}CALL history_log {{"limit": 3}}')
        await allowed_to_the_end(watch, whole)
        assert "found at start" in watch.said(), watch.said()
        await whole.prompt(session, f'{SEARCH.get(agent, "")}CALL ask_owner {{"question": "May I go on?"}}')
        asked = await allowed_to_the_end(watch, whole)
    assert "May I go on?" in [one["title"] for one in asked if one["details"].get("kind") == "question"]
    assert "The user says yes." in watch.said(), watch.said()


@pytest.mark.parametrize("agent", AGENTS)
async def test_every_option_that_an_agent_offers_can_be_set_or_says_why_not(agent: str, whole: Whole) -> None:
    session = await whole.open(agent)
    path = f"/v1/sessions/{session}/options"
    async with whole.watching(session) as watch:
        await whole.prompt(session, "SAY hello")
        offered = (await watch.until("options"))["data"]
        await watch.until("turn.ended")
        choices = [("mode", one["id"]) for one in offered["modes"]]
        choices += [("model", one["id"]) for one in offered["models"][:3]]
        for option in offered["config"]:
            choices += [(option["id"], one["id"]) for one in option["choices"][:3]]
            choices += [(option["id"], flag) for flag in (True, False) if not option["choices"]]
        for name, value in choices:
            answer = await whole.http.post(path, json={"id": name, "value": value})
            assert answer.status_code in (200, 400, 403), f"{name}={value}: {answer.status_code} {answer.text}"
            assert answer.status_code == 200 or answer.json()["error"]["message"]
        names = {name for name, _ in choices} | {"mode", "model", "", "nope", "__proto__"}
        for name in names:
            answer = await whole.http.post(path, json={"id": name, "value": "made-up \u202e value"})
            assert answer.status_code == 400, f"{name}: {answer.status_code} {answer.text}"
            answer = await whole.http.post(path, json={"id": name, "value": "bypassPermissions"})
            assert answer.status_code in (400, 403), f"{name}: {answer.status_code} {answer.text}"
        asking = {"claude": "default", "codex": "read-only", "builtin": "ask"}.get(agent)
        if asking is not None:
            await whole.call("POST", path, id="mode", value=asking)
        await whole.prompt(session, "SAY still here")
        await watch.until("turn.ended")
    assert "still here" in watch.said()


async def test_gemini_works_as_the_others_do(whole: Whole, model: ScriptedModel) -> None:
    """Prompt, question with the whole command, file, entry; a no; talk that is no entry; its real key stays outside."""
    session = await whole.open("gemini")
    async with whole.watching(session) as watch:
        await whole.prompt(session, "SAY hello from gemini")
        talked = await watch.until("turn.ended")
        assert "hello from gemini" in watch.said()
        assert talked["data"]["changes"]["entry"] == talked["data"]["changes"]["before"]
        await whole.prompt(session, "RUN echo hi > gemini.txt")
        asked = await watch.answer("once")
        assert "echo hi > gemini.txt" in asked["data"]["details"]["input"]
        worked = await watch.until("turn.ended")
        assert whole.file("gemini.txt").read_text() == "hi\n"
        assert worked["data"]["changes"]["added"] >= 1
        assert worked["data"]["usage"]["input"] > 0
        await whole.prompt(session, "RUN echo no > refused.txt")
        await watch.answer("reject")
        await watch.until("turn.ended")
    assert not whole.file("refused.txt").exists()
    assert KEY in {request.key for request in model.requests if request.api == "gemini"}
