"""Sessions, turns and their events on the disk, in the timeline's own file: state and event commit together."""

import base64
import json
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Literal

from freehold.agents.board import Kept
from freehold.agents.rpc import Json
from freehold.agents.schema import SCHEMA
from freehold.errors import FreeholdError
from freehold.timeline import Timeline
from freehold.timeline.timeline import Tx, instant

Status = Literal["idle", "working", "needs_you", "failed", "queued"]
TurnState = Literal["queued", "sent", "ended"]


@dataclass(frozen=True)
class SessionRow:
    id: str
    title: str
    named: bool
    agent: str
    model: str | None
    status: Status
    created: str
    updated: str
    archived: bool
    cost: float | None
    acp: str | None
    seq: int
    turns: int
    chosen: Json
    parent: str | None
    unread: bool

    def as_json(self) -> Json:
        hidden = ("named", "acp", "turns", "chosen")
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name not in hidden}


@dataclass(frozen=True)
class EventRow:
    seq: int
    at: str
    turn: int | None
    kind: str
    data: Json

    def as_json(self) -> Json:
        return {"seq": self.seq, "at": self.at, "turn": self.turn, "kind": self.kind, "data": self.data}


@dataclass(frozen=True)
class TurnRow:
    turn: int
    key: str
    prompt: Json
    state: TurnState
    entry: int | None


_SESSION = (
    "SELECT id, title, named, agent, model, status, created, updated, archived, cost, acp, seq, turns, chosen, parent, "
    "news > seen FROM agents_session"
)
_TURN = "SELECT turn, key, prompt, state, entry FROM agents_turn"


