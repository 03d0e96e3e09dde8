"""Questions to the owner: durable, frozen, answered once, by whoever of the owner's is there first."""

import asyncio
import hashlib
import json
import secrets
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from freehold.agents.board import Kept, Tool
from freehold.agents.policy import Policy, Rule, put_rule
from freehold.agents.rpc import Json
from freehold.agents.store import EventRow, SessionRow, Store, now, put_events
from freehold.agents.visible import make_visible
from freehold.errors import FreeholdError

Answer = Literal["once", "session", "always", "reject"]
MAX_SHOWN = 60_000
MAX_PENDING = 1_000


@dataclass(frozen=True)
class Question:
    """What is to be allowed. `digest` freezes it: a call that changes is another question.

    `subjects` are what rules are matched with: the command, or every path. None can be told from an odd call.
    """

    kind: str
    title: str
    details: Json
    subjects: tuple[str, ...]
    digest: str
    tool: str | None = None


@dataclass(frozen=True)
class Reply:
    """An answer of the owner's or of the policy. `note`: their own words, or the choice they took, where words were asked for."""

    answer: Answer
    note: str | None = None


@dataclass(frozen=True)
class Approval:
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
    def asks_for_words(self) -> bool:
        """A question of `ask_owner`, not a call to allow: what the owner says goes to whoever asked."""
        return bool(self.data["details"].get("kind") == "question")

    def as_json(self) -> Json:
        head = {"id": self.id, "session": self.session, "turn": self.turn, "at": self.at, "state": self.state}
        said = {"answer": self.answer, "note": self.note, "options": _options(self.data)}
        return {**head, **said, **{key: self.data[key] for key in ("tool", "kind", "title", "details")}}


Told = Callable[[str, list[EventRow], Approval], None]
"""A session's new events, and the approval that they are about."""


def question_of(tool: Tool) -> Question:
    """The question a tool call comes to: the exact command or change, with nothing hidden in it."""
    raw = tool.raw_input
    given = raw.get("command", raw.get("cmd")) if isinstance(raw, dict) else None
    command: str | None = None
    if isinstance(given, str):
        command = given
    elif isinstance(given, list) and all(isinstance(word, str) for word in given):
        command = shlex.join(given)
    diffs = [part for part in tool.content if part["type"] == "diff"]
    details: Json = {}
    if command is not None:
        details["command"] = _shown(command)
        folder = raw.get("cwd") if isinstance(raw, dict) else None
        if isinstance(folder, str):
            details["folder"] = _shown(folder)
    if diffs:
        details["diffs"] = [
            {"path": _shown(one["path"]), "old": one["old"] and _shown(one["old"]), "new": _shown(one["new"])}
            for one in diffs
        ]
    if not details:
        # Some agents tell what they would do in the title alone: then that is what is shown whole, and frozen.
        details["input"] = _shown(json.dumps(raw, ensure_ascii=False, indent=1) if raw is not None else tool.title)
        details["paths"] = [_shown(place) for place in tool.locations]
    paths = tuple(dict.fromkeys([one["path"] for one in diffs] or tool.locations))
    if tool.kind == "execute":
        subjects = (command,) if command is not None else ()
    else:
        # Something that has a command and calls itself an edit is matched by neither.
        subjects = paths if command is None else ()
    rest = None if command or diffs else tool.title if raw is None else raw
    frozen = json.dumps([tool.kind, command, diffs, rest], sort_keys=True)
    return Question(
        tool.kind,
        make_visible(tool.title, lines=False)[:500],
        details,
        subjects,
        hashlib.sha256(frozen.encode()).hexdigest(),
        tool.id,
    )


def _shown(text: str) -> str:
    shown = make_visible(text)
    if len(shown) <= MAX_SHOWN:
        return shown
    return f"{shown[:MAX_SHOWN]}\n⟨{len(shown) - MAX_SHOWN} more characters are not shown⟩"


