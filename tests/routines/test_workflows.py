"""Workflows at work: each step once, results from the journal, and nothing that runs while they wait."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.agents.session_harness import SessionHarness
from tests.routines.workflow_harness import WorkflowHarness, run_workflows
from tests.support.condition import DEADLINE, until

from freehold.computer import Computer
from freehold.egress.models import ModelUsage, TokenCounts
from freehold.errors import FreeholdError
from freehold.history.calls import MarkFiles
from freehold.routines.workflows.records import digest_source
from freehold.routines.workflows.store import WorkflowOrder
from freehold.typed_call import TypedCall

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def harness(sessions: SessionHarness, workspace: Path) -> AsyncIterator[WorkflowHarness]:
    async with run_workflows(sessions, workspace) as harness:
        yield harness


def say(*steps: object) -> str:
    """A prompt that the scripted agent follows, as text of Python."""
    return repr(f"[{json.dumps(list(steps))}]")


async def programs(computer: Computer) -> int:
    return len([one for one in await computer.processes() if "-I" in one.command and "-c" in one.command])


async def test_steps_run_in_order_and_the_result_of_main_is_kept(harness: WorkflowHarness) -> None:
    done = await harness.finish(
        """
        def double(number):
            print("printed", number)
            return number * 2

        async def main(data):
            four = await step(double, data["two"])
            result = await command("echo $WORKFLOW_STEP; exit 3", check=False)
            return {"four": four, "code": result.code, "output": result.output}
        """,
        data={"two": 2},
    )
    assert (done.state, done.result) == ("done", {"four": 4, "code": 3, "output": "2\n"})
    assert done.output == "printed 2\n"
    assert harness.shape(done) == [("1", "step", "done"), ("2", "command", "done")]


async def test_an_agent_answers_in_a_session_and_may_go_on_in_it(harness: WorkflowHarness) -> None:
    done = await harness.finish(
        f"""
        async def main(data):
            first = await agent({say({"say": "one"})}, session="talk")
            second = await agent({say({"past": True})}, session="talk", data={{"text": "from outside"}})
            third = await agent({say({"say": "three"})})
            return [first, "from outside" in second, third]
        """
    )
    assert (done.state, done.result) == ("done", ["one", True, "three"])
    first, second, third = harness.steps(done)
    assert first.session == second.session != third.session
    assert (first.turn, second.turn, third.turn) == (1, 2, 1)


async def test_two_agents_of_a_gather_may_share_a_session(harness: WorkflowHarness) -> None:
    """Their turns come one after the other, and each step has its own answer."""
    text = f"""
        async def main(data):
            return await gather(agent({say({"say": "one"})}, session="s"), agent({say({"say": "two"})}, session="s"))
        """
    done = await harness.finish(text)
    assert (done.state, sorted(done.result)) == ("done", ["one", "two"])
    assert sorted(str(step.turn) for step in harness.steps(done)) == ["1", "2"]


async def test_a_step_that_freehold_cannot_do_fails_and_does_not_wait_for_ever(
    harness: WorkflowHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def break_down(*_given: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(harness.service._agents, "begin", break_down)
    failed = await harness.finish(f"async def main(data):\n    await agent({say({'say': 'one'})})")
    assert (failed.state, failed.error) == ("failed", "Freehold has an error: freehold logs shows the cause")


async def test_nothing_runs_while_a_workflow_sleeps_asks_or_waits_for_an_event(
    harness: WorkflowHarness, computer: Computer
) -> None:
    begun = harness.begin(
        """
        async def main(data):
            await sleep(days=3)
            answer = await ask("Go on?", ["yes", "no"])
            told = await event("org.example.done")
            return [answer, told]
        """
    )

    async def rests() -> bool:
        waits = harness.service.store.get(begun.id).state == "waiting"
        return waits and await programs(computer) == 0 and not harness.service._executions

    await until(rests)
    harness.clock.forward(3 * 86400 - 1)
    assert harness.shape(begun) == [("1", "sleep", "waiting")]
    await harness.crash()
    harness.clock.forward(2)
    await until(lambda: harness.shape(begun)[1:] == [("2", "ask", "waiting")])
    await until(rests)
    with pytest.raises(FreeholdError, match="not one of the answers"):
        harness.service.store.steps.answer(begun.id, "2", "perhaps", who="owner")
    harness.service.store.steps.answer(begun.id, "2", "yes", who="owner")
    await until(lambda: harness.shape(begun)[2:] == [("3", "event", "waiting")])
    await until(rests)
    await harness.crash()
    harness.service.store.steps.signal(begun.id, "org.example.done", {"number": 7}, who="owner")
    done = await harness.until(begun, "done", "failed")
    assert (done.state, done.result) == ("done", ["yes", {"number": 7}])
    with pytest.raises(FreeholdError, match="waits for no answer"):
        harness.service.store.steps.answer(begun.id, "2", "no", who="owner")


@pytest.mark.parametrize("is_off", [False, True])
async def test_a_sleep_is_not_longer_because_the_clock_was_far_ahead(harness: WorkflowHarness, is_off: bool) -> None:
    """It stood in the year 2031 for a while, and was corrected, perhaps while everything was off."""
    harness.clock.set("2031-01-01 12:00")
    begun = harness.begin("async def main(data):\n    await sleep(days=3)\n    return 'slept'")
    await harness.until(begun, "waiting")
    if is_off:
        await harness.stop()
    harness.clock.set("2026-06-01 12:00")
    if is_off:
        await harness.crash()
    await until(lambda: harness.steps(begun)[0].wake == harness.clock.now() + 3 * 86400)
    harness.clock.set("1970-01-02 12:00")  # of a machine that has not been told the time yet
    harness.service.store.steps.plan_again()
    harness.clock.set("2026-06-04 11:00")
    harness.service.store.steps.plan_again()
    harness.service.store.steps.wake_due()
    assert harness.shape(begun) == [("1", "sleep", "waiting")]
    harness.clock.set("2026-06-04 12:00")
    assert (await harness.until(begun, "done")).result == "slept"


async def test_an_event_that_comes_before_it_is_waited_for_is_not_lost(harness: WorkflowHarness) -> None:
    begun = harness.begin(
        """
        async def main(data):
            await ask("Ready?")
            return [await event("go.*"), await event("go.*")]
        """
    )
    await until(lambda: harness.shape(begun) == [("1", "ask", "waiting")])
    for number in (1, 2):
        harness.service.store.steps.signal(begun.id, "go.now", number, who="owner")
    harness.service.store.steps.answer(begun.id, "1", "anything", who="owner")
    assert (await harness.until(begun, "done")).result == [1, 2]


async def test_branches_of_a_gather_work_at_once_and_each_keeps_its_own_steps(
    harness: WorkflowHarness, workspace: Path
) -> None:
    begun = harness.begin(
        """
        async def both(name, other):
            await command(f"touch {name}; timeout 60 bash -c 'until test -e {other}; do sleep 0.05; done'")
            answer = await ask(name)
            return await step(str.upper, answer)

        async def main(data):
            return await gather(both("a", "b"), both("b", "a"), step(len, "four"))
        """
    )

    def asked() -> dict[str, str]:
        return {step.title: step.place for step in harness.steps(begun) if step.kind == "ask"}

    await until(lambda: len(asked()) == 2)
    assert asked() == {"a": "1.1.2", "b": "1.2.2"}
    await harness.crash()
    # Answered in the other order: what belongs to what is told by the place.
    harness.service.store.steps.answer(begun.id, "1.2.2", "second", who="owner")
    await until(lambda: ("1.2.3", "step", "done") in harness.shape(begun))
    harness.service.store.steps.answer(begun.id, "1.1.2", "first", who="owner")
    done = await harness.until(begun, "done", "failed")
    assert (done.state, done.result) == ("done", ["FIRST", "SECOND", 4])
    for name in ("a", "b"):
        (workspace / name).unlink()


async def test_a_failure_can_be_caught_and_is_the_same_when_the_file_runs_again(harness: WorkflowHarness) -> None:
    begun = harness.begin(
        """
        def fail():
            raise ValueError("no luck")

        async def main(data):
            try:
                await step(fail)
            except StepFailed as error:
                caught = str(error)
            await ask("Go on?")
            await command("exit 4")
        """
    )
    await until(lambda: harness.shape(begun)[1:] == [("2", "ask", "waiting")])
    assert harness.steps(begun)[0].error == "ValueError: no luck"
    harness.service.store.steps.answer(begun.id, "2", "yes", who="owner")
    failed = await harness.until(begun, "failed", "done")
    assert str(failed.error).startswith("The command ended with exit code 4")
    assert "StepFailed" in str(failed.output)


async def test_a_step_is_tried_again_later_as_often_as_it_says(harness: WorkflowHarness, workspace: Path) -> None:
    begun = harness.begin(
        """
        async def main(data):
            return (await command("echo x >> tries; test $(wc -l < tries) = 3", retries=2, delay=60)).code
        """
    )

    def has_tried(times: int) -> bool:
        return [step.attempt for step in harness.steps(begun)] == [times + 1]

    for tries in (1, 2):
        await until(partial(has_tried, tries))
        assert len((workspace / "tries").read_text().split()) == tries
        harness.clock.forward(60 * tries)
    assert (await harness.until(begun, "done", "failed")).result == 0
    (workspace / "tries").unlink()


async def test_a_file_that_has_changed_stops_the_workflow(harness: WorkflowHarness) -> None:
    text = """
        async def main(data):
            await ask("Go on?")
        """
    begun = harness.begin(text)
    await until(lambda: harness.service.store.get(begun.id).state == "waiting")
    harness.write(text + "# changed\n        ")
    harness.service.store.steps.answer(begun.id, "1", "yes", who="owner")
    stopped = await harness.until(begun, "changed", "done", "failed")
    assert (stopped.state, stopped.error) == ("changed", "w.py is another text than the one that began")
    # The owner decides that the new text goes on with the old answer.
    harness.service.store.retry(begun.id, who="owner")
    assert (await harness.until(begun, "done", "changed")).state == "done"


async def test_steps_that_are_not_those_that_began_stop_the_workflow(harness: WorkflowHarness, workspace: Path) -> None:
    """The file is the same, but what it reads has changed."""
    (workspace / "mode").write_text("one")
    texts = """
        async def main(data):
            mode = open("/workspace/mode").read()
            if mode != "none":
                await command("echo " + mode)
            await ask("Go on?")
        """
    for mode, words in (("two", "step 1 was command 'echo one' and is command 'echo two' now"), ("none", "step 1 was")):
        (workspace / "mode").write_text("one")
        begun = harness.begin(texts)
        await harness.until(begun, "waiting")
        (workspace / "mode").write_text(mode)
        harness.service.store.steps.answer(begun.id, "2", "yes", who="owner")
        stopped = await harness.until(begun, "changed", "done", "failed")
        assert stopped.state == "changed"
        assert words in str(stopped.error)


async def test_a_workflow_that_comes_to_fewer_steps_than_before_stops(
    harness: WorkflowHarness, workspace: Path
) -> None:
    (workspace / "mode").write_text("one")
    begun = harness.begin(
        """
        async def main(data):
            await ask("First?")
            if open("/workspace/mode").read() == "one":
                await ask("Second?")
        """
    )
    await until(lambda: harness.shape(begun) == [("1", "ask", "waiting")])
    harness.service.store.steps.answer(begun.id, "1", "yes", who="owner")
    await until(lambda: harness.shape(begun)[1:] == [("2", "ask", "waiting")])
    await harness.until(begun, "waiting")
    (workspace / "mode").write_text("two")
    harness.service.store.steps.answer(begun.id, "2", "yes", who="owner")
    stopped = await harness.until(begun, "changed", "done")
    assert "step 2, ask 'Second?', does not come any more" in str(stopped.error)


async def test_retry_from_a_step_keeps_what_came_before_it(harness: WorkflowHarness, workspace: Path) -> None:
    text = """
        async def main(data):
            await command("echo 1 >> did")
            await command("echo 2 >> did")
            await command("test -e allowed")
        """
    failed = await harness.finish(text)
    assert failed.state == "failed"
    (workspace / "allowed").touch()
    harness.service.store.retry(failed.id, who="owner")
    assert (await harness.until(failed, "done", "failed")).state == "done"
    assert (workspace / "did").read_text() == "1\n2\n"
    harness.service.store.retry(failed.id, "2", who="owner")
    await harness.until(failed, "done", "failed")
    assert (workspace / "did").read_text() == "1\n2\n2\n"
    with pytest.raises(FreeholdError, match="no step"):
        harness.service.store.retry(failed.id, "9", who="owner")
    for name in ("did", "allowed"):
        (workspace / name).unlink()


async def test_a_retry_after_a_gather_does_again_only_what_failed(harness: WorkflowHarness, workspace: Path) -> None:
    failed = await harness.finish(
        """
        async def main(data):
            await gather(command("echo 1 >> did; test -e allowed"), command("echo 2 >> did"))
        """
    )
    assert failed.state == "failed"
    (workspace / "allowed").touch()
    harness.service.store.retry(failed.id, who="owner")
    assert (await harness.until(failed, "done", "failed")).state == "done"
    assert sorted((workspace / "did").read_text().split()) == ["1", "1", "2"]
    for name in ("did", "allowed"):
        (workspace / name).unlink()


@pytest.mark.parametrize("step", ["step(time.sleep, 987)", "command('/bin/sleep 987')"])
@pytest.mark.parametrize("end", ["crash", "cancel"])
async def test_what_changes_after_a_step_was_cut_off_is_not_its_own(
    harness: WorkflowHarness, step: str, end: str
) -> None:
    """Otherwise history took what the owner changes for its work, for hours."""
    begun = harness.begin(f"import time\nasync def main(data):\n    await {step}")
    calls = harness.sessions.keeper.calls

    def phases() -> list[str]:
        marks = [call for call in calls if isinstance(call, MarkFiles) and call.why == "workflow w, step 1"]
        return [mark.phase for mark in marks]

    calls.clear()
    await until(lambda: harness.shape(begun) and phases() == ["before"])
    if end == "crash":
        await harness.crash()
    else:
        await harness.service.cancel(begun.id, "owner")
    await until(lambda: phases()[-1] == "after")
    await harness.until(begun, "uncertain", "cancelled")


async def test_cancel_ends_the_agent_and_the_command_that_work(harness: WorkflowHarness, computer: Computer) -> None:
    begun = harness.begin(
        f"""
        async def main(data):
            await gather(agent({say({"say": "working"}, {"wait": True})}), command("/bin/sleep 987"))
        """
    )

    async def sleepers() -> list[int]:
        return [one.pid for one in await computer.processes() if one.command == ["/bin/sleep", "987"]]

    await until(sleepers)
    await until(lambda: any(step.turn for step in harness.steps(begun)))
    cancelled = await harness.service.cancel(begun.id, "owner")
    assert cancelled.state == "cancelled"
    assert {step.state for step in harness.steps(begun)} == {"cancelled"}

    async def is_over() -> bool:
        return not await sleepers() and await programs(computer) == 0

    await until(is_over)
    session = next(step.session for step in harness.steps(begun) if step.session is not None)
    assert (await harness.sessions.sessions.get(session)).status != "working"
    assert (await harness.service.cancel(begun.id, "owner")).state == "cancelled"


async def test_commands_that_wait_for_their_turn_never_run_after_a_cancel(
    harness: WorkflowHarness, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark before a command is held: it has begun for the journal, and has no process yet."""
    keeper, asked, go = harness.sessions.keeper, threading.Event(), threading.Event()

    def mark(call: TypedCall[Any]) -> Any:
        if isinstance(call, MarkFiles) and call.phase == "before":
            asked.set()
            assert go.wait(DEADLINE)
        return keeper._answer(call)

    monkeypatch.setattr(keeper, "service", mark)
    commands = ", ".join(f"command('touch late-{number}')" for number in range(12))
    begun = harness.begin(f"async def main(data):\n    await gather({commands})")
    await until(asked.is_set)
    await until(lambda: len(harness.steps(begun)) == 12)
    await harness.service.cancel(begun.id, "owner")
    go.set()
    await until(lambda: not harness.service._running)
    assert not list(workspace.glob("late-*"))


