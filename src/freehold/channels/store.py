"""The channels that the owner has added. Every method blocks."""

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from freehold.agents.visible_text import make_visible
from freehold.channels.contract import ChannelKind, OwnerAddress
from freehold.channels.quiet_hours import ChannelPreferences, read_preferences
from freehold.channels.schema import STEPS
from freehold.errors import FreeholdError
from freehold.timeline import Timeline, Transaction

ChannelState = Literal["ok", "away"]
MAX_CHANNELS = 20
MAX_ERROR = 300
NAME = re.compile(r"[a-z][a-z0-9-]{0,31}", re.ASCII)
_CHANNEL = (
    "SELECT name, kind, settings, preferences, sender, chat, added, paired, cursor, state, since, error, strangers,"
    " dropped, refusal FROM channels_channel"
)


@dataclass(frozen=True)
class ChannelRow:
    """One channel. `owner` is None until it is paired. `strangers` counts messages of anybody else.

    `refusal` is why its server did not take a message, when it has taken none since.
    """

    name: str
    kind: ChannelKind
    settings: Mapping[str, Any]
    preferences: ChannelPreferences
    owner: OwnerAddress | None
    added: float
    paired: float | None
    cursor: str | None
    state: ChannelState
    since: float
    error: str | None
    strangers: int
    dropped: int
    refusal: str | None

    @property
    def problem(self) -> str | None:
        """Why the owner is not reached by it now."""
        if self.state == "away":
            return self.error or "it cannot be used"
        return None if self.refusal is None else f"a message was refused: {self.refusal}"

    @property
    def who(self) -> str:
        """As the timeline records it."""
        return f"channel:{self.name}"


def secret_name(channel: str) -> str:
    """Where the vault has the channel's secret."""
    return f"channel.{channel}"


class ChannelStore:
    def __init__(self, timeline: Timeline, clock: Callable[[], float] = time.time) -> None:
        self.timeline = timeline
        self._clock = clock

    def prepare(self) -> None:
        """Idempotent."""
        self.timeline.ensure_schema("channels", *STEPS)

    def list(self) -> list[ChannelRow]:
        return [_channel(row) for row in self.timeline.query(f"{_CHANNEL} ORDER BY name")]

    def find(self, name: str) -> ChannelRow | None:
        rows = self.timeline.query(f"{_CHANNEL} WHERE name = ?", (name,))
        return _channel(rows[0]) if rows else None

    def get(self, name: str) -> ChannelRow:
        """Raises `channels.not-found`."""
        found = self.find(name)
        if found is None:
            raise FreeholdError(
                "channels.not-found", f"There is no channel {name!a:.60}", hint="freehold channels list shows them"
            )
        return found

    def add(self, name: str, kind: ChannelKind, settings: Mapping[str, Any], *, who: str) -> None:
        """Raises `channels.bad-name`, `.exists` or `.too-many`."""
        check_channel_name(name)
        now = self._clock()
        with self.timeline.transaction() as tx:
            ((count,),) = tx.execute("SELECT count(*) FROM channels_channel").fetchall()
            if count >= MAX_CHANNELS:
                raise FreeholdError("channels.too-many", f"There are {MAX_CHANNELS} channels already")
            made = tx.execute(
                "INSERT INTO channels_channel (name, kind, settings, preferences, added, since) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                (name, kind, json.dumps(dict(settings)), json.dumps(ChannelPreferences().as_json()), now, now),
            ).rowcount
            if not made:
                raise FreeholdError(
                    "channels.exists",
                    f"There is a channel {name} already",
                    hint="Remove it first, or give another name",
                )
            tx.append("channels.added", {"channel": name, "kind": kind}, who=who)

    def remove(self, name: str, *, who: str) -> ChannelRow:
        """Raises `channels.not-found`. What waits for it is removed too."""
        found = self.get(name)
        with self.timeline.transaction() as tx:
            for table in ("code", "message", "received"):
                tx.execute(f"DELETE FROM channels_{table} WHERE channel = ?", (name,))  # noqa: S608 - our own words
            if found.kind == "webpush":
                tx.execute("DELETE FROM channels_subscription")
            tx.execute("DELETE FROM channels_channel WHERE name = ?", (name,))
            tx.append("channels.removed", {"channel": name, "kind": found.kind}, who=who)
        return found

    def set_preferences(self, name: str, preferences: ChannelPreferences, *, who: str) -> None:
        """Raises `channels.bad-value` or `.not-found`."""
        preferences.check()
        self.get(name)
        with self.timeline.transaction() as tx:
            tx.execute(
                "UPDATE channels_channel SET preferences = ? WHERE name = ?", (json.dumps(preferences.as_json()), name)
            )
            tx.append("channels.preferences_changed", {"channel": name}, who=who)

    def set_state(self, name: str, state: ChannelState, error: str | None) -> None:
        """The timeline has one event when a channel is lost, and one when it is back."""
        with self.timeline.transaction() as tx:
            words = None if error is None else read_words(error)
            changed = tx.execute(
                "UPDATE channels_channel SET state = ?, since = ?, error = ? WHERE name = ? AND state <> ?",
                (state, self._clock(), words, name, state),
            ).rowcount
            if changed and state == "away":
                tx.append("channels.lost", {"channel": name, "reason": words or ""})
            elif changed:
                tx.append("channels.recovered", {"channel": name})
            elif state == "away":
                tx.execute("UPDATE channels_channel SET error = ? WHERE name = ?", (words, name))

    def read_position(self) -> int | None:
        """The last timeline event that was told; None before the first channel was paired."""
        rows = self.timeline.query("SELECT seq FROM channels_position")
        return int(rows[0][0]) if rows else None


def read_words(error: str) -> str:
    """Words of a server: the command line shows them, and must not be steered by them."""
    return make_visible(error, lines=False)[:MAX_ERROR]


def set_owner(tx: Transaction, name: str, owner: OwnerAddress, now: float, *, who: str) -> None:
    """The channel is paired. When no other one is, what happens from now on is told, and nothing from before."""
    tx.execute(
        "UPDATE channels_channel SET sender = ?, chat = ?, paired = ?, refusal = NULL WHERE name = ?",
        (owner.sender, owner.chat, now, name),
    )
    tx.execute("DELETE FROM channels_code WHERE channel = ?", (name,))
    # What waited was for whoever was paired before.
    tx.execute("DELETE FROM channels_message WHERE channel = ?", (name,))
    tx.execute(
        "INSERT INTO channels_position (only_row, seq) SELECT 1, seq FROM head WHERE true ON CONFLICT DO UPDATE"
        " SET seq = excluded.seq WHERE NOT EXISTS"
        " (SELECT 1 FROM channels_channel WHERE sender IS NOT NULL AND name <> ?)",
        (name,),
    )
    tx.append("channels.paired", {"channel": name, "owner": owner.sender[:200]}, who=who)


def check_channel_name(name: str) -> None:
    if NAME.fullmatch(name) is None:
        raise FreeholdError(
            "channels.bad-name",
            f"{name!a:.60} cannot be the name of a channel",
            hint="Use up to 32 small letters, digits and hyphens",
        )


def _channel(row: tuple[Any, ...]) -> ChannelRow:
    name, kind, settings, preferences, sender, chat, added, paired, cursor, state, since, error, strangers, *rest = row
    return ChannelRow(
        name,
        cast("ChannelKind", kind),
        json.loads(settings),
        read_preferences(json.loads(preferences)),
        None if sender is None else OwnerAddress(sender, chat),
        added,
        paired,
        cursor,
        state,
        since,
        error,
        strangers,
        *rest,
    )
