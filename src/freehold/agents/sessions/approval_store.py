"""Approvals in SQLite: each permission request that waits for the owner, with the answer once there is one."""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.event_log import append_events, current_instant
from freehold.agents.sessions.permission_request import PermissionRequest
from freehold.agents.sessions.permission_rule_store import add_rule
from freehold.agents.sessions.permission_rules import MAX_PATTERN, PermissionRule
from freehold.agents.sessions.reach import ALL_ANSWERS, Answer, read_answer
from freehold.agents.sessions.rows import DraftEvent, SessionEventRow, Status
from freehold.agents.sessions.stored_request import read_shown
from freehold.agents.sessions.turn_store import queue_prompt
from freehold.agents.visible_text import make_visible
from freehold.errors import FreeholdError
from freehold.timeline import Timeline, Transaction

MAX_LISTED = 1_000
MAX_NAMED = 500
"""Characters of the paths in the words about a lasting answer. More are not repeated: the request shows them."""

_LASTING_WORDS = {
    "execute": "exactly this command",
    "edit": "every change of {paths}, whatever its content",
    "delete": "every deletion of {paths}",
    "read": "every reading of {paths}",
    "search": "every search in {paths}, whatever it looks for",
}


@dataclass(frozen=True)
class PermissionAnswer:
    """The answer of the owner or of a rule. `note` is what the owner wrote, or the choice of a question."""

    answer: Answer
    note: str | None = None


@dataclass(frozen=True)
class AnswerDelivery:
    """The prompt that tells an agent the owner's answer. `key`, `waits` and `status` are as for `TurnStore.add`."""

    key: str
    text: "Callable[[ApprovalRow], str]"
    waits: bool
    status: Status | None


@dataclass(frozen=True)
class ApprovalRow:
    """One approval. `live` means that the agent that asked still waits.

    `granted` is the state of a yes that no agent waits for: the next request with the same digest uses it once.
    """

    id: str
    session: str
    turn: int | None
    at: str
    digest: str
    data: Json
    state: Literal["pending", "answered", "withdrawn", "granted"]
    answer: Answer | None
    live: bool
    note: str | None = None

    @property
    def is_question(self) -> bool:
        """Whether this is a question of `ask_owner`. Its answer is a text for the agent, not a permission."""
        return bool(self.data["details"].get("kind") == "question")

    def as_json(self) -> Json:
        return {
            "id": self.id,
            "session": self.session,
            "turn": self.turn,
            "at": self.at,
            "state": self.state,
            "answer": self.answer,
            "note": self.note,
            "options": _options(self.data),
            **_shown(self.data),
            "digest": self.digest,
        }


Change = tuple[ApprovalRow, list[SessionEventRow]]
"""An approval after a change, and the session events of the change."""