class Store:
    """Blocks on the disk: from a coroutine use `asyncio.to_thread`."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline

    def prepare(self) -> None:
        """Before anything else. Idempotent."""
        self.timeline.ensure_schema("agents", *SCHEMA)

    def open(
        self, agent: str, title: str | None, model: str | None, *, who: str, parent: str | None = None
    ) -> SessionRow:
        name = secrets.token_hex(8)
        with self.timeline.transaction() as tx:
            at = now()
            tx.execute(
                "INSERT INTO agents_session (id, title, named, agent, model, status, created, updated, parent) "
                "VALUES (?, ?, ?, ?, ?, 'idle', ?, ?, ?)",
                (name, title or "New session", title is not None, agent, model, at, at, parent),
            )
            tx.append("session.opened", {"session": name, "agent": agent}, who=who)
        return self.get(name)

    def get(self, session: str) -> SessionRow:
        rows = self.timeline.query(f"{_SESSION} WHERE id = ?", (session,))
        if not rows:
            raise FreeholdError(
                "session.not-found", f"There is no session {session!a:.80}", hint="freehold chat --list shows them"
            )
        return _session(rows[0])

    def search(self, *, query: str = "", archived: bool = False, cursor: str = "", limit: int = 50) -> list[SessionRow]:
        """The last changed first; of those that hold `query` in title or words; after `cursor` (`updated id`)."""
        where, given = ["archived = ?"], [archived]  # type: tuple[list[str], list[Any]]
        if query:
            like = "%" + query.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
            where.append(
                "(title LIKE ? ESCAPE '\\' OR EXISTS (SELECT 1 FROM agents_event e WHERE e.session = agents_session.id "
                "AND e.kind IN ('message', 'turn.started') AND e.data LIKE ? ESCAPE '\\'))"
            )
            given += [like, like]
        if cursor:
            updated, _, name = cursor.partition(" ")
            where.append("(updated, id) < (?, ?)")
            given += [updated, name]
        sql = f"{_SESSION} WHERE {' AND '.join(where)} ORDER BY updated DESC, id DESC LIMIT ?"
        return [_session(row) for row in self.timeline.query(sql, (*given, limit))]

    def change(self, session: str, *, title: str | None, archived: bool | None, who: str) -> SessionRow:
        with self.timeline.transaction() as tx:
            if title is not None:
                tx.execute("UPDATE agents_session SET title = ?, named = 1 WHERE id = ?", (title, session))
                tx.append("session.renamed", {"session": session, "title": title}, who=who)
            if archived is not None:
                tx.execute("UPDATE agents_session SET archived = ? WHERE id = ?", (archived, session))
                tx.append("session.archived" if archived else "session.restored", {"session": session}, who=who)
            _touch(tx, session)
        return self.get(session)

    def see(self, session: str, seq: int) -> bool:
        """The owner has read up to here. Idempotent, and never takes back; says whether that makes a difference to show."""
        before = self.get(session).unread
        with self.timeline.transaction() as tx:
            tx.execute("UPDATE agents_session SET seen = max(seen, min(seq, ?)) WHERE id = ?", (seq, session))
        return self.get(session).unread != before

    def delete(self, session: str, *, who: str) -> None:
        """What was said is gone; that it was there stays in the timeline."""
        self.get(session)
        with self.timeline.transaction() as tx:
            for table in ("event", "turn", "approval", "rule", "image"):
                tx.execute(f"DELETE FROM agents_{table} WHERE session = ?", (session,))  # noqa: S608 - our own words
            tx.execute("DELETE FROM agents_session WHERE id = ?", (session,))
            tx.append("session.deleted", {"session": session}, who=who)

    def remember(self, session: str, *, acp: str | None = None, chosen: Json | None = None) -> None:
        """What a later process needs to go on: the agent's own name of the session, and what was chosen."""
        with self.timeline.transaction() as tx:
            if acp is not None:
                tx.execute("UPDATE agents_session SET acp = ? WHERE id = ?", (acp, session))
            if chosen is not None:
                tx.execute("UPDATE agents_session SET chosen = ? WHERE id = ?", (json.dumps(chosen), session))

    def append(
        self,
        session: str,
        turn: int | None,
        events: Sequence[Kept],
        *,
        status: Status | None = None,
        cost: float | None = None,
        ended: bool = False,
        who: str = "freehold",
    ) -> list[EventRow]:
        """Number and keep events; with `ended` the turn is over. What matters beyond the session is told the timeline."""
        with self.timeline.transaction() as tx:
            kept = put_events(tx, session, turn, events, who=who)
            if status is not None:
                tx.execute("UPDATE agents_session SET status = ? WHERE id = ?", (status, session))
            if cost is not None:
                tx.execute("UPDATE agents_session SET cost = coalesce(cost, 0) + ? WHERE id = ?", (cost, session))
            if ended:
                tx.execute("UPDATE agents_turn SET state = 'ended' WHERE session = ? AND turn = ?", (session, turn))
            for kind, data in events:
                if kind == "info":
                    tx.execute(
                        "UPDATE agents_session SET title = ? WHERE id = ? AND named = 0", (data["title"], session)
                    )
            _touch(tx, session)
        return kept

    def events(
        self, session: str, *, after: int = 0, before: int | None = None, limit: int = 500, last: bool = False
    ) -> list[EventRow]:
        """Oldest first; with `last` the newest of them."""
        sql = "SELECT seq, at, turn, kind, data FROM agents_event WHERE session = ? AND seq > ? AND seq < ?"
        until = before if before is not None else 2**62
        order = "DESC" if last else "ASC"
        rows = self.timeline.query(f"{sql} ORDER BY seq {order} LIMIT ?", (session, after, until, limit))
        found = [EventRow(seq, at, turn, kind, json.loads(data)) for seq, at, turn, kind, data in rows]
        return found[::-1] if last else found

    def add_turn(
        self, session: str, key: str, prompt: Json, *, first: bool, waits: bool, who: str
    ) -> tuple[TurnRow, list[EventRow]]:
        """A prompt to be sent, once a key: the same key gives the same turn again, and no event."""
        try:
            with self.timeline.transaction() as tx:
                row = tx.execute(
                    "UPDATE agents_session SET turns = turns + 1 WHERE id = ? RETURNING turns, named", (session,)
                ).fetchone()
                turn, named = row
                (lowest,) = tx.execute(
                    "SELECT min(place) FROM agents_turn WHERE session = ? AND state = 'queued'", (session,)
                ).fetchone()
                place = (lowest if lowest is not None else turn) - 1 if first else turn
                tx.execute(
                    "INSERT INTO agents_turn (session, turn, key, prompt, state, place) VALUES (?, ?, ?, ?, 'queued', ?)",
                    (session, turn, key, json.dumps(prompt), place),
                )
                if turn == 1 and not named:
                    tx.execute("UPDATE agents_session SET title = ? WHERE id = ?", (_title(prompt["text"]), session))
                events: list[Kept] = [("queued", {"text": prompt["text"], "key": key})] if waits else []
                kept = put_events(tx, session, turn, events, who=who)
                if not waits:
                    tx.execute("UPDATE agents_session SET status = 'working' WHERE id = ?", (session,))
                _touch(tx, session)
                return TurnRow(turn, key, prompt, "queued", None), kept
        except sqlite3.IntegrityError:
            return self._turn("session = ? AND key = ?", session, key), []

    def next_turn(self, session: str) -> TurnRow | None:
        rows = self.timeline.query(f"{_TURN} WHERE session = ? AND state = 'queued' ORDER BY place LIMIT 1", (session,))
        return _turn(rows[0]) if rows else None

    def turn(self, session: str, turn: int) -> TurnRow:
        return self._turn("session = ? AND turn = ?", session, turn)

    def turns(self, session: str) -> "Sequence[TurnRow]":
        return [_turn(row) for row in self.timeline.query(f"{_TURN} WHERE session = ? ORDER BY turn", (session,))]

    def begin_turn(self, session: str, turn: TurnRow, entry: int | None, *, who: str) -> list[EventRow]:
        """Committed before the prompt is sent: from here on its delivery is uncertain, and it is never sent again.

        Raises `turn.dropped` for one that was called off in the meantime.
        """
        prompt = turn.prompt
        shown = {
            "text": prompt["text"],
            "files": prompt["files"],
            "images": [{"mime": one["mime"], "size": len(one["data"])} for one in prompt["images"]],
        }
        with self.timeline.transaction() as tx:
            begun = tx.execute(
                "UPDATE agents_turn SET state = 'sent', entry = ?, prompt = ? WHERE session = ? AND turn = ? "
                "AND state = 'queued'",
                (entry, json.dumps({**prompt, "images": []}), session, turn.turn),
            ).rowcount
            if not begun:
                raise FreeholdError("turn.dropped.conflict", "This prompt was called off before it was sent")
            for place, one in enumerate(prompt["images"]):
                tx.execute(
                    "INSERT INTO agents_image (session, turn, place, mime, data) VALUES (?, ?, ?, ?, ?)",
                    (session, turn.turn, place, one["mime"], base64.b64decode(one["data"])),
                )
            tx.execute("UPDATE agents_session SET status = 'working' WHERE id = ?", (session,))
            _touch(tx, session)
            return put_events(tx, session, turn.turn, [("turn.started", {"prompt": shown, "key": turn.key})], who=who)

    def image(self, session: str, turn: int, place: int) -> tuple[str, bytes]:
        """One that came with a prompt: its type and its bytes."""
        rows = self.timeline.query(
            "SELECT mime, data FROM agents_image WHERE session = ? AND turn = ? AND place = ?", (session, turn, place)
        )
        if not rows:
            raise FreeholdError("session.image.not-found", f"Turn {turn} has no image {place}")
        return str(rows[0][0]), bytes(rows[0][1])

    def unfinished(self) -> list[tuple[str, int]]:
        """Turns that were sent and of whose end nothing is known: the process that knew is gone."""
        rows = self.timeline.query("SELECT session, turn FROM agents_turn WHERE state = 'sent'")
        return [(session, turn) for session, turn in rows]

    def waiting(self) -> list[str]:
        """Sessions with prompts that were never sent."""
        return [
            row[0] for row in self.timeline.query("SELECT DISTINCT session FROM agents_turn WHERE state = 'queued'")
        ]

    def drop_queued(self, session: str) -> list[EventRow]:
        """Prompts that wait are never sent; each is told of."""
        with self.timeline.transaction() as tx:
            turns = tx.execute(
                "UPDATE agents_turn SET state = 'ended' WHERE session = ? AND state = 'queued' RETURNING turn, key",
                (session,),
            ).fetchall()
            kept: list[EventRow] = []
            for turn, key in turns:
                kept += put_events(tx, session, turn, [("dropped", {"key": key})], who="freehold")
            # One whose only prompt was still on its way to the agent rests again.
            tx.execute(
                "UPDATE agents_session SET status = 'idle' WHERE id = ?1 AND status = 'working' AND NOT EXISTS "
                "(SELECT 1 FROM agents_turn WHERE session = ?1 AND state = 'sent')",
                (session,),
            )
            return kept

    def forget_after(self, session: str, turn: int, *, who: str) -> list[EventRow]:
        """Takes the conversation back to before a turn. The agent is given the rest as a new start."""
        with self.timeline.transaction() as tx:
            for table in ("event", "image"):
                tx.execute(f"DELETE FROM agents_{table} WHERE session = ? AND turn >= ?", (session, turn))  # noqa: S608 - our own words
            tx.execute("UPDATE agents_turn SET state = 'ended' WHERE session = ? AND turn >= ?", (session, turn))
            tx.execute("UPDATE agents_session SET acp = NULL WHERE id = ?", (session,))
            tx.append("session.rewound", {"session": session, "turn": turn}, who=who)
            _touch(tx, session)
            return put_events(tx, session, None, [("rewound", {"turn": turn})], who=who)

    def copy_events(self, source: str, target: str) -> None:
        with self.timeline.transaction() as tx:
            tx.execute(
                "INSERT INTO agents_event SELECT ?, seq, at, turn, kind, data FROM agents_event "
                "WHERE session = ? AND kind != 'approval'",
                (target, source),
            )
            tx.execute(
                "INSERT INTO agents_image SELECT ?, turn, place, mime, data FROM agents_image WHERE session = ?",
                (target, source),
            )
            tx.execute(
                "UPDATE agents_session SET (seq, turns, news, seen) = "
                "(SELECT seq, turns, news, seen FROM agents_session WHERE id = ?) WHERE id = ?",
                (source, target),
            )

    def _turn(self, where: str, *given: object) -> TurnRow:
        rows = self.timeline.query(f"{_TURN} WHERE {where}", given)
        if not rows:
            raise FreeholdError("turn.not-found", "There is no such turn in this session")
        return _turn(rows[0])


