"""Carries out a batch: begins tasks, writes down how each ended, and begins again what was lost."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from freehold.computer.batch.journal import MAX_ERROR, BatchJournal
from freehold.computer.batch.progress import BatchProgress, RateMeter
from freehold.computer.batch.result_folder import name_folder, remove_folders, replace_folder
from freehold.computer.batch.task import (
    BatchBound,
    BatchWork,
    JournalEvent,
    Task,
    TaskAttempt,
    TaskEnd,
    TaskLost,
    TaskState,
    TaskStopped,
)
from freehold.errors import FreeholdError

TASKS_FOLDER, DRAFTS_FOLDER = "tasks", ".drafts"
MAX_TASKS = 1_000_000
MAX_PARALLEL = 1024
MAX_RETRIES = 100
KILLED = "The process that carried out the batch ended meanwhile"


@dataclass(frozen=True)
class BatchBounds:
    """`retries` are for each task that was lost, `retry_failed` for each that failed."""

    parallel: int
    retries: int = 2
    retry_failed: int = 0

    def __post_init__(self) -> None:
        for name, least, most in (
            ("parallel", 1, MAX_PARALLEL),
            ("retries", 0, MAX_RETRIES),
            ("retry_failed", 0, MAX_RETRIES),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                raise FreeholdError("batch.range", f"{name} is {value}; it must be between {least} and {most}")


@dataclass(frozen=True)
class TaskOutcome:
    """A task as the journal has it. `folder` has its results and logs when it is done or has failed."""

    number: int
    name: str
    state: TaskState
    attempts: int
    exit_code: int | None
    seconds: float | None
    error: str | None
    cost: float | None
    folder: str | None


@dataclass(frozen=True)
class BatchSummary:
    """`waiting` tasks have not ended: the batch was bounded. `stopped_by` says by what."""

    id: str
    folder: str
    total: int
    done: int
    failed: int
    lost: int
    waiting: int
    seconds: float
    rate: float | None
    cost: float | None
    stopped_by: str | None
    tasks: tuple[TaskOutcome, ...]

    @property
    def is_done(self) -> bool:
        return self.done == self.total


class TaskRecord:
    """What the journal says of one task."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.attempts = self.failed = self.lost = 0
        self.cost: float | None = None
        self.end: JournalEvent | None = None
        self.open_attempt: int | None = None
        """One that was begun and has not ended."""

    def take(self, event: JournalEvent) -> None:
        self.attempts = max(self.attempts, event.attempt)
        if event.cost is not None:
            self.cost = (self.cost or 0.0) + event.cost
        if event.event == "begun":
            self.open_attempt = event.attempt
            return
        self.open_attempt = None
        self.end = event
        self.failed += event.event == "failed"
        self.lost += event.event == "lost"

    def find_state(self, bounds: BatchBounds) -> TaskState:
        """Greater bounds than before make a task that failed or was lost wait again."""
        if self.end is not None and self.end.event == "done":
            return "done"
        if self.failed > bounds.retry_failed:
            return "failed"
        return "lost" if self.lost > bounds.retries else "waiting"


Report = Callable[[JournalEvent, BatchProgress], None]


