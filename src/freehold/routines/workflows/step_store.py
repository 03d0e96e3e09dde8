"""The steps of workflows: each is stored before it begins and when it has ended, with its timeline event."""

import json
import secrets
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from freehold.errors import FreeholdError
from freehold.routines.clock import Clock
from freehold.routines.run_store import BACKWARDS, CLOCK_IS_SET
from freehold.routines.workflows.journal import Journal, JournalTransaction
from freehold.routines.workflows.messages import AskInput, RetryOptions, SleepInput, StepAsked, read_input
from freehold.routines.workflows.records import StepState, WorkflowStep, digest_step, read_step
from freehold.routines.workflows.rows import (
    SELECT_STEP,
    add_size,
    count_cost,
    encode_result,
    end_workflow,
    find_holder,
    make_due,
    require_step,
    require_workflow,
)
from freehold.timeline import Json

MAX_JOURNAL = 16 * 1024 * 1024
MAX_SIGNALS = 100
MAX_ANSWER = 10_000
MAX_TOLD_QUESTION = 16_000
"""Characters of a question and its choices that the timeline holds. Of a longer one it has the beginning."""
OVERDUE = 60.0
CUT_OFF = "Freehold was restarted while it ran. It was not begun again: look at what it has done"
_CUT_OFF = f"{SELECT_STEP} WHERE state = 'begun' AND kind IN ('step', 'command') ORDER BY number"


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


