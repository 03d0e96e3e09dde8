"""Messages of the owner, stored before anything is done with them: each is carried out once. Every method blocks."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from freehold.channels.contract import IncomingAttachment, IncomingMessage
from freehold.timeline import Json, Timeline

MAX_WAITING = 100
"""Messages of one channel that wait to be carried out. More are not taken."""
MAX_MESSAGE_AGE = 3600.0
"""Seconds. An older message is not carried out: it may have waited for a Freehold that was off, or was restored."""
MAX_KEPT = 2_000
"""Ids of one channel by which a repetition is recognised."""


@dataclass(frozen=True)
class ReceivedMessage:
    """`begun`: it was begun before and the process ended. `session` got it, or was opened for it."""

    message: IncomingMessage
    begun: bool
    session: str | None


class ReceivedMessages:
    def __init__(self, timeline: Timeline, clock: Callable[[], float] = time.time) -> None:
        self._timeline = timeline
        self._clock = clock

    def store(self, channel: str, messages: Sequence[IncomingMessage], cursor: str, strangers: int) -> int:
        """Stores what is new, with the position behind it. Returns how many there was no place for."""
        now, refused = self._clock(), 0
        with self._timeline.transaction() as tx:
            ((waiting,),) = tx.execute(
                "SELECT count(*) FROM channels_received WHERE channel = ? AND state <> 'done'", (channel,)
            ).fetchall()
            ((last,),) = tx.execute(
                "SELECT coalesce(max(number), 0) FROM channels_received WHERE channel = ?", (channel,)
            ).fetchall()
            for message in messages:
                state, words = "new", json.dumps(asdict(message))
                if waiting >= MAX_WAITING:
                    state, words = "done", ""
                made = tx.execute(
                    "INSERT INTO channels_received (channel, remote, number, at, state, message)"
                    " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    (channel, message.id, last + 1, now, state, words),
                ).rowcount
                if made:
                    last += 1
                    taken = state == "new" and now - message.at <= MAX_MESSAGE_AGE
                    seen: dict[str, Json] = {"channel": channel, "message": message.id, "taken": taken}
                    seen["text"] = message.text[:2000]
                    seen["reply"] = message.reply_to is not None
                    tx.append("channels.message_received", seen, who=f"channel:{channel}")
                    waiting += state == "new"
                    refused += state == "done"
            tx.execute(
                "DELETE FROM channels_received WHERE channel = ? AND state = 'done' AND number <= ?",
                (channel, last - MAX_KEPT),
            )
            tx.execute(
                "UPDATE channels_channel SET cursor = ?, strangers = strangers + ? WHERE name = ?",
                (cursor, strangers, channel),
            )
        return refused

    def note_code(self, channel: str, remote: str) -> None:
        """The message that paired the channel. Where messages come again it must not be carried out as one."""
        with self._timeline.transaction() as tx:
            tx.execute(
                "INSERT INTO channels_received (channel, remote, number, at, state, message)"
                " SELECT ?, ?, coalesce(max(number), 0) + 1, ?, 'done', '' FROM channels_received WHERE channel = ?"
                " ON CONFLICT DO NOTHING",
                (channel, remote, self._clock(), channel),
            )

    def is_known(self, channel: str, remote: str) -> bool:
        return bool(
            self._timeline.query("SELECT 1 FROM channels_received WHERE channel = ? AND remote = ?", (channel, remote))
        )

    def begin_next(self, channel: str) -> ReceivedMessage | None:
        """The oldest that is not done. It counts as begun from now on."""
        with self._timeline.transaction() as tx:
            row = tx.execute(
                "SELECT remote, state, message, session FROM channels_received WHERE channel = ? AND state <> 'done'"
                " ORDER BY number LIMIT 1",
                (channel,),
            ).fetchone()
            if row is None:
                return None
            remote, state, message, session = row
            tx.execute(
                "UPDATE channels_received SET state = 'begun' WHERE channel = ? AND remote = ?", (channel, remote)
            )
        return ReceivedMessage(_read(json.loads(message)), state == "begun", session)

    def set_session(self, channel: str, remote: str, session: str) -> None:
        """Before the prompt is sent: after a crash it goes to the same session, with the same key."""
        with self._timeline.transaction() as tx:
            tx.execute(
                "UPDATE channels_received SET session = ? WHERE channel = ? AND remote = ?", (session, channel, remote)
            )

    def finish(self, channel: str, remote: str) -> None:
        with self._timeline.transaction() as tx:
            tx.execute(
                "UPDATE channels_received SET state = 'done', message = '' WHERE channel = ? AND remote = ?",
                (channel, remote),
            )


def _read(data: dict[str, Any]) -> IncomingMessage:
    return IncomingMessage(**{**data, "attachments": tuple(IncomingAttachment(**one) for one in data["attachments"])})
