"""Agents run as many as the computer's memory holds. The others wait in order, say their place and can be cancelled."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.agents.session_harness import SessionHarness, run_harness
from tests.support.condition import DEADLINE, until

from freehold.agents.sessions import admission as admission_module
from freehold.agents.sessions import memory_watch, queue_publisher
from freehold.agents.sessions.admission import Admission, AgentPlace
from freehold.agents.sessions.agent_memory import AgentMemory
from freehold.computer import Computer, Limits
from freehold.computer.library.process_list import MemoryUse, read_memory_use, read_running_process
from freehold.errors import FreeholdError

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB = 1024**2
HOLDS_ONE = 300
"""MiB that hold one agent of a kind that is not known: 256 MiB are assumed for it."""


@pytest.fixture
def never_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The declared sizes stay."""
    monkeypatch.setattr(memory_watch, "INTERVAL", 3600.0)
    monkeypatch.setattr(memory_watch, "SHORT_INTERVAL", 3600.0)


@pytest_asyncio.fixture(loop_scope="module")
async def small(
    computer: Computer, workspace: Path, tmp_path: Path, never_measured: None
) -> AsyncIterator[SessionHarness]:
    """Sessions in a computer whose memory is said to hold one agent."""
    async with run_harness(computer, workspace, tmp_path / "home", memory=HOLDS_ONE) as harness:
        yield harness


async def begin(harness: SessionHarness) -> str:
    """A session whose agent works until it is cancelled."""
    session = await harness.open()
    await harness.prompt(session, {"hang": "until cancelled"})
    await harness.watchers.until(session, "turn.started")
    return session


async def wait_in_queue(harness: SessionHarness, *steps: dict[str, Any]) -> str:
    session = await harness.open()
    await harness.prompt(session, *steps)
    await until(lambda: harness.sessions.admission.find_waiting(session))
    return session


async def test_what_memory_does_not_hold_waits_says_its_place_and_runs_in_order(small: SessionHarness) -> None:
    first = await begin(small)
    second = await wait_in_queue(small, {"say": "second"})
    third = await wait_in_queue(small, {"say": "third"})
    row = await small.sessions.get(third)
    assert row.status == "queued"
    assert row.waiting == {
        "place": 2,
        "of": 2,
        "running": 1,
        "reason": "memory",
        "message": "Waiting: 2nd of 2; 1 agent is running, which is what 300 MiB hold. "
        "`[computer.limits] memory` allows more",
    }
    assert {found.id: found.status for found in await small.sessions.search()}[second] == "queued"
    # Every client is told, those who list sessions and those who follow one.
    await until(lambda: any(one.id == third and one.waiting == row.waiting for one in small.watchers.rows))
    assert any(one["kind"] == "waiting" and row.waiting["message"] == one["text"] for one in small.watchers.deltas)
    assert [event.kind for event in small.watchers.events[second]] == ["queued"]
    await small.sessions.cancel(first)
    await small.watchers.until(third, "turn.ended", stop_reason="end_turn")
    assert (small.text_of(second), small.text_of(third)) == ("second", "third")
    assert (await small.sessions.get(third)).waiting is None


async def test_a_prompt_that_waits_can_be_cancelled_and_its_agent_never_starts(small: SessionHarness) -> None:
    await begin(small)
    second = await wait_in_queue(small, {"say": "no"})
    third = await wait_in_queue(small, {"say": "later"})
    await small.sessions.cancel(second)
    await until(lambda: (place := small.sessions.admission.find_waiting(third)) is not None and place.place == 1)
    row = await small.sessions.get(second)
    assert (row.status, row.waiting) == ("idle", None)
    assert [event.kind for event in small.watchers.events[second]] == ["queued", "dropped"]


async def test_prompts_that_wait_survive_a_restart_in_their_order(small: SessionHarness) -> None:
    first = await begin(small)
    waiting = [await wait_in_queue(small, {"say": str(number)}) for number in range(3)]
    await small.restart()
    for session in waiting:
        await small.watchers.until(session, "turn.ended", stop_reason="end_turn")
    # The turn that ran is shown as interrupted; its agent was not started again.
    assert (await small.sessions.get(first)).status == "failed"
    started = [event.at for session in waiting for event in small.watchers.events[session] if event.kind == "message"]
    assert started == sorted(started)


