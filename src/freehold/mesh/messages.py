"""What neighbours have told this Freehold over relays: bounded, each once. It is data, and nothing acts on it."""

import time
from dataclasses import dataclass
from typing import Literal, cast

from freehold.mesh.nostr.direct_message import Rumor
from freehold.timeline import Timeline

MAX_KEPT = 5_000
MAX_CONTENT = 16_000
MessageKind = Literal["message", "event"]


@dataclass(frozen=True)
class NeighbourMessage:
    """`at` is when the sender says that it was written, `received` when it came."""

    id: str
    pubkey: str
    at: int
    received: float
    kind: MessageKind
    content: str


class NeighbourMessages:
    """Every call blocks."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def add(self, rumor: Rumor, kind: MessageKind) -> bool:
        """Whether it is new."""
        with self._timeline.transaction() as tx:
            added = tx.execute(
                "INSERT INTO mesh_message (id, pubkey, at, received, kind, content) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                (rumor.id, rumor.pubkey, rumor.created_at, time.time(), kind, rumor.content[:MAX_CONTENT]),
            ).rowcount
            if added:
                tx.execute(
                    "DELETE FROM mesh_message WHERE rowid <="
                    " (SELECT rowid FROM mesh_message ORDER BY rowid DESC LIMIT 1 OFFSET ?)",
                    (MAX_KEPT,),
                )
        return bool(added)

    def list(self, limit: int) -> list[NeighbourMessage]:
        """The newest first, by when they were written: a relay may deliver them in any order."""
        rows = self._timeline.query(
            "SELECT id, pubkey, at, received, kind, content FROM mesh_message ORDER BY at DESC, id LIMIT ?", (limit,)
        )
        return [
            NeighbourMessage(id, pubkey, at, received, cast(MessageKind, kind), content)
            for id, pubkey, at, received, kind, content in rows
        ]
