"""Messages that wait to be sent, and those that were, so that a reply to one finds its session. Every method blocks."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from freehold.channels.store import read_words
from freehold.timeline import Timeline, Transaction

MAX_WAITING = 500
"""Messages that wait for one channel. The oldest make place, and are counted."""
MAX_PER_SESSION = 50
"""Of these, from one session: an agent that asks again and again must not push out what others have to tell."""
MAX_AGE = 86_400.0
"""Seconds after which a message that could not be sent is of no use any more."""
MAX_KEPT = 1_000
"""Sent messages of one channel that a reply can name."""
MAX_MERGED = 20
REPLY = "reply"
"""What a message is that answers the owner: it is sent at once and alone."""
_MESSAGE = (
    "SELECT id, channel, key, tell, session, approval, digest, answerable, subject, text, link, reply_to, at, due, state,"
    " part_of, remote, (SELECT head.key FROM channels_message head WHERE head.id = channels_message.part_of)"
    " FROM channels_message"
)


@dataclass(frozen=True)
class DraftMessage:
    """A message before it is stored. `key` makes it unique in its channel.

    `approval` is what it asks: the id of an approval, or what `questions.py` has in its place. `digest` is over its words.
    """

    key: str
    tell: str
    subject: str
    text: str
    link: str
    due: float
    session: str | None = None
    approval: str | None = None
    digest: str | None = None
    answerable: bool = False
    reply_to: str | None = None


@dataclass(frozen=True)
class StoredMessage:
    """`part_of` is the first message of those that are sent together with it."""

    id: int
    channel: str
    key: str
    tell: str
    session: str | None
    approval: str | None
    digest: str | None
    answerable: bool
    subject: str
    text: str
    link: str
    reply_to: str | None
    at: float
    due: float
    state: str
    part_of: int | None
    remote: str | None
    head: str | None
    """The key of that first message."""

    @property
    def sending_key(self) -> str:
        """By which the channel recognises a repetition. It stays when the first message is not sent any more."""
        return f"{self.id}-{self.key}" if self.part_of is None else f"{self.part_of}-{self.head or self.key}"

    @property
    def can_merge(self) -> bool:
        return self.tell not in ("needs_you", REPLY) and self.reply_to is None


class Outbox:
    def __init__(self, timeline: Timeline, clock: Callable[[], float] = time.time) -> None:
        self._timeline = timeline
        self._clock = clock

    def add(self, channel: str, draft: DraftMessage) -> int | None:
        """As `add_message`, in a transaction of its own."""
        with self._timeline.transaction() as tx:
            return add_message(tx, channel, draft, self._clock())

    def take(
        self, channel: str, is_stale: Callable[[StoredMessage], bool], quiet_until: float = 0.0
    ) -> tuple[list[StoredMessage], float | None]:
        """The messages that are sent next, as one, and otherwise when the next one is due.

        What was taken and not finished is taken again first, in the same group and with the same key, without what is of
        no use any more. Until `quiet_until` only answers to the owner are taken: the others may have waited for a server
        or a restart.
        """
        now = self._clock()
        held = f" AND (tell = '{REPLY}' OR reply_to IS NOT NULL)" if quiet_until > now else ""
        begun = self._find(f"channel = ? AND state = 'sending'{held} ORDER BY id", (channel,))
        if begun:
            first = begun[0].part_of or begun[0].id
            group = [one for one in begun if (one.part_of or one.id) == first]
            kept = [one for one in group if not self.is_over(one, is_stale)]
            self._skip([one for one in group if one not in kept])
            return kept, now
        due = self._find(f"channel = ? AND state = 'waiting' AND due <= ?{held} ORDER BY id LIMIT 200", (channel, now))
        stale = [one for one in due if self.is_over(one, is_stale)]
        fresh = [one for one in due if one not in stale]
        group = fresh[:1]
        if group and group[0].can_merge:
            group = [one for one in fresh if one.can_merge][:MAX_MERGED]
        self._skip(stale)
        with self._timeline.transaction() as tx:
            for one in group:
                tx.execute(
                    "UPDATE channels_message SET state = 'sending', part_of = ? WHERE id = ?",
                    (group[0].id if one is not group[0] else None, one.id),
                )
        if group or stale:
            return group, now
        sql = f"SELECT min(due) FROM channels_message WHERE channel = ? AND state = 'waiting'{held}"  # noqa: S608
        ((following,),) = self._timeline.query(sql, (channel,))
        if not held:
            return [], following
        return [], quiet_until if following is None else min(following, quiet_until)

    def is_over(self, message: StoredMessage, is_stale: Callable[[StoredMessage], bool]) -> bool:
        """Whether it is of no use to send it any more."""
        return self._clock() - message.due > MAX_AGE or is_stale(message)

    def _skip(self, messages: list[StoredMessage]) -> None:
        with self._timeline.transaction() as tx:
            for one in messages:
                tx.execute("UPDATE channels_message SET state = 'skipped', text = '' WHERE id = ?", (one.id,))

    def finish(self, group: list[StoredMessage], remote: str | None) -> None:
        """They were sent. What is needed to find the session of a reply stays for a while; the words go."""
        with self._timeline.transaction() as tx:
            tx.execute(
                "UPDATE channels_channel SET refusal = NULL WHERE name = ? AND refusal IS NOT NULL", (group[0].channel,)
            )
            for one in group:
                tx.execute(
                    "UPDATE channels_message SET state = 'sent', remote = ?, text = '' WHERE id = ?", (remote, one.id)
                )
            tx.execute(
                "DELETE FROM channels_message WHERE channel = ?1 AND state NOT IN ('waiting', 'sending') AND id <="
                " (SELECT id FROM channels_message WHERE channel = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
                (group[0].channel, MAX_KEPT),
            )

    def refuse(self, group: list[StoredMessage], error: str) -> None:
        """The server does not take them: they are not tried again. The owner finds it in the timeline, and in the health
        until it takes one."""
        with self._timeline.transaction() as tx:
            for one in group:
                tx.execute(
                    "UPDATE channels_message SET state = 'refused', error = ?, text = '' WHERE id = ?",
                    (error[:300], one.id),
                )
            channel = group[0].channel
            tx.execute("UPDATE channels_channel SET refusal = ? WHERE name = ?", (read_words(error), channel))
            tx.append("channels.message_refused", {"channel": channel, "count": len(group), "reason": error[:300]})

    def find_state(self, channel: str, key: str) -> tuple[str, str | None] | None:
        """The state of one message, and why it was refused."""
        rows = self._timeline.query(
            "SELECT state, error FROM channels_message WHERE channel = ? AND key = ?", (channel, key)
        )
        return (rows[0][0], rows[0][1]) if rows else None

    def find_sent(self, channel: str, remote: str) -> list[StoredMessage]:
        """The messages that were sent as this one. Empty when it is none of ours."""
        return self._find("channel = ? AND remote = ? AND state = 'sent' ORDER BY id", (channel, remote))

    def find_number(self, channel: str, number: int) -> StoredMessage | None:
        found = self._find("channel = ? AND id = ? AND state = 'sent'", (channel, number))
        return found[0] if found else None

    def count_waiting(self, channel: str) -> int:
        ((count,),) = self._timeline.query(
            "SELECT count(*) FROM channels_message WHERE channel = ? AND state IN ('waiting', 'sending')", (channel,)
        )
        return int(count)

    def _find(self, where: str, given: tuple[Any, ...]) -> list[StoredMessage]:
        rows = self._timeline.query(f"{_MESSAGE} WHERE {where}", given)
        return [replace(StoredMessage(*row), answerable=bool(row[7])) for row in rows]


def add_message(tx: Transaction, channel: str, draft: DraftMessage, now: float) -> int | None:
    """The number of the new message; None when there is one with this key."""
    made = tx.execute(
        "INSERT INTO channels_message (channel, key, tell, session, approval, digest, answerable, subject, text, link,"
        " reply_to, at, due) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (channel, key) DO NOTHING",
        (
            channel,
            draft.key,
            draft.tell,
            draft.session,
            draft.approval,
            draft.digest,
            int(draft.answerable),
            draft.subject,
            draft.text,
            draft.link,
            draft.reply_to,
            now,
            draft.due,
        ),
    )
    if not made.rowcount:
        return None
    dropped = _drop_oldest(tx, channel, MAX_WAITING)
    if draft.session is not None and draft.tell != REPLY:
        dropped += _drop_oldest(tx, channel, MAX_PER_SESSION, draft.session)
    if dropped:
        tx.execute("UPDATE channels_channel SET dropped = dropped + ? WHERE name = ?", (dropped, channel))
    return made.lastrowid


def _drop_oldest(tx: Transaction, channel: str, kept: int, session: str | None = None) -> int:
    """Of those that wait, or only those of one session. Returns how many there were."""
    found = tx.execute(
        "DELETE FROM channels_message WHERE id IN (SELECT id FROM channels_message WHERE channel = ?1 AND state = 'waiting'"
        " AND (?3 IS NULL OR (session = ?3 AND tell <> ?4)) ORDER BY id DESC LIMIT -1 OFFSET ?2)",
        (channel, kept, session, REPLY),
    )
    return found.rowcount


def set_text(tx: Transaction, number: int, text: str, *, answerable: bool) -> None:
    """For a text that names its own number."""
    tx.execute("UPDATE channels_message SET text = ?, answerable = ? WHERE id = ?", (text, int(answerable), number))