class Approvals:
    """Asks, remembers, answers. `told` hears of every change once it is on the disk, `stands` how its session stands then."""

    def __init__(self, store: Store, told: Told, stands: Callable[[SessionRow], None]) -> None:
        self.policy = Policy(store)
        self._store = store
        self._told = told
        self._stands = stands
        self._waiting: dict[str, asyncio.Future[Reply | None]] = {}

    def orphan_all(self) -> None:
        """At start: the agents that asked are gone. Their questions stay, and wait for an answer all the same."""
        with self._store.timeline.transaction() as tx:
            tx.execute("UPDATE agents_approval SET live = 0 WHERE state = 'pending'")

    async def ask(self, session: str, turn: int | None, question: Question) -> Reply | None:
        """The policy's answer, or the owner's when it comes; None when the question was withdrawn.

        Cancelling this leaves the question where it is: an ending process takes nothing from the owner.
        """
        effect = await asyncio.to_thread(self.policy.decide, session, question.kind, question.subjects)
        if effect == "allow":
            return Reply("once")
        if effect == "deny":
            return Reply("reject")
        granted = await asyncio.to_thread(self._use_grant, session, question.digest)
        if granted is not None:
            return granted
        approval, events = await asyncio.to_thread(self._put, session, turn, question)
        waiting: asyncio.Future[Reply | None] = asyncio.get_running_loop().create_future()
        self._waiting[approval.id] = waiting
        try:
            await self._tell(approval, events)
            return await waiting
        finally:
            self._waiting.pop(approval.id, None)

    async def withdraw(self, session: str) -> None:
        """The session's turn is over: what it asked needs no answer. Questions that outlived a restart stay."""
        for approval in await asyncio.to_thread(self.pending, session):
            if approval.live:
                result = await asyncio.to_thread(self._withdraw, approval.id)
                if result is not None:
                    await self._tell(*result)
                waiting = self._waiting.get(approval.id)
                if waiting is not None and not waiting.done():
                    waiting.set_result(None)

    async def answer(self, name: str, answer: Answer, *, who: str, note: str | None = None) -> Approval:
        """Takes one answer, once. Raises `approval.not-found`, or `approval.conflict` when it has one already.

        The `note` is kept with a question that asks for words, and must be one of its choices if it takes no others.
        """
        approval, events = await asyncio.to_thread(self._answer, name, answer, note, who)
        await self._tell(approval, events)
        waiting = self._waiting.get(name)
        if waiting is not None and not waiting.done():
            waiting.set_result(Reply(answer, approval.note))
        return approval

    async def _tell(self, approval: Approval, events: list[EventRow]) -> None:
        # The events first, and without a pause: what comes after them has a higher number.
        self._told(approval.session, events, approval)
        self._stands(await asyncio.to_thread(self._store.get, approval.session))

    def pending(self, session: str | None = None) -> list[Approval]:
        where = "state = 'pending'" + ("" if session is None else " AND session = ?")
        return self._find(where, () if session is None else (session,))

    def get(self, name: str) -> Approval:
        found = self._find("id = ?", (name,))
        if not found:
            raise FreeholdError(
                "approval.not-found", "There is no such question", hint="GET /v1/approvals lists those that wait"
            )
        return found[0]

    def _find(self, where: str, given: tuple[Any, ...]) -> list[Approval]:
        rows = self._store.timeline.query(
            "SELECT id, session, turn, at, digest, data, state, answer, live, note FROM agents_approval "  # noqa: S608 - our own words
            f"WHERE {where} ORDER BY at, id LIMIT {MAX_PENDING}",
            given,
        )
        return [
            Approval(name, session, turn, at, digest, json.loads(data), state, answer, bool(live), note)
            for name, session, turn, at, digest, data, state, answer, live, note in rows
        ]

    def _put(self, session: str, turn: int | None, question: Question) -> tuple[Approval, list[EventRow]]:
        name = secrets.token_urlsafe(12)
        data: Json = {
            "tool": question.tool,
            "kind": question.kind,
            "title": question.title,
            "details": question.details,
            "subjects": list(question.subjects),
        }
        with self._store.timeline.transaction() as tx:
            tx.execute(
                "INSERT INTO agents_approval (id, session, turn, at, digest, data, state, live) "
                "VALUES (?, ?, ?, ?, ?, ?, 'pending', 1)",
                (name, session, turn, now(), question.digest, json.dumps(data)),
            )
            tx.execute("UPDATE agents_session SET status = 'needs_you' WHERE id = ?", (session,))
            events = put_events(tx, session, turn, [_event(name, data, "pending", None)], who="agent")
            brief = {"session": session, "turn": turn, "approval": name, "title": question.title}
            tx.append("approval.asked", {**brief, "digest": question.digest}, who="agent")
        return self.get(name), events

    def _answer(self, name: str, answer: Answer, note: str | None, who: str) -> tuple[Approval, list[EventRow]]:
        found = self.get(name)
        said = _words(found, answer, note) if found.asks_for_words else None
        # The agent that asked is gone: a yes waits for it to ask the same again, once.
        state = "answered" if found.live or answer == "reject" else "granted"
        with self._store.timeline.transaction() as tx:
            changed = tx.execute(
                "UPDATE agents_approval SET state = ?, answer = ?, note = ? WHERE id = ? AND state = 'pending'",
                (state, answer, said, name),
            ).rowcount
            if not changed:
                raise FreeholdError("approval.conflict", "This question has been answered or withdrawn already")
            if answer in ("session", "always"):
                for subject in found.data["subjects"]:
                    scope = found.session if answer == "session" else None
                    put_rule(tx, Rule("allow", found.data["kind"], subject, True, scope), who=who)
            _settle(tx, found.session)
            event = _event(name, found.data, "answered", answer, said)
            events = put_events(tx, found.session, found.turn, [event], who=who)
            told = {"session": found.session, "approval": name, "answer": answer, "digest": found.digest}
            tx.append("approval.answered", told, who=who)
        return self.get(name), events

    def _withdraw(self, name: str) -> tuple[Approval, list[EventRow]] | None:
        found = self.get(name)
        with self._store.timeline.transaction() as tx:
            changed = tx.execute(
                "UPDATE agents_approval SET state = 'withdrawn' WHERE id = ? AND state = 'pending'", (name,)
            ).rowcount
            if not changed:
                return None
            _settle(tx, found.session)
            events = put_events(
                tx, found.session, found.turn, [_event(name, found.data, "withdrawn", None)], who="freehold"
            )
            tx.append("approval.withdrawn", {"session": found.session, "approval": name})
        return self.get(name), events

    def _use_grant(self, session: str, digest: str) -> Reply | None:
        with self._store.timeline.transaction() as tx:
            row = tx.execute(
                "UPDATE agents_approval SET state = 'answered' WHERE id = (SELECT id FROM agents_approval "
                "WHERE session = ? AND digest = ? AND state = 'granted' LIMIT 1) RETURNING id, answer, note",
                (session, digest),
            ).fetchone()
            if row is None:
                return None
            tx.append("approval.used", {"session": session, "approval": row[0]})
            return Reply(row[1], row[2])


