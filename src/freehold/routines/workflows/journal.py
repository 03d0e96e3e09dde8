"""Where workflows and their steps are stored: in the file of the timeline, or in a database of the owner."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, Protocol, TypeVar

from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError
from freehold.routines.workflows.schema import SCHEMA
from freehold.routines.workflows.section import WorkflowsSection
from freehold.slots.settings import FindSecret
from freehold.timeline import Json, Timeline

UNAVAILABLE = "workflows.unavailable"
"""The code of the error that says that the journal cannot be reached now."""
RETRY_DELAY = 2.0

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger("freehold.workflows")


class JournalCursor(Protocol):
    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class JournalTransaction(Protocol):
    """All of it is stored, or nothing. No other transaction of the same journal runs meanwhile."""

    def execute(self, sql: str, parameters: Sequence[Any] = ...) -> JournalCursor:
        """SQL that SQLite and PostgreSQL both understand, with `?` for parameters."""
        ...

    def append(self, kind: str, data: Mapping[str, Json] = ..., *, who: str = ...) -> object:
        """Adds an event of the timeline, which is told once, and only if the transaction is stored."""
        ...


class Journal(ABC):
    """Every method but `run` and `keep` blocks. `timeline` is where the events of workflows are told."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline

    @abstractmethod
    def prepare(self) -> None:
        """Creates or migrates the tables. Call it before anything else. Idempotent."""

    @abstractmethod
    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Reads what is stored."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[JournalTransaction]:
        """Any exception takes everything back."""

    @abstractmethod
    def relay(self) -> None:
        """Brings events into the timeline that a process has stored and not told, because it was killed. Idempotent."""

    @abstractmethod
    def close(self) -> None:
        """Idempotent."""

    @abstractmethod
    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of a function that uses this journal, in a thread."""

    async def keep(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """As `run`. While the journal cannot be reached, it waits and tries again.

        The function may be called although the call before it was stored: it must do the same then.
        """
        while True:
            try:
                return await self.run(function, *args, **kwargs)
            except FreeholdError as error:
                if error.code != UNAVAILABLE:
                    raise
                log.warning("workflows wait for their journal: %s", error)
            await asyncio.sleep(RETRY_DELAY)


def open_journal(section: WorkflowsSection, timeline: Timeline, find_secret: FindSecret) -> Journal:
    """The journal that the manifest chooses."""
    if not section.postgres:
        return TimelineJournal(timeline)
    from freehold.routines.workflows.postgres_journal import open_postgres_journal

    return open_postgres_journal(timeline, section.postgres, find_secret)


class TimelineJournal(Journal):
    """In the file of the timeline: a state and its event are one transaction."""

    def prepare(self) -> None:
        self.timeline.ensure_schema("workflows", *SCHEMA)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.timeline.query(sql, parameters)

    def transaction(self) -> AbstractContextManager[JournalTransaction]:
        return self.timeline.transaction()

    def relay(self) -> None:
        """Nothing is told later."""

    def close(self) -> None:
        """The timeline is closed by who has opened it."""

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await run_blocking(function, *args, **kwargs)
