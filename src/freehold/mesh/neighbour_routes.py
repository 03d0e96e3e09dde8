"""The mesh for other Freeholds. Each request is signed by the key of who sends it."""

import asyncio
import base64
import json
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import JSONResponse, Response

from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.error_responses import ErrorResponse
from freehold.gateway.inputs import DIGITS, UrlNatural
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import get, post
from freehold.gateway.steady_time import steady_time
from freehold.mesh.archive_response import ArchiveResponse
from freehold.mesh.bodies import (
    AgentCardsBody,
    DecideWorkBody,
    DeregisterBody,
    HeartbeatAnswerBody,
    HeartbeatBody,
    HostedWorkBody,
    HostWorkBody,
    IntroduceBody,
    RedeemCodeBody,
    RegisterBody,
    RegisteredBody,
    StatementBody,
    WorkId,
    hosted_body,
)
from freehold.mesh.facts import ClientFacts
from freehold.mesh.sent_jobs import WorkRequest
from freehold.mesh.service import MeshService
from freehold.mesh.work_events import bound_events
from freehold.strict_json import decode


class NeighbourRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._service = context.service(MeshService)

    @post("/v1/mesh/introduction", scope="anyone", max_body=16 * 1024)
    async def introduce_mesh(self, body: IntroduceBody, request: Request) -> StatementBody:
        """Who this Freehold is, for whoever has a pairing code of it."""
        mesh = self._service.mesh
        mesh.signatures.count_pairing(principal_of(request.scope).address)
        await mesh.pairings.require_code(body.secret)
        return StatementBody(statement=mesh.make_statement(body.challenge, mesh.url).as_json())

    @post("/v1/mesh/pair", scope="anyone", max_body=64 * 1024, response_model=StatementBody)
    async def redeem_pairing_code(self, body: RedeemCodeBody, request: Request) -> StatementBody | Response:
        """Use a pairing code up. The request is signed by the key of the new neighbour."""
        mesh = self._service.mesh
        address = principal_of(request.scope).address
        mesh.signatures.count_pairing(address)
        header = request.headers.get("authorization", "")
        if not header.lower().startswith("nostr "):
            raise FreeholdError("mesh.unsigned", "The request is not signed")
        url = mesh.signatures.signed_url(request.scope)
        content = await request.body()
        try:
            signer = mesh.signatures.verify_stranger(header[6:].encode("latin-1"), "POST", url, content)
        except FreeholdError as error:
            # As in the guard: a clock that is wrong is told the time.
            refused = ErrorResponse(error)
            return JSONResponse(refused.body(), refused.status, {"freehold-time": str(int(steady_time()))})
        grants = await mesh.pairings.accept(signer, body.secret, body.statement, body.url, body.grants, address)
        return StatementBody(statement=mesh.make_statement(body.challenge, mesh.url).as_json(), grants=sorted(grants))

    @post("/v1/mesh/register", scope="neighbour", max_body=16 * 1024)
    async def register_client(self, body: RegisterBody, request: Request) -> RegisteredBody:
        """A client gets a place in the table of this host, and learns what it may use."""
        mesh = self._service.mesh
        neighbour = mesh.require_grant(_signer(request), "register")
        if mesh.section.mode != "host":
            raise FreeholdError("mesh.not-offered", "This Freehold is no host", hint='mode = "host" in [mesh] there')
        facts = decode(ClientFacts, body.model_dump())
        made = await mesh.clients.register(neighbour.pubkey, facts)
        slots = mesh.list_served(neighbour)
        endpoints = {name: f"/v1/slots/{name}" for name in slots}
        if "work" in neighbour.grants:
            endpoints["work"] = "/v1/mesh/hosted"
        if mesh.relay_url is not None:
            endpoints["relay"] = "/relay"
        heartbeat = mesh.clients.heartbeat
        return RegisteredBody(session=made.session, heartbeat=heartbeat, slots=slots, endpoints=endpoints)

    @post("/v1/mesh/heartbeat", scope="neighbour", max_body=4 * 1024)
    async def note_client_heartbeat(self, body: HeartbeatBody, request: Request) -> HeartbeatAnswerBody:
        """A client lives. 410 says that it must register again."""
        mesh = self._service.mesh
        neighbour = mesh.require_grant(_signer(request), "register")
        mesh.clients.note_heartbeat(neighbour.pubkey, body.session, body.health, body.load)
        return HeartbeatAnswerBody()

    @post("/v1/mesh/deregister", scope="neighbour", max_body=4 * 1024)
    async def deregister_client(self, body: DeregisterBody, request: Request) -> HeartbeatAnswerBody:
        """A client goes. Idempotent."""
        await self._service.mesh.clients.remove(_signer(request), body.session, "it said goodbye")
        return HeartbeatAnswerBody()

    @post("/v1/mesh/hosted", status_code=201, scope="neighbour", max_body=512 * 1024)
    async def begin_hosted_work(self, body: HostWorkBody, request: Request) -> HostedWorkBody:
        """A neighbour sends work. An agent does it here, in a computer of its own."""
        mesh = self._service.mesh
        neighbour = mesh.require_grant(_signer(request), "work")
        permissions = None if body.permissions is None else tuple(body.permissions)
        wanted = WorkRequest(body.prompt, body.title, body.budget, permissions)
        return hosted_body(await mesh.hosted.begin(neighbour, body.id, wanted))

    @get("/v1/mesh/hosted/{work}/events", scope="neighbour")
    async def read_hosted_work(
        self,
        work: WorkId,
        request: Request,
        after: UrlNatural = 0,
        wait: Annotated[int, Query(ge=0, le=5, description="Seconds to wait for an event."), DIGITS] = 0,
    ) -> HostedWorkBody:
        """How a job of this neighbour goes on."""
        mesh = self._service.mesh
        neighbour = mesh.require_grant(_signer(request), "work")
        found = await mesh.hosted.read(neighbour, work, after, float(wait))
        return hosted_body(found.run, bound_events(found.events))

    @post("/v1/mesh/hosted/{work}/stop", scope="neighbour", max_body=4 * 1024)
    async def stop_hosted_work(self, work: WorkId, body: DecideWorkBody, request: Request) -> HostedWorkBody:
        """End a job of this neighbour."""
        mesh = self._service.mesh
        neighbour = mesh.require_grant(_signer(request), "work")
        return hosted_body(await mesh.hosted.stop(neighbour, work))

    @get("/v1/mesh/hosted/{work}/archive", scope="neighbour", response_class=Response)
    async def get_hosted_archive(self, work: WorkId, request: Request) -> Response:
        """The files that a finished job has made, as a tar archive with the signature of this Freehold in a header."""
        mesh = self._service.mesh
        neighbour = mesh.require_grant(_signer(request), "work")
        mesh.hosted.begin_archive(neighbour)
        try:
            found = await mesh.hosted.pack(neighbour, work, mesh.key)
        except BaseException:
            mesh.hosted.end_archive(neighbour)
            raise
        signature = base64.b64encode(json.dumps(found.signature.as_json()).encode()).decode()
        headers = {"freehold-signature": signature, "content-disposition": "attachment"}
        return ArchiveResponse(found.packed, headers, lambda: mesh.hosted.end_archive(neighbour))

    @get("/v1/mesh/cards", scope="neighbour")
    async def list_agent_cards(self, request: Request) -> AgentCardsBody:
        """The agents here that take work of this neighbour."""
        mesh = self._service.mesh
        found = mesh.neighbours.find(_signer(request))
        if found is None or "work" not in found.grants:
            return AgentCardsBody(agents=[], grants=[] if found is None else sorted(found.grants))
        return AgentCardsBody(agents=[await asyncio.to_thread(mesh.make_card)], grants=sorted(found.grants))


def _signer(request: Request) -> str:
    """The key that signed the request. A token alone, and the owner's browser, are no neighbour."""
    signature = principal_of(request.scope).signature
    if signature is None:
        raise FreeholdError("mesh.unsigned", "The request is not signed by a neighbour")
    return signature.signer
