"""The orchestrator: bounds, costs, who sees which run, and changes that are taken once."""

import asyncio

import httpx2
import pytest
from tests.slots.conftest import SlotBench
from tests.slots.test_faults import running
from tests.support.condition import until
from tests.support.scripted_runs import ScriptedRuns

import freehold.slots.slot as slot_module
from freehold.errors import FreeholdError
from freehold.manifest.sections.slots import SlotSection
from freehold.slots import Slot, SlotCaller, SlotError
from freehold.slots.host import make_slot
from freehold.slots.orchestrator import store as run_store
from freehold.slots.orchestrator.contract import (
    PERMISSIONS,
    GetChanges,
    GetRun,
    ListRuns,
    ReadRun,
    Run,
    RunChange,
    RunEvent,
    SpawnRun,
    TakeChanges,
    TerminateRun,
)
from freehold.slots.orchestrator.engine import ChangeCounts, ChildReport
from freehold.slots.orchestrator.store import LOST

OWNER = SlotCaller("owner")
CHANGES = (
    RunChange("site/a.txt", "changed", 3, "+x\n", False),
    RunChange("site/b.txt", "removed", 0, None, False),
)


def engine_of(bench: SlotBench) -> ScriptedRuns:
    engine = bench.place.engine.engine
    assert isinstance(engine, ScriptedRuns)
    return engine


async def spawn(slot: Slot, caller: SlotCaller = OWNER, **more: object) -> Run:
    return await slot.call(SpawnRun("Do it", **more), caller)  # type: ignore[arg-type]


async def problem_of(slot: Slot, request: object, caller: SlotCaller = OWNER) -> str:
    try:
        await slot.call(request, caller)  # type: ignore[arg-type]
    except SlotError as error:
        return error.problem
    return "none"


async def finish(bench: SlotBench, run: Run, changes: tuple[RunChange, ...] = ()) -> None:
    engine_of(bench).changes[run.id] = changes
    kinds = [one.kind for one in changes]
    counts = ChangeCounts(kinds.count("added"), kinds.count("changed"), kinds.count("removed"))
    await engine_of(bench).tell(run.id, ChildReport(changes=counts))
    await engine_of(bench).tell(run.id, ChildReport(state="done"))


async def test_a_run_goes_from_its_prompt_to_merged_changes(bench: SlotBench) -> None:
    async with bench.open("orchestrator", "local") as slot:
        run = await spawn(slot, folder="site", title="The site")
        child, _, _ = engine_of(bench).children[run.id]
        assert (child.prompt, child.folder, run.state, run.depth) == ("Do it", "site", "starting", 1)
        await engine_of(bench).tell(run.id, ChildReport(state="working"))
        assert await problem_of(slot, TakeChanges(run.id, "merge")) == "conflict"
        engine_of(bench).events[run.session] = [RunEvent(1, "t", "message", {"text": "done"})]
        read = await slot.call(ReadRun(run.id, seconds=1.0), OWNER)
        assert (read.run.state, [one.data["text"] for one in read.events], read.cursor) == ("working", ["done"], 1)
        await finish(bench, run, CHANGES)
        found = await slot.call(GetChanges(run.id), OWNER)
        assert [(one.path, one.kind) for one in found.files] == [("site/a.txt", "changed"), ("site/b.txt", "removed")]
        assert (found.run.changed, found.run.removed, found.run.outcome) == (1, 1, "pending")
        merged = await slot.call(TakeChanges(run.id, "merge", key="k"), OWNER)
        assert (merged.outcome, engine_of(bench).merged) == ("merged", [run.id])
        assert await slot.call(TakeChanges(run.id, "merge", key="k"), OWNER) == merged
        assert len(engine_of(bench).merged) == 1
        assert await problem_of(slot, TakeChanges(run.id, "drop")) == "conflict"
        assert (await slot.call(GetChanges(run.id), OWNER)).files == ()


