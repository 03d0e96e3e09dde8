"""The workflows: each change of one is stored with its timeline event."""

import json
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from freehold.errors import FreeholdError
from freehold.routines.clock import Clock
from freehold.routines.section import UnattendedAsks
from freehold.routines.workflows.journal import Journal, JournalTransaction
from freehold.routines.workflows.records import (
    UNFINISHED,
    Workflow,
    WorkflowState,
    WorkflowStep,
    digest_source,
    read_step,
    read_workflow,
)
from freehold.routines.workflows.rows import (
    SELECT_STEP,
    SELECT_WORKFLOW,
    end_workflow,
    find_holder,
    require_step,
    require_workflow,
)
from freehold.routines.workflows.step_store import StepStore

MAX_OPEN = 5_000
MAX_KEPT = 1_000
"""Workflows that have ended and are kept."""
PRUNE_INTERVAL = 16
MAX_PRUNED = 10 * PRUNE_INTERVAL
"""How many are forgotten at once."""
MAX_DATA = 512 * 1024
MAX_SOURCE = 256 * 1024
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"


@dataclass(frozen=True)
class WorkflowOrder:
    """What is to be run. `digest`: only a file with this content. `run`: for this run of a routine."""

    file: str
    data: Mapping[str, Any]
    budget: float | None = None
    asks: UnattendedAsks = "park"
    digest: str | None = None
    run: str | None = None


