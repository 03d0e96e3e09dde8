"""The orchestrator slot at a paired neighbour: runs are signed work, once, and each session sees its own only."""

from collections.abc import AsyncIterator

import pytest
from tests.mesh.freeholds import MeshFreehold, pair, running_mesh
from tests.support.condition import until
from tests.support.scripted_runs import ScriptedRuns, use_scripted_runs

from freehold.gateway.session_service import _refuse_without
from freehold.slots import Slot, SlotCaller, SlotError
from freehold.slots.orchestrator.contract import (
    GetChanges,
    GetRun,
    ListRuns,
    ReadRun,
    Run,
    RunEvent,
    RunEvents,
    SpawnRun,
    TakeChanges,
    TerminateRun,
)
from freehold.slots.orchestrator.engine import ChildReport

HOST = '[slots]\norchestrator = "local"\n[mesh]\nmode = "peer"\n[mesh.work]\nbudget = 0.50\nmax_jobs = 4\n'
ASKER = """
[slots.orchestrator]
mode = "external"
settings = { url = "neighbour:maker" }
[mesh]
mode = "peer"
"""
OWNER, SESSION, OTHER = SlotCaller("owner"), SlotCaller("session:s1"), SlotCaller("session:s2")
Two = tuple[MeshFreehold, MeshFreehold, ScriptedRuns]


@pytest.fixture
async def two(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Two]:
    async with (
        running_mesh(tmp_path_factory.mktemp("home"), HOST) as host,
        running_mesh(tmp_path_factory.mktemp("home"), ASKER) as asker,
    ):
        runs = await use_scripted_runs(host.gateway)
        await pair(host, asker, gives=("work",))
        await until(lambda: slot_of(asker).status.state == "ok")
        yield host, asker, runs


def slot_of(freehold: MeshFreehold) -> Slot:
    return freehold.gateway.services.slots.get("orchestrator")


async def begun(runs: ScriptedRuns, number: int = 1) -> str:
    await until(lambda: len(runs.children) >= number)
    return list(runs.children)[number - 1]


async def problem_of(slot: Slot, request: object, caller: SlotCaller = OWNER) -> str:
    with pytest.raises(SlotError) as error:
        await slot.call(request, caller)  # type: ignore[arg-type]
    return error.value.problem


async def test_a_run_is_work_that_is_sent_and_its_words_stream_back(two: Two) -> None:
    host, asker, runs = two
    slot = slot_of(asker)
    run = await slot.call(SpawnRun("Write a poem", permissions=("ask", "network", "runs")), SESSION)
    assert (run.state, run.parent, run.computer) == ("starting", "s1", "neighbour:maker")
    id = await begun(runs)
    child = runs.children[id][0]
    # Of what was asked for, it gets what the host allows: neither its network nor further runs.
    assert (child.who, child.folder, child.permissions) == ("token:neighbour-other", None, ("ask",))
    there = host.gateway.services.timeline
    await until(lambda: [one.data["run"] for one in there.read(kinds=["mesh.work_received"])] == [id])
    await runs.tell(id, ChildReport(state="needs_you"))
    await until(lambda: state_is(slot, run.id, "needs_you"))
    runs.events[child.session] = [RunEvent(1, "t", "message", {"text": "Autumn"}), RunEvent(2, "t", "end", {})]
    runs.costs[child.session] = 0.25
    await runs.is_over_budget(id)
    await runs.tell(id, ChildReport(state="working"))

    async def read() -> RunEvents | None:
        page: RunEvents = await slot.call(ReadRun(run.id, 0, 1, 5.0), SESSION)
        return page if page.events else None

    heard = await until(read)
    assert heard is not None
    assert ([one.data for one in heard.events], heard.cursor) == ([{"text": "Autumn"}], 1)
    await runs.tell(id, ChildReport(state="done"))
    await until(lambda: state_is(slot, run.id, "done"))
    found = await slot.call(ReadRun(run.id, 1), SESSION)
    assert (found.run.outcome, found.run.cost, found.run.agent, found.cursor) == ("none", 0.25, "builtin", 2)
    # It is the same work that the owner sees on the page, and it is in the timeline of this side.
    assert [one["id"] for one in await asker.ask("GET", "/v1/mesh/work")] == [run.id]
    assert asker.gateway.services.timeline.read(kinds=["orchestrator.spawned"])[-1].who == "session:s1"
    assert (await slot.call(ListRuns(), SESSION)).cost == 0.25


