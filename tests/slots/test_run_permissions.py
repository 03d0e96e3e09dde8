"""What runs may do, who may end them, and to whom their costs count, here and at another Freehold."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.slots.conftest import SlotBench
from tests.slots.test_faults import running
from tests.slots.test_runs import CHANGES, OWNER, end_at_neighbour, engine_of, finish, problem_of, spawn
from tests.support.condition import until
from tests.support.scripted_runs import ScriptedRuns

import freehold.slots.orchestrator.neighbour as neighbour_module
from freehold.slots import Slot, SlotCaller
from freehold.slots.contract import SlotName
from freehold.slots.orchestrator.contract import (
    PERMISSIONS,
    GetRun,
    ListRuns,
    SpawnRun,
    TakeChanges,
    TerminateRun,
)
from freehold.slots.orchestrator.engine import SessionWanted

SCRIPT, OTHER = SlotCaller("token:script"), SlotCaller("token:other")
ADMIN = SlotCaller("token:admin", is_admin=True)
NAME: SlotName = "orchestrator"


@pytest.fixture
async def far(bench: SlotBench) -> AsyncIterator[Slot]:
    async with bench.open(NAME, "external") as slot:
        yield slot


def far_engine(bench: SlotBench) -> ScriptedRuns:
    engine = bench.neighbour.services.slots.engine.engine
    assert isinstance(engine, ScriptedRuns)
    return engine


async def test_a_run_may_do_no_more_than_the_one_that_begins_it(bench: SlotBench) -> None:
    async with bench.open(NAME, "local") as slot:
        free = await spawn(slot)
        assert free.permissions == PERMISSIONS
        run = await spawn(slot, permissions=("runs", "memory", "ask"))
        assert run.permissions == ("ask", "memory", "runs")
        inside = SlotCaller(f"session:{run.session}")
        for beyond in (("network",), ("memory", "pods"), ("ask", "history"), PERMISSIONS):
            assert await problem_of(slot, SpawnRun("x", permissions=beyond), inside) == "denied"
        # As much as itself, or less.
        below = await spawn(slot, inside)
        assert below.permissions == run.permissions
        assert (await spawn(slot, inside, permissions=("memory",))).permissions == ("memory",)
        assert engine_of(bench).children[below.id][0].permissions == run.permissions
        silent = await spawn(slot, permissions=())
        assert silent.permissions == ()
        opened = engine_of(bench).opened
        assert await problem_of(slot, SpawnRun("x"), SlotCaller(f"session:{silent.session}")) == "denied"
        assert engine_of(bench).opened == opened


async def test_a_run_without_the_permission_history_begins_none_from_an_older_state(bench: SlotBench) -> None:
    async with bench.open(NAME, "local") as slot:
        engine = engine_of(bench)
        engine.states = {("site", 3)}
        blind = await spawn(slot, folder="site", entry=3, permissions=("runs", "memory"))
        reader = await spawn(slot, permissions=("runs", "history"))
        assert [one.entry for one in (blind, reader)] == [3, None]
        opened, inside = engine.opened, SlotCaller(f"session:{blind.session}")
        # That it was itself begun from that state does not help, nor does asking for less.
        for permissions in (None, (), ("memory",), ("history",)):
            wanted = SpawnRun("x", folder="site", entry=3, permissions=permissions)
            assert await problem_of(slot, wanted, inside) == "denied"
        assert engine.opened == opened
        assert (await spawn(slot, inside, folder="site")).entry is None
        below = await spawn(slot, SlotCaller(f"session:{reader.session}"), folder="site", entry=3, permissions=())
        assert (below.entry, below.permissions) == (3, ())
        assert engine.children[below.id][0].entry == 3


async def test_a_state_that_is_not_there_begins_nothing(bench: SlotBench) -> None:
    async with bench.open(NAME, "local") as slot:
        engine_of(bench).states = {("site", 3)}
        for more in ({"folder": "site", "entry": 4}, {"folder": "other", "entry": 3}):
            assert await problem_of(slot, SpawnRun("x", **more)) == "not-found"  # type: ignore[arg-type]
        for entry in (0, -1, 2**53 + 1, 2**80):
            assert await problem_of(slot, SpawnRun("x", folder="site", entry=entry)) == "invalid"
        assert await problem_of(slot, SpawnRun("x", entry=3)) == "invalid"
        assert (engine_of(bench).opened, (await slot.call(ListRuns(), OWNER)).runs) == (0, ())


async def test_an_older_state_of_another_freehold_is_for_its_owner_and_programs_only(
    bench: SlotBench, far: Slot
) -> None:
    """A session here may read nothing of the history there, and the token for it needs the scope."""
    far_engine(bench).states = {("site", 3)}
    wanted = SpawnRun("x", folder="site", entry=3)
    opened = far_engine(bench).opened
    assert await problem_of(far, wanted, SlotCaller("session:p")) == "denied"
    assert await problem_of(far, wanted) == "denied"
    assert far_engine(bench).opened == opened
    # The slot itself is there.
    run = await spawn(far)
    assert run.entry is None
    await end_at_neighbour(bench, run)


async def test_a_program_ends_and_takes_only_what_it_began(bench: SlotBench) -> None:
    async with bench.open(NAME, "local") as slot:
        mine, owners = await spawn(slot, SCRIPT), await spawn(slot)
        sessions = await spawn(slot, SlotCaller("session:a"))
        assert [one.began_by for one in (mine, owners, sessions)] == ["token:script", "owner", "session:a"]
        for run in (owners, sessions, mine):
            await finish(bench, run, CHANGES)
        for run, caller in ((owners, SCRIPT), (sessions, SCRIPT), (mine, OTHER)):
            for request in (
                TerminateRun(run.id),
                TakeChanges(run.id, "drop"),
                TakeChanges(run.id, "merge", force=True),
            ):
                assert await problem_of(slot, request, caller) == "denied"
            # It may see them.
            assert await problem_of(slot, GetRun(run.id), caller) == "none"
        engine = engine_of(bench)
        assert (engine.ended, engine.merged, engine.dropped) == ([], [], [])
        for run, caller in ((mine, SCRIPT), (owners, ADMIN), (sessions, OWNER)):
            assert await problem_of(slot, TerminateRun(run.id), caller) == "none"
            assert await problem_of(slot, TakeChanges(run.id, "drop"), caller) == "none"


async def test_a_program_ends_only_what_it_began_at_a_neighbour_too(bench: SlotBench, far: Slot) -> None:
    mine, owners, sessions = [await spawn(far, one) for one in (SCRIPT, OWNER, SlotCaller("session:a"))]
    assert [one.began_by for one in (mine, owners, sessions)] == ["token:script", "owner", "session:a"]
    for run, caller in ((owners, SCRIPT), (sessions, SCRIPT), (mine, OTHER)):
        assert await problem_of(far, TerminateRun(run.id), caller) == "denied"
        assert await problem_of(far, TakeChanges(run.id, "merge"), caller) == "denied"
        assert await problem_of(far, GetRun(run.id), caller) == "none"
    assert not {mine.id, owners.id, sessions.id} & set(far_engine(bench).ended)
    for run, caller in ((mine, SCRIPT), (owners, ADMIN), (sessions, OWNER)):
        assert await problem_of(far, TerminateRun(run.id), caller) == "none"
    await end_at_neighbour(bench, mine, owners, sessions)


async def test_a_run_that_a_session_begins_at_a_neighbour_reaches_nothing_of_what_is_kept_there(
    bench: SlotBench, far: Slot
) -> None:
    session = SlotCaller("session:p")
    for beyond in (("pods",), ("ask", "memory"), ("beads",), ("events",), ("history",)):
        assert await problem_of(far, SpawnRun("x", permissions=beyond), session) == "denied"
    run, owners = await spawn(far, session), await spawn(far, permissions=("pods",))
    assert (run.permissions, owners.permissions) == (("ask", "network", "runs"), ("pods",))
    assert far_engine(bench).children[run.id][0].permissions == ("ask", "network", "runs")
    await end_at_neighbour(bench, run, owners)


async def test_what_runs_at_a_neighbour_cost_counts_to_the_session_that_began_them(bench: SlotBench, far: Slot) -> None:
    session = SlotCaller("session:payer")
    runs = [await spawn(far, session) for _ in range(2)]
    engine = far_engine(bench)
    engine.costs |= {runs[0].session: 0.25, runs[1].session: 0.5}
    assert (await far.call(ListRuns(), session)).cost == 0.0
    await end_at_neighbour(bench, *runs)
    # All of them count, also those that are not on the page.
    page = await far.call(ListRuns(limit=1), session)
    await far.call(ListRuns(), session)
    assert ((await far.call(ListRuns(limit=1), session)).cost, len(page.runs)) == (0.75, 1)
    assert (await far.call(ListRuns(), SlotCaller("session:other"))).cost == 0.0
    assert (await far.call(ListRuns(parent="payer"), OWNER)).cost == 0.75


async def test_what_a_run_at_a_neighbour_costs_is_known_here_although_nobody_asks(
    bench: SlotBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbour_module, "LOOK_INTERVAL", 0.02)
    slot = bench.make(NAME, "external")
    async with running(slot):
        run = await spawn(slot, SlotCaller("session:busy"))
        engine = far_engine(bench)
        engine.costs[run.session] = 0.125
        measured = asyncio.run_coroutine_threadsafe(engine.is_over_budget(run.id), bench.neighbour.loop)
        await asyncio.wrap_future(measured)

        def stored() -> list[tuple[float | None, float | None]]:
            sql = "SELECT cost, finished FROM orchestrator_far_run WHERE id = ?"
            return [(cost, finished) for cost, finished in bench.place.timeline.query(sql, (run.id,))]

        await until(lambda: stored() == [(0.125, None)])
        await end_at_neighbour(bench, run)
        await until(lambda: stored()[0][1] is not None)


async def test_a_run_whose_caller_has_gone_is_begun_or_not_there(
    bench: SlotBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never stored without being launched: it would keep one of few places."""
    async with bench.open(NAME, "local") as slot:
        engine, opening, go_on = engine_of(bench), asyncio.Event(), asyncio.Event()
        open_session = engine.open_session

        async def slow(wanted: SessionWanted) -> tuple[str, str]:
            opening.set()
            await go_on.wait()
            return await open_session(wanted)

        monkeypatch.setattr(engine, "open_session", slow)
        calling = asyncio.ensure_future(spawn(slot, key="k"))
        await opening.wait()
        calling.cancel()
        # The same request again, while the first one is still under way.
        again = asyncio.ensure_future(spawn(slot, key="k"))
        go_on.set()
        run = await again
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert (list(engine.children), engine.opened) == ([run.id], 1)
        assert [one.id for one in (await slot.call(ListRuns(), OWNER)).runs] == [run.id]


async def test_the_cost_of_all_runs_of_a_session_is_told(bench: SlotBench) -> None:
    async with bench.open(NAME, "local") as slot:
        session = SlotCaller("session:a")
        runs = [await spawn(slot, session) for _ in range(2)]
        below = await spawn(slot, SlotCaller(f"session:{runs[0].session}"))
        other = await spawn(slot)
        costs = {runs[0].session: 0.1, runs[1].session: 0.2, below.session: 0.3, other.session: 0.4}
        engine_of(bench).costs = costs
        for run in (below, *runs, other):
            await finish(bench, run)
        assert (await slot.call(ListRuns(limit=1), session)).cost == pytest.approx(0.6)
        assert (await slot.call(ListRuns(), OWNER)).cost == pytest.approx(1.0)
