"""The options of an agent are known while it is not running, and in a session that has not started it yet."""

import pytest
from tests.agents.session_harness import SessionHarness

from freehold.agents.sessions.offered_options import read_offered_options
from freehold.errors import FreeholdError

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_new_session_shows_what_its_agent_reported_in_another(harness: SessionHarness) -> None:
    first = await harness.open()
    await harness.run_turn(first, {"say": "x"})
    second = await harness.open()
    store = harness.sessions.dependencies.store
    own, borrowed = read_offered_options(store, first), read_offered_options(store, second)
    assert own.own
    assert not borrowed.own
    assert own.options is not None
    assert borrowed.options is not None
    assert borrowed.options["modes"] == own.options["modes"]


async def test_the_model_that_was_chosen_by_an_option_of_the_agent_is_named(harness: SessionHarness) -> None:
    store = harness.sessions.dependencies.store
    session = await harness.open("models")
    await harness.run_turn(session, {"say": "x"})
    assert read_offered_options(store, session).chosen_model is None, "nobody chose one"
    await harness.sessions.set_option(session, "model", "opus")
    assert read_offered_options(store, session).chosen_model == "Opus"
    copied = await harness.sessions.fork(session, who="owner")
    assert read_offered_options(store, copied.id).chosen_model == "Opus", "the copy is set to the same"
    await harness.sessions.choose_model(session, None, "other-model", who="owner")
    assert read_offered_options(store, session).chosen_model is None, "the last choice counts"


async def test_an_unknown_session_has_no_offered_options(harness: SessionHarness) -> None:
    with pytest.raises(FreeholdError, match="no session"):
        read_offered_options(harness.sessions.dependencies.store, "none")