async def test_changes_that_would_overwrite_those_of_others_are_refused_as_a_whole(bench: SlotBench) -> None:
    async with bench.open("orchestrator", "local") as slot:
        run = await spawn(slot)
        await finish(bench, run, (RunChange("site/a.txt", "changed", 3, None, True),))
        with pytest.raises(SlotError, match=r"site/a\.txt"):
            await slot.call(TakeChanges(run.id, "merge"), OWNER)
        assert engine_of(bench).merged == []
        assert (await slot.call(TakeChanges(run.id, "merge", force=True), OWNER)).outcome == "merged"


async def test_the_owner_may_allow_more_runs_at_once(bench: SlotBench) -> None:
    """Ten agents on ten branches, of one session, on a machine or a fleet that holds them."""
    section = SlotSection(mode="local", settings={"max_active": "11", "max_of_session": "10"})
    slot = make_slot("orchestrator", section, bench.place)
    await slot.connect()
    try:
        parent = SlotCaller("session:first")
        for _ in range(10):
            await spawn(slot, parent)
        assert await problem_of(slot, SpawnRun("x"), parent) == "conflict"
        await spawn(slot)
        assert await problem_of(slot, SpawnRun("x")) == "conflict"
    finally:
        await slot.close()


@pytest.mark.parametrize(
    "settings", [{"max_active": "0"}, {"max_active": "many"}, {"max_of_session": "1001"}, {"max": "9"}]
)
async def test_a_bound_that_is_not_valid_is_said(bench: SlotBench, settings: dict[str, str]) -> None:
    slot = make_slot("orchestrator", SlotSection(mode="local", settings=settings), bench.place)
    with pytest.raises(SlotError, match=r"slots\.orchestrator\.settings"):
        await slot.connect()


async def test_the_number_and_the_depth_of_runs_are_bounded(bench: SlotBench) -> None:
    async with bench.open("orchestrator", "local") as slot:
        parent = SlotCaller("session:first")
        own = [await spawn(slot, parent) for _ in range(5)]
        assert await problem_of(slot, SpawnRun("x"), parent) == "conflict"
        others = [await spawn(slot) for _ in range(3)]
        assert await problem_of(slot, SpawnRun("x")) == "conflict"
        await finish(bench, own[0])
        below = await spawn(slot, SlotCaller(f"session:{own[1].session}"))
        assert (below.depth, below.parent) == (2, own[1].session)
        await finish(bench, others[0])
        assert await problem_of(slot, SpawnRun("x"), SlotCaller(f"session:{below.session}")) == "denied"


async def test_a_session_sees_and_ends_its_own_runs_only(bench: SlotBench) -> None:
    async with bench.open("orchestrator", "local") as slot:
        one, other = SlotCaller("session:a"), SlotCaller("session:b")
        run = await spawn(slot, one)
        for request in (GetRun(run.id), ReadRun(run.id), GetChanges(run.id), TerminateRun(run.id)):
            assert await problem_of(slot, request, other) == "not-found"
            assert await problem_of(slot, request, one) == "none"
        assert (await slot.call(ListRuns(parent="a"), other)).runs == ()
        assert [found.id for found in (await slot.call(ListRuns(), OWNER)).runs] == [run.id]
        assert engine_of(bench).ended == [run.id]


async def test_who_waits_for_what_a_run_says_is_told_at_once(bench: SlotBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_store, "LOOK_AGAIN", 600.0)
    async with bench.open("orchestrator", "local") as slot:
        run = await spawn(slot)
        waiting = [asyncio.ensure_future(slot.call(ReadRun(run.id, seconds=5.0), OWNER)) for _ in range(2)]
        await asyncio.sleep(0)
        engine_of(bench).events[run.session] = [RunEvent(1, "t", "message", {"text": "words"})]
        for one in waiting:
            assert [event.data["text"] for event in (await one).events] == ["words"]
        # Nothing more is said. The end of the run is told as well.
        last = asyncio.ensure_future(slot.call(ReadRun(run.id, after=1, seconds=5.0), OWNER))
        await finish(bench, run, CHANGES)
        assert (await last).cursor == 1


async def test_the_cost_of_runs_below_counts_to_the_one_above(bench: SlotBench) -> None:
    async with bench.open("orchestrator", "local") as slot:
        run = await spawn(slot, budget=1.0)
        below = await spawn(slot, SlotCaller(f"session:{run.session}"))
        engine = engine_of(bench)
        engine.costs = {run.session: 0.4, below.session: 0.5}
        assert not await engine.is_over_budget(run.id)
        engine.costs[below.session] = 0.7
        assert await engine.is_over_budget(run.id)
        assert (await slot.call(GetRun(run.id), OWNER)).cost == pytest.approx(1.1)