async def test_a_prompt_that_is_on_its_way_when_its_workflow_ends_is_ended_too(
    harness: WorkflowHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions, asked, go = harness.sessions.sessions, asyncio.Event(), asyncio.Event()
    send = sessions.prompt

    async def wait(*given: Any, **more: Any) -> Any:
        asked.set()
        await go.wait()
        return await send(*given, **more)

    monkeypatch.setattr(sessions, "prompt", wait)
    begun = harness.begin(f"async def main(data):\n    await agent({say({'hang': 'deaf'})})")
    await asked.wait()
    await harness.service.cancel(begun.id, "owner")
    go.set()
    (step,) = await until(lambda: [one for one in harness.steps(begun) if one.turn is not None])
    await until(lambda: sessions.dependencies.store.turns.get(str(step.session), 1).state == "ended")
    assert step.state == "cancelled"


async def test_agents_that_cost_as_much_as_the_budget_are_ended(harness: WorkflowHarness) -> None:
    async def usage_of(session: str, turn: str | None = None) -> ModelUsage:
        return ModelUsage(1, TokenCounts(), 0.75)

    harness.sessions.models.usage_of = usage_of  # type: ignore[method-assign]
    begun = harness.begin(
        f"""
        async def main(data):
            while True:
                await agent({say({"say": "more"})})
        """,
        budget=2.0,
    )
    failed = await harness.until(begun, "failed")
    assert failed.error == "Its agents have cost 2.00 US dollars, which is its budget"
    assert len(harness.steps(begun)) <= 4


async def test_an_agent_that_asks_and_goes_on_beside_it_ends_at_the_budget(
    harness: WorkflowHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    total = 0.25

    async def usage_of(session: str, turn: str | None = None) -> ModelUsage:
        return ModelUsage(1, TokenCounts(), total)

    monkeypatch.setattr(harness.sessions.models, "usage_of", usage_of)
    begun = harness.begin(f"async def main(data):\n    await agent({say({'run': 'touch x'})})", budget=0.5)
    await until(lambda: harness.shape(begun) == [("1", "agent", "waiting")])
    total = 0.75
    failed = await harness.until(begun, "failed")
    assert failed.error == "Its agents have cost 0.50 US dollars, which is its budget"
    await harness.service.wait_stopped(begun.id)
    assert harness.service.store.get(begun.id).cost == 0.75


async def test_an_agent_that_works_too_long_counts_for_the_budget(harness: WorkflowHarness) -> None:
    """Whoever lets agents run out of time again and again gets no more than its budget."""

    async def usage_of(session: str, turn: str | None = None) -> ModelUsage:
        return ModelUsage(1, TokenCounts(), 0.75)

    harness.sessions.models.usage_of = usage_of  # type: ignore[method-assign]
    ended = await harness.finish(
        f"""
        async def main(data):
            try:
                await agent({say({"hang": "deaf"})}, timeout=1)
            except StepFailed:
                return "late"
        """
    )
    assert (ended.state, ended.result, ended.cost) == ("done", "late", 0.75)


async def test_steps_that_are_done_again_count_for_the_budget(harness: WorkflowHarness) -> None:
    """Whoever begins a workflow again and again gets no more than its budget."""

    async def usage_of(session: str, turn: str | None = None) -> ModelUsage:
        return ModelUsage(1, TokenCounts(), 0.75)

    harness.sessions.models.usage_of = usage_of  # type: ignore[method-assign]
    begun = harness.begin(
        f"""
        async def main(data):
            await agent({say({"say": "done"})})
        """,
        budget=2.5,
    )
    for times in (1, 2, 3):
        assert (await harness.until(begun, "done", "failed")).cost == pytest.approx(0.75 * times)
        harness.service.store.retry(begun.id, "1", who="owner")
    # The fourth reaches the budget. Whether it is noticed while its agent works or afterwards, there is no fifth.
    ended = await harness.until(begun, "done", "failed")
    if ended.state == "done":
        harness.service.store.retry(begun.id, "1", who="owner")
        ended = await harness.until(begun, "done", "failed")
    assert ended.state == "failed"
    assert ended.error is not None
    assert "budget" in ended.error


async def test_the_journal_is_as_large_as_what_it_has(harness: WorkflowHarness) -> None:
    """What was thrown away for a retry does not count any more."""

    def size() -> int:
        ((size,),) = harness.service.journal.timeline.query(
            "SELECT size FROM workflows_workflow WHERE id = ?", (begun.id,)
        )
        return int(size)

    begun = await harness.finish("""
        async def main(data):
            for _ in range(3):
                await step(lambda: "x" * 1000)
        """)
    assert begun.state == "done"
    before = size()
    assert before > 3000
    for _ in range(2):
        harness.service.store.retry(begun.id, "1", who="owner")
        await harness.until(begun, "done")
        assert size() == before


async def test_a_request_of_an_agent_waits_for_the_owner_and_costs_nothing(
    sessions: SessionHarness, workspace: Path
) -> None:
    async with run_workflows(sessions, workspace, grace=0.0) as harness:
        begun = harness.begin(
            f"""
            async def main(data):
                return await agent({say({"run": "touch x"}, {"say": "done"})})
            """
        )
        await until(lambda: harness.shape(begun) == [("1", "agent", "waiting")])
        (step,) = harness.steps(begun)
        assert "It asks:" in str(step.error)
        approvals = sessions.sessions.dependencies.approvals.store
        (approval,) = approvals.list_pending(str(step.session))

        async def is_released() -> bool:
            return (await sessions.sessions.get(str(step.session))).status == "needs_you"

        await until(is_released)
        await sessions.sessions.answer(approval.id, "once", who="owner")
        assert (await harness.until(begun, "done", "failed", "uncertain")).state == "done"


async def test_a_request_of_an_agent_is_refused_when_the_workflow_says_so(harness: WorkflowHarness) -> None:
    done = await harness.finish(
        f"""
        async def main(data):
            return await agent({say({"run": "touch x"})})
        """,
        asks="refuse",
    )
    assert done.state in ("done", "failed")
    assert harness.service.store.steps.list_open_steps("agent") == []


async def test_what_can_never_run_is_refused_before_it_begins(harness: WorkflowHarness) -> None:
    for file in ("/etc/x.py", "../x.py", "a/../../x.py", "notes.txt", "a\n.py"):
        with pytest.raises(FreeholdError, match="is not a Python file of the workspace"):
            harness.service.store.add(WorkflowOrder(file, {}), who="owner")
    missing = harness.service.store.add(WorkflowOrder("missing.py", {}), who="owner")
    assert "missing.py" in str((await harness.until(missing, "failed")).error)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "The file has no main"),
        ("async def main(data):\n    await agent('!rm x')", "is a shell command: use command()"),
        ("import asyncio\nasync def main(data):\n    await asyncio.sleep(0)", "main can only await"),
        ("import os\nasync def main(data):\n    os._exit(3)", "ended before its main has returned"),
        ("async def main(data):\n    await step(object)", "not JSON serializable"),
        ("async def main(data):\n    await step(str.zfill, 'x', 300_000)", "longer than 262144 characters"),
        (
            "import os\nasync def main(data):\n    while True:\n        os.write(4, b'{\"idle\": 0}\\n')",
            "says again and again that it waits",
        ),
        ("import os\nasync def main(data):\n    os.write(4, b'{}\\n')\n    await step(str, 1)", "cannot be used"),
    ],
)
async def test_a_file_that_does_something_else_fails_with_a_clear_word(
    harness: WorkflowHarness, text: str, words: str
) -> None:
    failed = await harness.finish(text)
    assert failed.state == "failed"
    assert words in str(failed.error)