class StepStore:
    """Every method blocks. Steps are begun and ended by one process, the gateway; the others call any other method."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self.journal = journal
        self.clock = clock

    def list_steps(self, id: str) -> list[WorkflowStep]:
        """In the order in which they began."""
        rows = self.journal.query(f"{SELECT_STEP} WHERE workflow = ? ORDER BY number", (id,))
        return [read_step(row) for row in rows]

    def get_step(self, id: str, place: str) -> WorkflowStep:
        """Raises `workflow.step.not-found`."""
        rows = self.journal.query(f"{SELECT_STEP} WHERE workflow = ? AND place = ?", (id, place))
        if not rows:
            raise FreeholdError("workflow.step.not-found", f"The workflow {id!a:.80} has no step {place!a:.40}")
        return read_step(rows[0])

    def list_at(self, id: str, places: Collection[str]) -> list[WorkflowStep]:
        """The steps at these places."""
        marks = ", ".join("?" * len(places)) or "NULL"
        rows = self.journal.query(
            f"{SELECT_STEP} WHERE workflow = ? AND place IN ({marks}) ORDER BY number", (id, *places)
        )
        return [read_step(row) for row in rows]

    def list_titles(self, id: str) -> dict[str, str]:
        """What the steps are, by their places, in the order in which they began."""
        rows = self.journal.query(
            "SELECT place, kind, title FROM workflows_step WHERE workflow = ? ORDER BY number", (id,)
        )
        return {place: f"{kind} {title[:80]!r}" for place, kind, title in rows}

    def list_agent_steps(self, session: str) -> list[WorkflowStep]:
        """The steps whose agents work in a session, wait there for their turn, or wait there for the owner."""
        rows = self.journal.query(
            f"{SELECT_STEP} WHERE session = ? AND kind = 'agent' AND state IN ('begun', 'waiting') ORDER BY number",
            (session,),
        )
        return [read_step(row) for row in rows]

    def list_open_steps(self, kind: str, id: str | None = None) -> list[WorkflowStep]:
        where, given = ("", ()) if id is None else (" AND workflow = ?", (id,))
        rows = self.journal.query(
            f"{SELECT_STEP} WHERE state IN ('begun', 'waiting') AND kind = ?{where} ORDER BY number", (kind, *given)
        )
        return [read_step(row) for row in rows]

    def list_cut_off(self) -> list[WorkflowStep]:
        """After a restart: the functions and commands that ran then."""
        return [read_step(row) for row in self.journal.query(_CUT_OFF)]

    def find_next_wake(self) -> float | None:
        ((wake,),) = self.journal.query("SELECT min(wake) FROM workflows_step WHERE wake > 0 AND state = 'waiting'")
        return None if wake is None else float(wake)

    def find_overdue(self) -> str | None:
        """A workflow that should have gone on a minute ago."""
        rows = self.journal.query(
            "SELECT workflow FROM workflows_step WHERE wake > 0 AND wake < ? AND state = 'waiting' ORDER BY wake LIMIT 1",
            (self.clock.now() - OVERDUE,),
        )
        return str(rows[0][0]) if rows else None

    def answer(self, id: str, place: str, text: str, *, who: str, number: int | None = None) -> WorkflowStep:
        """The owner's answer to a question. Raises `workflow.step.not-found`, `.conflict` and `workflow.bad-value`.

        With `number` only to that step: another one may be asked at the same place when the workflow was retried.
        """
        with self.journal.transaction() as tx:
            found = require_step(tx, id, place)
            if found.kind != "ask" or found.state != "waiting" or number not in (None, found.number):
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
        encoded = encode_result(data)
        with self.journal.transaction() as tx:
            workflow = require_workflow(tx, id)
            if workflow.finished is not None:
                raise FreeholdError("workflow.conflict", f"The workflow {id} has ended: {workflow.state}")
            rows = tx.execute(
                f"{SELECT_STEP} WHERE workflow = ? AND kind = 'event' AND state = 'waiting' ORDER BY number", (id,)
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

    def recover(self) -> list[WorkflowStep]:
        """After a restart, before anything else: what was cut off. Returns the steps of agents, to be looked at.

        A function or a command that may have been begun is not repeated, unless it says that it may be.
        """
        with self.journal.transaction() as tx:
            for step in map(read_step, tx.execute(_CUT_OFF).fetchall()):
                if step.may_repeat:
                    add_size(tx, step.workflow, -len(json.dumps(dict(step.given))))
                    tx.execute("DELETE FROM workflows_step WHERE number = ?", (step.number,))
                    make_due(tx, step.workflow)
                else:
                    self._make_uncertain(tx, step)
            tx.execute("UPDATE workflows_workflow SET state = 'due' WHERE state = 'working'")
        return self.list_open_steps("agent")

    def begin_step(
        self, id: str, asked: StepAsked, most: int, holder: str, *, after: int | None = None
    ) -> tuple[WorkflowStep, bool]:
        """The step at this place, and whether it begins now. `holder` is the name by which the workflow was claimed.

        Who asks again gets the same answer. Raises `workflow.changed.conflict` for another step than the one that the journal has there,
        `workflow.stopped` when it was ended meanwhile, `workflow.too-many` and `workflow.too-large`.
        """
        digest = digest_step(asked.kind, asked.given)
        with self.journal.transaction() as tx:
            if require_workflow(tx, id).state != "working" or find_holder(tx, id) != holder:
                raise FreeholdError("workflow.stopped", f"The workflow {id} does not work any more")
            known = tx.execute(f"{SELECT_STEP} WHERE workflow = ? AND place = ?", (id, asked.place)).fetchone()
            if known is not None:
                found = read_step(known)
                if found.digest != digest:
                    words = f"step {asked.place} was {found.kind} {found.title!r:.80} and is {asked.kind} {asked.title!r:.80} now"
                    raise FreeholdError("workflow.changed.conflict", f"The steps are not those that began: {words}")
                if found.state == "begun" and _find_step_holder(tx, found) == holder:
                    return found, True
                is_due = found.state == "waiting" and found.wake is not None and found.wake <= self.clock.now()
                if is_due and found.kind != "sleep":
                    tx.execute(
                        "UPDATE workflows_step SET state = 'begun', wake = NULL, begun = ?, holder = ? WHERE number = ?",
                        (self.clock.now(), holder, found.number),
                    )
                    return require_step(tx, id, asked.place), True
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
            self._insert_step(tx, id, asked, digest, after, holder)
            return require_step(tx, id, asked.place), True

    def _insert_step(
        self, tx: JournalTransaction, id: str, asked: StepAsked, digest: str, after: int | None, holder: str
    ) -> None:
        now, given = self.clock.now(), read_input(asked.kind, asked.given)
        given_text = json.dumps(dict(asked.given))
        session = _choose_session(tx, id, asked) if asked.kind == "agent" else None
        wake = now + given.seconds if isinstance(given, SleepInput) else None
        state = "waiting" if asked.kind in ("sleep", "ask", "event") else "begun"
        tx.execute(
            "INSERT INTO workflows_step (workflow, place, kind, title, digest, given, state, attempt, begun, wake, after,"
            " session, holder) VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?)",
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
                holder,
            ),
        )
        add_size(tx, id, len(given_text))
        if isinstance(given, AskInput):
            tx.append("workflow.asked", _tell_question(require_step(tx, id, asked.place), given))
        elif asked.kind == "event":
            self._take_signal(tx, id, asked)

    def _take_signal(self, tx: JournalTransaction, id: str, asked: StepAsked) -> None:
        rows = tx.execute("SELECT number, name, data FROM workflows_signal WHERE workflow = ? ORDER BY number", (id,))
        for number, name, data in rows.fetchall():
            if is_event(str(asked.given["name"]), name):
                tx.execute("DELETE FROM workflows_signal WHERE number = ?", (number,))
                self._end_step(tx, require_step(tx, id, asked.place), StepEnd(json.loads(data)))
                return

    def note_turn(self, step: WorkflowStep, turn: int) -> None:
        with self.journal.transaction() as tx:
            tx.execute("UPDATE workflows_step SET turn = ? WHERE number = ?", (turn, step.number))

    def note_asks(self, step: WorkflowStep, why: str | None) -> bool:
        """The agent of a step waits for the owner, or with None works again. False when that is known."""
        state, other = ("begun", "waiting") if why is None else ("waiting", "begun")
        with self.journal.transaction() as tx:
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
        with self.journal.transaction() as tx:
            tx.execute("UPDATE workflows_step SET cost = ? WHERE number = ?", (cost, step.number))
            count_cost(tx, step.workflow)

    def note_event(self, step: WorkflowStep, after: int) -> None:
        with self.journal.transaction() as tx:
            tx.execute("UPDATE workflows_step SET after = ? WHERE number = ?", (after, step.number))

    def end_step(self, step: WorkflowStep, how: StepEnd) -> WorkflowStep | None:
        """Stores how it has ended; one that failed may wait for another try. None when it has ended already.

        A result that is too long, such as of an agent that talks without end, is a failure of the step.
        """
        try:
            encode_result(how.result)
        except FreeholdError as error:
            how = replace(how, result=None, error=error.message)
        with self.journal.transaction() as tx:
            rows = tx.execute(
                f"{SELECT_STEP} WHERE number = ? AND attempt = ? AND state IN ('begun', 'waiting')",
                (step.number, step.attempt),
            ).fetchall()
            if not rows:
                return None
            found = read_step(rows[0])
            options = read_input(found.kind, found.given)
            if how.is_uncertain:
                tx.execute(
                    "UPDATE workflows_step SET cost = coalesce(?, cost) WHERE number = ?", (how.cost, step.number)
                )
                self._make_uncertain(tx, found)
            elif how.error is not None and isinstance(options, RetryOptions) and found.attempt <= options.retries:
                self._retry_step(tx, found, options, how)
            else:
                self._end_step(tx, found, how)
            return require_step(tx, step.workflow, step.place)

    def _retry_step(self, tx: JournalTransaction, step: WorkflowStep, options: RetryOptions, how: StepEnd) -> None:
        delay = min(options.delay * 2.0 ** (step.attempt - 1), 6 * 3600.0)
        tx.execute(
            "UPDATE workflows_step SET state = 'waiting', attempt = attempt + 1, wake = ?, error = ? WHERE number = ?",
            (self.clock.now() + delay, how.error, step.number),
        )
        data: dict[str, Json] = {"workflow": step.workflow, "step": step.place, "seconds": round(delay)}
        tx.append("workflow.step_retried", {**data, "error": (how.error or "")[:500]})

    def _end_step(self, tx: JournalTransaction, step: WorkflowStep, how: StepEnd, *, who: str = "freehold") -> None:
        state: StepState = "done" if how.error is None else "failed"
        result = encode_result(how.result) if how.error is None else None
        tx.execute(
            "UPDATE workflows_step SET state = ?, finished = ?, wake = NULL, result = ?, error = ?,"
            " cost = coalesce(?, cost), entry = ?"
            " WHERE number = ?",
            (state, self.clock.now(), result, how.error, how.cost, how.entry, step.number),
        )
        add_size(tx, step.workflow, len(result or ""))
        make_due(tx, step.workflow)
        data: dict[str, Json] = {"workflow": step.workflow, "step": step.place, "kind": step.kind}
        tx.append(f"workflow.step_{state}", data, who=who)

    def _make_uncertain(self, tx: JournalTransaction, step: WorkflowStep) -> None:
        tx.execute(
            "UPDATE workflows_step SET state = 'uncertain', finished = ?, error = ? WHERE number = ?",
            (self.clock.now(), CUT_OFF, step.number),
        )
        error = f"Step {step.place}, {step.title[:80]}: {CUT_OFF}"
        end_workflow(tx, require_workflow(tx, step.workflow), "uncertain", self.clock.now(), error=error)

    def mark_uncertain(self, step: WorkflowStep) -> None:
        """Its process is gone, and nobody knows how far it came. Does nothing when the step has ended meanwhile."""
        with self.journal.transaction() as tx:
            if tx.execute(
                "SELECT 1 FROM workflows_step WHERE number = ? AND state = 'begun'", (step.number,)
            ).fetchone():
                self._make_uncertain(tx, step)

    def plan_again(self) -> None:
        """After the clock was set back: what has begun at a time that lies ahead waits from now on, as long as it should.

        Idempotent. Nothing is decided by a clock that was never set.
        """
        now = self.clock.now()
        if now < CLOCK_IS_SET:
            return
        with self.journal.transaction() as tx:
            tx.execute(
                "UPDATE workflows_step SET wake = wake - begun + ?, begun = ? WHERE state = 'waiting' AND wake > 0"
                " AND begun > ?",
                (now, now, now + BACKWARDS),
            )

    def wake_due(self) -> None:
        """Ends the sleeps whose time has come. A step that waits for another try may begin: its `wake` is 0 then."""
        now = self.clock.now()
        with self.journal.transaction() as tx:
            rows = tx.execute(
                f"{SELECT_STEP} WHERE wake > 0 AND wake <= ? AND state = 'waiting' ORDER BY wake LIMIT 500", (now,)
            ).fetchall()
            for step in map(read_step, rows):
                if step.kind == "sleep":
                    self._end_step(tx, step, StepEnd())
                else:
                    make_due(tx, step.workflow)
                    tx.execute("UPDATE workflows_step SET wake = 0 WHERE number = ?", (step.number,))


def _tell_question(step: WorkflowStep, asked: AskInput) -> dict[str, Json]:
    """With all its words, so that it can be told and answered elsewhere, unless they are too long for that."""
    data: dict[str, Json] = {"workflow": step.workflow, "step": step.place, "question": step.title}
    words: dict[str, Json] = {"question": asked.question, "choices": list(asked.choices)}
    if len(json.dumps(words)) > MAX_TOLD_QUESTION:
        return data
    return {**data, **words, "number": step.number, "digest": step.digest}


def is_event(wanted: str, name: str) -> bool:
    return name.startswith(wanted[:-1]) if wanted.endswith("*") else name == wanted


def _find_step_holder(tx: JournalTransaction, step: WorkflowStep) -> str | None:
    row = tx.execute("SELECT holder FROM workflows_step WHERE number = ?", (step.number,)).fetchone()
    return None if row is None else row[0]


def _choose_session(tx: JournalTransaction, id: str, asked: StepAsked) -> str:
    """Known before the session is made: after a crash we know whether it was."""
    name = asked.given.get("session")
    if name is not None:
        rows = tx.execute(f"{SELECT_STEP} WHERE workflow = ? AND kind = 'agent' ORDER BY number", (id,)).fetchall()
        for step in map(read_step, rows):
            if step.given.get("session") == name and step.session is not None:
                return step.session
    return secrets.token_hex(8)
