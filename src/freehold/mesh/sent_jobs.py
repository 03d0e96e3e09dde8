"""The table of work that was sent to neighbours. Everything that reads or writes it blocks."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from freehold.errors import FreeholdError
from freehold.slots.orchestrator.contract import RunPermission
from freehold.timeline import Timeline

WorkState = Literal["sending", "working", "returned", "done", "failed", "lost", "ended", "accepted", "dropped"]
"""`returned`: its files wait for the owner. `lost`: nobody knows whether it was finished; it is not sent again."""
OPEN: tuple[WorkState, ...] = ("sending", "working")
MAX_LISTED = 200
_COLUMNS = "id, neighbour, title, state, error, created, finished, entry, folder, agent, cost, budget, files"


@dataclass(frozen=True)
class WorkRequest:
    """What an agent of a neighbour shall do. `budget` and `permissions` can only lower what that side allows."""

    prompt: str
    title: str | None = None
    budget: float | None = None
    permissions: tuple[RunPermission, ...] | None = None

    @property
    def words(self) -> str:
        """How it is called."""
        return self.title or self.prompt.strip().splitlines()[0][:80]


@dataclass(frozen=True)
class SentJob:
    """`neighbour` is its key. `entry` is the entry of history that has its files, once they were accepted.

    `agent` and `cost` are what the neighbour told last; `files` is how many were returned.
    """

    id: str
    neighbour: str
    title: str
    state: WorkState
    error: str | None
    created: float
    finished: float | None = None
    entry: int | None = None
    folder: str | None = None
    agent: str | None = None
    cost: float | None = None
    budget: float | None = None
    files: int = 0


class SentJobs:
    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def insert(self, job: SentJob, request: WorkRequest, name: str, who: str) -> None:
        permissions = None if request.permissions is None else json.dumps(request.permissions)
        with self._timeline.transaction() as tx:
            tx.execute(
                "INSERT INTO mesh_sent_work (id, neighbour, title, prompt, state, created, cursor, budget, permissions)"
                " VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?)",
                (job.id, job.neighbour, job.title, request.prompt, job.state, job.created, job.budget, permissions),
            )
            tx.append("mesh.work_sent", {"work": job.id, "neighbour": name}, who=who)

    def find(self, id: str) -> SentJob | None:
        rows = self._timeline.query(f"SELECT {_COLUMNS} FROM mesh_sent_work WHERE id = ?", (id,))  # noqa: S608
        return _decode(rows[0]) if rows else None

    def get(self, id: str) -> SentJob:
        """Raises `mesh.not-found`."""
        found = self.find(id)
        if found is None:
            raise FreeholdError("mesh.not-found", f"There is no work {id[:40]!a}", hint="freehold mesh work lists it")
        return found

    def list(
        self,
        states: Iterable[WorkState] | None = None,
        neighbour: str | None = None,
        limit: int = MAX_LISTED,
        skip: int = 0,
    ) -> list[SentJob]:
        """The newest first."""
        chosen = None if states is None else tuple(states)
        marks = "1" if chosen is None else f"state IN ({', '.join('?' * len(chosen))})"
        rows = self._timeline.query(
            f"SELECT {_COLUMNS} FROM mesh_sent_work WHERE {marks} AND coalesce(?, neighbour) = neighbour"  # noqa: S608
            " ORDER BY created DESC, id LIMIT ? OFFSET ?",
            (*(chosen or ()), neighbour, limit, skip),
        )
        return [_decode(row) for row in rows]

    def count_cost(self, neighbour: str) -> float:
        """What all work at a neighbour has cost, as far as it was told."""
        sql = "SELECT total(cost) FROM mesh_sent_work WHERE neighbour = ?"
        return float(self._timeline.query(sql, (neighbour,))[0][0])

    def read_request(self, id: str) -> WorkRequest:
        sql = "SELECT prompt, title, budget, permissions FROM mesh_sent_work WHERE id = ?"
        prompt, title, budget, permissions = self._timeline.query(sql, (id,))[0]
        return WorkRequest(prompt, title, budget, None if permissions is None else tuple(json.loads(permissions)))

    def change(self, id: str, values: Mapping[str, object], only_if: WorkState | None = None) -> None:
        columns = ", ".join(f"{name} = ?" for name in values)
        condition = "" if only_if is None else " AND state = ?"
        given = [*values.values(), id, *([] if only_if is None else [only_if])]
        with self._timeline.transaction() as tx:
            tx.execute(f"UPDATE mesh_sent_work SET {columns} WHERE id = ?{condition}", tuple(given))  # noqa: S608


def _decode(row: tuple[Any, ...]) -> SentJob:
    id, neighbour, title, state, *rest = row
    return SentJob(id, neighbour, title, cast(WorkState, state), *rest)