async def test_what_a_program_says_that_is_no_character_is_replaced(harness: WorkflowHarness) -> None:
    """Such as in the name of a file that is not UTF-8. A hostile program must not make its workflow unreadable."""
    text = """
        async def main(data):
            name = await step(str, "a\\udcff")
            try:
                await step(int, name + "\\ud800")
            except StepFailed as error:
                told = str(error)
            return [name, (await command(f"echo '\\udcff{name}'")).output, told]
        """
    done = await harness.finish(text)
    assert (done.state, done.error) == ("done", None)
    assert done.result == ["a?", "?a?\n", "ValueError: invalid literal for int() with base 10: 'a?\\ud800'"]
    assert [step.title for step in harness.steps(done)] == ["str", "int", "echo '?a?'"]
    failed = await harness.finish("async def main(data):\n    raise ValueError('\\ud800')")
    assert failed.error == "ValueError: ?"
    half = await harness.finish("async def main(data):\n    return '\\ud800'")
    assert half.result == "?"
    (told,) = harness.sessions.timeline.read(kinds=["workflow.done"])[-1:]
    assert told.data["result"] == "?"


async def test_a_text_that_was_approved_is_the_only_one_that_runs(harness: WorkflowHarness) -> None:
    begun = harness.begin("async def main(data):\n    return 1", digest="0" * 64)
    stopped = await harness.until(begun, "changed", "done")
    assert (stopped.state, stopped.started) == ("changed", None)


