"""The nouns of a batch: its tasks, how one ends, and what carries one out."""

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from freehold.strict_json import EpochSeconds

TaskState = Literal["waiting", "done", "failed", "lost"]
AttemptEvent = Literal["begun", "done", "failed", "lost", "stopped"]
"""`failed`: the work ran and said no. `lost`: nobody knows how it would have ended. `stopped`: the owner stopped the batch."""


@dataclass(frozen=True)
class Task:
    """One input of a batch: a file of this machine, or the text `name` if there is no `path`. Numbers begin at 1."""

    number: int
    name: str
    path: Path | None = None


@dataclass(frozen=True)
class TaskAttempt:
    """One time that a task is carried out. `is_found`: a process that was killed began it, and it may go on still."""

    task: Task
    number: int
    is_found: bool = False


@dataclass(frozen=True)
class TaskEnd:
    """How one attempt ended. `cost` is in US dollars, for work that has one."""

    state: Literal["done", "failed"]
    seconds: float
    exit_code: int | None = None
    error: str | None = None
    cost: float | None = None


class TaskLost(Exception):
    """The computer of the task ended, or cannot be reached any more. The text says why."""

    def __init__(self, reason: str, cost: float | None = None) -> None:
        super().__init__(reason)
        self.cost = cost


class TaskStopped(asyncio.CancelledError):
    """An attempt that was cancelled, and what it had cost by then."""

    def __init__(self, cost: float | None) -> None:
        super().__init__()
        self.cost = cost


class BatchBound(Exception):
    """No further task may begin, such as when a budget is used up. The text says why. The task was not begun."""


@dataclass(frozen=True)
class JournalEvent:
    """One line of the journal. An attempt is begun once, and ends at most once."""

    event: AttemptEvent
    task: int
    attempt: int
    at: EpochSeconds
    seconds: float | None = None
    exit_code: int | None = None
    error: str | None = None
    cost: float | None = None


@dataclass(frozen=True)
class WorkLabel:
    """What a batch does to each input. A batch goes on only with the same work: `digest` covers all of it."""

    kind: Literal["script", "prompt"]
    name: str
    digest: str


class BatchWork(Protocol):
    """Carries out tasks. `outlives`: an attempt goes on when this process is killed, and is found by its number again."""

    label: WorkLabel
    outlives: bool

    @property
    def waits_for(self) -> str:
        """Why a task that was begun has no room yet. Empty while none waits, or nobody knows."""
        ...

    def open(self, batch_id: str, spent: float) -> AbstractAsyncContextManager[None]:
        """Around all tasks. `spent` is what the batch has cost before."""
        ...

    async def carry_out(self, attempt: TaskAttempt, folder: Path) -> TaskEnd:
        """Writes results and logs below `folder`, which is new. Raises `TaskLost` and `BatchBound`.

        Any other error ends the batch: it is not about this task. Cancelling it ends the attempt.
        """
        ...