def _words(asked: Approval, answer: Answer, note: str | None) -> str | None:
    """What the owner says to a question: a choice, words of their own, or nothing where yes and no are all there is."""
    choices, free = asked.data["details"]["options"], asked.data["details"]["free_text"]
    said = note.strip() if note else None
    if answer == "reject" or not (choices or free):
        return said
    if said is None or not (free or said in choices):
        wanted = ", ".join(choices) + (", or words of your own" if free and choices else "")
        raise FreeholdError(
            "approval.wrong-answer",
            f"{said!a:.80} is none of the choices" if said else "The question asks for more than yes",
            hint=f"note: {wanted or 'your answer'}",
        )
    return said


def _settle(tx: Any, session: str) -> None:
    """With the last question answered the session works on; one that outlived its agent rests."""
    tx.execute(
        "UPDATE agents_session SET status = CASE WHEN EXISTS (SELECT 1 FROM agents_turn WHERE session = ?1 AND "
        "state = 'sent') THEN 'working' ELSE 'idle' END WHERE id = ?1 AND status = 'needs_you' AND NOT EXISTS "
        "(SELECT 1 FROM agents_approval WHERE session = ?1 AND state = 'pending')",
        (session,),
    )


def _event(name: str, data: Json, state: str, answer: str | None, note: str | None = None) -> Kept:
    shown = {key: data[key] for key in ("tool", "kind", "title", "details")}
    said = {"options": _options(data), "state": state, "answer": answer, "note": note}
    return "approval", {"id": name, **shown, **said}


def _options(data: Json) -> list[Answer]:
    """A lasting answer needs something that a rule can name."""
    return ["once", "session", "always", "reject"] if data["subjects"] else ["once", "reject"]
