"""What may leave the computer: `home.egress`."""

from typing import Literal

from freehold.client._async.connection import AsyncConnection, segment
from freehold.client.answers import Egress


class AsyncEgress:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def state(self) -> Egress:
        """The rules in force, and what waits for an answer."""
        return await self._connection.get("/v1/egress", Egress)

    async def answer(self, question: int, answer: Literal["once", "session", "always", "never"]) -> Egress:
        """Answer a question that waits; whoever asked goes on at once."""
        return await self._connection.post(f"/v1/egress/questions/{question}", Egress, {"answer": answer})

    async def allow(self, pattern: str) -> Egress:
        """Let the computer talk to a host, such as `example.org` or `*.example.org:443`."""
        return await self._connection.post("/v1/egress/rules", Egress, {"verdict": "allow", "pattern": pattern})

    async def deny(self, pattern: str) -> Egress:
        """Never let the computer talk to a host. Wins over every allow."""
        return await self._connection.post("/v1/egress/rules", Egress, {"verdict": "deny", "pattern": pattern})

    async def forget(self, pattern: str) -> Egress:
        """Take back a rule; connections that lived by it are cut."""
        return await self._connection.delete(f"/v1/egress/rules/{segment(pattern)}", Egress)
