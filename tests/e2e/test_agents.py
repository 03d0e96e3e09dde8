"""Real agents, a whole Freehold, a scripted model: from a prompt to a file on the disk and its entry in history."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.agents.whole import KEY, Whole, prepare, running

from freehold.testing import ScriptedModel

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
AGENTS = ("opencode", "claude", "codex")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model() -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel() as model:
        yield model


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(model: ScriptedModel, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Whole]:
    whole = Whole(prepare(tmp_path_factory.mktemp("whole"), model.url, AGENTS))
    with running(whole):
        yield whole
        await whole.http.aclose()


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_prompt_becomes_a_file_that_the_owner_allowed(agent: str, whole: Whole, model: ScriptedModel) -> None:
    """Prompt, tool call, approval with the exact command, file on disk, entry in history, final words, cost of tokens."""
    session = await whole.open(agent)
    async with whole.watching(session) as watch:
        await whole.prompt(session, f"ESCALATE\nRUN echo hello > {agent}.txt")
        asked = await watch.answer("once")
        assert f"echo hello > {agent}.txt" in asked["data"]["details"]["command"]
        assert not whole.file(f"{agent}.txt").exists() or asked
        ended = await watch.until("turn.ended")
    assert ended["data"]["stop_reason"] == "end_turn", watch.events
    assert whole.file(f"{agent}.txt").read_text() == "hello\n"
    assert "Done." in watch.said() or "Done." in "".join(delta["text"] for delta in watch.deltas)
    changes = ended["data"]["changes"]
    assert changes["added"] >= 1
    entry = (await whole.call("GET", f"/v1/history/{changes['entry']}"))["entry"]
    assert entry["who"]["session"] == session
    assert entry["who"]["agent"] == agent
    assert ended["data"]["usage"]["input"] > 0
    assert KEY in {request.key for request in model.requests}
    assert [event["seq"] for event in watch.events] == sorted({event["seq"] for event in watch.events})
