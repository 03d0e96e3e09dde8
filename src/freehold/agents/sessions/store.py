"""Sessions and their events in SQLite. They are in the timeline's file: state and timeline event commit together."""

import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.event_log import append_events, current_instant, touch_session
from freehold.agents.sessions.reach import read_approval_event
from freehold.agents.sessions.rows import DraftEvent, SessionEventRow, SessionRow, Status
from freehold.agents.sessions.schema import SCHEMA
from freehold.agents.sessions.search_index import (
    fill_slice,
    index_later,
    make_condition,
    make_like_pattern,
    remove_index_slice,
    remove_indexed_events,
)
from freehold.agents.sessions.stored_request import read_shown
from freehold.agents.sessions.turn_store import TurnStore
from freehold.agents.sessions.unfinished_store import UnfinishedStore, remove_unfinished
from freehold.errors import FreeholdError
from freehold.timeline import Timeline

SEARCH_TIMEOUT = 5.0
"""Seconds."""
MAX_PAGE = 8 * 1024 * 1024
"""Characters of the events that are shown at once. The last event may exceed it."""
PAGE_ROWS = 20

_SESSION = (
    "SELECT id, title, named, agent, model, status, created, updated, archived, cost, acp, seq, turns, chosen, parent, "
    "news > seen, mode, asks, folder FROM agents_session"
)
_USED = "(turns > 0 OR named = 1)"
"""It has had a prompt, or the owner has given it a name."""


@dataclass(frozen=True)
class TranscriptPage:
    """`is_cut`: there may be more events than these, and fewer than asked for were read."""

    events: list[SessionEventRow]
    is_cut: bool


