"""What an agent offers is known while it does not run, and before a session has met it."""

import pytest
from tests.agents.stage import Stage

from freehold.agents.offering import read_offer
from freehold.errors import FreeholdError

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_new_session_knows_what_its_agent_told_another(stage: Stage) -> None:
    first = await stage.open()
    await stage.play(first, {"say": "x"})
    second = await stage.open()
    store = stage.room.ground.store
    own, borrowed = read_offer(store, first), read_offer(store, second)
    assert own.own
    assert not borrowed.own
    assert own.options is not None
    assert borrowed.options is not None
    assert borrowed.options["modes"] == own.options["modes"]


async def test_of_a_session_that_is_not_there_nothing_is_told(stage: Stage) -> None:
    with pytest.raises(FreeholdError, match="no session"):
        read_offer(stage.room.ground.store, "none")
