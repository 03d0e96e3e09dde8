"""Real agents with a provider that fails, hangs or is cut off, and with a budget that ends during a turn."""

import json
import re
import threading
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.support.condition import until
from tests.support.running_freehold import AgentSession, FreeholdOptions, RunningFreehold

from freehold.testing.conversation import Conversation
from freehold.testing.script import FAULTS, Fail, Say, Step

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]


class FlakyScript:
    """`FLAKY <fault> <name>`: the first request of the agent's own loop fails in this way, and every later one succeeds."""

    def __init__(self) -> None:
        self._failed: set[str] = set()
        self.hung = threading.Event()

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


FLAKY = FlakyScript()
FREEHOLD = FreeholdOptions(agents=("opencode", "claude", "codex", "builtin"), script=FLAKY)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=FREEHOLD.agents)
async def session(request: pytest.FixtureRequest, freehold: RunningFreehold) -> AsyncIterator[AgentSession]:
    """One session with each agent. All tests with the same agent use it, because the start of an agent costs seconds."""
    session = AgentSession(request.param, await freehold.open(request.param))
    yield session
    await freehold.call("DELETE", f"/v1/sessions/{session.id}")


async def test_a_provider_that_fails_once_costs_at_most_a_turn(
    session: AgentSession, freehold: RunningFreehold
) -> None:
    """The turn ends with a message or an error, and the session works."""
    async with freehold.watch_new(session.id) as watch:
        for fault in ("429", "500", "cut"):
            taken = await freehold.prompt(session.id, f"FLAKY {fault} {session.agent}-{fault}")
            end = await watch.until_ended(taken["turn"])
            messages = [
                event for event in watch.events if event["turn"] == taken["turn"] and event["kind"] == "message"
            ]
            has_recovered = f"recovered from {session.agent}-{fault}" in json.dumps(messages)
            assert has_recovered or end["data"].get("error") or messages, watch.events
        await freehold.prompt(session.id, "SAY all is well")
        await watch.until("turn.ended")
    assert "all is well" in watch.text()


async def test_a_turn_with_a_provider_that_hangs_can_be_cancelled(
    session: AgentSession, freehold: RunningFreehold
) -> None:
    """The owner can cancel the turn while the agent waits for an answer, and the session works."""
    async with freehold.watch_new(session.id) as watch:
        FLAKY.hung.clear()
        taken = await freehold.prompt(session.id, f"FLAKY hang {session.agent}-hang")
        await until(FLAKY.hung.is_set)
        await freehold.call("POST", f"/v1/sessions/{session.id}/cancel")
        end = await watch.until_ended(taken["turn"])
        assert end["data"]["stop_reason"] == "cancelled", end
        await freehold.prompt(session.id, "SAY all is well")
        await watch.until("turn.ended")
    # An agent may send both prompts as one.
    assert "all is well" in watch.text() or f"recovered from {session.agent}-hang" in watch.text()


async def test_a_budget_that_ends_during_a_turn_stops_it_with_a_reason(
    session: AgentSession, freehold: RunningFreehold
) -> None:
    """The allowed step is done, the next request to the model is not sent, and the owner sees the reason."""
    async with freehold.watch_new(session.id) as watch:
        taken = await freehold.prompt(
            session.id, f"ESCALATE\nRUN echo spent > {session.agent}-spent.txt\nSAY never said"
        )
        asked = await watch.until("approval", state="pending")
        await freehold.call("PUT", "/v1/budgets", scope="*", day_tokens=1)
        reached = len(freehold.model.requests)
        try:
            await freehold.call("POST", f"/v1/approvals/{asked['data']['id']}", answer="once")
            end = await watch.until_ended(taken["turn"])
        finally:
            await freehold.call("PUT", "/v1/budgets", scope="*")
        assert freehold.file(f"{session.agent}-spent.txt").read_text() == "spent\n"
        assert len(freehold.model.requests) == reached
        assert "never said" not in watch.text()
        assert end["data"]["error"]["code"] == "models.budget-reached", watch.events
        assert (await freehold.call("GET", f"/v1/sessions/{session.id}"))["status"] == "failed"
        before = watch.text()
        await freehold.prompt(session.id, "SAY lifted")
        assert "error" not in (await watch.until("turn.ended"))["data"]
    assert watch.text() != before