class SessionStore:
    """Every method blocks: call it with `run_blocking` from a coroutine. `turns` has the turns of all sessions.

    `unfinished` has what their agents are writing.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.turns = TurnStore(timeline)
        self.unfinished = UnfinishedStore(timeline)
        self._of_runs: set[str] = set()

    def prepare(self) -> None:
        """Creates or migrates the tables. Call it before anything else. Idempotent."""
        self.timeline.ensure_schema("agents", *SCHEMA)
        self._of_runs = {row[0] for row in self.timeline.query("SELECT id FROM agents_session WHERE of_run = 1")}

    def is_of_run(self, session: str) -> bool:
        """Whether it belongs to a run: its agent works in the computer of the run, or not at all. Does not block."""
        return session in self._of_runs

    def create(
        self,
        agent: str,
        title: str | None,
        model: str | None,
        *,
        who: str,
        parent: str | None = None,
        id: str | None = None,
        of_run: bool = False,
        folder: str = "",
    ) -> SessionRow:
        """With an `id` that the caller has stored before, a caller that crashed in between finds the session again."""
        session = id or secrets.token_hex(8)
        if of_run:
            self._of_runs.add(session)
        with self.timeline.transaction() as tx:
            at = current_instant()
            tx.execute(
                "INSERT INTO agents_session (id, title, named, agent, model, status, created, updated, parent, of_run,"
                " folder, number) VALUES (?, ?, ?, ?, ?, 'idle', ?, ?, ?, ?, ?,"
                " (SELECT coalesce(max(number), 0) + 1 FROM agents_session))",
                (session, title or "New session", title is not None, agent, model, at, at, parent, of_run, folder),
            )
            tx.append("session.opened", {"session": session, "agent": agent}, who=who)
        return self.get(session)

    def get(self, session: str) -> SessionRow:
        """Raises `session.not-found`."""
        rows = self.timeline.query(f"{_SESSION} WHERE id = ?", (session,))
        if not rows:
            raise FreeholdError(
                "session.not-found", f"There is no session {session!a:.80}", hint="freehold chat --list shows them"
            )
        return _session(rows[0])

    def has(self, session: str) -> bool:
        return bool(self.timeline.query("SELECT 1 FROM agents_session WHERE id = ?", (session,)))

    def find_last_seq(self, session: str) -> int | None:
        """The number of its last event; None when there is no such session."""
        rows = self.timeline.query("SELECT seq FROM agents_session WHERE id = ?", (session,))
        return int(rows[0][0]) if rows else None

    def search(
        self, *, query: str = "", archived: bool = False, unused: bool = True, cursor: str = "", limit: int = 50
    ) -> list[SessionRow]:
        """The last changed first. `cursor` is `updated id`. `unused` ones have neither a prompt nor a name.

        With `query`: sessions whose title contains it, or with one prompt or message that has all of its words.

        Raises `session.search.too-slow`: agents write most of what is searched, and can make it slow.
        """
        where, given = ["archived = ?"], [archived]  # type: tuple[list[str], list[Any]]
        if not unused:
            where.append(_USED)
        if query:
            condition, words = make_condition(query)
            where.append(f"(title LIKE ? ESCAPE '\\' OR {condition})")
            given += [make_like_pattern(query), *words]
        if cursor:
            updated, _, session = cursor.partition(" ")
            where.append("(updated, id) < (?, ?)")
            given += [updated, session]
        sql = f"{_SESSION} WHERE {' AND '.join(where)} ORDER BY updated DESC, id DESC LIMIT ?"
        if not query:
            return [_session(row) for row in self.timeline.query(sql, (*given, limit))]
        try:
            return [_session(row) for row in self.timeline.query_within(SEARCH_TIMEOUT, sql, (*given, limit))]
        except TimeoutError as error:
            raise FreeholdError(
                "session.search.too-slow",
                f"The search took more than {SEARCH_TIMEOUT:g} s",
                hint="Search for fewer or rarer words",
            ) from error

    def list_of_agent(self, agent: str, *, limit: int) -> list[str]:
        """The sessions of an agent, the last changed first."""
        rows = self.timeline.query(
            "SELECT id FROM agents_session WHERE agent = ? ORDER BY updated DESC LIMIT ?", (agent, limit)
        )
        return [row[0] for row in rows]

    def update(self, session: str, *, title: str | None, archived: bool | None, who: str) -> SessionRow:
        with self.timeline.transaction() as tx:
            if title is not None:
                tx.execute("UPDATE agents_session SET title = ?, named = 1 WHERE id = ?", (title, session))
                tx.append("session.renamed", {"session": session, "title": title}, who=who)
            if archived is not None:
                tx.execute("UPDATE agents_session SET archived = ? WHERE id = ?", (archived, session))
                tx.append("session.archived" if archived else "session.restored", {"session": session}, who=who)
            touch_session(tx, session)
        return self.get(session)

    def save_choice(self, session: str, agent: str, model: str | None, *, who: str) -> SessionRow:
        """Another agent or model. An option of the agent that chose its model no longer holds."""
        row = self.get(session)
        kept = {name: value for name, value in row.chosen.items() if name != "model"}
        with self.timeline.transaction() as tx:
            tx.execute(
                "UPDATE agents_session SET agent = ?, model = ?, chosen = ? WHERE id = ?",
                (agent, model, json.dumps(kept), session),
            )
            tx.append("session.model_chosen", {"session": session, "agent": agent, "model": model}, who=who)
            touch_session(tx, session)
        return self.get(session)

    def mark_seen(self, session: str, seq: int) -> bool:
        """The owner has read up to this event. Idempotent; never goes back. Returns whether `unread` changed."""
        before = self.get(session).unread
        with self.timeline.transaction() as tx:
            tx.execute("UPDATE agents_session SET seen = max(seen, min(seq, ?)) WHERE id = ?", (seq, session))
        return self.get(session).unread != before

    def refuse_used(self, session: str) -> None:
        """Raises `session.conflict` when it has a prompt or a name."""
        if self.timeline.query(f"SELECT 1 FROM agents_session WHERE id = ? AND {_USED}", (session,)):  # noqa: S608 - our own words
            raise FreeholdError(
                "session.conflict", "This session was used", hint="To delete it: DELETE /v1/sessions/ID"
            )

    def delete(self, session: str, *, unused: bool = False, who: str) -> None:
        """Deletes the session and its events. The timeline keeps the fact that the session existed.

        With `unused` it raises `session.conflict` for a session that has a prompt or a name.
        """
        self.get(session)
        if not unused:
            while remove_index_slice(self.timeline, session):
                pass
        with self.timeline.transaction() as tx:
            if unused:
                self.refuse_used(session)
            remove_indexed_events(tx, session)
            for table in ("event", "turn", "approval", "rule", "image", "unfinished"):
                tx.execute(f"DELETE FROM agents_{table} WHERE session = ?", (session,))  # noqa: S608 - our own words
            tx.execute("DELETE FROM agents_session WHERE id = ?", (session,))
            tx.append("session.deleted", {"session": session}, who=who)

    def save_agent_state(self, session: str, *, acp: str | None = None, chosen: Json | None = None) -> None:
        """What a later process needs to continue: the agent's own id of the session, and the chosen options."""
        with self.timeline.transaction() as tx:
            if acp is not None:
                tx.execute("UPDATE agents_session SET acp = ? WHERE id = ?", (acp, session))
            if chosen is not None:
                tx.execute("UPDATE agents_session SET chosen = ? WHERE id = ?", (json.dumps(chosen), session))

    def save_mode(self, session: str, mode: str | None, *, asks: bool) -> bool:
        """The mode in which the agent is now, and whether it is known to ask in it. Returns whether that is new."""
        row = self.get(session)
        if (row.mode, row.asks) == (mode, asks):
            return False
        with self.timeline.transaction() as tx:
            tx.execute("UPDATE agents_session SET mode = ?, asks = ? WHERE id = ?", (mode, asks, session))
            tx.append("agent.mode", {"session": session, "agent": row.agent, "mode": mode, "asks": asks})
        return True

    def find_last_mode(self, agent: str) -> tuple[str | None, bool] | None:
        """The mode of the agent in its last session, and whether it asked in it. None before its first session."""
        rows = self.timeline.query(
            "SELECT mode, asks FROM agents_session WHERE agent = ? AND asks IS NOT NULL ORDER BY updated DESC LIMIT 1",
            (agent,),
        )
        return (rows[0][0], bool(rows[0][1])) if rows else None

    def append(
        self,
        session: str,
        turn: int | None,
        events: Sequence[DraftEvent],
        *,
        status: Status | None = None,
        cost: float | None = None,
        ended: bool = False,
        complete: int = 0,
        who: str = "freehold",
    ) -> list[SessionEventRow]:
        """Numbers and stores events. With `ended` the turn has ended.

        `complete`: the messages of the agent up to this number are among the events of the session now.
        """
        with self.timeline.transaction() as tx:
            stored = append_events(tx, session, turn, events, who=who)
            if status is not None:
                tx.execute("UPDATE agents_session SET status = ? WHERE id = ?", (status, session))
            if cost is not None:
                tx.execute("UPDATE agents_session SET cost = coalesce(cost, 0) + ? WHERE id = ?", (cost, session))
            if ended:
                tx.execute("UPDATE agents_turn SET state = 'ended' WHERE session = ? AND turn = ?", (session, turn))
                remove_unfinished(tx, session)
            elif complete:
                remove_unfinished(tx, session, complete)
            for kind, data in events:
                if kind == "info":
                    tx.execute(
                        "UPDATE agents_session SET title = ? WHERE id = ? AND named = 0", (data["title"], session)
                    )
            touch_session(tx, session)
        return stored

    def replace_title(self, session: str, before: str, title: str) -> bool:
        """Another title that nobody chose. False when the session has another one than `before` by now."""
        with self.timeline.transaction() as tx:
            changed = tx.execute(
                "UPDATE agents_session SET title = ? WHERE id = ? AND named = 0 AND title = ?", (title, session, before)
            ).rowcount
        return changed > 0

    def tool_calls(self, session: str, turn: int) -> list[tuple[str, str]]:
        """The kind and the title of each tool call that has begun in a turn."""
        sql = (
            "SELECT DISTINCT json_extract(data, '$.kind'), json_extract(data, '$.title') FROM agents_event"
            " WHERE session = ? AND turn = ? AND kind = 'tool'"
        )
        return [(str(kind), str(title)) for kind, title in self.timeline.query(sql, (session, turn))]

    def has_fetched(self, session: str) -> bool:
        """Whether its agent has told of a call that reads a web page."""
        sql = (
            "SELECT 1 FROM agents_event WHERE session = ? AND kind = 'tool' AND json_extract(data, '$.kind') = 'fetch'"
            " LIMIT 1"
        )
        return bool(self.timeline.query(sql, (session,)))

    def events(
        self, session: str, *, after: int = 0, before: int | None = None, limit: int = 500, last: bool = False
    ) -> list[SessionEventRow]:
        """The oldest first. With `last` the newest `limit` events."""
        sql = "SELECT seq, at, turn, kind, data FROM agents_event WHERE session = ? AND seq > ? AND seq < ?"
        until = before if before is not None else 2**62
        order = "DESC" if last else "ASC"
        rows = self.timeline.query(f"{sql} ORDER BY seq {order} LIMIT ?", (session, after, until, limit))
        found = [_event(row) for row in rows]
        return found[::-1] if last else found

    def read_page(
        self, session: str, *, after: int = 0, before: int | None = None, limit: int, last: bool = False
    ) -> TranscriptPage:
        """As `events`, but no more than `MAX_PAGE` characters of them: an agent can make each event large."""
        found: list[SessionEventRow] = []
        until, left = before, MAX_PAGE
        while left > 0 and len(found) < limit:
            count = min(PAGE_ROWS, limit - len(found))
            some = self.events(session, after=after, before=until, limit=count, last=last)
            left -= sum(len(json.dumps(event.data)) for event in some)
            found = [*some, *found] if last else [*found, *some]
            if len(some) < count:
                return TranscriptPage(found, is_cut=False)
            after, until = (after, some[0].seq) if last else (some[-1].seq, until)
        return TranscriptPage(found, is_cut=len(found) < limit)

    def iterate_events(self, session: str, until: int) -> Iterator[SessionEventRow]:
        """All events up to this one, a few at a time."""
        after = 0
        while some := self.events(session, after=after, before=until + 1, limit=PAGE_ROWS):
            yield from some
            after = some[-1].seq

    def find_last_event(self, session: str, kind: str, turn: int | None = None) -> SessionEventRow | None:
        """The newest event of one kind, of one turn if it is given."""
        where, given = ("", ()) if turn is None else (" AND turn = ?", (turn,))
        rows = self.timeline.query(
            f"SELECT seq, at, turn, kind, data FROM agents_event WHERE session = ? AND kind = ?{where} "  # noqa: S608 - our own words
            "ORDER BY seq DESC LIMIT 1",
            (session, kind, *given),
        )
        return _event(rows[0]) if rows else None

    def count_events_from(self, session: str, turn: int) -> int:
        """How many events `rewind` to before this turn would remove."""
        rows = self.timeline.query("SELECT count(*) FROM agents_event WHERE session = ? AND turn >= ?", (session, turn))
        return int(rows[0][0])

    def rewind(self, session: str, turn: int, *, who: str) -> list[SessionEventRow]:
        """Removes this turn and all later ones. The agent gets the remaining transcript when it starts again."""
        with self.timeline.transaction() as tx:
            remove_indexed_events(tx, session, from_turn=turn)
            for table in ("event", "image", "unfinished"):
                tx.execute(f"DELETE FROM agents_{table} WHERE session = ? AND turn >= ?", (session, turn))  # noqa: S608 - our own words
            tx.execute("UPDATE agents_turn SET state = 'ended' WHERE session = ? AND turn >= ?", (session, turn))
            tx.execute("UPDATE agents_session SET acp = NULL WHERE id = ?", (session,))
            tx.append("session.rewound", {"session": session, "turn": turn}, who=who)
            touch_session(tx, session)
            return append_events(tx, session, None, [("rewound", {"turn": turn})], who=who)

    def copy_events(self, source: str, target: str) -> None:
        """Everything except approvals: they belong to the session that asked."""
        with self.timeline.transaction() as tx:
            tx.execute(
                "INSERT INTO agents_event SELECT ?, seq, at, turn, kind, data FROM agents_event "
                "WHERE session = ? AND kind != 'approval'",
                (target, source),
            )
            index_later(tx, target)
            tx.execute(
                "INSERT INTO agents_image SELECT ?, turn, place, mime, data FROM agents_image WHERE session = ?",
                (target, source),
            )
            tx.execute(
                "UPDATE agents_session SET (seq, turns, news, seen) = "
                "(SELECT seq, turns, news, seen FROM agents_session WHERE id = ?) WHERE id = ?",
                (source, target),
            )
        while fill_slice(self.timeline):
            pass


def _session(row: tuple[Any, ...]) -> SessionRow:
    found = SessionRow(*row)
    return replace(
        found,
        named=bool(found.named),
        archived=bool(found.archived),
        chosen=json.loads(row[13]),
        unread=bool(found.unread),
        asks=None if found.asks is None else bool(found.asks),
    )


def _event(row: tuple[Any, ...]) -> SessionEventRow:
    seq, at, turn, kind, stored = row
    # NaN and Infinity are no JSON. Freehold 0.1.0 stored them when an agent sent them: they are read as text.
    data = json.loads(stored, parse_constant=str)
    return SessionEventRow(seq, at, turn, kind, read_shown(read_approval_event(data)) if kind == "approval" else data)
