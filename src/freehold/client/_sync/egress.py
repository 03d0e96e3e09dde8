# made from _async/egress.py by python -m tools.generate
"""Egress rules and network requests: `home.egress`."""

from typing import Literal

from freehold.client._sync.connection import SyncConnection
from freehold.client.models import EgressInfo
from freehold.client.topic_protocol import quote_segment


class SyncEgress:
    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def state(self) -> EgressInfo:
        """The active rules, and the network requests that wait for an answer."""
        return self._connection.get("/v1/egress", EgressInfo)

    def answer(
        self, request: int, answer: Literal["once", "conversation", "until_restart", "always", "never"]
    ) -> EgressInfo:
        """Answer a network request that waits. A connection that waits for it continues at once."""
        return self._connection.post(f"/v1/egress/requests/{request}", EgressInfo, {"answer": answer})

    def allow(self, pattern: str) -> EgressInfo:
        """Allow connections to a host, such as `example.org` or `*.example.org:443`."""
        return self._connection.post("/v1/egress/rules", EgressInfo, {"verdict": "allow", "pattern": pattern})

    def deny(self, pattern: str) -> EgressInfo:
        """Deny connections to a host. A deny rule wins over all allow rules."""
        return self._connection.post("/v1/egress/rules", EgressInfo, {"verdict": "deny", "pattern": pattern})

    def forget(self, pattern: str) -> EgressInfo:
        """Remove a rule. Connections that it allowed are closed."""
        return self._connection.delete(f"/v1/egress/rules/{quote_segment(pattern)}", EgressInfo)