async def test_a_command_of_the_owner_holds_back_no_other_session_after_a_restart(
    computer: Computer, workspace: Path, tmp_path: Path, never_measured: None
) -> None:
    async with run_harness(computer, workspace, tmp_path / "home", memory=2 * HOLDS_ONE) as harness:
        sessions = [await begin(harness) for _ in range(2)]
        for session in sessions:
            await harness.prompt(session, text="!sleep 4711")
        await harness.restart()
        for session in sessions:
            await harness.watchers.until(session, "turn.started")
        for session in sessions:
            await harness.sessions.cancel(session)


async def test_a_session_with_many_prompts_lets_others_have_their_turn(small: SessionHarness) -> None:
    greedy = await begin(small)
    for number in range(2):
        await small.prompt(greedy, {"say": f"more {number}"}, when="queue")
    patient = await wait_in_queue(small, {"say": "at last"})
    runner = small.sessions._runners[greedy]
    await runner.cancel()
    ended = await small.watchers.until(patient, "turn.ended", stop_reason="end_turn")
    last = await small.watchers.until(greedy, "turn.ended", 3)
    assert ended.at <= last.at
    assert small.text_of(greedy) == "more 0more 1"


async def test_the_kill_switch_ends_what_waits(small: SessionHarness) -> None:
    first = await begin(small)
    second = await wait_in_queue(small, {"say": "no"})
    await small.sessions.stop_all("stopped by a test")
    await small.sessions.wait_ended(20)
    assert small.sessions.admission.describe_waiting() == {}
    assert [event.kind for event in small.watchers.events[second]][:2] == ["queued", "dropped"]
    assert (await small.sessions.get(first)).status == "failed"


async def test_an_idle_agent_goes_when_another_needs_its_memory(small: SessionHarness) -> None:
    first = await small.open()
    await small.run_turn(first, {"say": "done"})
    runner = small.sessions._runners[first]
    await until(lambda: runner.idle_since is not None)
    second = await small.open()
    await small.run_turn(second, {"say": "mine"})
    assert runner.stopped.is_set()
    await small.run_turn(first, {"past": True})  # it continues where it was
    assert "done" in small.text_of(first)


async def test_what_agents_really_use_replaces_what_was_declared(
    computer: Computer, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_watch, "INTERVAL", 0.05)
    monkeypatch.setattr(memory_watch, "SHORT_INTERVAL", 0.05)
    async with run_harness(computer, workspace, tmp_path / "home", memory=HOLDS_ONE) as harness:
        sessions = [await begin(harness) for _ in range(4)]  # the second waits until the first was measured
        assert 8 * MIB <= harness.sessions.admission._sizes.expect("actor") < 60 * MIB
        for session in sessions:
            await harness.sessions.cancel(session)


async def test_the_memory_of_a_process_includes_what_it_started(computer: Computer) -> None:
    script = "import subprocess, sys; kept = bytearray(b'x') * (32 << 20); print(len(kept), flush=True); "
    script += "subprocess.run([sys.executable, '-c', \"kept = bytearray(b'x') * (48 << 20); print(1, flush=True); "
    script += 'input()"])'
    async with await computer.spawn(["python3", "-c", script]) as process:
        output = b""
        while output.count(b"\n") < 2:
            output += await process.stdout.read()
        use = await computer.measure_memory([process.pid, 999_999])
    assert 80 * MIB < use.trees[process.pid] < 200 * MIB
    assert use.trees[999_999] == 0
    assert use.other > MIB  # the guest


@pytest.mark.parametrize(
    "rows",
    [[[99, 10**400]], [[99, 2**63 + 1]], [[99, 2**63], [98, 1]], [[7, 2**63], [99, 2**63]], [[99, -1]], [[99, True]]],
    ids=["no-float", "too-large", "together", "with-agents", "negative", "boolean"],
)
async def test_sizes_that_no_memory_has_are_refused(rows: list[list[int]]) -> None:
    with pytest.raises(FreeholdError) as caught:
        read_memory_use([7], rows)
    assert caught.value.code == "link.protocol"


