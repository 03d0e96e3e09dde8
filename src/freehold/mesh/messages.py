"""What neighbours have told this Freehold over relays: bounded, each once. It is data, and nothing acts on it."""

import time
from dataclasses import dataclass
from typing import Literal, cast

from freehold.mesh.nostr.direct_message import Rumor
from freehold.timeline import Timeline

MAX_KEPT, BATCH = 5_000, 100
"""When there is a batch more, who has most of them loses so many of the oldest: one neighbour pushes out nobody else's."""
MAX_CONTENT = 16_000
MessageKind = Literal["message", "event"]


@dataclass(frozen=True)
class NeighbourMessage:
    """`at` is when the sender says that it was written, and never later than `received`, when it came."""

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
        now = time.time()
        with self._timeline.transaction() as tx:
            added = tx.execute(
                "INSERT INTO mesh_message (id, pubkey, at, received, kind, content) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                (rumor.id, rumor.pubkey, min(rumor.created_at, int(now)), now, kind, rumor.content[:MAX_CONTENT]),
            ).rowcount
            if added:
                (count,) = tx.execute("SELECT count(*) FROM mesh_message").fetchone()
                if count >= MAX_KEPT + BATCH:
                    tx.execute(
                        "DELETE FROM mesh_message WHERE rowid IN (SELECT rowid FROM mesh_message WHERE pubkey ="
                        " (SELECT pubkey FROM mesh_message GROUP BY pubkey ORDER BY count(*) DESC LIMIT 1)"
                        " ORDER BY rowid LIMIT ?)",
                        (count - MAX_KEPT,),
                    )
        return bool(added)

    def list(self, limit: int) -> list[NeighbourMessage]:
        """The newest first, by when they were written: a relay may deliver them in any order."""
        rows = self._timeline.query(
            "SELECT id, pubkey, min(at, cast(received AS INTEGER)) AS moment, received, kind, content FROM mesh_message"
            " ORDER BY moment DESC, id LIMIT ?",
            (limit,),
        )
        return [
            NeighbourMessage(id, pubkey, at, received, cast(MessageKind, kind), content)
            for id, pubkey, at, received, kind, content in rows
        ]
