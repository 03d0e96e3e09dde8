"""`/v1/workflows`: workflows and their steps."""

from functools import partial
from typing import Annotated

from fastapi import Query, Request

from freehold.gateway.context import RouteContext
from freehold.gateway.conversation_words import may_read_words
from freehold.gateway.inputs import DIGITS, UrlId, UrlPositive
from freehold.gateway.principal import Principal, principal_of
from freehold.gateway.routing import get, post
from freehold.routines.workflows.bodies import (
    AnswerWorkflowBody,
    RetryWorkflowBody,
    RunWorkflowBody,
    SignalWorkflowBody,
    WorkflowBody,
    WorkflowDetailsBody,
    WorkflowPageBody,
    describe_details,
    describe_workflow,
)
from freehold.routines.workflows.changed_files import list_changed_files
from freehold.routines.workflows.service import WorkflowService
from freehold.routines.workflows.store import WorkflowOrder

MAX_PAGE = 200


def _require_work(principal: Principal) -> None:
    """A workflow sends prompts and runs commands."""
    principal.require("prompt")
    principal.require("terminal")


class WorkflowRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._context = context

    async def _open(self) -> WorkflowService:
        """The service, when its tables are there."""
        service = self._context.service(WorkflowService)
        await service.wait_ready()
        return service

    async def _show(self, id: str) -> WorkflowDetailsBody:
        store = (await self._open()).store
        workflow = await store.journal.run(store.get, id)
        steps = await store.journal.run(store.steps.list_steps, id)
        return describe_details(workflow, steps, await list_changed_files(self._context.services.keeper, steps))

    @get("/v1/workflows", scope="routines")
    async def list_workflows(
        self,
        request: Request,
        before: UrlPositive | None = None,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE), DIGITS] = 50,
    ) -> WorkflowPageBody:
        service = await self._open()
        found = await service.store.journal.run(partial(service.store.list_workflows, limit=limit + 1, before=before))
        cursor = found[limit - 1].number if len(found) > limit else None
        words = may_read_words(request)
        return WorkflowPageBody(workflows=[describe_workflow(one, words=words) for one in found[:limit]], cursor=cursor)

    @post("/v1/workflows", status_code=201, scope="routines")
    async def run_workflow(self, body: RunWorkflowBody, request: Request) -> WorkflowBody:
        """Begin a workflow. Needs the scopes prompt and terminal as well."""
        service = await self._open()
        principal = principal_of(request.scope)
        _require_work(principal)
        order = service.complete_order(WorkflowOrder(body.file, body.data, body.budget, body.asks))
        added = await service.store.journal.run(partial(service.store.add, order, who=principal.who))
        return describe_workflow(added, words=True)

    @get("/v1/workflows/{workflow}", scope="routines")
    async def get_workflow(self, workflow: UrlId, request: Request) -> WorkflowDetailsBody:
        """With its steps and what their agents say: needs the scope prompt as well."""
        principal_of(request.scope).require("prompt")
        return await self._show(workflow)

    @post("/v1/workflows/{workflow}/cancel", scope="routines")
    async def cancel_workflow(self, workflow: UrlId, request: Request) -> WorkflowBody:
        """End a workflow and what it has begun. Idempotent."""
        service = await self._open()
        ended = await service.cancel(workflow, principal_of(request.scope).who)
        return describe_workflow(ended, words=may_read_words(request))

    @post("/v1/workflows/{workflow}/retry", scope="routines")
    async def retry_workflow(self, workflow: UrlId, body: RetryWorkflowBody, request: Request) -> WorkflowDetailsBody:
        """Begin a workflow that has ended once more, with the file as it is now. Needs prompt and terminal as well."""
        service = await self._open()
        principal = principal_of(request.scope)
        _require_work(principal)
        await service.store.journal.run(partial(service.store.retry, workflow, body.step, who=principal.who))
        return await self._show(workflow)

    @post("/v1/workflows/{workflow}/answer", scope="prompt")
    async def answer_workflow(self, workflow: UrlId, body: AnswerWorkflowBody, request: Request) -> WorkflowDetailsBody:
        """Answer what a workflow asks. It is answered once."""
        service = await self._open()
        who = principal_of(request.scope).who
        await service.store.journal.run(partial(service.store.steps.answer, workflow, body.step, body.answer, who=who))
        return await self._show(workflow)

    @post("/v1/workflows/{workflow}/events", scope="routines")
    async def signal_workflow(self, workflow: UrlId, body: SignalWorkflowBody, request: Request) -> WorkflowBody:
        """Send an event to one workflow. It is kept until the workflow waits for it."""
        service = await self._open()
        who = principal_of(request.scope).who
        await service.store.journal.run(partial(service.store.steps.signal, workflow, body.name, body.data, who=who))
        found = await service.store.journal.run(service.store.get, workflow)
        return describe_workflow(found, words=may_read_words(request))