class ApprovalStore:
    """Every method blocks: call it with `run_blocking` from a coroutine."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def list_pending(self, session: str | None = None) -> list[ApprovalRow]:
        """The oldest first."""
        where = "state = 'pending'" + ("" if session is None else " AND session = ?")
        return self._find(where, () if session is None else (session,))

    def get(self, approval: str) -> ApprovalRow:
        """Raises `approval.not-found`."""
        found = self._find("id = ?", (approval,))
        if not found:
            raise FreeholdError(
                "approval.not-found",
                f"There is no approval {approval!a:.80}",
                hint="GET /v1/approvals lists those that wait for an answer",
            )
        return found[0]

    def mark_all_orphaned(self) -> None:
        """At start: no agent waits any more. Pending approvals stay, and the owner can still answer them."""
        with self._timeline.transaction() as tx:
            tx.execute("UPDATE agents_approval SET live = 0 WHERE state = 'pending'")

    def mark_orphaned(self, session: str) -> bool:
        """The agent of a session will not wait any more. Its pending approvals stay. False when there are none."""
        with self._timeline.transaction() as tx:
            changed = tx.execute(
                "UPDATE agents_approval SET live = 0 WHERE state = 'pending' AND session = ?", (session,)
            ).rowcount
        return changed > 0

    def add(self, session: str, turn: int | None, request: PermissionRequest) -> Change:
        approval = secrets.token_urlsafe(12)
        # What is not shown whole takes no lasting answer, and can be megabytes.
        subjects = [] if request.hidden_bytes else list(request.subjects)
        data: Json = {**request.as_json(), "subjects": subjects, "lasting": request.lasting}
        with self._timeline.transaction() as tx:
            tx.execute(
                "INSERT INTO agents_approval (id, session, turn, at, digest, data, state, live) "
                "VALUES (?, ?, ?, ?, ?, ?, 'pending', 1)",
                (approval, session, turn, current_instant(), request.digest, json.dumps(data)),
            )
            tx.execute("UPDATE agents_session SET status = 'needs_you' WHERE id = ?", (session,))
            events = append_events(tx, session, turn, [_event(approval, data, "pending")], who="agent")
            brief = {"session": session, "turn": turn, "approval": approval, "title": request.title}
            tx.append("approval.asked", {**brief, "digest": request.digest}, who="agent")
        return self.get(approval), events

    def answer(
        self,
        approval: str,
        answer: Answer,
        note: str | None,
        who: str,
        digest: str | None = None,
        delivery: AnswerDelivery | None = None,
    ) -> Change:
        """Raises `approval.not-found`, `approval.wrong-answer`, or `approval.conflict` when it is not pending.

        With `delivery` the prompt that tells the agent is stored with the answer, or neither is.
        """
        found = self.get(approval)
        if digest is not None and digest != found.digest:
            raise FreeholdError("approval.conflict", "This answer is for another call than the one that waits")
        if answer not in _options(found.data):
            raise FreeholdError(
                "approval.wrong-answer",
                f"This request cannot be answered {answer!r}",
                hint=f"It accepts: {', '.join(_options(found.data))}",
            )
        stored_note = _check_note(found, answer, note) if found.is_question else None
        # When the agent has ended, a yes waits until it makes the same request again.
        state = "answered" if found.live or answer == "reject" else "granted"
        with self._timeline.transaction() as tx:
            changed = tx.execute(
                "UPDATE agents_approval SET state = ?, answer = ?, note = ? WHERE id = ? AND state = 'pending'",
                (state, answer, stored_note, approval),
            ).rowcount
            if not changed:
                raise FreeholdError("approval.conflict", "This approval was answered or withdrawn already")
            # What a host tool was allowed is remembered where it holds, and must end there too.
            if answer in ("conversation", "always") and found.data["kind"] != "host":
                session = found.session if answer == "conversation" else None
                for subject in found.data["subjects"]:
                    add_rule(tx, PermissionRule("allow", found.data["kind"], subject, True, session), who=who)
            _update_status(tx, found.session)
            event = _event(approval, found.data, "answered", answer, stored_note)
            events = append_events(tx, found.session, found.turn, [event], who=who)
            recorded = {"session": found.session, "approval": approval, "answer": answer, "digest": found.digest}
            tx.append("approval.answered", recorded, who=who)
            if delivery is not None:
                answered = replace(found, answer=answer, note=stored_note)
                prompt: Json = {"text": delivery.text(answered), "files": [], "images": []}
                _, queued = queue_prompt(
                    tx, found.session, delivery.key, prompt, waits=delivery.waits, status=delivery.status, who=who
                )
                events += queued
        return self.get(approval), events

    def withdraw(self, approval: str) -> Change | None:
        """None when it was answered in the meantime."""
        found = self.get(approval)
        with self._timeline.transaction() as tx:
            changed = tx.execute(
                "UPDATE agents_approval SET state = 'withdrawn' WHERE id = ? AND state = 'pending'", (approval,)
            ).rowcount
            if not changed:
                return None
            _update_status(tx, found.session)
            event = _event(approval, found.data, "withdrawn")
            events = append_events(tx, found.session, found.turn, [event], who="freehold")
            tx.append("approval.withdrawn", {"session": found.session, "approval": approval})
        return self.get(approval), events

    def use_grant(self, session: str, digest: str) -> PermissionAnswer | None:
        """Uses up a yes that was given after the agent that asked had ended."""
        with self._timeline.transaction() as tx:
            row = tx.execute(
                "UPDATE agents_approval SET state = 'answered' WHERE id = (SELECT id FROM agents_approval "
                "WHERE session = ? AND digest = ? AND state = 'granted' LIMIT 1) RETURNING id, answer, note",
                (session, digest),
            ).fetchone()
            if row is None:
                return None
            tx.append("approval.used", {"session": session, "approval": row[0]})
            return PermissionAnswer(read_answer(row[1]) or "reject", row[2])

    def _find(self, where: str, given: tuple[Any, ...]) -> list[ApprovalRow]:
        rows = self._timeline.query(
            "SELECT id, session, turn, at, digest, data, state, answer, live, note FROM agents_approval "  # noqa: S608 - our own words
            f"WHERE {where} ORDER BY at, id LIMIT {MAX_LISTED}",
            given,
        )
        return [
            ApprovalRow(id, session, turn, at, digest, json.loads(data), state, read_answer(answer), bool(live), note)
            for id, session, turn, at, digest, data, state, answer, live, note in rows
        ]


def _check_note(found: ApprovalRow, answer: Answer, note: str | None) -> str | None:
    """The owner's text. Raises `approval.wrong-answer` unless it is one of the choices or free text is accepted."""
    choices, free_text = found.data["details"]["options"], found.data["details"]["free_text"]
    text = note.strip() if note else None
    if answer == "reject" or not (choices or free_text):
        return text
    if text is None or not (free_text or text in choices):
        wanted = ", ".join(choices) + (", or your own text" if free_text and choices else "")
        raise FreeholdError(
            "approval.wrong-answer",
            f"{text!a:.80} is not one of the choices" if text else "The question needs a text in note",
            hint=f"note: {wanted or 'your answer'}",
        )
    return text


