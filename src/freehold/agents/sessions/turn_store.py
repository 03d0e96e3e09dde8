"""Turns in SQLite: prompts that are queued, sent or ended, and the images that came with them."""

import base64
import json
from collections.abc import Sequence
from typing import Any

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.event_log import append_events, touch_session
from freehold.agents.sessions.rows import DraftEvent, SessionEventRow, Status, TurnRow
from freehold.errors import FreeholdError
from freehold.timeline import Timeline, Transaction

OWN_KEYS = ("approval:", "channel:", "routine:", "workflow:")
"""How the keys of prompts begin that Freehold sends itself. They say whose turn it is, so no client may choose one."""
MAX_TITLE = 60
FIRST_PICTURE = 1_000
"""The place of the first picture of a tool in a turn. Those before are the images of the prompt."""
MAX_PICTURES = 100
_TURN = "SELECT turn, key, prompt, state, entry FROM agents_turn"


class TurnStore:
    """Every method blocks: call it with `run_blocking` from a coroutine."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def add(
        self,
        session: str,
        key: str,
        prompt: Json,
        *,
        first: bool,
        waits: bool,
        status: Status | None = None,
        who: str,
    ) -> tuple[TurnRow, list[SessionEventRow]]:
        """Queues a prompt. The same key returns the same turn again and adds no event.

        With `first` it is sent before the prompts that are queued already. `waits` says that it cannot be sent now.
        `status` becomes that of the session; without one, it works if nothing waits.
        """
        with self._timeline.transaction() as tx:
            return queue_prompt(tx, session, key, prompt, first=first, waits=waits, status=status, who=who)

    def get(self, session: str, turn: int) -> TurnRow:
        """Raises `turn.not-found`."""
        return self._find("session = ? AND turn = ?", session, turn)

    def find(self, session: str, key: str) -> TurnRow:
        """The turn of the prompt with this key. Raises `turn.not-found`."""
        return self._find("session = ? AND key = ?", session, key)

    def has(self, session: str, key: str) -> bool:
        return bool(self._timeline.query("SELECT 1 FROM agents_turn WHERE session = ? AND key = ?", (session, key)))

    def list_later(self, session: str, turn: int, prefix: str) -> list[tuple[int, str]]:
        """The later turns whose key begins so, each with its key, in their order."""
        return self._timeline.query(
            "SELECT turn, key FROM agents_turn WHERE session = ? AND turn > ? AND substr(key, 1, ?) = ? ORDER BY turn",
            (session, turn, len(prefix), prefix),
        )

    def find_next(self, session: str) -> TurnRow | None:
        """The queued prompt that is sent next."""
        rows = self._timeline.query(
            f"{_TURN} WHERE session = ? AND state = 'queued' ORDER BY place LIMIT 1", (session,)
        )
        return _turn(rows[0]) if rows else None

    def find_running(self, session: str) -> int | None:
        """The turn that was sent to the agent and has not ended."""
        rows = self._timeline.query(
            "SELECT max(turn) FROM agents_turn WHERE session = ? AND state = 'sent'", (session,)
        )
        turn: int | None = rows[0][0]
        return turn

    def begin(self, session: str, turn: TurnRow, entry: int | None, *, who: str) -> list[SessionEventRow]:
        """Marks a turn as sent. This commits before the prompt is sent, so that a crash never sends it twice.

        Raises `turn.dropped.conflict` when it was cancelled in the meantime.
        """
        prompt = turn.prompt
        shown = {
            "text": prompt["text"],
            "files": prompt["files"],
            "images": [{"mime": one["mime"], "size": len(one["data"])} for one in prompt["images"]],
        }
        with self._timeline.transaction() as tx:
            changed = tx.execute(
                "UPDATE agents_turn SET state = 'sent', entry = ?, prompt = ? WHERE session = ? AND turn = ? "
                "AND state = 'queued'",
                (entry, json.dumps({**prompt, "images": []}), session, turn.turn),
            ).rowcount
            if not changed:
                raise FreeholdError("turn.dropped.conflict", "This prompt was cancelled before it was sent")
            for place, one in enumerate(prompt["images"]):
                tx.execute(
                    "INSERT INTO agents_image (session, turn, place, mime, data) VALUES (?, ?, ?, ?, ?)",
                    (session, turn.turn, place, one["mime"], base64.b64decode(one["data"])),
                )
            tx.execute("UPDATE agents_session SET status = 'working' WHERE id = ?", (session,))
            touch_session(tx, session)
            started: DraftEvent = ("turn.started", {"prompt": shown, "key": turn.key})
            return append_events(tx, session, turn.turn, [started], who=who)

    def add_pictures(
        self, session: str, turn: int, words: str, pictures: Sequence[tuple[str, bytes]], *, who: str
    ) -> list[SessionEventRow]:
        """Stores pictures of a tool beside the images of the prompt, and an event that names them.

        Of all such pictures of a session the newest `MAX_PICTURES` are kept.
        """
        with self._timeline.transaction() as tx:
            (last,) = tx.execute(
                "SELECT max(place) FROM agents_image WHERE session = ? AND turn = ?", (session, turn)
            ).fetchone()
            first = FIRST_PICTURE if last is None or last < FIRST_PICTURE else last + 1
            for place, (mime, data) in enumerate(pictures, first):
                tx.execute(
                    "INSERT INTO agents_image (session, turn, place, mime, data) VALUES (?, ?, ?, ?, ?)",
                    (session, turn, place, mime, data),
                )
            tx.execute(
                "DELETE FROM agents_image WHERE session = ? AND place >= ? AND (turn, place) NOT IN (SELECT turn, place "
                "FROM agents_image WHERE session = ? AND place >= ? ORDER BY turn DESC, place DESC LIMIT ?)",
                (session, FIRST_PICTURE, session, FIRST_PICTURE, MAX_PICTURES),
            )
            shown = [{"place": place, "mime": mime} for place, (mime, _) in enumerate(pictures, first)]
            event: DraftEvent = ("pictures", {"text": words, "pictures": shown})
            return append_events(tx, session, turn, [event], who=who)

    def get_image(self, session: str, turn: int, place: int) -> tuple[str, bytes]:
        """The type and the bytes of an image of a prompt or of a tool. Raises `session.image.not-found`."""
        rows = self._timeline.query(
            "SELECT mime, data FROM agents_image WHERE session = ? AND turn = ? AND place = ?", (session, turn, place)
        )
        if not rows:
            raise FreeholdError("session.image.not-found", f"Turn {turn} has no image {place}")
        return str(rows[0][0]), bytes(rows[0][1])

    def list_unfinished(self) -> list[tuple[str, int]]:
        """Turns that were sent and have not ended. At start, these are the turns that a crash interrupted."""
        rows = self._timeline.query("SELECT session, turn FROM agents_turn WHERE state = 'sent'")
        return [(session, turn) for session, turn in rows]

    def list_queued_sessions(self) -> list[str]:
        """Sessions with prompts that wait to be sent, the one that waits for the longest time first."""
        rows = self._timeline.query(
            "SELECT id FROM agents_session WHERE id IN (SELECT session FROM agents_turn WHERE state = 'queued') "
            "ORDER BY updated, id"
        )
        return [row[0] for row in rows]

    def drop_queued(self, session: str, key: str | None = None) -> list[SessionEventRow]:
        """Cancels the prompts that wait to be sent, or only the one with this key. Adds an event for each."""
        with self._timeline.transaction() as tx:
            turns = tx.execute(
                "UPDATE agents_turn SET state = 'ended' WHERE session = ?1 AND state = 'queued' "
                "AND (?2 IS NULL OR key = ?2) RETURNING turn, key",
                (session, key),
            ).fetchall()
            stored: list[SessionEventRow] = []
            for turn, key in turns:
                stored += append_events(tx, session, turn, [("dropped", {"key": key})], who="freehold")
            # Without a turn that was sent or waits nothing runs any more.
            tx.execute(
                "UPDATE agents_session SET status = 'idle' WHERE id = ?1 AND status IN ('working', 'queued') AND NOT EXISTS "
                "(SELECT 1 FROM agents_turn WHERE session = ?1 AND state IN ('sent', 'queued'))",
                (session,),
            )
            return stored

    def _find(self, where: str, *given: object) -> TurnRow:
        rows = self._timeline.query(f"{_TURN} WHERE {where}", given)
        if not rows:
            raise FreeholdError("turn.not-found", "There is no such turn in this session")
        return _turn(rows[0])


def queue_prompt(
    tx: Transaction,
    session: str,
    key: str,
    prompt: Json,
    *,
    first: bool = False,
    waits: bool,
    status: Status | None,
    who: str,
) -> tuple[TurnRow, list[SessionEventRow]]:
    """As `TurnStore.add`, in a transaction that may store more."""
    found = tx.execute(f"{_TURN} WHERE session = ? AND key = ?", (session, key)).fetchone()
    if found is not None:
        return _turn(found), []
    turn, named = tx.execute(
        "UPDATE agents_session SET turns = turns + 1 WHERE id = ? RETURNING turns, named", (session,)
    ).fetchone()
    (lowest,) = tx.execute(
        "SELECT min(place) FROM agents_turn WHERE session = ? AND state = 'queued'", (session,)
    ).fetchone()
    place = (lowest if lowest is not None else turn) - 1 if first else turn
    tx.execute(
        "INSERT INTO agents_turn (session, turn, key, prompt, state, place) VALUES (?, ?, ?, ?, 'queued', ?)",
        (session, turn, key, json.dumps(prompt), place),
    )
    if turn == 1 and not named:
        tx.execute("UPDATE agents_session SET title = ? WHERE id = ?", (_title(prompt), session))
    events: list[DraftEvent] = [("queued", {"text": prompt["text"], "key": key})] if waits else []
    stored = append_events(tx, session, turn, events, who=who)
    if status is not None or not waits:
        tx.execute("UPDATE agents_session SET status = ? WHERE id = ?", (status or "working", session))
    touch_session(tx, session)
    return TurnRow(turn, key, prompt, "queued", None), stored


def _title(prompt: Json) -> str:
    default = "An image" if prompt.get("images") else "New session"
    line = next((line.strip() for line in prompt["text"].splitlines() if line.strip()), default)
    return line if len(line) <= MAX_TITLE else line[: MAX_TITLE - 1] + "…"


def _turn(row: tuple[Any, ...]) -> TurnRow:
    turn, key, prompt, state, entry = row
    return TurnRow(turn, key, json.loads(prompt), state, entry)
