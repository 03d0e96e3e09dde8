"""One-time codes that pair a channel with the owner. Every method blocks."""

import hmac
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256

from freehold.channels.contract import OwnerAddress
from freehold.channels.store import ChannelRow, set_owner
from freehold.errors import FreeholdError
from freehold.timeline import Timeline

LIFETIME = 600.0
"""Seconds for which a code can be used."""
MAX_TRIES = 30
"""Wrong codes of everybody together, after which the code is void."""
MAX_TRIES_EACH = 3
"""Wrong codes of one sender. Without this, one stranger could make every code void."""
MAX_SENDERS = 10_000
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_LENGTH = 10
_SPOKEN = re.compile(r"(?:/(?:pair|start)\s+)?([A-Za-z0-9]{5})[- ]?([A-Za-z0-9]{5})", re.ASCII)


class Pairing:
    """At most one code a channel. Only a hash of it is stored."""

    def __init__(self, timeline: Timeline, clock: Callable[[], float] = time.time) -> None:
        self._timeline = timeline
        self._clock = clock
        self._wrong: OrderedDict[tuple[str, str], int] = OrderedDict()

    def begin(self, channel: str, code: str, expected: OwnerAddress | None) -> float:
        """A code replaces the one before. Returns when it expires."""
        expires = self._clock() + LIFETIME
        with self._timeline.transaction() as tx:
            tx.execute(
                "INSERT OR REPLACE INTO channels_code (channel, digest, expires, tries, sender, chat)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (
                    channel,
                    _digest(channel, code),
                    expires,
                    MAX_TRIES,
                    None if expected is None else expected.sender,
                    None if expected is None else expected.chat,
                ),
            )
        self._wrong = OrderedDict((key, count) for key, count in self._wrong.items() if key[0] != channel)
        return expires

    def is_open(self, channel: str) -> bool:
        return bool(
            self._timeline.query(
                "SELECT 1 FROM channels_code WHERE channel = ? AND expires > ? AND tries > 0", (channel, self._clock())
            )
        )

    def try_code(self, row: ChannelRow, text: str, sender: OwnerAddress, *, who: str) -> bool:
        """Whether the text is the code. Then the channel is paired with the sender. A wrong one is counted."""
        spoken = _SPOKEN.fullmatch(text.strip()[:40])
        key = (row.name, sender.sender)
        if spoken is None or self._wrong.get(key, 0) >= MAX_TRIES_EACH:
            return False
        given = _digest(row.name, spoken[1] + spoken[2])
        now = self._clock()
        with self._timeline.transaction() as tx:
            found = tx.execute(
                "SELECT digest, sender, chat FROM channels_code WHERE channel = ? AND expires > ? AND tries > 0",
                (row.name, now),
            ).fetchone()
            if found is None:
                return False
            digest, wanted, chat = found
            is_wanted = wanted is None or OwnerAddress(wanted, chat) == sender
            if hmac.compare_digest(digest, given) and is_wanted:
                set_owner(tx, row.name, sender, now, who=who)
                return True
            tx.execute("UPDATE channels_code SET tries = tries - 1 WHERE channel = ?", (row.name,))
        self._count_wrong(key)
        return False

    def confirm(self, row: ChannelRow, text: str, *, who: str) -> OwnerAddress:
        """The code was sent through the channel, and the owner types it here. Raises `channels.wrong-answer`."""
        rows = self._timeline.query("SELECT sender, chat FROM channels_code WHERE channel = ?", (row.name,))
        expected = OwnerAddress(*rows[0]) if rows and rows[0][0] is not None else None
        if expected is None or not self.try_code(row, text, expected, who=who):
            raise FreeholdError(
                "channels.wrong-answer", "This is not the code, or it has expired", hint="Ask for another code"
            )
        return expected

    def _count_wrong(self, key: tuple[str, str]) -> None:
        if len(self._wrong) >= MAX_SENDERS:
            self._wrong.popitem(last=False)
        self._wrong[key] = self._wrong.get(key, 0) + 1


def make_code() -> str:
    """50 bits, without letters that look alike."""
    letters = "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
    return f"{letters[:5]}-{letters[5:]}"


def _digest(channel: str, code: str) -> bytes:
    return sha256(f"{channel}\n{code.replace('-', '').upper()}".encode()).digest()
