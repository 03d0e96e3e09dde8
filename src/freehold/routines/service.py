"""Routines inside the gateway: wakes when something is due, begins runs, and sees how they end.

Everything that must survive a crash is stored before it is acted on. What this object holds in memory can be lost.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial

from freehold.agents.sessions.answered_turns import find_first_key
from freehold.agents.sessions.service import SessionService
from freehold.agents.threads import run_blocking
from freehold.egress.models import ActiveStop
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.keeper.client import KeeperClient
from freehold.routines.agent_turn import list_questions
from freehold.routines.clock import Clock, WallClock
from freehold.routines.command_work import CommandWork
from freehold.routines.event_watch import EventWatch
from freehold.routines.file_watch import FileWatch
from freehold.routines.loops import keep_going, keep_quiet, keep_trying
from freehold.routines.prompt_work import PromptWork
from freehold.routines.records import OPEN, Routine, RoutineRun
from freehold.routines.routine_store import RoutineStore
from freehold.routines.rules import WorkKind, work_of
from freehold.routines.run_changes import RunEnd
from freehold.routines.run_store import RunStore
from freehold.routines.section import RoutineSection, RoutinesSection
from freehold.routines.timeline_trigger import MESSAGE, TimelineTrigger
from freehold.routines.webhook import forget_secrets
from freehold.routines.work import RoutineWork
from freehold.routines.workflow_work import WorkflowWork
from freehold.routines.workflows.service import OVER, WorkflowService
from freehold.slots import Slot
from freehold.timeline import TimelineEvent

KINDS = ("turn.ended", "approval.asked", "approval.answered", "session.deleted", "routine.*", MESSAGE, *sorted(OVER))
"""Timeline events that a run may wait for, or that begin one."""
POSITION = "timeline"
BUDGET_INTERVAL = 1.0
PARK_GRACE = 60.0
"""Seconds that the agent of a run that waits for the owner is kept, for an owner who is there."""
SAVE_INTERVAL = 200
"""Events after which the position is saved though none of them began a run."""
UNEXPECTED = "Freehold has an error: freehold logs shows the cause"
CHANGED = "Freehold was restarted while it ran, and the routine is another one now"
STOPPED = "The kill switch is on"
ENDED = "The run has ended"

log = logging.getLogger("freehold.routines")


def make_service(context: RouteContext) -> "RoutineService":
    """The service of the gateway."""
    services = context.services
    wanted = services.manifest.section(RoutinesSection).named
    events = services.slots.get("events")
    workflows = context.service(WorkflowService)
    service = RoutineService(
        context.sessions, wanted, events=events, files=services.keeper, workflows=workflows, vault=services.vault
    )

    async def stop(_stop: ActiveStop) -> None:
        await service.stop_all()

    services.models.on_stop(stop)
    return service


class RoutineService:
    """A service of the gateway. `run` must run as long as it is used."""

    def __init__(
        self,
        sessions: SessionService,
        wanted: Mapping[str, RoutineSection],
        *,
        events: Slot | None = None,
        files: KeeperClient | None = None,
        workflows: WorkflowService | None = None,
        vault: Vault | None = None,
        clock: Clock | None = None,
        grace: float = PARK_GRACE,
    ) -> None:
        """`wanted` are the routines of the manifest. Without `events` or `files`, nothing of that kind begins a run.

        `vault` has the secrets of webhooks. `grace` is how long the agent of a parked run is kept, in seconds.
        """
        self._sessions = sessions
        self._wanted = wanted
        self._vault = vault
        self._grace = grace
        self.routines = RoutineStore(sessions.dependencies.store.timeline, clock or WallClock())
        self.runs = RunStore(self.routines)
        prompts, commands = PromptWork(sessions, self.runs), CommandWork(sessions.dependencies)
        self._works: dict[WorkKind, RoutineWork] = {"prompt": prompts, "checklist": prompts, "command": commands}
        if workflows is not None:
            self._works["workflow"] = WorkflowWork(workflows, self.runs)
        dependencies = sessions.dependencies
        self._triggers = TimelineTrigger(self.runs, dependencies.store.turns, dependencies.approvals.store)
        self._changed = asyncio.Event()
        self._routines_changed = asyncio.Event()
        self._moved: dict[str, asyncio.Event] = {}
        """For each run that is watched: set when it was parked, goes on or has ended."""
        self._stopping: set[str] = set()
        """Runs that are stopped now. What that causes in their work is not taken for an end of its own."""
        self._group: asyncio.TaskGroup | None = None
        self.ready = asyncio.Event()
        """Set when the tables are there and the routines of the manifest are in them."""
        self._watches: list[Callable[[], Awaitable[None]]] = []
        find_key = partial(find_first_key, dependencies.store.turns, dependencies.approvals.store)
        if files is not None:
            self._watches.append(FileWatch(self.runs, files, self._wait_routines_changed, find_key).run)
        if events is not None:
            self._watches.append(EventWatch(self.runs, events, self._wait_routines_changed, find_key).run)

    async def run(self) -> None:
        """Until cancelled."""
        await self._sessions.ready.wait()
        async with asyncio.TaskGroup() as group:
            self._group = group
            await keep_trying(self._prepare)
            self.ready.set()
            for loop in (self._keep_time, self._follow_timeline, *self._watches):
                group.create_task(keep_going(loop))

    async def _prepare(self) -> None:
        await run_blocking(self.routines.prepare)
        if self._vault is not None:
            # Before they are removed: what fails or is cut off here is found and tried again.
            left_out = await run_blocking(self.routines.list_left_out, self._wanted)
            await run_blocking(forget_secrets, self._vault, left_out)
        await run_blocking(self.routines.adopt_manifest, self._wanted)
        await self._find_begin()
        for run in await run_blocking(self.runs.list_open):
            self._spawn(self._recover(run))

    async def _wait_routines_changed(self, seconds: float | None = None) -> None:
        """Returns when a routine was added or changed, or after so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._routines_changed.wait()

    # Time

    async def _keep_time(self) -> None:
        while True:
            self._changed.clear()
            if await run_blocking(self.runs.find_next_time) is not None:
                await self._begin_due()
            await self.routines.clock.wait(await run_blocking(self.runs.find_next_time), self._changed)

    async def _begin_due(self) -> None:
        is_cut = True
        while is_cut:
            stopped = STOPPED if self._sessions.dependencies.models.stopped else None
            claimed = await run_blocking(partial(self.runs.begin_due, stopped=stopped))
            for run in claimed.begun:
                self._spawn(self._live(run, claimed.routines[run.routine]))
            for run in claimed.replaced:
                self._spawn(self._cancel(run, "A newer run has replaced it"))
            is_cut = claimed.is_cut

    # One run

    async def _recover(self, run: RoutineRun) -> None:
        await self._live(run, await run_blocking(self.routines.find, run.routine), recovering=True)

    async def _live(self, run: RoutineRun, routine: Routine | None, *, recovering: bool = False) -> None:
        """Does the work of a run, and sees that it keeps to its bounds."""
        work = self._work_of(run)
        end: RunEnd | None
        try:
            if routine is None or (recovering and work_of(routine.spec) != run.work):
                # Nothing of it can be begun again. What has begun is looked at.
                end = None if run.turn is not None else RunEnd("uncertain", error=CHANGED)
            else:
                end = await (work.recover(routine, run) if recovering else work.begin(routine, run))
        except FreeholdError as error:
            end = RunEnd("failed", error=error.message)
        except Exception:
            # A bug in one run must not end the others.
            log.exception("a run of a routine failed unexpectedly", extra={"routine": run.routine, "run": run.id})
            end = RunEnd("failed", error=UNEXPECTED)
        if end is not None:
            await self._end_unless_stopped(run, end)
        elif run.id in self._stopping or (await run_blocking(self.runs.get, run.id)).finished is not None:
            await work.stop(run, ENDED)  # while it began
        else:
            await self._settle(run.id)
            if routine is not None and run.work != "workflow":  # its steps have their own bounds
                await self._guard(routine, run.id)

    def _work_of(self, run: RoutineRun) -> RoutineWork:
        assert run.work is not None  # it has begun
        return self._works[run.work]

    async def _settle(self, id: str) -> None:
        """Looks whether a run has ended or waits for the owner. Idempotent."""
        run = await run_blocking(self.runs.get, id)
        routine = await run_blocking(self.routines.find, run.routine)
        if run.state in OPEN and run.work == "workflow":
            await self._settle_workflow(run)
        if run.state not in OPEN or run.session is None:
            return
        waiting = await list_questions(self._sessions, run.session, run.key_prefix, is_prefix=True)
        if waiting and routine is not None and routine.spec.asks == "refuse":
            for approval in waiting:
                with suppress(FreeholdError):  # answered meanwhile
                    await self._sessions.answer(approval.id, "reject", who=f"routine:{routine.name}")
            return
        if waiting:
            await self._park(routine, run, str(waiting[0].data.get("title", "")))
            return
        end = await self._work_of(run).settle(run)
        if end is not None:
            await self._end_unless_stopped(run, end)
        elif run.state == "parked" and await run_blocking(self.runs.move, run.id, "started"):
            self._note_moved(run.id)
            if routine is not None:
                self._spawn(self._guard(routine, run.id))

    async def _settle_workflow(self, run: RoutineRun) -> None:
        end = await self._work_of(run).settle(run)
        if end is not None:
            await self._end_unless_stopped(run, end)

    async def _park(self, routine: Routine | None, run: RoutineRun, why: str) -> None:
        if await run_blocking(partial(self.runs.move, run.id, "parked", why=f"It asks: {why}"[:500])):
            self._note_moved(run.id)
            self._spawn(self._release_later(routine, run))

    async def _release_later(self, routine: Routine | None, run: RoutineRun) -> None:
        """Ends an agent that waits for an owner who is not there. The answer starts it again.

        Until then it may do something else beside its question, so its budget counts.
        """
        loop, moved = asyncio.get_running_loop(), self._watch(run.id)
        end, most = loop.time() + self._grace, None
        if routine is not None:
            most = await run_blocking(self.runs.find_most, routine, run)
        while (left := end - loop.time()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left if most is None else min(left, BUDGET_INTERVAL)):
                    await moved.wait()
                    return
            run = await run_blocking(self.runs.get, run.id)
            if run.state != "parked" or await self._break_off_over(run, most):
                return
        if run.session is not None and (await run_blocking(self.runs.get, run.id)).state == "parked":
            await self._sessions.release(run.session, "It waits for the owner")

    async def _guard(self, routine: Routine, id: str) -> None:
        """Ends a run that works too long or costs too much. Returns when it does not work any more."""
        loop, longest = asyncio.get_running_loop(), routine.spec.longest
        deadline = loop.time() + longest
        moved, first = self._watch(id), await run_blocking(self.runs.get, id)
        most = await run_blocking(self.runs.find_most, routine, first)
        run = first
        while run.state == "started" and run.attempt == first.attempt:
            left = deadline - loop.time()
            if left <= 0:
                await self._break_off(run, f"It worked for {longest} s, which is its longest")
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(left if most is None else min(left, BUDGET_INTERVAL)):
                    await moved.wait()
            # The event comes before the state is read, so that no change is missed.
            moved, run = self._watch(id), await run_blocking(self.runs.get, id)
            if run.state == "started" and await self._break_off_over(run, most):
                return
        if run.finished is not None:
            self._moved.pop(id, None)  # nobody tells it any more

    async def _break_off_over(self, run: RoutineRun, most: float | None) -> bool:
        """Ends a run that has cost its budget. Returns whether it has."""
        if most is None or (await self._work_of(run).measure_cost(run) or 0.0) < most:
            return False
        await self._break_off(run, f"It has cost {most:.2f} US dollars, which is its budget")
        return True

    async def _break_off(self, run: RoutineRun, reason: str) -> None:
        await self._stop(run, RunEnd("failed", error=reason), reason)

    async def _cancel(self, run: RoutineRun, reason: str) -> None:
        await self._stop(run, RunEnd("cancelled", error=reason), reason)

    async def _stop(self, run: RoutineRun, end: RunEnd, reason: str) -> None:
        """Ends its work, and stores what that has cost to its last request: a run that is cut off counts in full."""
        self._stopping.add(run.id)
        try:
            cost = None
            if run.work is not None:
                work = self._work_of(run)
                await work.stop(run, reason)
                with suppress(FreeholdError):
                    cost = await work.measure_cost(await run_blocking(self.runs.get, run.id))
            await self._end(run, replace(end, cost=cost))
        finally:
            self._stopping.discard(run.id)

    async def cancel(self, id: str, who: str) -> RoutineRun:
        """Ends a run, also one that is due or waits for the owner. Idempotent. Raises `routine.run.not-found`."""
        run = await run_blocking(self.runs.get, id)
        if run.finished is None:
            await self._cancel(run, f"{who} ended it")
        return await run_blocking(self.runs.get, id)

    async def _end_unless_stopped(self, run: RoutineRun, end: RunEnd) -> None:
        if run.id not in self._stopping:
            await self._end(run, end)

    async def _end(self, run: RoutineRun, end: RunEnd) -> None:
        """Tries again until that is stored: the disk may be full now."""
        await keep_trying(partial(run_blocking, self.runs.end, run.id, end))
        self._note_moved(run.id)

    async def stop_all(self) -> None:
        """The kill switch. Agents are ended by it anyway; commands are ended here."""
        if not self.ready.is_set():
            return
        with suppress(FreeholdError):
            runs = await run_blocking(self.runs.list_open)
            for run in sorted(runs, key=lambda one: one.work == "workflow"):  # whose journal may be away
                await self._cancel(run, "The owner stopped all agents")

    # Events

    async def _find_begin(self) -> int:
        """From which timeline event on events were not seen yet."""
        stored = await run_blocking(self.routines.read_position, POSITION)
        if stored is not None:
            return int(stored)
        last = await run_blocking(self.routines.timeline.last)
        begin = 0 if last is None else last.seq
        await run_blocking(self.routines.save_position, POSITION, str(begin))
        return begin

    async def _follow_timeline(self) -> None:
        begin, unsaved = await self._find_begin(), 0
        async with aclosing(self.routines.timeline.follow(begin, KINDS)) as events:
            async for event in events:
                await self._see(event)
                unsaved += 1
                if unsaved >= SAVE_INTERVAL or not event.kind.startswith("routine."):
                    await run_blocking(self.routines.save_position, POSITION, str(event.seq))
                    unsaved = 0

    async def _see(self, event: TimelineEvent) -> None:
        """Idempotent: after a crash the last events are seen again."""
        if event.kind.startswith("routine."):
            self._changed.set()
            if not event.kind.startswith("routine.run_"):
                changed, self._routines_changed = self._routines_changed, asyncio.Event()
                changed.set()
        elif event.kind in OVER:
            if event.data.get("run") is not None:
                self._spawn(self._settle(str(event.data["run"])))  # it waits for what ends
        else:
            for run in await run_blocking(self.runs.list_open_in, str(event.data.get("session"))):
                await self._settle(run.id)
        await self._triggers.see(event)

    # Waiting for a run

    def _watch(self, id: str) -> asyncio.Event:
        """Set when the run is parked, goes on or ends after this."""
        return self._moved.setdefault(id, asyncio.Event())

    def _note_moved(self, id: str) -> None:
        moved = self._moved.pop(id, None)
        if moved is not None:
            moved.set()

    def _spawn(self, work: "Awaitable[None]") -> None:
        assert self._group is not None
        self._group.create_task(keep_quiet(work))