class Batch:
    """`await batch` carries it out. Called again with the same folder, work and inputs, it goes on."""

    def __init__(self, work: BatchWork, tasks: Sequence[Task], folder: Path, bounds: BatchBounds) -> None:
        if not 0 < len(tasks) <= MAX_TASKS:
            raise FreeholdError("batch.empty", f"A batch has 1 to {MAX_TASKS} inputs, not {len(tasks)}")
        self._work = work
        self._records = [TaskRecord(task) for task in tasks]
        self._folder = folder
        self._bounds = bounds
        self._waiting: deque[TaskRecord] = deque()
        self._counts: dict[TaskState, int] = {}
        self._running: set[int] = set()
        self._id = ""
        self._cost: float | None = None
        self._meter = RateMeter()
        self._bound: str | None = None
        self._error: FreeholdError | None = None
        self.report: Report | None = None
        """Called after each end of an attempt."""

    def __await__(self) -> Generator[Any, None, BatchSummary]:
        return self.run().__await__()

    @property
    def progress(self) -> BatchProgress:
        counts, rate = self._counts, self._meter.measure()
        running = len(self._running)
        waiting = counts.get("waiting", 0) - running
        left = counts.get("waiting", 0) / rate if rate else None
        ended = (counts.get("done", 0), counts.get("failed", 0), counts.get("lost", 0))
        seconds = time.monotonic() - self._meter.began
        return BatchProgress(
            len(self._records), *ended, running, waiting, seconds, rate, left, self._cost, self._work.waits_for
        )

    async def run(self) -> BatchSummary:
        """Until every task has ended or nothing may begin any more. Cancelling it stops what runs and keeps the rest."""
        self._folder = await asyncio.to_thread(self._folder.absolute)
        inputs = tuple(record.task.name for record in self._records)
        with await asyncio.to_thread(BatchJournal.open, self._folder, self._work.label, inputs) as journal:
            self._id = journal.header.id
            self._recall(journal)
            if self._waiting:
                await self._carry_out_all(journal)
            return self.summarize()

    def _recall(self, journal: BatchJournal) -> None:
        """What the journal has. An attempt that died with the process that began it is told lost."""
        for event in journal.events:
            self._records[event.task - 1].take(event)
        for record in self._records:
            if record.open_attempt is not None and not self._work.outlives:
                lost = JournalEvent("lost", record.task.number, record.open_attempt, time.time(), error=KILLED)
                journal.append(lost)
                record.take(lost)
            state = record.find_state(self._bounds)
            self._counts[state] = self._counts.get(state, 0) + 1
            if record.cost is not None:
                self._cost = (self._cost or 0.0) + record.cost
        waiting = [one for one in self._records if one.find_state(self._bounds) == "waiting"]
        # First what is already under way elsewhere: it has the places.
        self._waiting = deque(sorted(waiting, key=lambda one: one.open_attempt is None))

    async def _carry_out_all(self, journal: BatchJournal) -> None:
        drafts = self._folder / DRAFTS_FOLDER
        await asyncio.to_thread(_prepare_folders, self._folder / TASKS_FOLDER, drafts)
        self._meter = RateMeter()
        try:
            async with self._work.open(journal.header.id, self._cost or 0.0), asyncio.TaskGroup() as group:
                for _ in range(min(self._bounds.parallel, len(self._waiting))):
                    group.create_task(self._work_on(journal))
        finally:
            await asyncio.to_thread(remove_folders, [drafts])
        if self._error is not None:
            raise self._error

    async def _work_on(self, journal: BatchJournal) -> None:
        """One place: a task after the other. An error is kept, so that the tasks of the others end first."""
        while self._waiting and self._bound is None and self._error is None:
            record = self._waiting.popleft()
            self._running.add(record.task.number)
            try:
                await self._attempt(record, journal)
            except BatchBound as bound:
                self._bound = str(bound)
            except FreeholdError as error:
                self._error = error
            except OSError as error:
                self._error = FreeholdError("batch.disk-error", f"Cannot write results to {self._folder}: {error}")
            finally:
                self._running.discard(record.task.number)

    async def _attempt(self, record: TaskRecord, journal: BatchJournal) -> None:
        task, is_found = record.task, record.open_attempt is not None
        attempt = record.open_attempt or record.attempts + 1
        draft = self._folder / DRAFTS_FOLDER / f"{task.number}-{attempt}"
        await asyncio.to_thread(draft.mkdir, 0o700)
        if not is_found:
            self._note(record, journal, JournalEvent("begun", task.number, attempt, time.time()))
        blank = JournalEvent("stopped", task.number, attempt, time.time())
        try:
            end = await self._work.carry_out(TaskAttempt(task, attempt, is_found), draft)
            final = self._folder / TASKS_FOLDER / name_folder(task, len(self._records))
            await asyncio.to_thread(replace_folder, draft, final)
            event = _describe_end(blank, end)
        except TaskLost as lost:
            event = replace(blank, event="lost", error=_cut(str(lost)), cost=lost.cost)
        except BaseException as error:
            # Work that goes on elsewhere is found again, unless it was ended on purpose.
            if not self._work.outlives or isinstance(error, asyncio.CancelledError | BatchBound):
                cost = error.cost if isinstance(error, TaskStopped) else None
                self._note(record, journal, replace(blank, at=time.time(), cost=cost))
            raise
        self._note(record, journal, replace(event, at=time.time()))
        await journal.sync()
        if record.find_state(self._bounds) == "waiting":
            self._waiting.append(record)

    def _note(self, record: TaskRecord, journal: BatchJournal, event: JournalEvent) -> None:
        """In the journal, in the counts, and to who listens."""
        journal.append(event)
        before = record.find_state(self._bounds)
        record.take(event)
        if event.cost is not None:
            self._cost = (self._cost or 0.0) + event.cost
        after = record.find_state(self._bounds)
        self._counts[before] -= 1
        self._counts[after] = self._counts.get(after, 0) + 1
        if event.event != "begun":
            self._running.discard(event.task)
            if after != "waiting":
                self._meter.count()
            if self.report is not None:
                self.report(event, self.progress)

    def summarize(self, stopped_by: str | None = None) -> BatchSummary:
        """As far as it is, also of one that was cancelled: `stopped_by` says by what."""
        progress = self.progress
        return BatchSummary(
            self._id,
            str(self._folder),
            progress.total,
            *(progress.done, progress.failed, progress.lost, progress.waiting),
            *(round(progress.seconds, 3), progress.rate, progress.cost),
            stopped_by or self._bound,
            tuple(self._describe_task(record) for record in self._records),
        )

    def _describe_task(self, record: TaskRecord) -> TaskOutcome:
        task, end = record.task, record.end
        state = record.find_state(self._bounds)
        has_results = end is not None and end.event in ("done", "failed")
        return TaskOutcome(
            *(task.number, task.name, state, record.attempts),
            None if end is None else end.exit_code,
            None if end is None else end.seconds,
            None if end is None else end.error,
            record.cost,
            f"{TASKS_FOLDER}/{name_folder(task, len(self._records))}" if has_results else None,
        )


def _describe_end(blank: JournalEvent, end: TaskEnd) -> JournalEvent:
    error = None if end.error is None else _cut(end.error)
    return replace(
        blank, event=end.state, seconds=round(end.seconds, 6), exit_code=end.exit_code, error=error, cost=end.cost
    )


def _cut(text: str) -> str:
    return text if len(text) <= MAX_ERROR else f"{text[: MAX_ERROR - 1]}…"


def _prepare_folders(tasks: Path, drafts: Path) -> None:
    """Drafts of a process that was killed are removed."""
    remove_folders([drafts])
    for one in (tasks, drafts):
        one.mkdir(mode=0o700, exist_ok=True)
