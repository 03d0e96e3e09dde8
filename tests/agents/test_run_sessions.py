"""Sessions of runs: without the computer of their run they are read, and nothing of theirs ever works in `main`."""

from pathlib import Path

import pytest
from tests.agents.session_harness import SessionHarness

from freehold.agents.sessions.permission_request import make_text_request
from freehold.agents.sessions.schema import SCHEMA
from freehold.agents.sessions.store import SessionStore
from freehold.errors import FreeholdError
from freehold.timeline import Timeline

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
WORDS = {"text": '[[{"say": "I work in main"}]]', "files": [], "images": []}


async def open_run(harness: SessionHarness) -> str:
    return (await harness.sessions.open("actor", None, None, who="owner", of_run=True)).id


async def test_a_prompt_of_a_run_that_a_crash_left_queued_is_dropped_and_never_sent(harness: SessionHarness) -> None:
    session = await open_run(harness)
    store = harness.sessions.dependencies.store
    store.turns.add(session, "k", WORDS, first=False, waits=False, who="owner")
    other = await harness.open()
    await harness.restart()
    store = harness.sessions.dependencies.store
    assert store.turns.find_next(session) is None
    assert (await harness.sessions.get(session)).status == "idle"
    # A later session works: the one of the run would have been woken before it.
    await harness.run_turn(other, {"say": "hello"})
    assert [event.kind for event in store.events(session)] == ["dropped"]


async def test_a_question_of_a_run_that_a_crash_left_open_is_withdrawn_and_its_answer_wakes_nobody(
    harness: SessionHarness,
) -> None:
    session = await open_run(harness)
    dependencies = harness.sessions.dependencies
    dependencies.store.turns.add(session, "k", WORDS, first=False, waits=False, who="owner")
    turn = dependencies.store.turns.get(session, 1)
    dependencies.store.turns.begin(session, turn, None, who="owner")
    asked, _ = dependencies.approvals.store.add(session, 1, make_text_request("host", "May I?", "write"))
    await harness.restart()
    assert harness.sessions.dependencies.approvals.store.list_pending() == []
    assert (await harness.sessions.get(session)).status == "failed"
    with pytest.raises(FreeholdError, match="belongs to a run"):
        await harness.sessions.answer(asked.id, "once", who="owner")
    assert harness.sessions.dependencies.store.turns.find_next(session) is None


async def test_a_session_of_a_run_without_a_computer_takes_no_prompt_and_starts_no_agent(
    harness: SessionHarness,
) -> None:
    session = await open_run(harness)
    for _ in range(2):
        with pytest.raises(FreeholdError) as refused:
            await harness.prompt(session, {"say": "I work in main"})
        assert refused.value.code == "session.run.conflict"
        with pytest.raises(FreeholdError, match="belongs to a run"):
            await harness.sessions.set_option(session, "mode", "x")
        with pytest.raises(FreeholdError, match="belongs to a run"):
            harness.sessions.dependencies.computer_of(session)
        await harness.restart()
    # The owner can go on in a copy, which is not one of the run.
    copy = await harness.sessions.fork(session, who="owner")
    await harness.run_turn(copy.id, {"say": "hello"})
    assert "hello" in harness.text_of(copy.id)


async def test_sessions_of_before_are_not_those_of_runs(tmp_path: Path) -> None:
    with Timeline(tmp_path / "timeline.db") as timeline:
        timeline.ensure_schema("agents", *SCHEMA[:-1])
        with timeline.transaction() as tx:
            tx.execute(
                "INSERT INTO agents_session (id, title, named, agent, status, created, updated, seq) "
                "VALUES ('old', 'Old', 1, 'actor', 'idle', '', '', 7)"
            )
        store = SessionStore(timeline)
        store.prepare()
        assert not store.is_of_run("old")
        made = store.create("actor", None, None, who="owner", of_run=True)
        assert store.is_of_run(made.id)
        again = SessionStore(timeline)
        again.prepare()
        assert again.is_of_run(made.id)