async def test_a_child_cannot_spend_more_than_is_left_of_any_budget_above_it(bench: SlotBench) -> None:
    async with bench.open("orchestrator", "local") as slot:
        engine = engine_of(bench)
        run = await spawn(slot, budget=1.0)
        engine.costs = {run.session: 0.4}
        inside = SlotCaller(f"session:{run.session}")
        free, greedy, modest = [await spawn(slot, inside, budget=one) for one in (None, 50.0, 0.1)]
        assert [one.budget for one in (free, greedy, modest)] == pytest.approx([0.6, 0.6, 0.1])
        # The one above has finished, and its budget holds on.
        await finish(bench, run)
        assert not await engine.is_over_budget(free.id)
        engine.costs[greedy.session] = 0.61
        assert await engine.is_over_budget(greedy.id)
        assert await engine.is_over_budget(free.id)
        assert await problem_of(slot, SpawnRun("more"), inside) == "denied"
        assert engine.opened == 4


async def test_who_ends_a_run_ends_those_below_it_and_so_does_its_failure(bench: SlotBench) -> None:
    async with bench.open("orchestrator", "local") as slot:
        engine = engine_of(bench)
        run = await spawn(slot)
        below = await spawn(slot, SlotCaller(f"session:{run.session}"))
        await slot.call(TerminateRun(run.id), OWNER)
        assert engine.ended == [run.id, below.id]
        engine.ended.clear()
        await engine.tell(run.id, ChildReport(state="failed", error="x"))
        assert engine.ended == [below.id]
        engine.ended.clear()
        # It has finished itself: what is below it is ended all the same.
        await slot.call(TerminateRun(run.id), OWNER)
        assert engine.ended == [below.id]


async def test_a_request_of_unknown_price_is_over_every_budget(bench: SlotBench) -> None:
    async with bench.open("orchestrator", "local") as slot:
        engine = engine_of(bench)
        limited, free = await spawn(slot, budget=100.0), await spawn(slot)
        engine.unpriced = {limited.session, free.session}
        assert await engine.is_over_budget(limited.id)
        assert not await engine.is_over_budget(free.id)
        assert (await slot.call(GetRun(limited.id), OWNER)).cost == 0.0


@pytest.mark.parametrize("key", ["k" * 300, "a\tb", ""])
async def test_a_key_that_is_wrong_has_no_effect(bench: SlotBench, key: str) -> None:
    async with bench.open("orchestrator", "local") as slot:
        run = await spawn(slot)
        await finish(bench, run, CHANGES)
        works = await spawn(slot)
        for request in (SpawnRun("x", key=key), TakeChanges(run.id, "merge", key=key), TerminateRun(works.id, key=key)):
            assert await problem_of(slot, request) == "invalid"
        engine = engine_of(bench)
        assert (engine.opened, engine.merged, engine.ended) == (2, [], [])


async def test_a_key_of_another_request_has_no_effect_also_when_its_answer_is_old(bench: SlotBench) -> None:
    async with bench.open("orchestrator", "local") as slot:
        run = await spawn(slot)
        await finish(bench, run, CHANGES)
        first = await spawn(slot, key="K")
        for _ in range(2):
            assert await problem_of(slot, TakeChanges(run.id, "merge", key="K")) == "conflict"
            assert await problem_of(slot, TerminateRun(first.id, key="K")) == "conflict"
            assert await problem_of(slot, SpawnRun("Another", key="K")) == "conflict"
            assert await spawn(slot, key="K") == first
            with bench.place.timeline.transaction() as tx:
                tx.execute("UPDATE orchestrator_answer SET at = at - 800000")
        engine = engine_of(bench)
        assert (engine.opened, engine.merged, engine.ended) == (2, [], [])
        assert (await slot.call(GetRun(run.id), OWNER)).outcome == "pending"


