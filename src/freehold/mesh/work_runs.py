"""Work at a neighbour as runs of the orchestrator slot: the same jobs that `freehold mesh work` lists."""

import asyncio
from typing import TYPE_CHECKING, Any

from freehold.errors import FreeholdError
from freehold.mesh.neighbours import Neighbour
from freehold.mesh.sent_jobs import OPEN, SentJob, WorkRequest, WorkState
from freehold.slots.contract import SlotCaller
from freehold.slots.errors import slot_unavailable
from freehold.slots.orchestrator.contract import (
    GetChanges,
    ListRuns,
    ReadRun,
    Run,
    RunChanges,
    RunEvent,
    RunEvents,
    RunOutcome,
    RunPage,
    RunState,
    SpawnRun,
    TakeChanges,
    TerminateRun,
)
from freehold.slots.orchestrator.far_orchestrator import OneRunCall
from freehold.slots.orchestrator.token_runs import digest_key

if TYPE_CHECKING:
    from freehold.mesh.mesh import Mesh

_STATES: dict[WorkState, RunState] = {
    "sending": "starting",
    "working": "working",
    "returned": "done",
    "done": "done",
    "accepted": "done",
    "dropped": "done",
    "failed": "failed",
    "lost": "failed",
    "ended": "ended",
}
_OUTCOMES: dict[WorkState, RunOutcome] = {
    "sending": "pending",
    "working": "pending",
    "returned": "pending",
    "accepted": "merged",
    "dropped": "dropped",
}


class WorkRuns:
    """See `FarOrchestrator`. Errors of the mesh are turned into those of the slot by who calls."""

    def __init__(self, mesh: "Mesh", neighbour: Neighbour) -> None:
        self._mesh = mesh
        self._work = mesh.work
        self._neighbour = neighbour

    async def open(self) -> None:
        """Nothing is kept open."""

    async def close(self) -> None:
        """Nothing is kept open."""

    async def health(self) -> None:
        """Raises `orchestrator.unavailable` when the neighbour cannot be reached or takes no work."""
        try:
            found = await self._mesh.read_cards(self._neighbour)
        except FreeholdError as error:
            raise slot_unavailable("orchestrator", error.message) from error
        if "work" not in found.grants:
            raise slot_unavailable("orchestrator", f"{self._neighbour.name} has not given you work")

    async def spawn(self, request: SpawnRun, caller: SlotCaller) -> Run:
        id = None if request.key is None else digest_key(caller, request.key)[:32]
        wanted = WorkRequest(request.prompt, request.title, request.budget, request.permissions)
        return self._run(await self._work.send(self._neighbour, wanted, caller.name, id))

    async def get(self, id: str) -> Run:
        return self._run(await self._job(id))

    async def list(self, request: ListRuns) -> RunPage:
        skip, states = int(request.cursor or 0), OPEN if request.active else None
        jobs = await asyncio.to_thread(
            self._work.jobs.list, states, self._neighbour.pubkey, limit=request.limit + 1, skip=skip
        )
        cursor = str(skip + request.limit) if len(jobs) > request.limit else None
        cost = await asyncio.to_thread(self._work.jobs.count_cost, self._neighbour.pubkey)
        return RunPage(tuple(self._run(one) for one in jobs[: request.limit]), cursor, cost)

    async def ask_about(self, request: OneRunCall, caller: SlotCaller) -> Any:
        job = await self._job(request.id)
        match request:
            case TerminateRun():
                return self._run(await self._work.stop(job.id))
            case TakeChanges():
                return await self._take(job, request, caller)
            case ReadRun():
                return await self._read(job, request)
            case GetChanges():
                if job.state != "returned":
                    return RunChanges(self._run(job), ())
                files, total = await self._work.returned.compare(job.id)
                return RunChanges(self._run(job), files, total)

    def wrong_reply(self, error: Exception) -> Exception:
        return slot_unavailable("orchestrator", f"the reply of {self._neighbour.name} is not valid: {error}")

    async def _take(self, job: SentJob, request: TakeChanges, caller: SlotCaller) -> Run:
        done: WorkState = "accepted" if request.how == "merge" else "dropped"
        if job.state == done and request.key is not None:
            return self._run(job)  # the answer to the first try was lost
        if request.how == "merge":
            return self._run(await self._work.accept(job.id, "", caller.name, force=request.force))
        return self._run(await self._work.drop(job.id, caller.name))

    async def _read(self, job: SentJob, request: ReadRun) -> RunEvents:
        clock = asyncio.get_running_loop().time
        end = clock() + request.seconds
        while True:
            job = await self._job(job.id)
            heard = [one for one in await self._work.read_events(job) if one["seq"] > request.after]
            if heard or clock() >= end or job.state not in OPEN:
                events = tuple(RunEvent(**one) for one in heard[: request.limit])
                return RunEvents(self._run(job), events, events[-1].seq if events else request.after)
            await self._work.wait_news(end - clock())

    async def _job(self, id: str) -> SentJob:
        """Raises `mesh.not-found`, also for work of another neighbour."""
        job = await asyncio.to_thread(self._work.jobs.get, id)
        if job.neighbour != self._neighbour.pubkey:
            raise FreeholdError("mesh.not-found", f"There is no work {id[:40]!a} at {self._neighbour.name}")
        return job

    def _run(self, job: SentJob) -> Run:
        name = self._neighbour.name
        return Run(
            id=job.id,
            session=job.id,
            agent=job.agent or name,
            title=job.title,
            state="needs_you" if job.state == "working" and self._work.is_asking(job.id) else _STATES[job.state],
            parent=None,
            depth=1,
            folder=None,
            budget=job.budget,
            cost=job.cost,
            created=job.created,
            finished=job.finished,
            error=job.error,
            added=job.files,
            changed=0,
            removed=0,
            outcome=_OUTCOMES.get(job.state, "none"),
            computer=f"neighbour:{name}",
            permissions=("ask", "network"),
        )