@pytest.mark.parametrize(
    ("place", "value"),
    [(6, 10**400), (0, -(10**400)), (5, float("nan")), (8, float("inf"))],
    ids=["memory", "pid", "cpu", "started"],
)
async def test_a_process_with_numbers_that_nothing_can_show_is_refused(place: int, value: float) -> None:
    row = [1, 0, 1, "sh", "S", 0.5, 4096, 1, 2.0, ["sh"], True]
    assert read_running_process(row).memory == 4096
    row[place] = value
    with pytest.raises(FreeholdError):
        read_running_process(row)


class LyingComputer:
    """The real computer, but for its answers about memory."""

    def __init__(self, computer: Computer, *answers: Callable[[], Awaitable[MemoryUse]]) -> None:
        self._computer = computer
        self._answers = list(answers)
        self.asked = 0

    async def measure_memory(self, leaders: Collection[int]) -> MemoryUse:
        self.asked += 1
        if self._answers:
            return await self._answers.pop(0)()
        return MemoryUse({}, 2**40)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._computer, name)


async def answer_too_large() -> MemoryUse:
    return MemoryUse({}, 10**400)


async def answer_never() -> MemoryUse:
    await asyncio.Event().wait()
    raise AssertionError


async def answer_with_a_bug() -> MemoryUse:
    raise KeyError("x")


async def test_no_answer_about_memory_ends_the_service_or_stops_its_measuring(
    computer: Computer, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guest that never answers, one whose answer cannot even be shown, and an error of Freehold's own."""
    monkeypatch.setattr(memory_watch, "INTERVAL", 0.05)
    monkeypatch.setattr(memory_watch, "SHORT_INTERVAL", 0.05)
    monkeypatch.setattr(memory_watch, "REPLY_TIMEOUT", 0.05)
    monkeypatch.setattr(queue_publisher, "PUBLISH_INTERVAL", 0.01)
    lying: Any = LyingComputer(computer, answer_too_large, answer_never, answer_with_a_bug)
    async with run_harness(lying, workspace, tmp_path / "home", memory=HOLDS_ONE) as harness:
        first = await begin(harness)
        second = await harness.open()
        await harness.prompt(second, {"say": "I waited"})
        await until(lambda: lying.asked > 4)
        third = await wait_in_queue(harness, {"say": "I too"})  # clients are told when the queue moves again
        await until(lambda: any("1024 GiB of other programs" in str(one.waiting) for one in harness.watchers.rows))
        await harness.sessions.cancel(first)
        for session in (second, third):
            await harness.watchers.until(session, "turn.ended", stop_reason="end_turn")


@pytest.fixture(scope="module")
def tight_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tight")


async def test_an_agent_that_is_ended_for_want_of_memory_says_so_and_names_the_setting(
    tight_workspace: Path, tmp_path: Path
) -> None:
    async with Computer.start(workspace=tight_workspace, limits=Limits(memory=96 * MIB)) as computer:
        machine = computer.machine
        assert machine is not None
        async with run_harness(computer, tight_workspace, tmp_path / "home", memory=96) as harness:
            harness.keeper.count_memory_kills = lambda: machine.usage().out_of_memory
            session = await harness.open()
            await harness.run_turn(session, {"say": "I live"})
            ended = await harness.run_turn(session, {"eat": 300})
            error = ended.data["error"]
            assert error["code"] == "agent.out-of-memory", error
            assert "96 MiB" in error["message"]
            assert "[computer.limits]" in error["hint"]
            # The session goes on with another agent.
            assert (await harness.run_turn(session, {"say": "again"})).data["stop_reason"] == "end_turn"


# The rules, without processes


class Resting:
    """An agent that can be idle."""

    def __init__(self, idle_since: float | None = None) -> None:
        self.idle_since = idle_since
        self.retired = False

    def retire(self) -> None:
        self.retired = True


class Queue:
    """An admission and the tasks of the agents that it let in."""

    def __init__(self, memory: int, starts: int = 1000, declared: int = 100) -> None:
        self.admission = Admission(memory, AgentMemory(lambda kind: declared), starts=starts, on_moved=lambda: None)
        self._held: list[tuple[AgentPlace, Any]] = []

    async def add(self, name: str, agent: Resting | None = None) -> AgentPlace:
        held = self.admission.admit(name, "kind", agent or Resting())
        place = await held.__aenter__()
        self._held.append((place, held))
        return place

    async def remove(self, place: AgentPlace) -> None:
        held = next(each for each in self._held if each[0] is place)
        self._held.remove(held)
        await held[1].__aexit__(None, None, None)


async def test_agents_start_a_few_at_a_time() -> None:
    queue = Queue(10**6, starts=2)
    first, second, third = [await queue.add(name) for name in "abc"]
    assert [place.decided.done() for place in (first, second, third)] == [True, True, False]
    waiting = queue.admission.find_waiting("c")
    assert waiting is not None
    assert waiting.message == "Waiting: 1st of 1; agents start 2 at a time"
    first.finish_start()
    assert third.decided.done()


async def test_an_agent_that_does_not_come_up_does_not_hold_back_the_others_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission_module, "START_TIMEOUT", 0.01)
    queue = Queue(10**6, starts=1)
    await queue.add("stuck")
    later = await queue.add("later")
    async with asyncio.timeout(DEADLINE):
        assert await later.decided


