"""The mesh for the owner: `/v1/mesh`."""

import asyncio
from typing import Annotated

from fastapi import Query, Request

from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import DIGITS, UrlName
from freehold.gateway.moments import to_moment
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import delete, get, patch, post
from freehold.mesh.bodies import (
    CreatePairingCodeBody,
    EvictedNeighbourBody,
    IntroductionBody,
    MeshBody,
    MeshClientBody,
    MeshKeyBody,
    NeighbourBody,
    NeighbourGrantsBody,
    NeighbourMessageBody,
    PairingCodeBody,
    PairingCodeTextBody,
    PairNeighbourBody,
    ReplaceKeyBody,
    SendMessageBody,
    SentMessageBody,
    client_body,
    neighbour_body,
    registration_body,
    relay_body,
)
from freehold.mesh.service import MeshService


class MeshRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._service = context.service(MeshService)

    @get("/v1/mesh", scope="read")
    async def get_mesh(self) -> MeshBody:
        """This Freehold as its neighbours see it, and its relays."""
        from freehold.mesh.nostr.keys import show_key

        mesh = self._service.mesh
        states = await asyncio.to_thread(mesh.relays.states)
        waiting = await asyncio.to_thread(mesh.relays.outbox.count)
        return MeshBody(
            mode=mesh.section.mode,
            name=mesh.name,
            npub=show_key(mesh.key.public),
            did=mesh.did,
            url=mesh.url,
            relay=mesh.relay_url,
            relays=[relay_body(one, waiting.get(one.url, 0)) for one in states],
            registration=None if mesh.registration is None else registration_body(mesh.registration.status),
        )

    @post("/v1/mesh/key", scope="admin")
    async def replace_mesh_key(self, body: ReplaceKeyBody, request: Request) -> MeshKeyBody:
        """Replace the key pair of this Freehold. Its neighbours know the old one, so pair again."""
        from freehold.mesh.nostr.keys import show_key

        who = principal_of(request.scope).who
        return MeshKeyBody(npub=show_key(await self._service.mesh.replace_key(body.secret_key, who)))

    @get("/v1/mesh/neighbours", scope="read")
    async def list_neighbours(self) -> list[NeighbourBody]:
        """The paired Freeholds, by name."""
        return [neighbour_body(one) for one in self._service.mesh.neighbours.list()]

    @patch("/v1/mesh/neighbours/{name}", scope="admin")
    async def change_neighbour(self, name: UrlName, body: NeighbourGrantsBody, request: Request) -> NeighbourBody:
        """Change what a neighbour may use here."""
        who = principal_of(request.scope).who
        return neighbour_body(await self._service.mesh.set_grants(name, body.grants, who))

    @delete("/v1/mesh/neighbours/{name}", scope="admin")
    async def evict_neighbour(self, name: UrlName, request: Request) -> EvictedNeighbourBody:
        """End all that a neighbour may do here. It must pair again."""
        found = await self._service.mesh.evict(name, principal_of(request.scope).who)
        return EvictedNeighbourBody(name=found.name)

    @get("/v1/mesh/clients", scope="read")
    async def list_mesh_clients(self) -> list[MeshClientBody]:
        """The clients of this host, with what each told about itself."""
        mesh = self._service.mesh
        return [
            client_body(one, neighbour, mesh.list_served(neighbour))
            for one in mesh.clients.list()
            if (neighbour := mesh.neighbours.find(one.pubkey)) is not None
        ]

    @post("/v1/mesh/neighbours/{name}/messages", status_code=201, scope="admin")
    async def send_neighbour_message(self, name: UrlName, body: SendMessageBody) -> SentMessageBody:
        """Send an encrypted direct message over the relays."""
        mesh = self._service.mesh
        return SentMessageBody(id=await mesh.relays.send(mesh.neighbours.get(name).pubkey, body.text))

    @get("/v1/mesh/messages", scope="prompt")
    async def list_neighbour_messages(
        self, limit: Annotated[int, Query(ge=1, le=500), DIGITS] = 100
    ) -> list[NeighbourMessageBody]:
        """What neighbours wrote and published, the newest first."""
        mesh = self._service.mesh
        names = {one.pubkey: one.name for one in mesh.neighbours.list()}
        found = await asyncio.to_thread(mesh.relays.messages.list, limit)
        return [
            NeighbourMessageBody(
                id=one.id, neighbour=names.get(one.pubkey), at=to_moment(one.at), kind=one.kind, content=one.content
            )
            for one in found
        ]

    @post("/v1/mesh/codes", status_code=201, scope="admin")
    async def create_pairing_code(self, body: CreatePairingCodeBody) -> PairingCodeBody:
        """Make a code that the owner of another Freehold enters there, once, within ten minutes."""
        code, expires = await self._service.mesh.pairings.create_code(body.grants, body.name)
        return PairingCodeBody(code=code.write(), npub=code.npub, expires=to_moment(expires))

    @post("/v1/mesh/codes/read", scope="admin")
    async def read_pairing_code(self, body: PairingCodeTextBody) -> IntroductionBody:
        """Ask the Freehold that made a code who it is. The code can still be used."""
        found = await self._service.mesh.pairings.introduce(body.code)
        return IntroductionBody(
            url=found.code.url,
            npub=found.code.npub,
            name=found.statement.name,
            did=found.statement.did,
            proof=found.proof,
        )

    @post("/v1/mesh/neighbours", status_code=201, scope="admin")
    async def pair_neighbour(self, body: PairNeighbourBody, request: Request) -> NeighbourBody:
        """Pair with the Freehold that made a code."""
        who = principal_of(request.scope).who
        return neighbour_body(await self._service.mesh.pairings.pair(body.code, body.grants, body.name, who))
