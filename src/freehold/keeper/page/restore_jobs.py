"""The restores that were asked for on the recovery page. The page does not wait for a long one: it shows how far it is."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from freehold.errors import FreeholdError
from freehold.history import calls
from freehold.history.restore_event import RestoreCall

log = logging.getLogger(__name__)

MAX_JOBS = 16
CarryOut = Callable[[RestoreCall], Awaitable[calls.RestoreReport]]


@dataclass
class RestoreJob:
    """One restore. When it has ended, it has a report or an error."""

    id: str
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    report: calls.RestoreReport | None = None
    error: FreeholdError | None = None

    async def wait(self, seconds: float) -> bool:
        """Whether it ends within this time."""
        try:
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        except TimeoutError:
            return False
        return True


class RestoreJobs:
    """The last jobs are held in memory, so that pages can show their results. `tasks` must live as long as the page."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks
        self._jobs: dict[str, RestoreJob] = {}

    def start(self, call: RestoreCall, carry_out: CarryOut) -> RestoreJob:
        """Begin with it. It goes on when the browser leaves."""
        job = RestoreJob(secrets.token_hex(8))
        self._jobs[job.id] = job
        while len(self._jobs) > MAX_JOBS:
            del self._jobs[next(iter(self._jobs))]
        self._tasks.create_task(self._run(job, replace(call, restore_id=job.id), carry_out))
        return job

    def find(self, id: str) -> RestoreJob | None:
        return self._jobs.get(id)

    def find_report(self, entry: int) -> calls.RestoreReport | None:
        """The result that was recorded as this entry, if it is one of the last ones."""
        reports = (job.report for job in self._jobs.values() if job.report is not None)
        return next((report for report in reports if report.entry.id == entry), None)

    async def _run(self, job: RestoreJob, call: RestoreCall, carry_out: CarryOut) -> None:
        try:
            job.report = await carry_out(call)
        except FreeholdError as error:
            job.error = error
        except Exception:
            error_id = secrets.token_hex(6)
            log.exception("%s failed [%s]", call.method, error_id)
            hint = f"freehold logs keeper shows it as {error_id}"
            job.error = FreeholdError("keeper.bug", "An internal error occurred", hint=hint)
        finally:
            job.ended.set()
