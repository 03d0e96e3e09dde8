"""What the local orchestrator needs from the process that runs agents. The gateway gives it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from freehold.slots.orchestrator.contract import ChangeKind, FileChange, RunEvent, RunState


@dataclass(frozen=True)
class ChildSpec:
    """A run to begin. `room` is a folder of the host for what it leaves behind."""

    id: str
    session: str
    prompt: str
    folder: str | None
    may_ask: bool
    room: Path
    who: str


@dataclass(frozen=True)
class FileFacts:
    """What tells whether a file has changed."""

    kind: str
    size: int
    mtime_ns: int
    mode: int


@dataclass(frozen=True)
class ChangedFile:
    """One file that a run has changed. `content` is the name of its content in the room of the run; None if removed.

    `before` is what the owner's file was like at the beginning. None: it did not exist.
    """

    path: str
    kind: ChangeKind
    size: int
    mode: int
    content: str | None
    before: FileFacts | None


@dataclass(frozen=True)
class ChildReport:
    """How a run goes on. Only what is not None has changed."""

    state: RunState | None = None
    error: str | None = None
    changes: tuple[ChangedFile, ...] | None = None


Report = Callable[[ChildReport], Awaitable[None]]
IsOverBudget = Callable[[], Awaitable[bool]]


class RunEngine(Protocol):
    """All errors are FreeholdError."""

    async def open_session(
        self, agent: str | None, model: str | None, title: str, parent: str | None, who: str
    ) -> tuple[str, str]:
        """A new session and the name of its agent."""
        ...

    def launch(self, child: ChildSpec, report: Report, is_over_budget: IsOverBudget) -> None:
        """Begins in the background, and reports until it has finished."""
        ...

    def end(self, id: str, reason: str) -> None:
        """Idempotent. The run reports that it has ended."""
        ...

    async def read_events(self, session: str, after: int, limit: int) -> tuple[RunEvent, ...]: ...

    async def cost_of(self, session: str) -> float: ...

    async def compare(self, changes: Sequence[ChangedFile], room: Path) -> tuple[FileChange, ...]:
        """The changes beside the owner's files as they are now."""
        ...

    async def merge(self, changes: Sequence[ChangedFile], room: Path, why: str) -> None: ...