_TOLD = {"turn.started", "turn.ended", "error"}
_NEWS = {"message", "turn.ended", "error"}
"""What the owner would want to read; a question that waits is news, too."""


def put_events(tx: Tx, session: str, turn: int | None, events: Sequence[Kept], *, who: str) -> list[EventRow]:
    """Within a transaction of the caller's."""
    if not events:
        return []
    row = tx.execute(
        "UPDATE agents_session SET seq = seq + ? WHERE id = ? RETURNING seq", (len(events), session)
    ).fetchone()
    if row is None:
        raise FreeholdError("session.not-found", "The session is gone")
    first, at = row[0] - len(events) + 1, now()
    kept = [EventRow(first + number, at, turn, kind, data) for number, (kind, data) in enumerate(events)]
    news = [event.seq for event in kept if event.kind in _NEWS or event.data.get("state") == "pending"]
    if news:
        tx.execute("UPDATE agents_session SET news = ? WHERE id = ?", (news[-1], session))
    for event in kept:
        tx.execute(
            "INSERT INTO agents_event (session, seq, at, turn, kind, data) VALUES (?, ?, ?, ?, ?, ?)",
            (session, event.seq, event.at, event.turn, event.kind, json.dumps(event.data)),
        )
        if event.kind in _TOLD:
            kind = event.kind if event.kind.startswith("turn.") else f"session.{event.kind}"
            tx.append(kind, {"session": session, "turn": turn, **_brief(event)}, who=who)
        elif event.kind == "tool" and event.data["status"] in ("completed", "failed"):
            told = {name: str(event.data[name])[:500] for name in ("title", "kind", "status")}
            tx.append("tool.ended", {"session": session, "turn": turn, **told}, who=who)
    return kept


def _brief(event: EventRow) -> Json:
    """The timeline's line for an event; the words themselves stay in the session."""
    if event.kind == "turn.started":
        return {"text": str(event.data["prompt"]["text"])[:2000]}
    if event.kind == "turn.ended":
        return {name: event.data.get(name) for name in ("stop_reason", "changes", "usage")}
    return {"code": event.data.get("code"), "message": str(event.data.get("message"))[:2000]}


def _touch(tx: Tx, session: str) -> None:
    tx.execute("UPDATE agents_session SET updated = ? WHERE id = ?", (now(), session))


def now() -> str:
    return instant(datetime.now(UTC))


def _title(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "New session")
    return line if len(line) <= 60 else line[:59] + "…"


def _session(row: tuple[Any, ...]) -> SessionRow:
    found = SessionRow(*row)
    return replace(
        found,
        named=bool(found.named),
        archived=bool(found.archived),
        chosen=json.loads(row[13]),
        unread=bool(found.unread),
    )


def _turn(row: tuple[Any, ...]) -> TurnRow:
    turn, key, prompt, state, entry = row
    return TurnRow(turn, key, json.loads(prompt), state, entry)