def _update_status(tx: Transaction, session: str) -> None:
    """Without a pending approval the session is working again, or idle when no turn is running."""
    tx.execute(
        "UPDATE agents_session SET status = CASE WHEN EXISTS (SELECT 1 FROM agents_turn WHERE session = ?1 AND "
        "state = 'sent') THEN 'working' ELSE 'idle' END WHERE id = ?1 AND status = 'needs_you' AND NOT EXISTS "
        "(SELECT 1 FROM agents_approval WHERE session = ?1 AND state = 'pending')",
        (session,),
    )


def _event(approval: str, data: Json, state: str, answer: Answer | None = None, note: str | None = None) -> DraftEvent:
    outcome = {"options": _options(data), "state": state, "answer": answer, "note": note}
    return "approval", {"id": approval, **_shown(data), **outcome}


def _shown(data: Json) -> Json:
    shown = {key: value for key, value in read_shown(data).items() if key not in ("subjects", "lasting")}
    return {**shown, "lasting_effect": _describe_lasting(data)}


def _describe_lasting(data: Json) -> str | None:
    """What an answer for longer than once allows: more than was asked. None when there is no such answer.

    The words of a host tool's request say it themselves.
    """
    kind, subjects = data["kind"], data["subjects"]
    if kind == "host" or "always" not in _options(data):
        return None
    paths = ", ".join(make_visible(subject, lines=False) for subject in subjects)
    if len(paths) > MAX_NAMED:
        paths = "each path of this request"
    words = _LASTING_WORDS.get(kind, "every call of the kind {kind} that names only {paths}")
    return words.format(kind=kind, paths=paths)


def _options(data: Json) -> list[Answer]:
    """A lasting answer needs subjects that a rule can name, and a call that was shown whole.

    A move has none: rules for its two paths would also allow the way back, and moves between them and other paths.
    """
    named = data["subjects"] and all(len(subject) <= MAX_PATTERN for subject in data["subjects"])
    lasts = named and data["kind"] != "move" and data.get("lasting", True) and data.get("complete", True)
    return list(ALL_ANSWERS) if lasts else ["once", "reject"]
