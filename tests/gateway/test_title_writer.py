"""The title of a session is its first prompt, until its own model has written a better one."""

import pytest
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("builtin",), environment={"FREEHOLD_AGENTS_TITLES": "model"})


async def read_title(freehold: RunningFreehold, session: str) -> str:
    return str((await freehold.call("GET", f"/v1/sessions/{session}"))["title"])


@pytest.mark.parametrize("model", ["local", "anthropic"])
async def test_the_model_of_the_session_writes_its_title(freehold: RunningFreehold, model: str) -> None:
    session = await freehold.open("builtin", model=model)
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, "What would you do with a long and rambling question that has no end?")
        await watch.until("turn.ended")

    async def is_written() -> bool:
        return await read_title(freehold, session) == "Scripted title"

    await until(is_written)

    async def is_counted() -> bool:  # the gateway records a cost after the answer of the model
        usage = await freehold.call("GET", "/v1/usage?by=session")
        return any("titles" in str(row) for row in usage["rows"])

    await until(is_counted)


async def test_a_title_that_the_owner_chose_stays_and_costs_nothing(freehold: RunningFreehold) -> None:
    session = await freehold.open("builtin", title="Mine")
    asked = len(freehold.model.requests)
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, "SAY hello")
        await watch.until("turn.ended")
    assert await read_title(freehold, session) == "Mine"
    assert not any("Write a title" in str(request.json) for request in freehold.model.requests[asked:])


async def test_a_model_that_fails_leaves_the_prompt_as_the_title(freehold: RunningFreehold) -> None:
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, "FAIL 500")
        await watch.until("turn.ended")
    assert await read_title(freehold, session) == "FAIL 500"
