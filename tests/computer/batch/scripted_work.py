"""Work of a batch that does what a test says, without computers."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from freehold.computer.batch.batch import Batch, BatchBounds
from freehold.computer.batch.task import Task, TaskAttempt, TaskEnd, WorkLabel

Act = Callable[[Task, int], Awaitable[TaskEnd]]
LABEL = WorkLabel("script", "scripted", "0" * 64)


async def succeed(_task: Task, _attempt: int) -> TaskEnd:
    return TaskEnd("done", 0.0, 0)


class ScriptedWork:
    """`carried_out` are the tasks and attempts, in the order in which they began."""

    def __init__(self, act: Act = succeed, *, outlives: bool = False, label: WorkLabel = LABEL) -> None:
        self.label = label
        self.outlives = outlives
        self.waits_for = ""
        self.carried_out: list[tuple[int, int]] = []
        self._act = act

    @asynccontextmanager
    async def open(self, batch_id: str, spent: float) -> AsyncIterator[None]:
        yield

    async def carry_out(self, attempt: TaskAttempt, folder: Path) -> TaskEnd:
        task = attempt.task
        self.carried_out.append((task.number, attempt.number))
        end = await self._act(task, attempt.number)
        (folder / "stdout").write_text(f"{task.name} {attempt.number}")
        return end


def make_batch(work: ScriptedWork, folder: Path, count: int = 4, bounds: BatchBounds | None = None) -> Batch:
    tasks = [Task(number, f"input {number}") for number in range(1, count + 1)]
    return Batch(work, tasks, folder, bounds or BatchBounds(2))
