"""What an agent lets be chosen and commanded, as it last told: known also while it does not run."""

import json
from dataclasses import dataclass

from freehold.agents.rpc import Json
from freehold.agents.store import Store

MAX_LOOKED_AT = 20
"""Other sessions of the same agent that are asked when this one has not been told anything yet."""


@dataclass(frozen=True)
class Offer:
    """`own` is false when it is what the agent told another session: what is chosen there says nothing about this one."""

    options: Json | None
    commands: list[Json]
    own: bool


def read_offer(store: Store, session: str) -> Offer:
    """Blocks on the disk. Raises `session.not-found`."""
    row = store.get(session)
    own = _told(store, session, "options")
    commands = _told(store, session, "commands")
    if own is not None:
        return Offer(own, _commands(commands), True)
    others = store.timeline.query(
        "SELECT id FROM agents_session WHERE agent = ? AND id != ? ORDER BY updated DESC LIMIT ?",
        (row.agent, session, MAX_LOOKED_AT),
    )
    for (other,) in others:
        options = _told(store, other, "options")
        if options is not None:
            return Offer(options, _commands(commands or _told(store, other, "commands")), False)
    return Offer(None, _commands(commands), True)


def _told(store: Store, session: str, kind: str) -> Json | None:
    rows = store.timeline.query(
        "SELECT data FROM agents_event WHERE session = ? AND kind = ? ORDER BY seq DESC LIMIT 1", (session, kind)
    )
    found: Json | None = json.loads(rows[0][0]) if rows else None
    return found


def _commands(told: Json | None) -> list[Json]:
    return [] if told is None else list(told["commands"])
