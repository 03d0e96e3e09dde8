"""What the local orchestrator needs from the process that runs agents. The gateway gives it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from freehold.slots.orchestrator.contract import RunChange, RunEvent, RunPermission, RunState


@dataclass(frozen=True)
class ChildSpec:
    """A run to begin. With an `entry` of history it gets its folder as that has it, otherwise as it is now."""

    id: str
    session: str
    prompt: str
    folder: str | None
    permissions: tuple[RunPermission, ...]
    who: str
    entry: int | None = None


@dataclass(frozen=True)
class SessionWanted:
    """A session to open for a run. `parent` is the session that wants it. `is_limited`: the run has a budget."""

    agent: str | None
    model: str | None
    title: str
    parent: str | None
    who: str
    is_limited: bool


@dataclass(frozen=True)
class SessionCost:
    """In US dollars. `is_whole`: the price of everything was known."""

    known: float
    is_whole: bool = True


@dataclass(frozen=True)
class ChangeCounts:
    """How many files a run has added, changed and removed in its copy. `note` says what could not be kept."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    note: str | None = None


@dataclass(frozen=True)
class ChildReport:
    """How a run goes on. Only what is not None has changed. `lost`: nobody knows how it would have ended."""

    state: RunState | None = None
    error: str | None = None
    changes: ChangeCounts | None = None
    lost: bool = False


Report = Callable[[ChildReport], Awaitable[None]]
IsOverBudget = Callable[[], Awaitable[bool]]


class RunEngine(Protocol):
    """All errors are FreeholdError. The changes of a run are known by its id, also after a crash of every process."""

    async def check_state(self, folder: str, entry: int) -> None:
        """Raises an error when a run cannot begin with this folder as an entry of history has it. Makes nothing."""
        ...

    async def open_session(self, wanted: SessionWanted) -> tuple[str, str]:
        """A new session and the name of its agent. With a limit, an agent whose cost cannot be known is refused."""
        ...

    def launch(self, child: ChildSpec, report: Report, is_over_budget: IsOverBudget) -> None:
        """Begins in the background, and reports until it has finished."""
        ...

    def end(self, id: str, reason: str) -> None:
        """Idempotent. The run reports that it has ended."""
        ...

    async def salvage(self, id: str) -> ChangeCounts:
        """End what is left of a run that another process began, and keep what it has changed. Idempotent."""
        ...

    async def read_events(self, session: str, after: int, limit: int) -> tuple[RunEvent, ...]: ...

    async def wait_event(self, session: str, after: int) -> None:
        """Returns when the session gets an event after this one. One that it has already may not count."""
        ...

    async def cost_of(self, session: str) -> SessionCost: ...

    async def compare(self, id: str) -> tuple[tuple[RunChange, ...], int]:
        """The first changes of a finished run beside the owner's files as they are now, and how many there are."""
        ...

    async def merge(self, id: str, why: str, who: str, *, force: bool) -> None:
        """Once: a second time changes nothing. A conflict is an error with its paths, and nothing is written."""
        ...

    async def drop(self, id: str) -> None:
        """Idempotent."""
        ...