async def test_the_first_agent_is_admitted_however_small_the_memory() -> None:
    queue = Queue(10)
    assert (await queue.add("a")).decided.done()
    assert not (await queue.add("b")).decided.done()


async def test_the_least_recently_used_idle_agent_goes_first_and_no_more_than_needed() -> None:
    queue = Queue(400)  # holds three
    agents = {name: Resting(since) for name, since in (("old", 1.0), ("new", 3.0), ("middle", 2.0))}
    places = {name: await queue.add(name, agent) for name, agent in agents.items()}
    newcomer = await queue.add("newcomer")
    assert [name for name, agent in agents.items() if agent.retired] == ["old"]
    waiting = queue.admission.find_waiting("newcomer")
    assert waiting is not None
    assert waiting.running == 0  # an idle agent does not count as one that works
    await queue.remove(places["old"])
    assert newcomer.decided.done()


async def test_only_a_few_idle_agents_keep_running() -> None:
    queue = Queue(10**6)
    agents = [Resting(float(number)) for number in range(admission_module.MAX_IDLE + 3)]
    places = [await queue.add(str(number), agent) for number, agent in enumerate(agents)]
    places[-1].rest()
    assert [agent.retired for agent in agents] == [True] * 3 + [False] * admission_module.MAX_IDLE
    large = Queue(1000, declared=150)  # a quarter of what agents may use holds one of them
    idle = [Resting(1.0), Resting(2.0)]
    last = [await large.add(str(number), agent) for number, agent in enumerate(idle)][-1]
    last.rest()
    assert [agent.retired for agent in idle] == [True, False]


async def test_memory_of_other_programs_counts_and_is_named() -> None:
    queue = Queue(1000)
    for name in "abc":
        await queue.add(name)
    queue.admission.apply_measurement({}, other=500)
    assert not (await queue.add("d")).decided.done()
    waiting = queue.admission.find_waiting("d")
    assert waiting is not None
    assert "beside" in waiting.message
    queue.admission.apply_measurement({}, other=100)
    assert queue.admission.find_waiting("d") is None


async def test_one_agent_that_runs_a_large_program_does_not_decide_what_the_next_needs() -> None:
    sizes = AgentMemory(lambda kind: 200 * MIB)
    sizes.learn("kind", [20 * MIB] * 9)
    sizes.learn("kind", [3000 * MIB] * 2)
    assert sizes.expect("kind") == 20 * MIB
    assert sizes.expect("other") == 200 * MIB
