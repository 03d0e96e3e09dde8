"""Appends session events inside a transaction of the caller, and adds the important ones to the timeline."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.rows import DraftEvent, SessionEventRow
from freehold.agents.sessions.search_index import index_events
from freehold.errors import FreeholdError
from freehold.timeline import Transaction
from freehold.timeline.timeline import format_instant

_TIMELINE_KINDS = {"turn.started", "turn.ended", "error"}
_UNREAD_KINDS = {"message", "turn.ended", "error"}
"""Events that make a session unread. A pending approval does so too."""


def append_events(
    tx: Transaction, session: str, turn: int | None, events: Sequence[DraftEvent], *, who: str
) -> list[SessionEventRow]:
    """Numbers and stores events. Raises `session.not-found` when the session was deleted."""
    if not events:
        return []
    row = tx.execute(
        "UPDATE agents_session SET seq = seq + ? WHERE id = ? RETURNING seq", (len(events), session)
    ).fetchone()
    if row is None:
        raise FreeholdError("session.not-found", "The session was deleted")
    first, at = row[0] - len(events) + 1, current_instant()
    stored = [SessionEventRow(first + number, at, turn, kind, data) for number, (kind, data) in enumerate(events)]
    unread = [event.seq for event in stored if event.kind in _UNREAD_KINDS or event.data.get("state") == "pending"]
    if unread:
        tx.execute("UPDATE agents_session SET news = ? WHERE id = ?", (unread[-1], session))
    for event in stored:
        tx.execute(
            "INSERT INTO agents_event (session, seq, at, turn, kind, data) VALUES (?, ?, ?, ?, ?, ?)",
            (session, event.seq, event.at, event.turn, event.kind, json.dumps(event.data)),
        )
        if event.kind in _TIMELINE_KINDS:
            kind = event.kind if event.kind.startswith("turn.") else f"session.{event.kind}"
            tx.append(kind, {"session": session, "turn": turn, **_timeline_data(event)}, who=who)
        elif event.kind == "tool" and event.data["status"] in ("completed", "failed"):
            shown = {name: str(event.data[name])[:500] for name in ("title", "kind", "status")}
            tx.append("tool.ended", {"session": session, "turn": turn, **shown}, who=who)
    index_events(tx, session, stored)
    return stored


def touch_session(tx: Transaction, session: str) -> None:
    tx.execute("UPDATE agents_session SET updated = ? WHERE id = ?", (current_instant(), session))


def current_instant() -> str:
    return format_instant(datetime.now(UTC))


def _timeline_data(event: SessionEventRow) -> Json:
    """The timeline gets a short form. The full text stays in the session and is deleted with it."""
    if event.kind == "turn.started":
        return {"text": str(event.data["prompt"]["text"])[:2000]}
    if event.kind == "turn.ended":
        return {name: event.data.get(name) for name in ("stop_reason", "changes", "usage")}
    return {"code": event.data.get("code"), "message": str(event.data.get("message"))[:2000]}
