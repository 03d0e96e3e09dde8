"""Real agents with host tools, which they call by name, and with the options that the owner sets."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.support.running_freehold import KEY, AgentSession, FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
MANIFEST = """
[agents.builtin]
model = "local"

[models.gemini]
kind = "gemini"
base_url = "{model_url}"
key = "secret:scripted"
model = "gemini-2.5-flash"
"""
FREEHOLD = FreeholdOptions(agents=("opencode", "claude", "codex", "builtin", "gemini"), manifest=MANIFEST)
SEARCH = {
    "claude": 'CALL ToolSearch {"query": "select:mcp__freehold__history_log,mcp__freehold__ask_owner", "max_results": 5}\n'
}
"""What the model must do first with an agent that shows it the tools of MCP servers only on request."""


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=FREEHOLD.agents[:4])
async def session(request: pytest.FixtureRequest, freehold: RunningFreehold) -> AsyncIterator[AgentSession]:
    """One session with each agent. All tests with the same agent use it, because the start of an agent costs seconds."""
    session = AgentSession(request.param, await freehold.open(request.param))
    yield session
    await freehold.call("DELETE", f"/v1/sessions/{session.id}")


async def test_host_tools_are_called_by_name(session: AgentSession, freehold: RunningFreehold) -> None:
    """Over MCP, with the prefix that the agent gives them: one that answers at once, and one that asks the owner."""
    search = SEARCH.get(session.agent, "")
    async with freehold.watch_new(session.id) as watch:
        await freehold.run_turn(watch, session.id, f'{search}CALL history_log {{"limit": 3}}')
        assert "found at start" in watch.text(), watch.text()
        await freehold.run_turn(watch, session.id, f'{search}CALL ask_owner {{"question": "May I go on?"}}')
    assert "May I go on?" in [one["title"] for one in watch.requests() if one["details"].get("kind") == "question"]
    assert "The user says yes." in watch.text(), watch.text()


async def test_every_option_that_an_agent_offers_can_be_set_or_is_refused_with_a_reason(
    session: AgentSession, freehold: RunningFreehold
) -> None:
    path = f"/v1/sessions/{session.id}/options"
    async with freehold.watch_new(session.id) as watch:
        await freehold.prompt(session.id, "SAY hello")
        await watch.until("turn.ended")
        offered = next(e["data"] for e in reversed(await freehold.events(session.id)) if e["kind"] == "options")
        choices = [("mode", one["id"]) for one in offered["modes"]]
        choices += [("model", one["id"]) for one in offered["models"][:3]]
        for option in offered["config"]:
            choices += [(option["id"], one["id"]) for one in option["choices"][:3]]
            choices += [(option["id"], flag) for flag in (True, False) if not option["choices"]]
        for name, value in choices:
            answer = await freehold.http.post(path, json={"id": name, "value": value})
            assert answer.status_code in (200, 400, 403), f"{name}={value}: {answer.status_code} {answer.text}"
            assert answer.status_code == 200 or answer.json()["error"]["message"]
        names = {name for name, _ in choices} | {"mode", "model", "", "nope", "__proto__"}
        for name in names:
            answer = await freehold.http.post(path, json={"id": name, "value": "made-up \u202e value"})
            assert answer.status_code == 400, f"{name}: {answer.status_code} {answer.text}"
            answer = await freehold.http.post(path, json={"id": name, "value": "bypassPermissions"})
            assert answer.status_code in (400, 403), f"{name}: {answer.status_code} {answer.text}"
        asking = {"claude": "default", "codex": "read-only", "builtin": "ask"}.get(session.agent)
        if asking is not None:
            await freehold.call("POST", path, id="mode", value=asking)
        await freehold.prompt(session.id, "SAY still here")
        await watch.until("turn.ended")
    assert "still here" in watch.text()


async def test_gemini_works_like_the_other_agents(freehold: RunningFreehold) -> None:
    """Prompt, permission request with the whole command, file, entry, rejection, a turn without changes, and the key."""
    session = await freehold.open("gemini")
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, "SAY hello from gemini")
        talked = await watch.until("turn.ended")
        assert "hello from gemini" in watch.text()
        assert talked["data"]["changes"]["entry"] == talked["data"]["changes"]["before"]
        await freehold.prompt(session, "RUN echo hi > gemini.txt")
        asked = await watch.answer("once")
        assert "echo hi > gemini.txt" in asked["data"]["parts"][0]["text"]
        worked = await watch.until("turn.ended")
        assert freehold.file("gemini.txt").read_text() == "hi\n"
        assert worked["data"]["changes"]["added"] >= 1
        assert worked["data"]["usage"]["input"] > 0
        await freehold.prompt(session, "RUN echo no > refused.txt")
        await watch.answer("reject")
        await watch.until("turn.ended")
    assert not freehold.file("refused.txt").exists()
    assert KEY in {request.key for request in freehold.model.requests if request.api == "gemini"}
