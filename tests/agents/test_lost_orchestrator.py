"""While the orchestrator is lost no new work is accepted. What was accepted goes on."""

from dataclasses import replace

import pytest
from tests.agents.session_harness import SessionHarness

from freehold.errors import FreeholdError
from freehold.slots.errors import slot_unavailable

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]


async def test_what_was_accepted_goes_on_and_what_is_new_is_refused(harness: SessionHarness) -> None:
    session, idle = await harness.open(), await harness.open()
    go = "/tmp/orchestrator-is-back"
    running = await harness.prompt(session, {"wait": go}, {"say": "first "})
    await harness.watchers.until(session, "turn.started")
    queued = await harness.prompt(session, {"say": "second"}, when="queue", key="queued")
    is_lost = [True]

    def refuse() -> None:
        if is_lost[0]:
            raise slot_unavailable("orchestrator", "no answer")

    service = harness.sessions
    service.dependencies = replace(service.dependencies, refuse_new_work=refuse)
    for refused in (
        lambda: harness.prompt(idle, {"say": "never"}),
        lambda: harness.prompt(session, {"say": "never"}, when="steer"),
        lambda: harness.prompt(session, {"say": "never"}, when="queue"),
        harness.open,
        lambda: service.fork(idle, who="owner"),
    ):
        with pytest.raises(FreeholdError) as error:
            await refused()
        assert error.value.code == "orchestrator.unavailable"
    # The answer to this one may have been lost.
    assert await harness.prompt(session, {"say": "second"}, when="queue", key="queued") == queued
    await harness.computer.run(["touch", go])
    await harness.wait_ended(session, running)
    await harness.wait_ended(session, queued)
    assert harness.text_of(session) == "first second"
    is_lost[0] = False
    await harness.run_turn(idle, {"say": "again"})
    assert harness.text_of(idle) == "again"