class WorkflowStore:
    """Every method blocks. Workflows are claimed and ended by one process, the gateway; the others call any other method."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self.journal = journal
        self.clock = clock
        self.steps = StepStore(journal, clock)

    def get(self, id: str) -> Workflow:
        """Raises `workflow.not-found`."""
        found = self.find(id)
        if found is None:
            raise FreeholdError("workflow.not-found", f"There is no workflow {id!a:.80}", hint="freehold workflow list")
        return found

    def find(self, id: str) -> Workflow | None:
        rows = self.journal.query(f"{SELECT_WORKFLOW} WHERE id = ?", (id,))
        return read_workflow(rows[0]) if rows else None

    def list_workflows(self, *, limit: int = 50, before: int | None = None) -> list[Workflow]:
        """The newest first."""
        where, given = ("", ()) if before is None else ("WHERE number < ?", (before,))
        rows = self.journal.query(f"{SELECT_WORKFLOW} {where} ORDER BY number DESC LIMIT ?", (*given, limit))
        return [read_workflow(row) for row in rows]

    def list_due(self) -> list[str]:
        rows = self.journal.query("SELECT id FROM workflows_workflow WHERE state = 'due' ORDER BY number")
        return [id for (id,) in rows]

    def sum_cost(self, id: str) -> float:
        """What the steps that have ended have cost, also those that were thrown away for a retry."""
        rows = self.journal.query(
            "SELECT spent + coalesce((SELECT sum(cost) FROM workflows_step WHERE workflow = id), 0)"
            " FROM workflows_workflow WHERE id = ?",
            (id,),
        )
        return float(rows[0][0]) if rows else 0.0

    def count_states(self) -> dict[str, int]:
        """How many there are in each state that has not ended."""
        rows = self.journal.query(
            "SELECT state, count(*) FROM workflows_workflow WHERE finished IS NULL GROUP BY state"
        )
        return {str(state): int(count) for state, count in rows}

    def add(self, order: WorkflowOrder, *, who: str, id: str | None = None) -> Workflow:
        """A workflow that is due. With an `id` that is known it is the same one: nothing begins twice.

        Raises `workflow.bad-path`, `workflow.too-large` and `workflow.too-many`.
        """
        check_file(order.file)
        data = json.dumps(dict(order.data))
        if len(data) > MAX_DATA:
            raise FreeholdError("workflow.too-large", f"The data of a workflow is longer than {MAX_DATA} characters")
        chosen = id or make_id()
        with self.journal.transaction() as tx:
            if tx.execute("SELECT 1 FROM workflows_workflow WHERE id = ?", (chosen,)).fetchone() is None:
                _check_count(tx)
                tx.execute(
                    "INSERT INTO workflows_workflow (id, file, digest, pinned, data, who, run, budget, asks, state, created)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'due', ?)",
                    (
                        chosen,
                        order.file,
                        order.digest,
                        int(order.digest is not None),
                        data,
                        who,
                        order.run,
                        order.budget,
                        order.asks,
                        self.clock.now(),
                    ),
                )
                tx.append("workflow.added", {"workflow": chosen, "file": order.file}, who=who)
                _prune(tx)
        return self.get(chosen)

    def cancel(self, id: str, *, who: str, reason: str) -> Workflow:
        """Idempotent. Raises `workflow.not-found`."""
        with self.journal.transaction() as tx:
            workflow = require_workflow(tx, id)
            if workflow.finished is None:
                end_workflow(tx, workflow, "cancelled", self.clock.now(), error=reason, who=who)
        return self.get(id)

    def retry(self, id: str, place: str | None = None, *, who: str) -> Workflow:
        """Begins a workflow that has ended once more, with the file as it is now. Steps before `place` keep their results.

        Without a place it goes on where it ended. Raises `workflow.not-found`, `workflow.conflict`.
        """
        with self.journal.transaction() as tx:
            workflow = require_workflow(tx, id)
            if workflow.finished is None:
                raise FreeholdError(
                    "workflow.conflict", f"The workflow {id} has not ended", hint=f"freehold workflow cancel {id}"
                )
            if workflow.run is not None:
                raise FreeholdError(
                    "workflow.conflict", f"{id} belongs to a run of a routine", hint="Run the routine again"
                )
            thrown = _list_from(tx, require_step(tx, id, place)) if place is not None else _list_ended(tx, id)
            _throw_away(tx, id, [step.number for step in thrown])
            # What was approved by its content stays bound to it.
            tx.execute(
                "UPDATE workflows_workflow SET state = 'due', finished = NULL, source = NULL, result = NULL, error = NULL,"
                " output = NULL, digest = CASE WHEN pinned = 1 THEN digest END WHERE id = ?",
                (id,),
            )
            tx.append("workflow.retried", {"workflow": id, "step": thrown[0].place if thrown else None}, who=who)
        return self.get(id)

    def claim(self, id: str, source: str, holder: str) -> Workflow | None:
        """Marks it as working with this text of its file. None when it is not due any more, or the text is another one.

        `holder` is a name for this one time that its file runs: who asks again with it gets the same answer.
        """
        digest = digest_source(source)
        with self.journal.transaction() as tx:
            workflow = require_workflow(tx, id)
            if workflow.state == "working" and find_holder(tx, id) == holder:
                return workflow
            if workflow.state != "due":
                return None
            if workflow.digest not in (None, digest):
                error = f"{workflow.file} is another text than the one that began"
                end_workflow(tx, workflow, "changed", self.clock.now(), error=error)
                return None
            tx.execute(
                "UPDATE workflows_workflow SET state = 'working', source = ?, digest = ?, holder = ?,"
                " started = coalesce(started, ?) WHERE id = ?",
                (source, digest, holder, self.clock.now(), id),
            )
            if workflow.started is None:
                tx.append("workflow.started", {"workflow": id, "file": workflow.file})
        return self.get(id)

    def suspend(self, id: str, pending: Collection[str]) -> bool:
        """Marks it as waiting for these steps. False when one of them has ended, or it does not work any more."""
        marks = ", ".join("?" * len(pending)) or "NULL"
        with self.journal.transaction() as tx:
            ((count,),) = tx.execute(
                f"SELECT count(*) FROM workflows_step WHERE workflow = ? AND state IN ('begun', 'waiting')"  # noqa: S608
                f" AND place IN ({marks})",
                (id, *pending),
            ).fetchall()
            if count < len(pending):
                return False
            return bool(
                tx.execute(
                    "UPDATE workflows_workflow SET state = 'waiting' WHERE id = ? AND state = 'working'", (id,)
                ).rowcount
            )

    def interrupt(self, id: str) -> None:
        """Its program was lost, with nothing begun in it: it has to run again."""
        with self.journal.transaction() as tx:
            tx.execute("UPDATE workflows_workflow SET state = 'due' WHERE id = ? AND state = 'working'", (id,))

    def end(
        self,
        id: str,
        state: WorkflowState,
        *,
        result: Any = None,
        error: str | None = None,
        output: str | None = None,
        of: tuple[WorkflowState, ...] = UNFINISHED,
    ) -> bool:
        """Stores how it has ended. False when it is in no state `of` these: it was ended, or retried, by somebody else."""
        with self.journal.transaction() as tx:
            workflow = require_workflow(tx, id)
            if workflow.state not in of:
                return False
            end_workflow(tx, workflow, state, self.clock.now(), result=result, error=error, output=output)
        return True


def check_file(file: str) -> None:
    """Raises `workflow.bad-path`."""
    parts = file.split("/")
    if not file.endswith(".py") or file.startswith("/") or ".." in parts or not file.isprintable() or len(file) > 1000:
        raise FreeholdError(
            "workflow.bad-path",
            f"{file[:80]!r} is not a Python file of the workspace",
            hint="Name it from the workspace on, such as workflows/nightly.py",
        )


def make_id() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(10))


def _throw_away(tx: JournalTransaction, id: str, numbers: Sequence[int]) -> None:
    """Forgets these steps. What they have cost was spent all the same."""
    marks = ", ".join("?" * len(numbers)) or "NULL"
    tx.execute(
        "UPDATE workflows_workflow SET (spent, size) = (SELECT workflows_workflow.spent + coalesce(sum(cost), 0),"  # noqa: S608
        " workflows_workflow.size - coalesce(sum(length(given) + coalesce(length(result), 0)), 0)"
        f" FROM workflows_step WHERE workflow = ? AND number IN ({marks})) WHERE id = ?",
        (id, *numbers, id),
    )
    tx.execute(f"DELETE FROM workflows_step WHERE workflow = ? AND number IN ({marks})", (id, *numbers))  # noqa: S608


def _list_from(tx: JournalTransaction, first: WorkflowStep) -> list[WorkflowStep]:
    rows = tx.execute(
        f"{SELECT_STEP} WHERE workflow = ? AND number >= ? ORDER BY number", (first.workflow, first.number)
    ).fetchall()
    return [read_step(row) for row in rows]


def _list_ended(tx: JournalTransaction, id: str) -> list[WorkflowStep]:
    """Where a workflow ended: its steps without a result that nothing came after. In a gather there may be several, and
    those beside them keep their results."""
    rows = tx.execute(f"{SELECT_STEP} WHERE workflow = ? ORDER BY number", (id,)).fetchall()
    steps = [read_step(row) for row in rows]
    last = dict[tuple[int, ...], int]()
    for place in map(_read_place, steps):
        for depth in range(0, len(place), 2):
            last[place[:depth]] = max(last.get(place[:depth], 0), place[depth])
    return [
        step
        for step in steps
        if step.state in ("uncertain", "cancelled") or (step.state == "failed" and _is_last(_read_place(step), last))
    ]


def _read_place(step: WorkflowStep) -> tuple[int, ...]:
    """Counts of steps and numbers of branches in turn, as the runner writes them."""
    return tuple(map(int, step.place.split(".")))


def _is_last(place: tuple[int, ...], last: Mapping[tuple[int, ...], int]) -> bool:
    """Whether no step came after this one, in its branch or in those around it."""
    return all(place[depth] == last[place[:depth]] for depth in range(0, len(place), 2))


def _check_count(tx: JournalTransaction) -> None:
    ((count,),) = tx.execute("SELECT count(*) FROM workflows_workflow WHERE finished IS NULL").fetchall()
    if count >= MAX_OPEN:
        raise FreeholdError("workflow.too-many", f"{count} workflows have not ended", hint="Cancel some of them")


def _prune(tx: JournalTransaction) -> None:
    if secrets.randbelow(PRUNE_INTERVAL):  # a few more than wanted do no harm
        return
    rows = tx.execute(
        "SELECT id FROM workflows_workflow WHERE finished IS NOT NULL ORDER BY number DESC LIMIT ? OFFSET ?",
        (MAX_PRUNED, MAX_KEPT),
    ).fetchall()
    for (id,) in rows:
        tx.execute("DELETE FROM workflows_step WHERE workflow = ?", (id,))
        tx.execute("DELETE FROM workflows_signal WHERE workflow = ?", (id,))
        tx.execute("DELETE FROM workflows_workflow WHERE id = ?", (id,))
