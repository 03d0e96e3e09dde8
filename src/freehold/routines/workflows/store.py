"""The journal of workflows: each step is stored before it begins and when it has ended, with its timeline event."""

import json
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from freehold.errors import FreeholdError
from freehold.routines.clock import Clock
from freehold.routines.section import UnattendedAsks
from freehold.routines.workflows.messages import (
    MAX_RESULT,
    AskInput,
    RetryOptions,
    SleepInput,
    StepAsked,
    read_input,
)
from freehold.routines.workflows.records import (
    STEP_COLUMNS,
    UNFINISHED,
    WORKFLOW_COLUMNS,
    StepState,
    Workflow,
    WorkflowState,
    WorkflowStep,
    digest_source,
    digest_step,
    read_step,
    read_workflow,
)
from freehold.routines.workflows.schema import SCHEMA
from freehold.timeline import Json, Timeline, Transaction

MAX_OPEN = 5_000
MAX_KEPT = 1_000
"""Workflows that have ended and are kept."""
PRUNE_INTERVAL = 16
MAX_DATA = 512 * 1024
MAX_SOURCE = 256 * 1024
MAX_JOURNAL = 16 * 1024 * 1024
MAX_SIGNALS = 100
MAX_ANSWER = 10_000
MAX_TEXT = 8_000
OVERDUE = 60.0
CUT_OFF = "Freehold was restarted while it ran. It was not begun again: look at what it has done"
ENDED_ELSEWHERE = "The workflow ended before it"
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"
_WORKFLOW = f"SELECT {WORKFLOW_COLUMNS} FROM workflows_workflow"  # noqa: S608 - our own words
_STEP = f"SELECT {STEP_COLUMNS} FROM workflows_step"  # noqa: S608 - our own words


@dataclass(frozen=True)
class WorkflowOrder:
    """What is to be run. `digest`: only a file with this content. `run`: for this run of a routine."""

    file: str
    data: Mapping[str, Any]
    budget: float | None = None
    asks: UnattendedAsks = "park"
    digest: str | None = None
    run: str | None = None


@dataclass(frozen=True)
class StepEnd:
    """How a step has ended. `result` is a JSON value; `error` says that it failed.

    `is_uncertain`: nobody knows how far it came. The workflow ends there.
    """

    result: Any = None
    error: str | None = None
    is_uncertain: bool = False
    cost: float | None = None
    entry: int | None = None


