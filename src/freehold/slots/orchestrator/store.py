"""The orchestrator of this Freehold: the table of runs, who may see which, and how many there may be."""

import asyncio
import logging
import math
import secrets
import time
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, cast
from weakref import WeakValueDictionary

from freehold.errors import FreeholdError
from freehold.slots.answers import check_key, expect_answer
from freehold.slots.contract import CallContext, Reply, SlotCall, SlotCaller, SlotWrite
from freehold.slots.errors import SlotError
from freehold.slots.host import EngineBox
from freehold.slots.orchestrator.bounds import RunBounds
from freehold.slots.orchestrator.contract import (
    CONTRACT,
    MAX_ENTRY,
    MAX_EVENTS,
    MAX_FOLDER,
    MAX_PAGE,
    MAX_PROMPT,
    MAX_TITLE,
    MAX_WAIT,
    PERMISSIONS,
    UNFINISHED,
    GetChanges,
    GetRun,
    ListRuns,
    ReadRun,
    Run,
    RunChanges,
    RunEvents,
    RunPage,
    RunPermission,
    RunWrite,
    SpawnRun,
    TakeChanges,
    TerminateRun,
)
from freehold.slots.orchestrator.engine import ChangeCounts, ChildReport, ChildSpec, RunEngine, SessionWanted
from freehold.slots.orchestrator.permissions import check_control, find_permissions, limit_permissions
from freehold.slots.orchestrator.schema import STEPS
from freehold.slots.statement import Row, Statement, Steps, ask, ask_one, places, run_steps
from freehold.slots.timeline_tables import TimelineTables
from freehold.timeline import Timeline

LOOK_AGAIN = 0.2
RETRY_DELAY = 0.5
LOST = "Freehold was restarted while it worked. What it had changed until then is kept"
TIDY_INTERVAL = 3600.0
KEPT_CHANGES = 30 * 86_400
"""Seconds for which changes wait to be merged."""
KEPT_RUNS = 365 * 86_400
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"
_COLUMNS = (
    "id, session, agent, title, state, parent, depth, folder, budget, cost, created, finished, error, added, changed,"
    " removed, outcome, permissions, began_by, lost, entry"
)

log = logging.getLogger("freehold.slots")


