# made from _async/egress.py by python -m tools.generate
"""What may leave the computer: `home.egress`."""

from typing import Literal

from freehold.client._sync.connection import SyncConnection, segment
from freehold.client.answers import Egress


class SyncEgress:
    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def state(self) -> Egress:
        """The rules in force, and what waits for an answer."""
        return self._connection.get("/v1/egress", Egress)

    def answer(self, question: int, answer: Literal["once", "session", "always", "never"]) -> Egress:
        """Answer a question that waits; whoever asked goes on at once."""
        return self._connection.post(f"/v1/egress/questions/{question}", Egress, {"answer": answer})

    def allow(self, pattern: str) -> Egress:
        """Let the computer talk to a host, such as `example.org` or `*.example.org:443`."""
        return self._connection.post("/v1/egress/rules", Egress, {"verdict": "allow", "pattern": pattern})

    def deny(self, pattern: str) -> Egress:
        """Never let the computer talk to a host. Wins over every allow."""
        return self._connection.post("/v1/egress/rules", Egress, {"verdict": "deny", "pattern": pattern})

    def forget(self, pattern: str) -> Egress:
        """Take back a rule; connections that lived by it are cut."""
        return self._connection.delete(f"/v1/egress/rules/{segment(pattern)}", Egress)
