"""Events that a relay has not taken yet. They survive a restart, and there are never many."""

import json
import time
from collections.abc import Sequence

from freehold.mesh.nostr.event import NostrEvent, read_event
from freehold.timeline import Timeline

MAX_WAITING = 1_000
"""For each relay. When there are more, the oldest are dropped."""
KEPT_SECONDS = 7 * 86_400


class RelayOutbox:
    """Every call blocks."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def add(self, relay: str, event: NostrEvent) -> None:
        with self._timeline.transaction() as tx:
            tx.execute(
                "INSERT INTO mesh_outbox (relay, id, event, added) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (relay, event.id, json.dumps(event.as_json(), ensure_ascii=False), time.time()),
            )
            tx.execute(
                "DELETE FROM mesh_outbox WHERE relay = ? AND (added < ? OR rowid <="
                " (SELECT rowid FROM mesh_outbox WHERE relay = ? ORDER BY rowid DESC LIMIT 1 OFFSET ?))",
                (relay, time.time() - KEPT_SECONDS, relay, MAX_WAITING),
            )

    def list(self, relay: str, limit: int = 100, *, without: Sequence[str] = ()) -> list[NostrEvent]:
        """The oldest first, but not those with the ids `without`."""
        sql = (
            "SELECT event FROM mesh_outbox WHERE relay = ? AND id NOT IN (SELECT value FROM json_each(?))"
            " ORDER BY rowid LIMIT ?"
        )
        rows = self._timeline.query(sql, (relay, json.dumps(without), limit))
        return [read_event(json.loads(text)) for (text,) in rows]

    def find(self, relay: str, id: str) -> NostrEvent | None:
        """None when it does not wait any more."""
        rows = self._timeline.query("SELECT event FROM mesh_outbox WHERE relay = ? AND id = ?", (relay, id))
        return read_event(json.loads(rows[0][0])) if rows else None

    def list_ids(self, relay: str) -> frozenset[str]:
        return frozenset(id for (id,) in self._timeline.query("SELECT id FROM mesh_outbox WHERE relay = ?", (relay,)))

    def remove(self, relay: str, id: str) -> None:
        """Idempotent."""
        with self._timeline.transaction() as tx:
            tx.execute("DELETE FROM mesh_outbox WHERE relay = ? AND id = ?", (relay, id))

    def count(self) -> dict[str, int]:
        return dict(self._timeline.query("SELECT relay, count(*) FROM mesh_outbox GROUP BY relay"))
