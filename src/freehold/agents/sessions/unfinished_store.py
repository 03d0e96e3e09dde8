"""The words of messages that agents are still writing, in SQLite, so that they outlive the process.

A message is stored in parts, each once, and never in more than `TranscriptBuilder` holds of it. The parts leave together
with the commit that stores the complete message, or the end of its turn: nobody ever sees a message twice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from freehold.agents.sessions.rows import DraftEvent
from freehold.agents.sessions.transcript import make_message
from freehold.timeline import Timeline, Transaction


@dataclass(frozen=True)
class MessagePart:
    """Some characters of an unfinished message, from `at` on. `number` counts the messages of its agent."""

    session: str
    turn: int
    number: int
    kind: str
    id: str
    at: int
    text: str
    is_unfinished: Callable[[], bool]
    """Asked inside of the transaction: a part that comes after its complete message is not stored."""


class UnfinishedStore:
    """Every method blocks: call it with `run_blocking` from a coroutine."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def add(self, parts: Sequence[MessagePart]) -> None:
        """Stores parts of messages of turns that run. Idempotent: of two parts at one place the longer one stays."""
        with self._timeline.transaction() as tx:
            for part in parts:
                if part.is_unfinished():
                    tx.execute(
                        "INSERT INTO agents_unfinished (session, number, at, turn, kind, id, text) "
                        "SELECT session, ?, ?, turn, ?, ?, ? FROM agents_turn "
                        "WHERE session = ? AND turn = ? AND state = 'sent' ON CONFLICT (session, number, at) "
                        "DO UPDATE SET text = excluded.text "
                        "WHERE length(CAST(excluded.text AS BLOB)) > length(CAST(text AS BLOB))",
                        (part.number, part.at, part.kind, part.id, part.text, part.session, part.turn),
                    )

    def read(self, session: str, turn: int) -> list[DraftEvent]:
        """What was stored of the messages of a turn that did not end, as the events that they would have become."""
        rows = self._timeline.query(
            "SELECT number, kind, id, at, text FROM agents_unfinished WHERE session = ? AND turn = ? "
            "ORDER BY number, at",
            (session, turn),
        )
        found: list[DraftEvent] = []
        for (_, kind, name), parts in groupby(rows, key=lambda row: row[:3]):
            text = ""
            for _, _, _, at, more in parts:
                if at != len(text):
                    break  # a part is missing: what follows it would be put together wrongly
                text += more
            if text:
                found.append(make_message(kind, name, text))
        return found


def remove_unfinished(tx: Transaction, session: str, until: int | None = None) -> None:
    """Removes the parts of all messages of a session, or of those up to this number."""
    tx.execute(
        "DELETE FROM agents_unfinished WHERE session = ? AND number <= ?", (session, 2**62 if until is None else until)
    )
