"""Work that is sent to neighbours: `/v1/mesh/work`."""

import asyncio

from fastapi import Request

from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import UrlName
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import get, post
from freehold.mesh.bodies import (
    AcceptWorkBody,
    AgentCardsBody,
    DecideWorkBody,
    HostedEventBody,
    SendWorkBody,
    SentWorkBody,
    SentWorkDetailsBody,
    WorkId,
    file_body,
    work_body,
)
from freehold.mesh.sent_jobs import SentJob, WorkRequest
from freehold.mesh.service import MeshService


class WorkRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._service = context.service(MeshService)

    @get("/v1/mesh/neighbours/{name}/agents", scope="read")
    async def list_neighbour_agents(self, name: UrlName) -> AgentCardsBody:
        """The agents of a paired neighbour, with what they can do."""
        mesh = self._service.mesh
        return await mesh.read_cards(mesh.neighbours.get(name))

    @post("/v1/mesh/work", status_code=201, scope="prompt", max_body=512 * 1024)
    async def send_work(self, body: SendWorkBody, request: Request) -> SentWorkBody:
        """Send a prompt to an agent of a neighbour, who works on it there."""
        mesh = self._service.mesh
        neighbour = mesh.neighbours.get(body.neighbour)
        who = principal_of(request.scope).who
        return self._body(await mesh.work.send(neighbour, WorkRequest(body.prompt, body.title), who))

    @get("/v1/mesh/work", scope="prompt")
    async def list_sent_work(self) -> list[SentWorkBody]:
        """What was sent, the newest first."""
        return [self._body(job) for job in await asyncio.to_thread(self._service.mesh.work.jobs.list)]

    @get("/v1/mesh/work/{work}", scope="prompt")
    async def get_sent_work(self, work: WorkId, request: Request) -> SentWorkDetailsBody:
        """One job with what its agent said and did, and the files that it returned. Needs the scope files as well."""
        principal_of(request.scope).require("files")
        sent = self._service.mesh.work
        job = await asyncio.to_thread(sent.jobs.get, work)
        files = await asyncio.to_thread(sent.files, job)
        events = [HostedEventBody.model_validate(one) for one in await sent.read_events(job)]
        return SentWorkDetailsBody(work=self._body(job), events=events, files=[file_body(one) for one in files])

    @post("/v1/mesh/work/{work}/accept", scope="files")
    async def accept_sent_work(self, work: WorkId, body: AcceptWorkBody, request: Request) -> SentWorkBody:
        """Bring the returned files into a folder of the workspace, as one entry of history that can be undone."""
        who = principal_of(request.scope).who
        return self._body(await self._service.mesh.work.accept(work, body.folder, who, force=body.force))

    @post("/v1/mesh/work/{work}/drop", scope="files")
    async def drop_sent_work(self, work: WorkId, body: DecideWorkBody, request: Request) -> SentWorkBody:
        """Forget the returned files."""
        return self._body(await self._service.mesh.work.drop(work, principal_of(request.scope).who))

    @post("/v1/mesh/work/{work}/stop", scope="prompt")
    async def stop_sent_work(self, work: WorkId, body: DecideWorkBody) -> SentWorkBody:
        """Ask the neighbour to end it."""
        return self._body(await self._service.mesh.work.stop(work))

    def _body(self, job: SentJob) -> SentWorkBody:
        found = self._service.mesh.neighbours.find(job.neighbour)
        return work_body(job, None if found is None else found.name)
