"""Neighbours: `home.mesh`."""

from collections.abc import Iterable

from freehold.client._async.connection import AsyncConnection
from freehold.client.mesh_models import (
    AccountRecordInfo,
    AgentCardInfo,
    AgentCards,
    EvictedInfo,
    IntroductionInfo,
    MeshClientInfo,
    MeshInfo,
    MeshKeyInfo,
    NeighbourInfo,
    NeighbourMessageInfo,
    PairingCodeInfo,
    SentMessageInfo,
    WorkDetails,
    WorkInfo,
)
from freehold.client.topic_protocol import quote_segment


class AsyncMesh:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def status(self) -> MeshInfo:
        """This Freehold as its neighbours see it, and its relays."""
        return await self._connection.get("/v1/mesh", MeshInfo)

    async def replace_key(self, secret_key: str | None = None) -> MeshKeyInfo:
        """Replace the key pair, by the given one or a new one. Pair with all neighbours again."""
        return await self._connection.post("/v1/mesh/key", MeshKeyInfo, {"secret_key": secret_key})

    async def account_record(self) -> AccountRecordInfo:
        """Whether the owner's account names the key. The owner has it named in the page Neighbours."""
        return await self._connection.get("/v1/mesh/record", AccountRecordInfo)

    async def neighbours(self) -> list[NeighbourInfo]:
        """The paired Freeholds."""
        return await self._connection.get("/v1/mesh/neighbours", list[NeighbourInfo])

    async def create_code(self, grants: Iterable[str] = (), *, name: str | None = None) -> PairingCodeInfo:
        """A code for the owner of another Freehold, who may then use `grants` here."""
        body = {"grants": list(grants), "name": name}
        return await self._connection.post("/v1/mesh/codes", PairingCodeInfo, body)

    async def read_code(self, code: str) -> IntroductionInfo:
        """Who made a code. It can still be used."""
        return await self._connection.post("/v1/mesh/codes/read", IntroductionInfo, {"code": code})

    async def pair(self, code: str, grants: Iterable[str] = (), *, name: str | None = None) -> NeighbourInfo:
        """Pair with the Freehold that made a code."""
        body = {"code": code, "grants": list(grants), "name": name}
        return await self._connection.post("/v1/mesh/neighbours", NeighbourInfo, body)

    async def grant(self, name: str, grants: Iterable[str]) -> NeighbourInfo:
        """Change what a neighbour may use here."""
        path = f"/v1/mesh/neighbours/{quote_segment(name)}"
        return await self._connection.patch(path, NeighbourInfo, {"grants": list(grants)})

    async def evict(self, name: str) -> EvictedInfo:
        """End all that a neighbour may do here."""
        return await self._connection.delete(f"/v1/mesh/neighbours/{quote_segment(name)}", EvictedInfo)

    async def clients(self) -> list[MeshClientInfo]:
        """The clients of this host."""
        return await self._connection.get("/v1/mesh/clients", list[MeshClientInfo])

    async def tell(self, name: str, text: str) -> SentMessageInfo:
        """Send an encrypted message over the relays."""
        path = f"/v1/mesh/neighbours/{quote_segment(name)}/messages"
        return await self._connection.post(path, SentMessageInfo, {"text": text})

    async def messages(self, limit: int = 100) -> list[NeighbourMessageInfo]:
        """What neighbours wrote and published, the newest first."""
        return await self._connection.get("/v1/mesh/messages", list[NeighbourMessageInfo], {"limit": limit})

    async def agents(self, name: str) -> tuple[AgentCardInfo, ...]:
        """The agents of a neighbour that take work."""
        path = f"/v1/mesh/neighbours/{quote_segment(name)}/agents"
        return (await self._connection.get(path, AgentCards)).agents

    async def send(self, name: str, prompt: str, *, title: str | None = None) -> WorkInfo:
        """Send work to an agent of a neighbour."""
        body = {"neighbour": name, "prompt": prompt, "title": title}
        return await self._connection.post("/v1/mesh/work", WorkInfo, body)

    async def work(self) -> list[WorkInfo]:
        """The work that was sent, the newest first."""
        return await self._connection.get("/v1/mesh/work", list[WorkInfo])

    async def show_work(self, work: str) -> WorkDetails:
        """One job, with what its agent said and the files that it returned."""
        return await self._connection.get(f"/v1/mesh/work/{quote_segment(work)}", WorkDetails)

    async def accept(self, work: str, folder: str = "", *, force: bool = False) -> WorkInfo:
        """Bring the returned files into a folder of the workspace. This can be undone."""
        body = {"folder": folder, "force": force}
        return await self._connection.post(f"/v1/mesh/work/{quote_segment(work)}/accept", WorkInfo, body)

    async def drop(self, work: str) -> WorkInfo:
        """Forget the returned files."""
        return await self._connection.post(f"/v1/mesh/work/{quote_segment(work)}/drop", WorkInfo, {})

    async def stop(self, work: str) -> WorkInfo:
        """Ask the neighbour to end it."""
        return await self._connection.post(f"/v1/mesh/work/{quote_segment(work)}/stop", WorkInfo, {})