async def state_is(slot: Slot, id: str, state: str) -> bool:
    found: Run = await slot.call(GetRun(id), OWNER)
    return found.state == state


async def test_a_session_sees_and_ends_only_what_it_sent(two: Two) -> None:
    _, asker, runs = two
    slot = slot_of(asker)
    mine, owners = await slot.call(SpawnRun("mine"), SESSION), await slot.call(SpawnRun("owners"), OWNER)
    await begun(runs, 2)
    for request in (GetRun(mine.id), ReadRun(mine.id), GetChanges(mine.id), TerminateRun(mine.id)):
        assert await problem_of(slot, request, OTHER) == "not-found"
    assert await problem_of(slot, TakeChanges(owners.id, "merge"), SESSION) == "not-found"
    assert [one.id for one in (await slot.call(ListRuns(), SESSION)).runs] == [mine.id]
    assert {one.id for one in (await slot.call(ListRuns(active=True), OWNER)).runs} == {mine.id, owners.id}
    first = await slot.call(ListRuns(limit=1), OWNER)
    second = await slot.call(ListRuns(limit=1, cursor=first.cursor), OWNER)
    assert ({first.runs[0].id, second.runs[0].id}, second.cursor) == ({mine.id, owners.id}, None)
    await until(lambda: state_is(slot, mine.id, "working"))
    await slot.call(TerminateRun(mine.id), SESSION)
    await until(lambda: bool(runs.ended))


async def test_a_run_with_a_key_is_sent_once_and_the_key_takes_no_other(two: Two) -> None:
    _, asker, runs = two
    slot = slot_of(asker)
    found = {(await slot.call(SpawnRun("Once", key="k"), SESSION)).id for _ in range(5)}
    assert len(found) == 1
    assert (await slot.call(SpawnRun("Once", key="k"), OTHER)).id not in found
    assert await problem_of(slot, SpawnRun("Another", key="k"), SESSION) == "conflict"
    await begun(runs, 2)
    assert len(runs.children) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        SpawnRun("x", folder="site"),
        SpawnRun("x", agent="codex"),
        SpawnRun("x", model="anthropic"),
        SpawnRun(""),
        SpawnRun("x", budget=-1),
        ReadRun("none", -1),
        ListRuns(cursor="x"),
        ListRuns(limit=0),
    ],
    ids=str,
)
async def test_what_a_neighbour_does_not_take_is_refused_before_it_is_sent(two: Two, wrong: object) -> None:
    _, asker, runs = two
    assert await problem_of(slot_of(asker), wrong) == "invalid"
    assert runs.children == {}


async def test_a_budget_can_only_be_lowered(two: Two) -> None:
    host, asker, runs = two
    for number, (asked, kept) in enumerate(((0.20, 0.20), (9.0, 0.50), (None, 0.50)), 1):
        await slot_of(asker).call(SpawnRun("x", budget=asked), OWNER)
        id = await begun(runs, number)
        there = await slot_of(host).call(GetRun(id), OWNER)
        assert there.budget == kept


async def test_a_neighbour_that_is_lost_stops_no_work_here_and_is_found_again(two: Two) -> None:
    host, asker, _ = two
    slot = slot_of(asker)
    await host.ask("PATCH", "/v1/mesh/neighbours/other", {"grants": []})
    assert (await slot.probe()) is not None
    assert "has not given you work" in str(slot.status.error)
    assert await problem_of(slot, SpawnRun("x")) == "unavailable"
    _refuse_without(slot)
    await host.ask("PATCH", "/v1/mesh/neighbours/other", {"grants": ["work"]})
    await until(lambda: slot.status.state == "ok")