class WorkflowStore:
    """Every method blocks. Steps are begun and ended by one process, the gateway; the others call any other method."""

    def __init__(self, timeline: Timeline, clock: Clock) -> None:
        self.timeline = timeline
        self.clock = clock

    def prepare(self) -> None:
        """Creates or migrates the tables. Call it before anything else. Idempotent."""
        self.timeline.ensure_schema("workflows", *SCHEMA)

    # Reading

    def get(self, id: str) -> Workflow:
        """Raises `workflow.not-found`."""
        found = self.find(id)
        if found is None:
            raise FreeholdError("workflow.not-found", f"There is no workflow {id!a:.80}", hint="freehold workflow list")
        return found

    def find(self, id: str) -> Workflow | None:
        rows = self.timeline.query(f"{_WORKFLOW} WHERE id = ?", (id,))
        return read_workflow(rows[0]) if rows else None

    def list_workflows(self, *, limit: int = 50, before: int | None = None) -> list[Workflow]:
        """The newest first."""
        where, given = ("", ()) if before is None else ("WHERE number < ?", (before,))
        rows = self.timeline.query(f"{_WORKFLOW} {where} ORDER BY number DESC LIMIT ?", (*given, limit))
        return [read_workflow(row) for row in rows]

    def list_steps(self, id: str) -> list[WorkflowStep]:
        """In the order in which they began."""
        rows = self.timeline.query(f"{_STEP} WHERE workflow = ? ORDER BY number", (id,))
        return [read_step(row) for row in rows]

    def get_step(self, id: str, place: str) -> WorkflowStep:
        """Raises `workflow.step.not-found`."""
        rows = self.timeline.query(f"{_STEP} WHERE workflow = ? AND place = ?", (id, place))
        if not rows:
            raise FreeholdError("workflow.step.not-found", f"The workflow {id!a:.80} has no step {place!a:.40}")
        return read_step(rows[0])

    def list_at(self, id: str, places: Collection[str]) -> list[WorkflowStep]:
        """The steps at these places."""
        marks = ", ".join("?" * len(places))
        rows = self.timeline.query(f"{_STEP} WHERE workflow = ? AND place IN ({marks}) ORDER BY number", (id, *places))
        return [read_step(row) for row in rows]

    def list_titles(self, id: str) -> dict[str, str]:
        """What the steps are, by their places, in the order in which they began."""
        rows = self.timeline.query(
            "SELECT place, kind, title FROM workflows_step WHERE workflow = ? ORDER BY number", (id,)
        )
        return {place: f"{kind} {title[:80]!r}" for place, kind, title in rows}

    def list_due(self) -> list[str]:
        rows = self.timeline.query("SELECT id FROM workflows_workflow WHERE state = 'due' ORDER BY number")
        return [id for (id,) in rows]

    def find_agent_step(self, session: str) -> WorkflowStep | None:
        """The step whose agent works in a session, or waits there for the owner."""
        rows = self.timeline.query(
            f"{_STEP} WHERE session = ? AND kind = 'agent' AND state IN ('begun', 'waiting') ORDER BY number DESC",
            (session,),
        )
        return read_step(rows[0]) if rows else None

    def list_open_steps(self, kind: str, id: str | None = None) -> list[WorkflowStep]:
        where, given = ("", ()) if id is None else (" AND workflow = ?", (id,))
        rows = self.timeline.query(
            f"{_STEP} WHERE state IN ('begun', 'waiting') AND kind = ?{where} ORDER BY number", (kind, *given)
        )
        return [read_step(row) for row in rows]

    def find_next_wake(self) -> float | None:
        ((wake,),) = self.timeline.query("SELECT min(wake) FROM workflows_step WHERE wake > 0 AND state = 'waiting'")
        return None if wake is None else float(wake)

    def find_overdue(self) -> str | None:
        """A workflow that should have gone on a minute ago."""
        rows = self.timeline.query(
            "SELECT workflow FROM workflows_step WHERE wake > 0 AND wake < ? AND state = 'waiting' ORDER BY wake LIMIT 1",
            (self.clock.now() - OVERDUE,),
        )
        return str(rows[0][0]) if rows else None

    def sum_cost(self, id: str) -> float:
        """What the steps that have ended have cost, also those that were thrown away for a retry."""
        rows = self.timeline.query(
            "SELECT spent + coalesce((SELECT sum(cost) FROM workflows_step WHERE workflow = id), 0)"
            " FROM workflows_workflow WHERE id = ?",
            (id,),
        )
        return float(rows[0][0]) if rows else 0.0

    def count_states(self) -> dict[str, int]:
        """How many there are in each state that has not ended."""
        rows = self.timeline.query(
            "SELECT state, count(*) FROM workflows_workflow WHERE finished IS NULL GROUP BY state"
        )
        return {str(state): int(count) for state, count in rows}

    # From outside

    def add(self, order: WorkflowOrder, *, who: str, id: str | None = None) -> Workflow:
        """A workflow that is due. With an `id` that is known it is the same one: nothing begins twice.

        Raises `workflow.bad-path`, `workflow.too-large` and `workflow.too-many`.
        """
        check_file(order.file)
        data = json.dumps(dict(order.data))
        if len(data) > MAX_DATA:
            raise FreeholdError("workflow.too-large", f"The data of a workflow is longer than {MAX_DATA} characters")
        chosen = id or make_id()
        with self.timeline.transaction() as tx:
            if tx.execute("SELECT 1 FROM workflows_workflow WHERE id = ?", (chosen,)).fetchone() is None:
                _check_count(tx)
                tx.execute(
                    "INSERT INTO workflows_workflow (id, file, digest, pinned, data, who, run, budget, asks, state, created)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'due', ?)",
                    (
                        chosen,
                        order.file,
                        order.digest,
                        order.digest is not None,
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

    def answer(self, id: str, place: str, text: str, *, who: str) -> WorkflowStep:
        """The owner's answer to a question. Raises `workflow.step.not-found`, `.conflict` and `workflow.bad-value`."""
        with self.timeline.transaction() as tx:
            found = _require_step(tx, id, place)
            if found.kind != "ask" or found.state != "waiting":
                raise FreeholdError("workflow.step.conflict", f"The step {place} of {id} waits for no answer")
            asked = read_input(found.kind, found.given)
            assert isinstance(asked, AskInput)
            if asked.choices and text not in asked.choices:
                choices = ", ".join(asked.choices)
                raise FreeholdError("workflow.bad-value", f"{text!a:.80} is not one of the answers", hint=choices)
            self._end_step(tx, found, StepEnd(text[:MAX_ANSWER]), who=who)
        return self.get_step(id, place)

    def signal(self, id: str, name: str, data: Any, *, who: str) -> None:
        """An event for one workflow. It is kept until the workflow waits for it.

        Raises `workflow.not-found`, `workflow.conflict`, `workflow.too-large` and `workflow.too-many`.
        """
        encoded = _encode_result(data)
        with self.timeline.transaction() as tx:
            workflow = _require(tx, id)
            if workflow.finished is not None:
                raise FreeholdError("workflow.conflict", f"The workflow {id} has ended: {workflow.state}")
            rows = tx.execute(
                f"{_STEP} WHERE workflow = ? AND kind = 'event' AND state = 'waiting' ORDER BY number", (id,)
            )
            for step in map(read_step, rows.fetchall()):
                if is_event(str(step.given["name"]), name):
                    self._end_step(tx, step, StepEnd(data), who=who)
                    return
            ((count,),) = tx.execute("SELECT count(*) FROM workflows_signal WHERE workflow = ?", (id,)).fetchall()
            if count >= MAX_SIGNALS:
                raise FreeholdError("workflow.too-many", f"{count} events wait for {id} already")
            tx.execute("INSERT INTO workflows_signal (workflow, name, data) VALUES (?, ?, ?)", (id, name, encoded))
            tx.append("workflow.signalled", {"workflow": id, "name": name}, who=who)

    def cancel(self, id: str, *, who: str, reason: str) -> Workflow:
        """Idempotent. Raises `workflow.not-found`."""
        with self.timeline.transaction() as tx:
            workflow = _require(tx, id)
            if workflow.finished is None:
                self._end(tx, workflow, "cancelled", error=reason, who=who)
        return self.get(id)

    def retry(self, id: str, place: str | None = None, *, who: str) -> Workflow:
        """Begins a workflow that has ended once more, with the file as it is now. Steps before `place` keep their results.

        Without a place it goes on where it ended. Raises `workflow.not-found`, `workflow.conflict`.
        """
        with self.timeline.transaction() as tx:
            workflow = _require(tx, id)
            if workflow.finished is None:
                raise FreeholdError(
                    "workflow.conflict", f"The workflow {id} has not ended", hint=f"freehold workflow cancel {id}"
                )
            if workflow.run is not None:
                raise FreeholdError(
                    "workflow.conflict", f"{id} belongs to a run of a routine", hint="Run the routine again"
                )
            first = _require_step(tx, id, place) if place is not None else _find_last_end(tx, id)
            if first is not None:
                _throw_away(tx, id, first.number)
            # What was approved by its content stays bound to it.
            tx.execute(
                "UPDATE workflows_workflow SET state = 'due', finished = NULL, source = NULL, result = NULL, error = NULL,"
                " output = NULL, digest = CASE WHEN pinned THEN digest END WHERE id = ?",
                (id,),
            )
            tx.append("workflow.retried", {"workflow": id, "step": None if first is None else first.place}, who=who)
        return self.get(id)

    # The gateway

    def recover(self) -> list[WorkflowStep]:
        """After a restart, before anything else: what was cut off. Returns the steps of agents, to be looked at.

        A function or a command that may have been begun is not repeated, unless it says that it may be.
        """
        with self.timeline.transaction() as tx:
            rows = tx.execute(
                f"{_STEP} WHERE state = 'begun' AND kind IN ('step', 'command') ORDER BY number"
            ).fetchall()
            for step in map(read_step, rows):
                if step.may_repeat:
                    add_size(tx, step.workflow, -len(json.dumps(dict(step.given))))
                    tx.execute("DELETE FROM workflows_step WHERE number = ?", (step.number,))
                    make_due(tx, step.workflow)
                else:
                    self._make_uncertain(tx, step)
            tx.execute("UPDATE workflows_workflow SET state = 'due' WHERE state = 'working'")
        return self.list_open_steps("agent")

    def claim(self, id: str, source: str) -> Workflow | None:
        """Marks it as working with this text of its file. None when it is not due any more, or the text is another one."""
        digest = digest_source(source)
        with self.timeline.transaction() as tx:
            workflow = _require(tx, id)
            if workflow.state != "due":
                return None
            if workflow.digest not in (None, digest):
                error = f"{workflow.file} is another text than the one that began"
                self._end(tx, workflow, "changed", error=error)
                return None
            tx.execute(
                "UPDATE workflows_workflow SET state = 'working', source = ?, digest = ?, started = coalesce(started, ?)"
                " WHERE id = ?",
                (source, digest, self.clock.now(), id),
            )
            if workflow.started is None:
                tx.append("workflow.started", {"workflow": id, "file": workflow.file})
        return self.get(id)

    def begin_step(
        self, id: str, asked: StepAsked, most: int, *, after: int | None = None
    ) -> tuple[WorkflowStep, bool]:
        """The step at this place, and whether it begins now.

        Raises `workflow.changed.conflict` for another step than the one that the journal has there,
        `workflow.stopped` when it was ended meanwhile, `workflow.too-many` and `workflow.too-large`.
        """
        digest = digest_step(asked.kind, asked.given)
        with self.timeline.transaction() as tx:
            if _require(tx, id).state != "working":
                raise FreeholdError("workflow.stopped", f"The workflow {id} does not work any more")
            known = tx.execute(f"{_STEP} WHERE workflow = ? AND place = ?", (id, asked.place)).fetchone()
            if known is not None:
                found = read_step(known)
                if found.digest != digest:
                    words = f"step {asked.place} was {found.kind} {found.title!r:.80} and is {asked.kind} {asked.title!r:.80} now"
                    raise FreeholdError("workflow.changed.conflict", f"The steps are not those that began: {words}")
                is_due = found.state == "waiting" and found.wake is not None and found.wake <= self.clock.now()
                if is_due and found.kind != "sleep":
                    tx.execute(
                        "UPDATE workflows_step SET state = 'begun', wake = NULL, begun = ? WHERE number = ?",
                        (self.clock.now(), found.number),
                    )
                    return _require_step(tx, id, asked.place), True
                return found, False
            ((count,),) = tx.execute("SELECT count(*) FROM workflows_step WHERE workflow = ?", (id,)).fetchall()
            if count >= most:
                raise FreeholdError(
                    "workflow.too-many", f"The workflow has {count} steps", hint="Raise workflows.steps"
                )
            ((size,),) = tx.execute("SELECT size FROM workflows_workflow WHERE id = ?", (id,)).fetchall()
            if size > MAX_JOURNAL:
                raise FreeholdError(
                    "workflow.too-large",
                    f"The results of the steps have {size} characters; {MAX_JOURNAL} is the most",
                    hint="Write results into files, and return their paths",
                )
            self._insert_step(tx, id, asked, digest, after)
            return _require_step(tx, id, asked.place), True

    def _insert_step(self, tx: Transaction, id: str, asked: StepAsked, digest: str, after: int | None) -> None:
        now, given = self.clock.now(), read_input(asked.kind, asked.given)
        given_text = json.dumps(dict(asked.given))
        session = _choose_session(tx, id, asked) if asked.kind == "agent" else None
        wake = now + given.seconds if isinstance(given, SleepInput) else None
        state = "waiting" if asked.kind in ("sleep", "ask", "event") else "begun"
        tx.execute(
            "INSERT INTO workflows_step (workflow, place, kind, title, digest, given, state, attempt, begun, wake, after,"
            " session) VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?)",
            (
                id,
                asked.place,
                asked.kind,
                asked.title,
                digest,
                given_text,
                state,
                now,
                wake,
                after,
                session,
            ),
        )
        add_size(tx, id, len(given_text))
        if asked.kind == "ask":
            tx.append("workflow.asked", {"workflow": id, "step": asked.place, "question": asked.title})
        elif asked.kind == "event":
            self._take_signal(tx, id, asked)

    def _take_signal(self, tx: Transaction, id: str, asked: StepAsked) -> None:
        rows = tx.execute("SELECT number, name, data FROM workflows_signal WHERE workflow = ? ORDER BY number", (id,))
        for number, name, data in rows.fetchall():
            if is_event(str(asked.given["name"]), name):
                tx.execute("DELETE FROM workflows_signal WHERE number = ?", (number,))
                self._end_step(tx, _require_step(tx, id, asked.place), StepEnd(json.loads(data)))
                return

    def note_turn(self, step: WorkflowStep, turn: int) -> None:
        with self.timeline.transaction() as tx:
            tx.execute("UPDATE workflows_step SET turn = ? WHERE number = ?", (turn, step.number))

    def note_asks(self, step: WorkflowStep, why: str | None) -> bool:
        """The agent of a step waits for the owner, or with None works again. False when that is known."""
        state, other = ("begun", "waiting") if why is None else ("waiting", "begun")
        with self.timeline.transaction() as tx:
            changed = tx.execute(
                "UPDATE workflows_step SET state = ?, error = ? WHERE number = ? AND state = ?",
                (state, why, step.number, other),
            ).rowcount
            if changed:
                kind = "workflow.step_resumed" if why is None else "workflow.step_parked"
                tx.append(kind, {"workflow": step.workflow, "step": step.place})
        return bool(changed)

    def note_cost(self, step: WorkflowStep, cost: float) -> None:
        """What a step has cost that was ended before it had a result."""
        with self.timeline.transaction() as tx:
            tx.execute("UPDATE workflows_step SET cost = ? WHERE number = ?", (cost, step.number))
            _count_cost(tx, step.workflow)

    def note_event(self, step: WorkflowStep, after: int) -> None:
        with self.timeline.transaction() as tx:
            tx.execute("UPDATE workflows_step SET after = ? WHERE number = ?", (after, step.number))

    def end_step(self, step: WorkflowStep, how: StepEnd) -> WorkflowStep | None:
        """Stores how it has ended; one that failed may wait for another try. None when it has ended already."""
        with self.timeline.transaction() as tx:
            rows = tx.execute(f"{_STEP} WHERE number = ? AND state IN ('begun', 'waiting')", (step.number,)).fetchall()
            if not rows:
                return None
            found = read_step(rows[0])
            options = read_input(found.kind, found.given)
            if how.is_uncertain:
                self._make_uncertain(tx, found)
            elif how.error is not None and isinstance(options, RetryOptions) and found.attempt <= options.retries:
                self._retry_step(tx, found, options, how)
            else:
                self._end_step(tx, found, how)
            return _require_step(tx, step.workflow, step.place)

    def _retry_step(self, tx: Transaction, step: WorkflowStep, options: RetryOptions, how: StepEnd) -> None:
        delay = min(options.delay * 2.0 ** (step.attempt - 1), 6 * 3600.0)
        tx.execute(
            "UPDATE workflows_step SET state = 'waiting', attempt = attempt + 1, wake = ?, error = ? WHERE number = ?",
            (self.clock.now() + delay, how.error, step.number),
        )
        data: dict[str, Json] = {"workflow": step.workflow, "step": step.place, "seconds": round(delay)}
        tx.append("workflow.step_retried", {**data, "error": (how.error or "")[:500]})

    def _end_step(self, tx: Transaction, step: WorkflowStep, how: StepEnd, *, who: str = "freehold") -> None:
        state: StepState = "done" if how.error is None else "failed"
        result = _encode_result(how.result) if how.error is None else None
        tx.execute(
            "UPDATE workflows_step SET state = ?, finished = ?, wake = NULL, result = ?, error = ?, cost = ?, entry = ?"
            " WHERE number = ?",
            (state, self.clock.now(), result, how.error, how.cost, how.entry, step.number),
        )
        add_size(tx, step.workflow, len(result or ""))
        make_due(tx, step.workflow)
        data: dict[str, Json] = {"workflow": step.workflow, "step": step.place, "kind": step.kind}
        tx.append(f"workflow.step_{state}", data, who=who)

    def _make_uncertain(self, tx: Transaction, step: WorkflowStep) -> None:
        tx.execute(
            "UPDATE workflows_step SET state = 'uncertain', finished = ?, error = ? WHERE number = ?",
            (self.clock.now(), CUT_OFF, step.number),
        )
        self._end(
            tx, _require(tx, step.workflow), "uncertain", error=f"Step {step.place}, {step.title[:80]}: {CUT_OFF}"
        )

    def mark_uncertain(self, step: WorkflowStep) -> None:
        """Its process is gone, and nobody knows how far it came. Does nothing when the step has ended meanwhile."""
        with self.timeline.transaction() as tx:
            if tx.execute(
                "SELECT 1 FROM workflows_step WHERE number = ? AND state = 'begun'", (step.number,)
            ).fetchone():
                self._make_uncertain(tx, step)

    def suspend(self, id: str, pending: Collection[str]) -> bool:
        """Marks it as waiting for these steps. False when one of them has ended, or it does not work any more."""
        marks = ", ".join("?" * len(pending))
        with self.timeline.transaction() as tx:
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
        with self.timeline.transaction() as tx:
            tx.execute("UPDATE workflows_workflow SET state = 'due' WHERE id = ? AND state = 'working'", (id,))

    def wake_due(self) -> None:
        """Ends the sleeps whose time has come. A step that waits for another try may begin: its `wake` is 0 then."""
        now = self.clock.now()
        with self.timeline.transaction() as tx:
            rows = tx.execute(
                f"{_STEP} WHERE wake > 0 AND wake <= ? AND state = 'waiting' ORDER BY wake LIMIT 500", (now,)
            ).fetchall()
            for step in map(read_step, rows):
                if step.kind == "sleep":
                    self._end_step(tx, step, StepEnd())
                else:
                    make_due(tx, step.workflow)
                    tx.execute("UPDATE workflows_step SET wake = 0 WHERE number = ?", (step.number,))

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
        with self.timeline.transaction() as tx:
            workflow = _require(tx, id)
            if workflow.state not in of:
                return False
            self._end(tx, workflow, state, result=result, error=error, output=output)
        return True

    def _end(
        self,
        tx: Transaction,
        workflow: Workflow,
        state: WorkflowState,
        *,
        result: Any = None,
        error: str | None = None,
        output: str | None = None,
        who: str = "freehold",
    ) -> None:
        now = self.clock.now()
        tx.execute(
            "UPDATE workflows_step SET state = 'cancelled', finished = ?, wake = NULL, error = ? WHERE workflow = ? AND"
            " state IN ('begun', 'waiting')",
            (now, ENDED_ELSEWHERE, workflow.id),
        )
        tx.execute(
            "UPDATE workflows_workflow SET state = ?, finished = ?, result = ?, error = ?, output = ? WHERE id = ?",
            (state, now, _encode_result(result), _cut(error), output, workflow.id),
        )
        _count_cost(tx, workflow.id)
        data: dict[str, Json] = {"workflow": workflow.id, "file": workflow.file, "run": workflow.run}
        data.update(quiet=state == "done" and result is None, error=None if error is None else error[:500])
        if state == "done" and result is not None:
            data["result"] = (result if isinstance(result, str) else json.dumps(result, ensure_ascii=False))[:500]
        tx.append(f"workflow.{state}", data, who=who)


def make_due(tx: Transaction, id: str) -> None:
    """Its file has to run again. One that works is told otherwise."""
    tx.execute("UPDATE workflows_workflow SET state = 'due' WHERE id = ? AND state = 'waiting'", (id,))


def add_size(tx: Transaction, id: str, characters: int) -> None:
    tx.execute("UPDATE workflows_workflow SET size = size + ? WHERE id = ?", (characters, id))


def _count_cost(tx: Transaction, id: str) -> None:
    """Null while nothing is known of any cost."""
    tx.execute(
        "UPDATE workflows_workflow SET cost = (SELECT CASE WHEN count(cost) = 0 THEN nullif(workflows_workflow.spent, 0)"
        " ELSE workflows_workflow.spent + sum(cost) END FROM workflows_step WHERE workflow = ?1) WHERE id = ?1",
        (id,),
    )


def _throw_away(tx: Transaction, id: str, first: int) -> None:
    """Forgets the steps from this one on. What they have cost was spent all the same."""
    tx.execute(
        "UPDATE workflows_workflow SET (spent, size) = (SELECT workflows_workflow.spent + coalesce(sum(cost), 0),"
        " workflows_workflow.size - coalesce(sum(length(given) + coalesce(length(result), 0)), 0)"
        " FROM workflows_step WHERE workflow = ?1 AND number >= ?2) WHERE id = ?1",
        (id, first),
    )
    tx.execute("DELETE FROM workflows_step WHERE workflow = ? AND number >= ?", (id, first))


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


def is_event(wanted: str, name: str) -> bool:
    return name.startswith(wanted[:-1]) if wanted.endswith("*") else name == wanted


def _require(tx: Transaction, id: str) -> Workflow:
    row = tx.execute(f"{_WORKFLOW} WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise FreeholdError("workflow.not-found", f"There is no workflow {id!a:.80}", hint="freehold workflow list")
    return read_workflow(row)


def _require_step(tx: Transaction, id: str, place: str) -> WorkflowStep:
    row = tx.execute(f"{_STEP} WHERE workflow = ? AND place = ?", (id, place)).fetchone()
    if row is None:
        raise FreeholdError("workflow.step.not-found", f"The workflow {id!a:.80} has no step {place!a:.40}")
    return read_step(row)


def _find_last_end(tx: Transaction, id: str) -> WorkflowStep | None:
    """Where a workflow ended: its first step without a result that it can go on with."""
    row = tx.execute(
        f"{_STEP} WHERE workflow = ? AND state IN ('uncertain', 'cancelled') ORDER BY number LIMIT 1", (id,)
    ).fetchone()
    if row is None:
        last = tx.execute(f"{_STEP} WHERE workflow = ? ORDER BY number DESC LIMIT 1", (id,)).fetchone()
        row = last if last is not None and read_step(last).state == "failed" else None
    return None if row is None else read_step(row)


def _choose_session(tx: Transaction, id: str, asked: StepAsked) -> str:
    """Known before the session is made: after a crash we know whether it was."""
    name = asked.given.get("session")
    if name is not None:
        rows = tx.execute(f"{_STEP} WHERE workflow = ? AND kind = 'agent' ORDER BY number", (id,)).fetchall()
        for step in map(read_step, rows):
            if step.given.get("session") == name and step.session is not None:
                return step.session
    return secrets.token_hex(8)


def _check_count(tx: Transaction) -> None:
    ((count,),) = tx.execute("SELECT count(*) FROM workflows_workflow WHERE finished IS NULL").fetchall()
    if count >= MAX_OPEN:
        raise FreeholdError("workflow.too-many", f"{count} workflows have not ended", hint="Cancel some of them")


def _prune(tx: Transaction) -> None:
    if secrets.randbelow(PRUNE_INTERVAL):  # a few more than wanted do no harm
        return
    rows = tx.execute(
        "SELECT id FROM workflows_workflow WHERE finished IS NOT NULL ORDER BY number DESC LIMIT -1 OFFSET ?",
        (MAX_KEPT,),
    ).fetchall()
    for (id,) in rows:
        tx.execute("DELETE FROM workflows_step WHERE workflow = ?", (id,))
        tx.execute("DELETE FROM workflows_signal WHERE workflow = ?", (id,))
        tx.execute("DELETE FROM workflows_workflow WHERE id = ?", (id,))


def _encode_result(value: Any) -> str:
    """Raises `workflow.too-large`."""
    text = json.dumps(value)
    if len(text) > MAX_RESULT:
        raise FreeholdError(
            "workflow.too-large",
            f"A result has {len(text)} characters; {MAX_RESULT} is the most",
            hint="Write it into a file, and return its path",
        )
    return text


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