class OrchestratorStore:
    kind = "local"
    records_events = True

    def __init__(self, timeline: Timeline, box: EngineBox, bounds: RunBounds | None = None) -> None:
        self._bounds = bounds or RunBounds()
        self._timeline = timeline
        self._box = box
        self._tables = TimelineTables(CONTRACT, timeline, STEPS, {})
        self._changed = asyncio.Event()
        self._begun: set[str] = set()
        """The runs that this process has begun."""
        self._spawning = asyncio.Lock()
        self._locks: WeakValueDictionary[tuple[str, ...], asyncio.Lock] = WeakValueDictionary()
        self._connected = asyncio.Event()

    async def connect(self) -> None:
        await self._tables.connect()
        self._connected.set()

    async def work(self) -> None:
        """Ends the runs that a former process has begun, and keeps what they have changed for a while."""
        await self._connected.wait()
        while True:
            if await self._end_lost():
                await self._tidy(time.time())
                await asyncio.sleep(TIDY_INTERVAL)
            else:
                await asyncio.sleep(RETRY_DELAY)

    async def health(self) -> str | None:
        await self._tables.health()
        return None

    async def close(self) -> None:
        await self._tables.close()

    async def call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        return cast("Reply", await self._answer(request, caller))

    async def _answer(self, request: SlotCall[Any], caller: SlotCaller) -> Any:
        match request:
            case SpawnRun():
                return await self._spawn(request, caller)
            case TerminateRun():
                return await self._terminate(request, caller)
            case TakeChanges():
                return await self._take(request, caller)
            case GetRun():
                return await self._require(request.id, caller)
            case ListRuns():
                return await self._list(request, caller)
            case ReadRun():
                return await self._read(request, caller)
            case GetChanges():
                return await self._compare(request, caller)
        raise AssertionError(type(request).__name__)

    # Writing

    async def _spawn(self, request: SpawnRun, caller: SlotCaller) -> Run:
        check_spawn(request)
        spawning = asyncio.ensure_future(self._spawn_once(request, caller))
        spawning.add_done_callback(_ignore_result)
        # Also when the caller has gone: a run that is stored and not launched would keep its place.
        return await asyncio.shield(spawning)

    async def _spawn_once(self, request: SpawnRun, caller: SlotCaller) -> Run:
        # One after the other: what is refused for a bound has made no session.
        async with self._lock_key(request, caller), self._spawning:
            if await self._is_answered(request, caller):
                return await self._repeat(request, caller)
            return await self._begin(request, caller)

    async def _begin(self, request: SpawnRun, caller: SlotCaller) -> Run:
        engine = self._engine()
        # Before a session is made. It counts when the run is stored.
        await self._tables.in_thread(self._check_place, caller)
        budget = await self._limit_budget(request, caller)
        permissions = limit_permissions(request, await self._tables.in_thread(find_permissions, self._timeline, caller))
        title = request.title or request.prompt.strip().splitlines()[0][:80]
        wanted = SessionWanted(request.agent, request.model, title, caller.session, caller.name, budget is not None)
        try:
            if request.folder is not None and request.entry is not None:
                await engine.check_state(request.folder, request.entry)
            session, agent = await engine.open_session(wanted)
        except FreeholdError as error:
            raise _of_family(error) from error
        id = "".join(secrets.choice(_LETTERS) for _ in range(10))
        self._begun.add(id)  # before it is stored: from then on it could be taken for one of a former process
        try:
            run = await self._tables.carry_out(request, caller, self._insert(id, session, agent, budget, permissions))
        except BaseException:
            self._begun.discard(id)
            raise
        self._launch(engine, run, request)
        return run

    async def _limit_budget(self, request: SpawnRun, caller: SlotCaller) -> float | None:
        """The budget of a new run: at most what is left of that of every run above it."""
        left = request.budget
        for id, above in await self._budgets_above(caller.session):
            rest = above - await self._measure_costs(id)
            if rest <= 0:
                raise SlotError(
                    "orchestrator", "denied", f"Nothing is left of the budget of the run {id}", hint="Finish without it"
                )
            left = rest if left is None else min(left, rest)
        return left

    async def _budgets_above(self, session: str | None) -> list[tuple[str, float]]:
        """The runs with a budget to which this session and those above it belong."""
        rows = await self._tables.in_thread(self._timeline.query, _ABOVE, (session or "",))
        return [(id, budget) for id, budget in rows if budget is not None]

    def _launch(self, engine: RunEngine, run: Run, request: SpawnRun) -> None:
        async def report(news: ChildReport) -> None:
            if news.state is not None and news.state not in UNFINISHED:
                await self._measure_costs(run.id)
            await self._tables.in_thread(self._store_report, run.id, news)
            if news.state in ("ended", "failed"):
                await self._end_tree(run, "The run that began it has ended")
            self._note_changed()

        async def is_over_budget() -> bool:
            """Also of that of a run above, which may have finished."""
            await self._measure_costs(run.id)
            return any(
                [await self._measure_costs(id) > budget for id, budget in await self._budgets_above(run.session)]
            )

        given = (request.prompt, request.folder, run.permissions, run.began_by, request.entry)
        child = ChildSpec(run.id, run.session, *given)
        engine.launch(child, report, is_over_budget)

    def _insert(
        self, id: str, session: str, agent: str, budget: float | None, permissions: tuple[RunPermission, ...]
    ) -> Any:
        def steps(request: SpawnRun, context: CallContext) -> Steps[Run]:
            self._bounds.check(*(yield from self._count_active(context.caller)))
            above = yield from ask_one(
                "SELECT depth FROM orchestrator_run WHERE session = ?", context.caller.session or ""
            )
            title = request.title or request.prompt.strip().splitlines()[0][:80]
            yield from ask(
                "INSERT INTO orchestrator_run (id, session, agent, title, state, parent, depth, folder, budget, created,"
                " outcome, permissions, began_by, entry) VALUES (?, ?, ?, ?, 'starting', ?, ?, ?, ?, ?, 'pending', ?, ?, ?)",
                *(id, session, agent, title, context.caller.session, 1 if above is None else above[0] + 1),
                *(request.folder, budget, context.now, ",".join(permissions), context.caller.name, request.entry),
            )
            rows = yield from ask(f"SELECT {_COLUMNS} FROM orchestrator_run WHERE id = ?", id)  # noqa: S608
            return _run(rows[0])

        return steps

    async def _terminate(self, request: TerminateRun, caller: SlotCaller) -> Run:
        """With all runs below it, also when it has finished itself."""
        run = await self._require_control(request.id, caller)
        async with self._lock_key(request, caller):
            if await self._is_answered(request, caller):
                return await self._repeat(request, caller)
            if run.state in UNFINISHED:
                self._engine().end(run.id, f"{caller.name} ended it")
            await self._end_tree(run, f"{caller.name} ended the run that began it")
            return await self._tables.carry_out(request, caller, _answer_with(run))

    async def _end_tree(self, run: Run, reason: str) -> None:
        """Ends the runs below this one that have not finished."""
        for id, _ in await self._tables.in_thread(self._timeline.query, _TREE, (run.id,)):
            if id != run.id and (await self._read_run(id)).state in UNFINISHED:
                self._engine().end(id, reason)

    async def _take(self, request: TakeChanges, caller: SlotCaller) -> Run:
        await self._require_control(request.id, caller)
        # One after the other: a merge and a drop of the same changes never meet.
        async with self._lock_key(request, caller), self._lock("run", request.id):
            if await self._is_answered(request, caller):
                return await self._repeat(request, caller)
            return await self._take_once(request, caller)

    async def _take_once(self, request: TakeChanges, caller: SlotCaller) -> Run:
        run = await self._require(request.id, caller)
        if run.state in UNFINISHED:
            raise SlotError("orchestrator", "conflict", f"The run {run.id} has not finished", hint="End it first")
        if run.outcome != "pending":
            raise SlotError("orchestrator", "conflict", f"The changes of the run {run.id} are {run.outcome} already")
        await self._settle(run, request, caller)
        outcome = "merged" if request.how == "merge" else "dropped"

        def steps(_request: TakeChanges, _context: CallContext) -> Steps[Run]:
            yield from ask("UPDATE orchestrator_run SET outcome = ? WHERE id = ?", outcome, run.id)
            rows = yield from ask(f"SELECT {_COLUMNS} FROM orchestrator_run WHERE id = ?", run.id)  # noqa: S608
            return _run(rows[0])

        done = await self._tables.carry_out(request, caller, steps)
        self._note_changed()
        return done

    async def _settle(self, run: Run, request: TakeChanges, caller: SlotCaller) -> None:
        """Merging and dropping have their effect once, so that a call whose answer was lost can be repeated."""
        engine = self._engine()
        try:
            if request.how == "drop":
                await engine.drop(run.id)
            else:
                await engine.merge(run.id, f"changes of {run.title}", caller.name, force=request.force)
        except FreeholdError as error:
            raise _of_family(error) from error

    # Reading

    async def _list(self, request: ListRuns, caller: SlotCaller) -> RunPage:
        before = check_page(request)
        parent = request.parent if caller.session is None else caller.session
        found: RunPage = await self._tables.in_thread(self._select, request, parent, before)
        return found

    def _select(self, request: ListRuns, parent: str | None, before: int | None) -> RunPage:
        where, values = ["1 = 1"], list[Any]()
        if parent is not None:
            where, values = [*where, "parent = ?"], [*values, parent]
        if request.active:
            where, values = [*where, f"state IN {places(UNFINISHED)}"], [*values, *UNFINISHED]
        if before is not None:
            where, values = [*where, "number < ?"], [*values, before]
        rows = self._timeline.query(
            f"SELECT {_COLUMNS}, number FROM orchestrator_run WHERE {' AND '.join(where)}"  # noqa: S608
            " ORDER BY number DESC LIMIT ?",
            [*values, request.limit + 1],
        )
        runs = tuple(_run(row[:-1]) for row in rows[: request.limit])
        # Those without a parent include all below them.
        of = ("parent = ?", [parent]) if parent is not None else ("depth = 1", [])
        ((cost,),) = self._timeline.query(f"SELECT total(cost) FROM orchestrator_run WHERE {of[0]}", of[1])  # noqa: S608
        return RunPage(runs, str(rows[request.limit - 1][-1]) if len(rows) > request.limit else None, cost)

    async def _read(self, request: ReadRun, caller: SlotCaller) -> RunEvents:
        check_read(request)
        end = asyncio.get_running_loop().time() + request.seconds
        while True:
            run = await self._require(request.id, caller)
            try:
                events = await self._engine().read_events(run.session, request.after, request.limit)
            except FreeholdError as error:
                raise _of_family(error) from error
            left = end - asyncio.get_running_loop().time()
            if events or left <= 0 or run.state not in UNFINISHED:
                return RunEvents(run, events, events[-1].seq if events else request.after)
            await self._wait_news(run.session, request.after, min(left, LOOK_AGAIN))

    async def _wait_news(self, session: str, after: int, seconds: float) -> None:
        """Until the session has another event, a run has changed, or so many seconds are over."""
        news = self._engine().wait_event(session, after)
        waiting = {asyncio.ensure_future(self._changed.wait()), asyncio.ensure_future(news)}
        try:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()
            await asyncio.wait(waiting)

    async def _compare(self, request: GetChanges, caller: SlotCaller) -> RunChanges:
        run = await self._require(request.id, caller)
        if run.outcome != "pending" or run.state in UNFINISHED:
            return RunChanges(run, ())
        try:
            files, total = await self._engine().compare(run.id)
            return RunChanges(run, files, total)
        except FreeholdError as error:
            raise _of_family(error) from error

    async def _require(self, id: str, caller: SlotCaller) -> Run:
        """The run with what it has cost. A session sees its own runs only. Raises `orchestrator.not-found`."""
        run = await self._read_run(id)
        if caller.session is not None and run.parent != caller.session:
            raise no_run(id)
        return run

    async def _require_control(self, id: str, caller: SlotCaller) -> Run:
        """As `_require`, for who ends a run or takes its changes. Raises `orchestrator.denied`."""
        run = await self._require(id, caller)
        check_control(run.id, run.began_by, caller)
        return run

    async def _read_run(self, id: str) -> Run:
        sql = f"SELECT {_COLUMNS} FROM orchestrator_run WHERE id = ?"  # noqa: S608
        rows = await self._tables.in_thread(self._timeline.query, sql, (id,))
        if not rows:
            raise no_run(id)
        return _run(rows[0])

    # Limits and costs

    def _check_place(self, caller: SlotCaller) -> None:
        def read(statement: Statement) -> list[Row]:
            return self._timeline.query(statement.sql, statement.parameters)

        self._bounds.check(*run_steps(self._count_active(caller), read))

    def _lock(self, *what: str) -> asyncio.Lock:
        return self._locks.setdefault(what, asyncio.Lock())

    def _lock_key(self, request: SlotWrite[Any], caller: SlotCaller) -> AbstractAsyncContextManager[object]:
        """Two requests with one key come one after the other: the effect is before the answer is stored."""
        return nullcontext() if request.key is None else self._lock("key", caller.name, request.key)

    def _count_active(self, caller: SlotCaller) -> Steps[tuple[int, int, int]]:
        """How many runs have not finished, how many of them are the caller's, and how deep the caller is itself."""
        marks = places(UNFINISHED)
        all_ = yield from ask_one(f"SELECT count(*) FROM orchestrator_run WHERE state IN {marks}", *UNFINISHED)  # noqa: S608
        session = caller.session or ""
        own = yield from ask_one(
            f"SELECT count(*) FROM orchestrator_run WHERE parent = ? AND state IN {marks}",  # noqa: S608
            session,
            *UNFINISHED,
        )
        above = yield from ask_one("SELECT depth FROM orchestrator_run WHERE session = ?", session)
        return (all_ or (0,))[0], (own or (0,))[0], 0 if above is None else above[0]

    async def _measure_costs(self, id: str) -> float:
        """What the run and all below it have cost. That is stored, also with the runs above it.

        Without end where the price of a request is not known, so that no budget allows it; then what is known is stored.
        """
        total = 0.0
        above = await self._tables.in_thread(self._timeline.query, _ABOVE, ((await self._read_run(id)).session,))
        for one in dict.fromkeys((id, *(row[0] for row in above))):
            tree = await self._tables.in_thread(self._timeline.query, _TREE, (one,))
            costs = [await self._engine().cost_of(session) for _, session in tree]
            cost = sum(each.known for each in costs)
            await self._tables.in_thread(self._change, "UPDATE orchestrator_run SET cost = ? WHERE id = ?", (cost, one))
            if one == id:
                total = cost if all(each.is_whole for each in costs) else math.inf
        return total

    # Stored by the engine

    def _store_report(self, id: str, news: ChildReport) -> None:
        with self._timeline.transaction() as tx:
            if news.changes is not None:
                found = news.changes
                outcome = "pending" if found.added + found.changed + found.removed else "none"
                tx.execute(
                    "UPDATE orchestrator_run SET added = ?, changed = ?, removed = ?, outcome = ?, note = ? WHERE id = ?",
                    (found.added, found.changed, found.removed, outcome, found.note, id),
                )
            if news.state is not None:
                is_over = news.state not in UNFINISHED
                tx.execute(
                    "UPDATE orchestrator_run SET state = ?, error = coalesce(?, note), finished = ?, lost = ? WHERE id = ?",
                    (news.state, news.error, time.time() if is_over else None, news.lost, id),
                )
                if is_over:
                    tx.append("orchestrator.finished", {"id": id, "state": news.state})

    async def _end_lost(self) -> bool:
        """Ends what a former process left. Whether there is nothing left to do: one that fails does not hold up others."""
        if self._box.engine is None:
            return False
        sql, is_over = f"SELECT id FROM orchestrator_run WHERE state IN {places(UNFINISHED)}", True  # noqa: S608
        for (id,) in await self._tables.in_thread(self._timeline.query, sql, UNFINISHED):
            if id not in self._begun:
                is_over = await self._try_to_end(self._box.engine, id) and is_over
        return is_over

    async def _try_to_end(self, engine: RunEngine, id: str) -> bool:
        try:
            changes: ChangeCounts = await engine.salvage(id)
            await self._measure_costs(id)
            news = ChildReport(state="ended", error=LOST, changes=changes, lost=True)
            await self._tables.in_thread(self._store_report, id, news)
        except FreeholdError as error:
            # The keeper starts, for example.
            log.info("a run of before waits: %s", error.message, extra={"run": id})
            return False
        self._note_changed()
        return True

    async def _tidy(self, now: float) -> None:
        """Drops changes that nobody has taken for long, and forgets runs of long ago."""
        sql = "SELECT id FROM orchestrator_run WHERE outcome = 'pending' AND finished < ?"
        for (id,) in await self._tables.in_thread(self._timeline.query, sql, (now - KEPT_CHANGES,)):
            try:
                async with self._lock("run", id):
                    await self._drop_old(id)
            except FreeholdError as error:
                log.info("old changes of a run wait: %s", error.message, extra={"run": id})
        forget = "DELETE FROM orchestrator_run WHERE outcome != 'pending' AND finished < ?"
        await self._tables.in_thread(self._change, forget, (now - KEPT_RUNS,))

    async def _drop_old(self, id: str) -> None:
        run = await self._read_run(id)
        if run.outcome == "pending":
            await self._engine().drop(id)
            await self._tables.in_thread(self._store_dropped, run)
            self._note_changed()

    def _store_dropped(self, run: Run) -> None:
        with self._timeline.transaction() as tx:
            tx.execute("UPDATE orchestrator_run SET outcome = 'dropped' WHERE id = ?", (run.id,))
            tx.append(TakeChanges.event, TakeChanges(run.id, "drop").describe(run))

    def _change(self, sql: str, parameters: tuple[Any, ...]) -> None:
        with self._timeline.transaction() as tx:
            tx.execute(sql, parameters)

    async def _is_answered(self, request: SlotWrite[Any], caller: SlotCaller) -> bool:
        """Whether this key was used before. Asked before the effect, so that a key that is wrong has none."""
        if request.key is None:
            return False
        check_key("orchestrator", request.key)
        sql = "SELECT at FROM orchestrator_answer WHERE caller = ? AND key = ?"
        return bool(await self._tables.in_thread(self._timeline.query, sql, (caller.name, request.key)))

    async def _repeat(self, request: RunWrite, caller: SlotCaller) -> Run:
        """The stored answer. Nothing else happens, also for another request with this key."""
        return await self._tables.carry_out(request, caller, lambda *_: expect_answer("orchestrator"))

    def _engine(self) -> RunEngine:
        if self._box.engine is None:
            raise SlotError("orchestrator", "conflict", "Only a running Freehold runs agents", hint="freehold up")
        return self._box.engine

    def _note_changed(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


_ABOVE = """
    WITH RECURSIVE above(id, parent, budget) AS (
        SELECT id, parent, budget FROM orchestrator_run WHERE session = ?
        UNION SELECT run.id, run.parent, run.budget FROM orchestrator_run run JOIN above ON run.session = above.parent
    )
    SELECT id, budget FROM above
"""
_TREE = """
    WITH RECURSIVE below(id, session) AS (
        SELECT id, session FROM orchestrator_run WHERE id = ?
        UNION SELECT child.id, child.session FROM orchestrator_run child JOIN below ON child.parent = below.session
    )
    SELECT id, session FROM below
"""


def _ignore_result(done: "asyncio.Future[Run]") -> None:
    """Who waits gets it. When nobody waits any more, a refusal is no error of ours."""
    if not done.cancelled():
        done.exception()


def _answer_with(run: Run) -> Any:
    def steps(_request: object, _context: CallContext) -> Steps[Run]:
        yield from ()
        return run

    return steps


def _run(row: tuple[Any, ...]) -> Run:
    values: dict[str, Any] = dict(zip(_COLUMNS.split(", "), row, strict=True))
    stored = values.pop("permissions").split(",")
    values["lost"] = bool(values["lost"])
    return Run(**values, computer="here", permissions=tuple(one for one in PERMISSIONS if one in stored))


def check_spawn(request: SpawnRun) -> None:
    if not request.prompt.strip() or len(request.prompt) > MAX_PROMPT:
        raise _invalid(f"A prompt has 1 to {MAX_PROMPT} characters")
    if request.title is not None and (not 0 < len(request.title) <= MAX_TITLE or not request.title.isprintable()):
        raise _invalid(f"A title has 1 to {MAX_TITLE} printable characters")
    if request.budget is not None and not 0 < request.budget < 1_000_000:
        raise _invalid("A budget is a sum above 0")
    folder = request.folder
    if folder is not None:
        parts = folder.strip("/").split("/")
        if len(folder) > MAX_FOLDER or folder.startswith("/") or not folder.isprintable() or ".." in parts:
            raise _invalid(f"{folder[:80]!a} is not a folder of the workspace", "Such as site, or . for all of it")
    if request.entry is not None:
        if not 1 <= request.entry <= MAX_ENTRY:
            raise _invalid("An entry is a number that freehold log shows")
        if folder is None:
            raise _invalid("An entry has no effect without a folder", "Name the folder, or . for the whole workspace")


def check_read(request: ReadRun) -> None:
    if not 1 <= request.limit <= MAX_EVENTS or not 0 <= request.seconds <= MAX_WAIT or request.after < 0:
        raise _invalid(f"limit is 1 to {MAX_EVENTS}, seconds 0 to {MAX_WAIT:g}, and after is not negative")


def check_page(request: ListRuns) -> int | None:
    """The number before which the page begins."""
    if not 1 <= request.limit <= MAX_PAGE:
        raise _invalid(f"limit is {request.limit}; it must be between 1 and {MAX_PAGE}")
    cursor = request.cursor
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise _invalid("The cursor is a number")
    return int(cursor)


def no_run(id: str) -> SlotError:
    return SlotError("orchestrator", "not-found", f"There is no run {id[:40]!a}", hint="freehold runs lists them")


def _invalid(message: str, hint: str = "") -> SlotError:
    return SlotError("orchestrator", "invalid", message, hint=hint)


def _of_family(error: FreeholdError) -> SlotError:
    """The error of another room as one of this slot."""
    problem = {"not-found": "not-found", "permission": "denied", "unavailable": "unavailable", "invalid": "invalid"}
    found: Any = problem.get(error.kind.name, "conflict")
    return SlotError("orchestrator", found, error.message, hint=error.next_step)