async def test_a_text_that_was_approved_imports_nothing_that_nobody_has_read(harness: WorkflowHarness) -> None:
    text = """
        import other

        async def main(data):
            return other.NAME
        """
    harness.write("NAME = 'of another file'", "other.py")
    assert (await harness.finish(text)).result == "of another file"
    harness.write(text)
    digest = digest_source((harness.workspace / "w.py").read_text())
    pinned = await harness.finish(text, digest=digest)
    assert (pinned.state, pinned.error) == ("failed", "ModuleNotFoundError: No module named 'other'")


async def test_a_workflow_that_is_retried_at_once_is_not_ended_by_its_last_program(harness: WorkflowHarness) -> None:
    begun = harness.begin("async def main(data):\n    return await ask('Go on?')")
    for _ in range(3):
        await until(lambda: harness.shape(begun) == [("1", "ask", "waiting")])
        harness.service.store.cancel(begun.id, who="owner", reason="test")
        harness.service.store.retry(begun.id, who="owner")
    await until(lambda: harness.shape(begun) == [("1", "ask", "waiting")])
    harness.service.store.steps.answer(begun.id, "1", "yes", who="owner")
    done = await harness.until(begun, "done", "failed", "changed", "uncertain")
    assert (done.state, done.result) == ("done", "yes")


async def test_results_that_are_too_many_end_a_workflow(harness: WorkflowHarness) -> None:
    text = "async def main(data):\n    for _ in range(100):\n        await step(str.zfill, 'x', 250_000)"
    failed = await harness.finish(text)
    assert failed.state == "failed"
    assert "16777216 is the most" in str(failed.error)


async def test_an_endless_file_has_bounds(harness: WorkflowHarness) -> None:
    harness.section = harness.section.model_copy(update={"steps": 5, "longest": 1})
    await harness.crash()
    failed = await harness.finish("async def main(data):\n    while True:\n        await step(str, 1)")
    assert failed.error == "The workflow has 5 steps"
    failed = await harness.finish("async def main(data):\n    while True:\n        pass")
    assert "without coming to a step" in str(failed.error)