async def test_a_merge_and_a_drop_at_once_do_not_meet(bench: SlotBench, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench.open("orchestrator", "local") as slot:
        run = await spawn(slot)
        await finish(bench, run, CHANGES)
        engine, merges, go_on = engine_of(bench), asyncio.Event(), asyncio.Event()
        merge = engine.merge

        async def slow(id: str, why: str, who: str, *, force: bool) -> None:
            merges.set()
            await go_on.wait()
            await merge(id, why, who, force=force)

        monkeypatch.setattr(engine, "merge", slow)
        first = asyncio.ensure_future(problem_of(slot, TakeChanges(run.id, "merge")))
        await merges.wait()
        others = [asyncio.ensure_future(problem_of(slot, TakeChanges(run.id, how))) for how in ("drop", "merge")]
        # Each of them has come as far as it can.
        assert (await slot.call(GetRun(run.id), OWNER)).outcome == "pending"
        go_on.set()
        assert [await one for one in (first, *others)] == ["none", "conflict", "conflict"]
        assert (engine.merged, engine.dropped) == ([run.id], [])
        assert (await slot.call(GetRun(run.id), OWNER)).outcome == "merged"


async def test_a_slow_answer_about_changes_is_not_the_loss_of_the_slot(
    bench: SlotBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench.open("orchestrator", "local") as slot:
        run = await spawn(slot)
        await finish(bench, run, CHANGES)

        async def never(id: str) -> tuple[tuple[RunChange, ...], int]:
            await asyncio.Event().wait()
            return (), 0

        monkeypatch.setattr(engine_of(bench), "compare", never)
        monkeypatch.setattr(slot_module, "CALL_TIMEOUT", 0.01)
        assert GetChanges.seconds_allowed is not None
        asking = asyncio.ensure_future(problem_of(slot, GetChanges(run.id)))
        await asyncio.sleep(0.1)
        assert not asking.done()
        asking.cancel()
        monkeypatch.setattr(GetChanges, "seconds_allowed", 0.01)
        assert await problem_of(slot, GetChanges(run.id)) == "unavailable"
        assert slot.status.state == "ok"


async def test_a_run_of_before_that_cannot_be_ended_holds_up_no_other(
    bench: SlotBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench.open("orchestrator", "local") as slot:
        stuck, other = await spawn(slot), await spawn(slot)
    engine, salvage = engine_of(bench), engine_of(bench).salvage
    is_stuck = [True]

    async def fail(id: str) -> ChangeCounts:
        if id == stuck.id and is_stuck[0]:
            raise FreeholdError("keeper.not-running", "It starts")
        return await salvage(id)

    monkeypatch.setattr(engine, "salvage", fail)
    bench.place.engine.engine = None
    slot = bench.make("orchestrator", "local")
    async with running(slot):
        mine = None

        async def states() -> list[str]:
            return [(await slot.call(GetRun(one.id), OWNER)).state for one in (stuck, other)]

        # The engine comes later than the slot.
        assert await states() == ["starting", "starting"]
        bench.place.engine.engine = engine
        mine = await spawn(slot)

        async def other_is_over() -> bool:
            return await states() == ["starting", "ended"]

        await until(other_is_over)
        is_stuck[0] = False

        async def all_are_over() -> bool:
            return await states() == ["ended", "ended"]

        await until(all_are_over)
        assert (await slot.call(GetRun(mine.id), OWNER)).state == "starting"
    assert sorted(engine.salvaged) == sorted([stuck.id, other.id])


async def test_changes_that_nobody_takes_for_a_month_are_dropped_and_old_runs_forgotten(bench: SlotBench) -> None:
    async with bench.open("orchestrator", "local") as slot:
        old, ancient, new = [await spawn(slot) for _ in range(3)]
        for run in (old, new):
            await finish(bench, run, CHANGES)
        await finish(bench, ancient)
        with bench.place.timeline.transaction() as tx:
            month, year = "UPDATE orchestrator_run SET finished = finished - ? WHERE id = ?", 366 * 86_400
            tx.execute(month, (31 * 86_400, old.id))
            tx.execute(month, (year, ancient.id))
    slot = bench.make("orchestrator", "local")
    async with running(slot):

        async def is_tidy() -> bool:
            return await problem_of(slot, GetRun(ancient.id)) == "not-found"

        await until(is_tidy)
        assert [(await slot.call(GetRun(one.id), OWNER)).outcome for one in (old, new)] == ["dropped", "pending"]
    assert engine_of(bench).dropped == [old.id]
    assert bench.place.timeline.tail(50)[-1].kind == "orchestrator.changes_taken"


async def test_runs_are_listed_by_cursor_and_by_activity(bench: SlotBench) -> None:
    async with bench.open("orchestrator", "local") as slot:
        runs = [await spawn(slot) for _ in range(5)]
        await finish(bench, runs[4])
        found, cursor = [], None
        while True:
            page = await slot.call(ListRuns(limit=2, cursor=cursor), OWNER)
            found += [one.id for one in page.runs]
            cursor = page.cursor
            if cursor is None:
                break
        assert found == [one.id for one in reversed(runs)]
        assert len((await slot.call(ListRuns(active=True), OWNER)).runs) == 4


async def test_runs_that_a_restart_interrupted_have_ended_with_the_reason_their_changes_and_their_cost(
    bench: SlotBench,
) -> None:
    async with bench.open("orchestrator", "local") as slot:
        run = await spawn(slot, key="k")
        engine_of(bench).costs = {run.session: 0.5}
    # Another process: nothing of the first one is known but what is stored.
    slot = bench.make("orchestrator", "local")
    async with running(slot):
        await until(lambda: engine_of(bench).salvaged == [run.id])

        async def is_over() -> bool:
            return (await slot.call(GetRun(run.id), OWNER)).finished is not None

        await until(is_over)
        found = await slot.call(GetRun(run.id), OWNER)
        assert (found.state, found.error, found.added, found.outcome, found.cost) == ("ended", LOST, 1, "pending", 0.5)
        assert found.lost
        assert (await slot.call(SpawnRun("Do it", key="k"), OWNER)).id == run.id
        assert (await slot.call(TakeChanges(run.id, "merge"), OWNER)).outcome == "merged"
    assert engine_of(bench).opened == 1
    assert engine_of(bench).merged == [run.id]


async def test_a_merge_whose_answer_was_lost_is_done_once(bench: SlotBench) -> None:
    """The files were changed, and the process was killed before the outcome was stored."""
    async with bench.open("orchestrator", "local") as slot:
        run = await spawn(slot)
        await finish(bench, run, CHANGES)
        await engine_of(bench).merge(run.id, "changes", "owner", force=False)
        assert (await slot.call(TakeChanges(run.id, "merge", key="k"), OWNER)).outcome == "merged"
        assert engine_of(bench).merged == [run.id]


async def test_a_session_that_spawns_without_end_is_refused_at_its_bound_and_makes_no_sessions(
    bench: SlotBench,
) -> None:
    async with bench.open("orchestrator", "local") as slot:
        greedy = SlotCaller("session:greedy")
        found = await asyncio.gather(*(problem_of(slot, SpawnRun("x"), greedy) for _ in range(60)))
        assert (found.count("none"), found.count("conflict")) == (5, 55)
        assert engine_of(bench).opened == 5
        # A run whose children have children, and so on, ends as well.
        below = [SlotCaller(f"session:{child.session}") for child, _, _ in engine_of(bench).children.values()]
        found = [await problem_of(slot, SpawnRun("x"), one) for one in below for _ in range(3)]
        assert found.count("none") == 3


async def test_costs_reach_every_run_above_also_when_it_has_finished(bench: SlotBench) -> None:
    async with bench.open("orchestrator", "local") as slot:
        run = await spawn(slot)
        below = await spawn(slot, SlotCaller(f"session:{run.session}"))
        await finish(bench, run)
        engine_of(bench).costs = {run.session: 0.1, below.session: 0.2}
        await finish(bench, below)
        assert (await slot.call(GetRun(run.id), OWNER)).cost == pytest.approx(0.3)
        assert (await slot.call(GetRun(below.id), OWNER)).cost == pytest.approx(0.2)


async def test_without_a_running_freehold_nothing_is_begun(bench: SlotBench) -> None:
    bench.place.engine.engine = None
    async with bench.open("orchestrator", "local") as slot:
        assert await problem_of(slot, SpawnRun("x")) == "conflict"
        assert (await slot.call(ListRuns(), OWNER)).runs == ()


@pytest.mark.parametrize(
    "wrong",
    [
        SpawnRun(" "),
        SpawnRun("x" * 70_000),
        SpawnRun("x", title=""),
        SpawnRun("x", folder="/etc"),
        SpawnRun("x", folder="a/../../b"),
        SpawnRun("x", budget=0.0),
        SpawnRun("x", permissions=("root",)),  # type: ignore[arg-type]
        ListRuns(limit=0),
        ListRuns(cursor="x"),
        ReadRun("x", seconds=99.0),
    ],
    ids=str,
)
async def test_what_is_wrong_in_a_run_is_refused(bench: SlotBench, wrong: object) -> None:
    async with bench.open("orchestrator", "local") as slot:
        assert await problem_of(slot, wrong) == "invalid"


async def test_a_neighbour_runs_what_is_asked_here(bench: SlotBench) -> None:
    async with bench.open("orchestrator", "external") as slot:
        run = await slot.call(SpawnRun("Do it there", title="Far", budget=2.0, key="k"), OWNER)
        assert (run.title, run.budget, run.parent) == ("Far", 2.0, None)
        assert await slot.call(SpawnRun("Do it there", title="Far", budget=2.0, key="k"), OWNER) == run
        assert run.id in [one.id for one in (await slot.call(ListRuns(active=True), OWNER)).runs]
        assert (await slot.call(ReadRun(run.id), OWNER)).run.id == run.id
        assert (await slot.call(GetChanges(run.id), OWNER)).files == ()
        assert (await slot.call(TerminateRun(run.id), OWNER)).id == run.id
        assert await problem_of(slot, TakeChanges(run.id, "drop")) == "conflict"
        assert await problem_of(slot, GetRun("none")) == "not-found"


async def test_a_session_sees_and_ends_only_its_own_runs_at_a_neighbour(bench: SlotBench) -> None:
    async with bench.open("orchestrator", "external") as slot:
        one, other = SlotCaller("session:a"), SlotCaller("session:b")
        run, owners = await spawn(slot, one), await spawn(slot)
        assert (run.parent, run.depth) == ("a", 1)
        requests = (GetRun, ReadRun, GetChanges, TerminateRun)
        for foreign, caller in ((run, other), (owners, other), (owners, one)):
            for request in (*(make(foreign.id) for make in requests), TakeChanges(foreign.id, "drop")):
                assert await problem_of(slot, request, caller) == "not-found"
        assert [await problem_of(slot, make(run.id), one) for make in (GetRun, ReadRun, GetChanges)] == ["none"] * 3
        assert (await slot.call(ListRuns(parent="a"), other)).runs == ()
        assert [found.id for found in (await slot.call(ListRuns(active=True), one)).runs] == [run.id]
        engine = bench.neighbour.services.slots.engine.engine
        assert isinstance(engine, ScriptedRuns)
        assert not {run.id, owners.id} & set(engine.ended)
        listed = {found.id: found.parent for found in (await slot.call(ListRuns(limit=200), OWNER)).runs}
        assert (listed[run.id], listed[owners.id]) == ("a", None)
    # Whose it is outlives the process.
    async with bench.open("orchestrator", "external") as slot:
        assert await problem_of(slot, GetRun(run.id), other) == "not-found"
        assert (await slot.call(TerminateRun(run.id), one)).id == run.id
        await end_at_neighbour(bench, run, owners)


async def end_at_neighbour(bench: SlotBench, *runs: Run) -> None:
    """They have finished there, so that the tests of one module do not meet at its bound."""
    engine = bench.neighbour.services.slots.engine.engine
    assert isinstance(engine, ScriptedRuns)
    for run in runs:
        told = engine.tell(run.id, ChildReport(state="done"))
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(told, bench.neighbour.loop))


async def test_the_number_of_runs_of_a_session_at_a_neighbour_is_bounded_here(bench: SlotBench) -> None:
    async with bench.open("orchestrator", "external") as slot:
        greedy = SlotCaller("session:greedy")
        runs = [await spawn(slot, greedy, key=f"k{number}") for number in range(5)]
        assert await problem_of(slot, SpawnRun("x"), greedy) == "conflict"
        # A repetition is not one more.
        assert (await spawn(slot, greedy, key="k4")).id == runs[4].id
        assert len((await slot.call(ListRuns(limit=200), greedy)).runs) == 5
        await end_at_neighbour(bench, runs[0])
        runs.append(await spawn(slot, greedy))
        first = await slot.call(ListRuns(limit=4), greedy)
        second = await slot.call(ListRuns(limit=4, cursor=first.cursor), greedy)
        assert [one.id for one in (*first.runs, *second.runs)] == [one.id for one in reversed(runs)]
        await end_at_neighbour(bench, *runs[1:])


async def test_two_long_keys_with_one_beginning_do_not_meet_at_a_neighbour(bench: SlotBench) -> None:
    async with bench.open("orchestrator", "external") as slot:
        callers = (OWNER, SlotCaller("session:" + "s" * 150), SlotCaller("session:" + "s" * 150 + "t"))
        keys = ("k" * 199 + "1", "k" * 199 + "2")
        runs = [await spawn(slot, caller, key=key) for caller in callers for key in keys]
        assert len({run.id for run in runs}) == 6
        await end_at_neighbour(bench, *runs)


async def test_runs_of_before_are_there_after_a_migration(bench: SlotBench) -> None:
    from freehold.slots.orchestrator.schema import STEPS

    bench.place.timeline.ensure_schema("orchestrator", *STEPS[:1])
    with bench.place.timeline.transaction() as tx:
        tx.execute(
            "INSERT INTO orchestrator_run (id, session, agent, title, state, depth, created, outcome)"
            " VALUES ('old', 's', 'builtin', 'Old', 'done', 1, 1.0, 'none')"
        )
    async with bench.open("orchestrator", "local") as slot:
        old = await slot.call(GetRun("old"), OWNER)
        assert (old.title, old.permissions, old.began_by) == ("Old", PERMISSIONS, "owner")
        assert (await spawn(slot, SlotCaller("session:s"))).depth == 2


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, b"[]"), (200, b'{"runs": "x"}'), (200, b"<html>"), (302, b""), (500, b""), (401, b'{"error": {"code": 1}}')],
    ids=str,
)
async def test_a_neighbour_that_answers_nonsense_is_unavailable(
    bench: SlotBench, monkeypatch: pytest.MonkeyPatch, status: int, body: bytes
) -> None:
    settings = {"url": "http://127.0.0.1:9", "token": "env:T"}
    from dataclasses import replace

    slot = make_slot(
        "orchestrator", SlotSection(mode="external", settings=settings), replace(bench.place, environ={"T": "x"})
    )
    transport = httpx2.MockTransport(lambda request: httpx2.Response(status, content=body))
    original = httpx2.AsyncClient
    monkeypatch.setattr(httpx2, "AsyncClient", lambda **more: original(**{**more, "transport": transport}))

    async def use() -> None:
        await slot.connect()
        await slot.call(ListRuns(), OWNER)

    with pytest.raises(SlotError) as refused:
        await use()
    await slot.close()
    assert refused.value.problem == "unavailable"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"token": "env:T"}, "url is missing"),
        ({"url": "http://example.com", "token": "env:T"}, "not encrypted"),
        ({"url": "https://example.com/path", "token": "env:T"}, "not the address of a Freehold"),
        ({"url": "https://example.com"}, "token is missing"),
        ({"url": "https://example.com", "token": "env:T", "x": "y"}, "has no x"),
        ({"url": "neighbour:home", "token": "env:T"}, "requests to a neighbour are signed"),
    ],
    ids=str,
)
def test_wrong_settings_of_a_neighbour_are_named(bench: SlotBench, settings: dict[str, str], words: str) -> None:
    from freehold.slots.orchestrator.external import make_external
    from freehold.slots.settings import ExternalSettings

    with pytest.raises(SlotError) as refused:
        make_external(bench.place, ExternalSettings("orchestrator", settings, {"T": "x"}, bench.place.find_secret))
    assert words in refused.value.message
