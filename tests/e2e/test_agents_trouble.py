"""Real agents in trouble: a provider that fails, hangs or is cut off, a budget that ends in the middle of their work."""

import asyncio
import json
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.agents.whole import Json, Watch, Whole, prepare, running

from freehold.testing import ScriptedModel
from freehold.testing.conversation import Conversation
from freehold.testing.script import FAULTS, Fail, Say, Step

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
AGENTS = ("opencode", "claude", "codex", "builtin")


class Flaky:
    """`FLAKY <fault> <name>`: the first request of the agent's own loop fails so, and every further one is answered."""

    def __init__(self) -> None:
        self._failed: set[str] = set()
        self.hung = asyncio.Event()

    def __call__(self, conversation: Conversation) -> Step | None:
        prompts = [turn.text for turn in conversation.turns if turn.role == "user"]
        found = re.findall(r"\bFLAKY (\w+) (\S+)", prompts[-1]) if prompts and conversation.tools else []
        if not found:
            return None
        fault, name = found[-1]
        if name in self._failed:
            return Say(f"recovered from {name}")
        self._failed.add(name)
        if fault == "hang":
            self.hung.set()
        return Fail(next(known for known in FAULTS if known == fault))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def flaky() -> Flaky:
    return Flaky()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(flaky: Flaky) -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel(flaky) as model:
        yield model


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(model: ScriptedModel, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Whole]:
    whole = Whole(prepare(tmp_path_factory.mktemp("trouble"), model.url, AGENTS))
    with running(whole):
        yield whole
        await whole.http.aclose()


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def nobody_left_at_work(whole: Whole) -> AsyncIterator[None]:
    yield
    for row in (await whole.call("GET", "/v1/sessions"))["sessions"]:
        await whole.call("DELETE", f"/v1/sessions/{row['id']}")


async def ended(watch: Watch, turn: int) -> Json:
    while True:
        event = await watch.until("turn.ended")
        if event["turn"] == turn:
            return event


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_provider_that_fails_once_costs_at_most_a_turn(agent: str, whole: Whole) -> None:
    """Whatever the agent makes of it, the turn comes to an end that is told, and the session works on."""
    session = await whole.open(agent)
    async with whole.watching(session) as watch:
        for fault in ("429", "500", "cut"):
            taken = await whole.prompt(session, f"FLAKY {fault} {agent}-{fault}")
            end = await ended(watch, taken["turn"])
            said = [event for event in watch.events if event["turn"] == taken["turn"] and event["kind"] == "message"]
            went_on = f"recovered from {agent}-{fault}" in json.dumps(said)
            assert went_on or end["data"].get("error") or said, watch.events
        await whole.prompt(session, "SAY all is well")
        await watch.until("turn.ended")
    assert "all is well" in watch.said()


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_provider_that_hangs_can_be_left(agent: str, whole: Whole, flaky: Flaky) -> None:
    """While it waits for an answer the owner can stop it, and the session works on."""
    session = await whole.open(agent)
    async with whole.watching(session) as watch:
        flaky.hung.clear()
        taken = await whole.prompt(session, f"FLAKY hang {agent}-hang")
        async with asyncio.timeout(60):
            await flaky.hung.wait()
        await whole.call("POST", f"/v1/sessions/{session}/cancel")
        end = await ended(watch, taken["turn"])
        assert end["data"]["stop_reason"] == "cancelled", end
        await whole.prompt(session, "SAY all is well")
        await watch.until("turn.ended")
    # An agent may give the model both prompts as one.
    assert "all is well" in watch.said() or f"recovered from {agent}-hang" in watch.said()


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_budget_that_ends_in_the_middle_of_a_turn_stops_it_and_says_so(
    agent: str, whole: Whole, model: ScriptedModel
) -> None:
    """The step that was allowed is done, the next request to the model is not made, and the owner reads why."""
    session = await whole.open(agent)
    async with whole.watching(session) as watch:
        taken = await whole.prompt(session, f"ESCALATE\nRUN echo spent > {agent}-spent.txt\nSAY never said")
        asked = await watch.until("approval", state="pending")
        await whole.call("PUT", "/v1/budgets", scope="*", day_tokens=1)
        reached = len(model.requests)
        try:
            await whole.call("POST", f"/v1/approvals/{asked['data']['id']}", answer="once")
            end = await ended(watch, taken["turn"])
        finally:
            await whole.call("PUT", "/v1/budgets", scope="*")
        assert whole.file(f"{agent}-spent.txt").read_text() == "spent\n"
        assert len(model.requests) == reached
        assert "never said" not in watch.said()
        assert end["data"]["error"]["code"] == "models.budget-reached", watch.events
        assert (await whole.call("GET", f"/v1/sessions/{session}"))["status"] == "failed"
        before = watch.said()
        await whole.prompt(session, "SAY lifted")
        assert "error" not in (await watch.until("turn.ended"))["data"]
    assert watch.said() != before
