"""What the transactions of workflows and of their steps share."""

import json
from typing import Any

from freehold.errors import FreeholdError
from freehold.routines.workflows.journal import JournalTransaction
from freehold.routines.workflows.messages import MAX_RESULT
from freehold.routines.workflows.records import (
    STEP_COLUMNS,
    WORKFLOW_COLUMNS,
    Workflow,
    WorkflowState,
    WorkflowStep,
    read_step,
    read_workflow,
)
from freehold.timeline import Json

MAX_TEXT = 8_000
ENDED_ELSEWHERE = "The workflow ended before it"
SELECT_WORKFLOW = f"SELECT {WORKFLOW_COLUMNS} FROM workflows_workflow"  # noqa: S608 - our own words
SELECT_STEP = f"SELECT {STEP_COLUMNS} FROM workflows_step"  # noqa: S608 - our own words


def end_workflow(
    tx: JournalTransaction,
    workflow: Workflow,
    state: WorkflowState,
    now: float,
    *,
    result: Any = None,
    error: str | None = None,
    output: str | None = None,
    who: str = "freehold",
) -> None:
    """It has ended, with the steps that had not."""
    tx.execute(
        "UPDATE workflows_step SET state = 'cancelled', finished = ?, wake = NULL, error = ? WHERE workflow = ? AND"
        " state IN ('begun', 'waiting')",
        (now, ENDED_ELSEWHERE, workflow.id),
    )
    tx.execute(
        "UPDATE workflows_workflow SET state = ?, finished = ?, result = ?, error = ?, output = ? WHERE id = ?",
        (state, now, encode_result(result), cut(error), output, workflow.id),
    )
    count_cost(tx, workflow.id)
    data: dict[str, Json] = {"workflow": workflow.id, "file": workflow.file, "run": workflow.run}
    data.update(quiet=state == "done" and result is None, error=None if error is None else error[:500])
    if state == "done" and result is not None:
        data["result"] = (result if isinstance(result, str) else json.dumps(result, ensure_ascii=False))[:500]
    tx.append(f"workflow.{state}", data, who=who)


def make_due(tx: JournalTransaction, id: str) -> None:
    """Its file has to run again. One that works is told otherwise."""
    tx.execute("UPDATE workflows_workflow SET state = 'due' WHERE id = ? AND state = 'waiting'", (id,))


def add_size(tx: JournalTransaction, id: str, characters: int) -> None:
    tx.execute("UPDATE workflows_workflow SET size = size + ? WHERE id = ?", (characters, id))


def count_cost(tx: JournalTransaction, id: str) -> None:
    """Null while nothing is known of any cost."""
    tx.execute(
        "UPDATE workflows_workflow SET cost = (SELECT CASE WHEN count(cost) = 0 THEN nullif(workflows_workflow.spent, 0)"
        " ELSE workflows_workflow.spent + sum(cost) END FROM workflows_step WHERE workflow = ?) WHERE id = ?",
        (id, id),
    )


def require_workflow(tx: JournalTransaction, id: str) -> Workflow:
    row = tx.execute(f"{SELECT_WORKFLOW} WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise FreeholdError("workflow.not-found", f"There is no workflow {id!a:.80}", hint="freehold workflow list")
    return read_workflow(row)


def find_holder(tx: JournalTransaction, id: str) -> str | None:
    """For which one time that its file runs it was claimed last."""
    row = tx.execute("SELECT holder FROM workflows_workflow WHERE id = ?", (id,)).fetchone()
    return None if row is None else row[0]


def require_step(tx: JournalTransaction, id: str, place: str) -> WorkflowStep:
    row = tx.execute(f"{SELECT_STEP} WHERE workflow = ? AND place = ?", (id, place)).fetchone()
    if row is None:
        raise FreeholdError("workflow.step.not-found", f"The workflow {id!a:.80} has no step {place!a:.40}")
    return read_step(row)


def encode_result(value: Any) -> str:
    """Raises `workflow.too-large`."""
    text = json.dumps(value)
    if len(text) > MAX_RESULT:
        raise FreeholdError(
            "workflow.too-large",
            f"A result has {len(text)} characters; {MAX_RESULT} is the most",
            hint="Write it into a file, and return its path",
        )
    return text


def cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
