"""Work that nobody watches beside the owner's own: what it costs when it is cut off, whose questions are whose, and what
begins a routine."""

import asyncio
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.agents.session_harness import STOPPED, SessionHarness
from tests.routines.service_harness import RoutineHarness, run_routines
from tests.support.condition import DEADLINE, until

from freehold.agents.sessions.approval_store import ApprovalRow
from freehold.egress.models import ModelUsage, TokenCounts
from freehold.history.calls import MarkFiles
from freehold.routines.command_work import CommandWork
from freehold.typed_call import TypedCall

pytestmark = pytest.mark.asyncio(loop_scope="module")
COST = 0.75


@pytest_asyncio.fixture(loop_scope="module")
async def harness(sessions: SessionHarness) -> AsyncIterator[RoutineHarness]:
    async with run_routines(sessions) as harness:
        yield harness


def charge_at_the_end(harness: RoutineHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn is one request to a model, whose cost is known when its agent has ended."""

    async def usage_of(session: str, turn: str | None = None) -> ModelUsage:
        has_begun = any("working" in delta["text"] for delta in harness.sessions.watchers.deltas)
        is_over = session not in harness.sessions.sessions._runners
        return ModelUsage(1, TokenCounts(), COST if has_begun and is_over else 0.0)

    monkeypatch.setattr(harness.sessions.models, "usage_of", usage_of)


async def begin_endless(harness: RoutineHarness, **spec: object) -> str:
    """A run whose agent works without an end. Returns its id."""
    run = await harness.add_now("r", {"say": "working"}, {"hang": "deaf"}, webhook=True, every=None, **spec)
    await harness.sessions.watchers.until_text("working")
    await until(lambda: harness.service.runs.get(run.id).turn)
    return run.id


def has_runs(harness: RoutineHarness, count: int) -> bool:
    return len(harness.service.runs.list_runs("r")) >= count


def list_questions(harness: RoutineHarness, session: str) -> list[ApprovalRow]:
    return harness.sessions.sessions.dependencies.approvals.store.list_pending(session)


# Cost


async def test_a_run_that_is_replaced_counts_for_the_budget_of_its_day(
    harness: RoutineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a routine whose runs replace each other would have no budget at all."""
    charge_at_the_end(harness, monkeypatch)
    first = await begin_endless(harness, overlap="replace", budget_day=0.5)
    second = harness.run_now("r", "manual:2")
    refused = await harness.until(second, "skipped", "started", "done", "failed")
    assert (refused.state, refused.error) == (
        "skipped",
        "The runs of today have cost 0.75 US dollars; budget_day is 0.50",
    )
    replaced = harness.service.runs.get(first)
    assert (replaced.state, replaced.error, replaced.cost) == ("cancelled", "A newer run has replaced it", COST)


async def test_a_run_that_the_owner_or_the_kill_switch_ends_has_its_cost(
    harness: RoutineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge_at_the_end(harness, monkeypatch)
    ended = await harness.service.cancel(await begin_endless(harness), "owner")
    assert (ended.state, ended.error, ended.cost) == ("cancelled", "owner ended it", COST)
    harness.sessions.watchers.deltas.clear()
    run = harness.run_now("r", "manual:2")
    await harness.sessions.watchers.until_text("working")
    await until(lambda: harness.service.runs.get(run.id).turn)
    harness.sessions.models.stopped = STOPPED
    await harness.service.stop_all()
    stopped = harness.service.runs.get(run.id)
    assert (stopped.state, stopped.error, stopped.cost) == ("cancelled", "The owner stopped all agents", COST)
    assert harness.service.runs.sum_cost("r", 0) == 2 * COST


async def test_a_run_that_is_broken_off_has_failed_with_its_whole_cost(
    harness: RoutineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its agent ends with it, as one does that the owner ends. That is not taken for the end of the run."""
    charge_at_the_end(harness, monkeypatch)
    run = harness.service.runs.get(await begin_endless(harness))
    await harness.service._break_off(run, "It worked too long")
    ended = harness.service.runs.get(run.id)
    assert (ended.state, ended.error, ended.cost) == ("failed", "It worked too long", COST)


async def test_an_agent_that_asks_and_goes_on_beside_it_ends_at_its_budget(
    harness: RoutineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request must not be a minute without a bound."""
    total = 0.25

    async def usage_of(session: str, turn: str | None = None) -> ModelUsage:
        return ModelUsage(1, TokenCounts(), total)

    monkeypatch.setattr(harness.sessions.models, "usage_of", usage_of)
    run = await harness.add_now("r", {"run": "true"}, {"say": "never"}, webhook=True, every=None, budget=0.5)
    await harness.until(run, "parked")
    total = 0.75
    ended = await harness.until(run, "failed")
    assert (ended.error, ended.cost) == ("It has cost 0.50 US dollars, which is its budget", 0.75)
    assert not list_questions(harness, str(ended.session))


# What begins a routine


async def test_a_routine_that_goes_on_with_the_session_that_begins_it_does_not_begin_itself(
    harness: RoutineHarness,
) -> None:
    session = await harness.sessions.open()
    spec = {"after": f"session:{session}", "session": session, "every": None, "overlap": "queue"}
    await harness.add("r", {"say": "I follow."}, **spec)
    for count in (1, 2):
        await harness.sessions.run_turn(session, {"say": "mine"})
        # The end of its own turn was seen before that of the owner's next one.
        await until(partial(has_runs, harness, count))
        await harness.until(harness.service.runs.list_runs("r")[0], "done")
    assert len(harness.service.runs.list_runs("r")) == 2


async def test_an_answer_to_what_a_routine_asked_is_no_turn_of_the_owner(sessions: SessionHarness) -> None:
    """The answer comes as a prompt of its own, because the agent that asked has ended."""
    async with run_routines(sessions, grace=0.0) as harness:
        session = await sessions.open()
        await harness.add("after", command="true", after=f"session:{session}", every=None)
        asking = await harness.add_now("asks", {"run": "true"}, {"say": "done"}, session=session)
        await harness.until(asking, "parked")
        await until(lambda: session not in sessions.sessions._runners)
        (approval,) = list_questions(harness, session)
        await sessions.sessions.answer(approval.id, "once", who="owner")
        await harness.until(asking, "done")
        assert harness.turns(session) == 2
        await sessions.run_turn(session, {"say": "mine"})
        (run,) = await until(lambda: harness.service.runs.list_runs("after"))
        assert run.data == {"session": session, "turn": 3}
        await harness.until(run, "done")


async def test_a_prompt_whose_key_only_looks_like_an_answer_is_a_turn_of_the_owner(harness: RoutineHarness) -> None:
    """A client chooses the keys of its prompts."""
    session = await harness.sessions.open()
    await harness.add("after", command="true", after=f"session:{session}", every=None)
    await harness.sessions.run_turn(session, {"say": "mine"}, key="approval:none")
    (run,) = await until(lambda: harness.service.runs.list_runs("after"))
    assert run.data == {"session": session, "turn": 1}
    await harness.until(run, "done")


# Questions


async def test_a_run_that_waits_behind_the_owner_refuses_only_what_it_asks_itself(harness: RoutineHarness) -> None:
    session = await harness.sessions.open()
    turn = await harness.sessions.prompt(session, {"run": "true"}, {"say": "mine"})
    await until(lambda: list_questions(harness, session))
    spec = {"session": session, "asks": "refuse", "webhook": True, "every": None}
    run = await harness.add_now("r", {"run": "touch /workspace/refused"}, {"say": "end"}, **spec)
    await until(lambda: harness.service.runs.get(run.id).turn)
    await harness.service._settle(run.id)
    (mine,) = list_questions(harness, session)
    assert mine.turn == turn
    await harness.sessions.sessions.answer(mine.id, "once", who="owner")
    await harness.until(run, "done")
    assert harness.sessions.text_of(session) == "[yes]mine[no]end"
    answered = harness.sessions.timeline.read(kinds=["approval.answered"])
    assert [event.who for event in answered] == ["owner", "routine:r"]


async def test_a_run_that_waits_behind_the_owner_is_not_parked_by_what_the_owner_is_asked(
    harness: RoutineHarness,
) -> None:
    session = await harness.sessions.open()
    await harness.sessions.prompt(session, {"run": "true"}, {"say": "mine"})
    (mine,) = await until(lambda: list_questions(harness, session))
    run = await harness.add_now("r", {"say": "end"}, session=session, webhook=True, every=None)
    await until(lambda: harness.service.runs.get(run.id).turn)
    await harness.service._settle(run.id)
    assert harness.service.runs.get(run.id).state == "started"
    await harness.sessions.sessions.answer(mine.id, "reject", who="owner")
    assert (await harness.until(run, "done")).result == "end"


async def test_two_runs_in_one_session_each_keep_to_their_own_rule(harness: RoutineHarness) -> None:
    session = await harness.sessions.open()
    spec = {"session": session, "webhook": True, "every": None}
    parked = await harness.add_now("parks", {"run": "true"}, {"say": "one"}, **spec)
    await harness.until(parked, "parked")
    refusing = await harness.add_now("refuses", {"run": "true"}, {"say": "two"}, asks="refuse", **spec)
    await until(lambda: harness.service.runs.get(refusing.id).turn)
    (asked,) = list_questions(harness, session)
    await harness.sessions.sessions.answer(asked.id, "once", who="owner")
    await harness.until(refusing, "done")
    await harness.until(parked, "done")
    assert harness.sessions.text_of(session) == "[yes]one[no]two"


# An end


async def test_the_end_of_a_run_leaves_the_owners_turn_in_the_same_session(harness: RoutineHarness) -> None:
    session = await harness.sessions.open()
    turn = await harness.sessions.prompt(session, {"run": "true"}, {"say": "mine"})
    (mine,) = await until(lambda: list_questions(harness, session))
    run = await harness.add_now("r", {"say": "late"}, session=session, webhook=True, every=None)
    await until(lambda: harness.service.runs.get(run.id).turn)
    assert (await harness.service.cancel(run.id, "owner")).state == "cancelled"
    assert list_questions(harness, session) == [mine]
    await harness.sessions.sessions.answer(mine.id, "once", who="owner")
    await harness.sessions.wait_ended(session, turn)
    assert harness.sessions.text_of(session) == "[yes]mine"


async def test_the_end_of_a_run_at_work_lets_the_owners_next_prompt_begin(harness: RoutineHarness) -> None:
    session = await harness.sessions.open()
    run = await harness.add_now("r", {"run": "true"}, {"say": "never"}, session=session, webhook=True, every=None)
    await until(lambda: list_questions(harness, session))
    turn = await harness.sessions.prompt(session, {"say": "mine"}, when="queue")
    assert (await harness.service.cancel(run.id, "owner")).state == "cancelled"
    await harness.sessions.wait_ended(session, turn)
    assert harness.sessions.text_of(session) == "mine"
    assert not list_questions(harness, session)


async def test_a_run_has_its_own_end_and_cost_whatever_the_owner_does_after_it(
    harness: RoutineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner's next turn in the same session works, costs money, and is cancelled."""
    costs = {"1": 0.25, "2": 7.0}

    async def usage_of(session: str, turn: str | None = None) -> ModelUsage:
        return ModelUsage(1, TokenCounts(), costs[str(turn)])

    monkeypatch.setattr(harness.sessions.models, "usage_of", usage_of)
    session = await harness.sessions.open()
    spec = {"session": session, "webhook": True, "every": None, "budget": 1.0, "retries": 1}
    run = await harness.add_now("r", {"run": "true"}, {"say": "of the run"}, **spec)
    await harness.until(run, "parked")
    turn = await harness.sessions.prompt(session, {"run": "true"}, {"say": "mine"}, when="queue")
    await harness.sessions.sessions.answer(list_questions(harness, session)[0].id, "once", who="owner")
    ended = await harness.until(run, "done", "failed", "cancelled", "due")
    assert (ended.state, ended.result, ended.cost) == ("done", "[yes]of the run", 0.25)
    (mine,) = await until(lambda: list_questions(harness, session))
    assert mine.turn == turn
    await harness.sessions.sessions.answer(mine.id, "reject", who="owner")
    await harness.sessions.wait_ended(session, turn)


async def test_a_command_that_is_stopped_before_its_process_runs_never_runs(
    harness: RoutineHarness, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, asked, go = harness.sessions.keeper, threading.Event(), threading.Event()

    def mark(call: TypedCall[Any]) -> Any:
        if isinstance(call, MarkFiles) and call.phase == "before":
            asked.set()
            assert go.wait(DEADLINE)
        return keeper._answer(call)

    monkeypatch.setattr(keeper, "service", mark)
    run = await harness.add_now("r", command="touch /workspace/late", webhook=True, every=None, overlap="queue")
    await until(asked.is_set)
    assert (await harness.service.cancel(run.id, "owner")).state == "cancelled"
    go.set()
    await harness.until(harness.run_now("r", "manual:2"), "done")  # it begins when the first one is over
    (workspace / "late").unlink()
    run = harness.run_now("r", "manual:3")
    asked.clear()
    go.clear()
    await until(asked.is_set)
    harness.sessions.models.stopped = STOPPED
    await harness.service.stop_all()
    go.set()
    work = harness.service._works["command"]
    assert isinstance(work, CommandWork)
    await until(lambda: not work._commands)
    assert not (workspace / "late").exists()


async def test_a_prompt_that_is_on_its_way_when_its_run_ends_is_ended_too(
    harness: RoutineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions, asked, go = harness.sessions.sessions, asyncio.Event(), asyncio.Event()
    send = sessions.prompt

    async def wait(*given: Any, **more: Any) -> Any:
        asked.set()
        await go.wait()
        return await send(*given, **more)

    monkeypatch.setattr(sessions, "prompt", wait)
    run = await harness.add_now("r", {"say": "working"}, {"hang": "deaf"}, webhook=True, every=None)
    await asked.wait()
    ended = await harness.service.cancel(run.id, "owner")
    assert ended.state == "cancelled"
    go.set()
    await until(lambda: harness.service.runs.get(run.id).turn)
    store = sessions.dependencies.store
    await until(lambda: store.turns.get(str(ended.session), 1).state == "ended")
    assert (await sessions.get(str(ended.session))).status not in ("working", "queued")
