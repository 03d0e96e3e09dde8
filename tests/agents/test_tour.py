"""The tour: a real agent changes a file without any model, asks first, and the change is undone."""

import pytest
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.agents.tour import OWN_FILE, PROMPT

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("builtin",), is_connected=False)


async def play(freehold: RunningFreehold, answer: str) -> str:
    """Play the tour, and return what the agent said."""
    opened = await freehold.call("POST", "/v1/tour")
    assert opened["prompt"] == PROMPT
    session = opened["session"]
    async with freehold.watch_new(session) as watch:
        ended = await freehold.run_turn(watch, session, opened["prompt"], answer)
    assert ended["data"]["stop_reason"] == "end_turn", ended
    events = await freehold.events(session)
    assert any(event["kind"] == "approval" for event in events)
    return "".join(event["data"]["text"] for event in events if event["kind"] == "message")


async def test_a_change_of_the_tour_is_asked_for_made_and_undone(freehold: RunningFreehold) -> None:
    said = await play(freehold, "once")
    assert "This was a tour" in said
    assert freehold.file(OWN_FILE).exists()
    await freehold.call("POST", "/v1/history/undo")
    assert not freehold.file(OWN_FILE).exists()
    assert freehold.model.requests == []


async def test_what_is_rejected_on_the_tour_is_not_written(freehold: RunningFreehold) -> None:
    assert "you rejected the change" in await play(freehold, "reject")
    assert not freehold.file(OWN_FILE).exists()


async def test_the_tour_is_no_model_that_anyone_could_use_by_mistake(freehold: RunningFreehold) -> None:
    assert (await freehold.call("GET", "/v1/models"))["models"] == []
    body = {"kind": "openai-compatible", "base_url": "http://127.0.0.1:9/v1"}
    answer = await freehold.http.put("/v1/models/tour", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "models.bad-name")
