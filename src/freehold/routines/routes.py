"""`/v1/routines`: routines and their runs. `/v1/hooks`: signed requests from outside that begin one."""

import secrets
from functools import partial
from typing import Annotated

from fastapi import Query, Request

from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import DIGITS, UrlId, UrlName, UrlPositive
from freehold.gateway.principal import Principal, principal_of
from freehold.gateway.routing import delete, get, post
from freehold.routines.bodies import (
    AddRoutineBody,
    HookAnswerBody,
    PlanRoutineBody,
    ReadsWords,
    RoutineBody,
    RoutineHookBody,
    RoutinePageBody,
    RoutineRemovedBody,
    RoutineRunDetailsBody,
    RoutineRunPageBody,
    RoutineTimesBody,
    RunRoutineBody,
    describe_routine,
    describe_run,
    describe_run_details,
)
from freehold.routines.records import Routine, RoutineRun
from freehold.routines.routine_store import plan_times, zone_name, zone_of
from freehold.routines.rules import check_routine
from freehold.routines.run_store import MANUAL
from freehold.routines.section import RoutineSection
from freehold.routines.service import RoutineService
from freehold.routines.webhook import (
    MAX_BODY,
    forget_secrets,
    make_secret,
    read_body,
    refused,
    secret_name,
    verify_request,
)

RECENT = 30
MAX_PAGE = 200
COST_SPAN = 30 * 86400.0


def _require_work(principal: Principal, spec: RoutineSection) -> None:
    """Who may not send prompts or run commands may not have it done by a routine either."""
    if spec.command is None:
        principal.require("prompt")
    if spec.command is not None or spec.workflow is not None:
        principal.require("terminal")


def _read_words(principal: Principal) -> ReadsWords:
    """Who may not read conversations reads how a run went and not what it said, but for a command who may run commands."""
    reads, runs = principal.has_scope("prompt"), principal.has_scope("terminal")
    return lambda work: reads or (runs and work == "command")


def _describe_all(service: RoutineService, routines: list[Routine], reads: ReadsWords) -> list[RoutineBody]:
    """Blocking."""
    runs, since = service.runs, service.routines.clock.now() - COST_SPAN
    return [
        describe_routine(
            one, next(iter(runs.list_runs(one.name, limit=1)), None), runs.list_marks(one.name, RECENT),
            runs.sum_cost(one.name, since), reads,
        )
        for one in routines
    ]  # fmt: skip


class RoutineRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._context = context
        self._vault = context.services.vault

    async def _open(self) -> RoutineService:
        """The service, when its tables are there."""
        service = self._context.service(RoutineService)
        await service.ready.wait()
        return service

    async def _describe(self, routines: list[Routine], request: Request) -> list[RoutineBody]:
        service = await self._open()
        return await run_blocking(_describe_all, service, routines, _read_words(principal_of(request.scope)))

    async def _show(self, name: str, request: Request) -> RoutineBody:
        service = await self._open()
        return (await self._describe([await run_blocking(service.routines.get, name)], request))[0]

    async def _find_run(self, name: str, run: str) -> RoutineRun:
        service = await self._open()
        found = await run_blocking(service.runs.get, run)
        if found.routine != name:
            raise FreeholdError("routine.run.not-found", f"The routine {name!a:.80} has no run {run!a:.80}")
        return found

    @get("/v1/routines", scope="routines")
    async def list_routines(
        self,
        request: Request,
        after: Annotated[str, Query(max_length=63, description="Only those after this name.")] = "",
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE), DIGITS] = 50,
    ) -> RoutinePageBody:
        service = await self._open()
        found = await run_blocking(service.routines.list_routines, after, limit + 1)
        cursor = found[limit - 1].name if len(found) > limit else None
        return RoutinePageBody(routines=await self._describe(found[:limit], request), cursor=cursor)

    @post("/v1/routines", status_code=201, scope="routines")
    async def add_routine(self, body: AddRoutineBody, request: Request) -> RoutineBody:
        """Add a routine. One with a prompt needs the scope prompt as well, one with a command terminal, one with a workflow both."""
        service = await self._open()
        principal = principal_of(request.scope)
        _require_work(principal, body.routine)
        add = partial(service.routines.add, body.name, body.routine, who=principal.who, replace=body.replace)
        await run_blocking(add)
        return await self._show(body.name, request)

    @post("/v1/routines/plan", scope="routines")
    async def plan_routine(self, body: PlanRoutineBody) -> RoutineTimesBody:
        """When a routine would begin. Nothing is stored."""
        service = await self._open()
        check_routine("plan", body.routine)
        clock = service.routines.clock
        times = plan_times(body.routine, clock, body.count)
        return RoutineTimesBody(times=times, zone=zone_name(zone_of(body.routine, clock)))

    @get("/v1/routines/{name}", scope="routines")
    async def get_routine(self, name: UrlName, request: Request) -> RoutineBody:
        return await self._show(name, request)

    @delete("/v1/routines/{name}", scope="routines")
    async def remove_routine(self, name: UrlName, request: Request) -> RoutineRemovedBody:
        """Remove it. What has begun goes on. One of freehold.toml is removed there."""
        service = await self._open()
        await run_blocking(service.routines.check_removable, name)
        # First: if this fails or is cut off, the routine is still there to be removed again.
        await run_blocking(forget_secrets, self._vault, (name,))
        await run_blocking(partial(service.routines.remove, name, who=principal_of(request.scope).who))
        return RoutineRemovedBody(name=name)

    @post("/v1/routines/{name}/pause", scope="routines")
    async def pause_routine(self, name: UrlName, request: Request) -> RoutineBody:
        service = await self._open()
        await run_blocking(partial(service.routines.pause, name, who=principal_of(request.scope).who))
        return await self._show(name, request)

    @post("/v1/routines/{name}/resume", scope="routines")
    async def resume_routine(self, name: UrlName, request: Request) -> RoutineBody:
        service = await self._open()
        await run_blocking(partial(service.routines.resume, name, who=principal_of(request.scope).who))
        return await self._show(name, request)

    @post("/v1/routines/{name}/run", status_code=201, scope="routines")
    async def run_routine(self, name: UrlName, body: RunRoutineBody, request: Request) -> RoutineRunDetailsBody:
        """Begin a run now, also of a routine that is paused. Needs prompt or terminal as well."""
        service = await self._open()
        principal = principal_of(request.scope)
        _require_work(principal, (await run_blocking(service.routines.get, name)).spec)
        data = {} if body.text is None else {"text": body.text}
        cause = MANUAL + secrets.token_hex(8)
        run = await run_blocking(partial(service.runs.trigger, name, cause, data, who=principal.who))
        assert run is not None  # its cause is new
        return describe_run_details(run, lambda _work: True)  # what it is told is the caller's own

    @get("/v1/routines/{name}/runs", scope="routines")
    async def list_routine_runs(
        self,
        name: UrlName,
        request: Request,
        before: UrlPositive | None = None,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE), DIGITS] = RECENT,
    ) -> RoutineRunPageBody:
        """Its runs, also of a routine that was removed."""
        service = await self._open()
        found = await run_blocking(partial(service.runs.list_runs, name, limit=limit + 1, before=before))
        cursor = found[limit - 1].number if len(found) > limit else None
        reads = _read_words(principal_of(request.scope))
        return RoutineRunPageBody(runs=[describe_run(run, reads) for run in found[:limit]], cursor=cursor)

    @get("/v1/routines/{name}/runs/{run}", scope="routines")
    async def get_routine_run(self, name: UrlName, run: UrlId, request: Request) -> RoutineRunDetailsBody:
        return describe_run_details(await self._find_run(name, run), _read_words(principal_of(request.scope)))

    @post("/v1/routines/{name}/runs/{run}/stop", scope="routines")
    async def stop_routine_run(self, name: UrlName, run: UrlId, request: Request) -> RoutineRunDetailsBody:
        """End a run. Idempotent."""
        service = await self._open()
        await self._find_run(name, run)
        principal = principal_of(request.scope)
        return describe_run_details(await service.cancel(run, principal.who), _read_words(principal))

    @post("/v1/routines/{name}/webhook", scope="admin")
    async def create_routine_hook(self, name: UrlName) -> RoutineHookBody:
        """A new secret for its signed requests. The one before no longer works."""
        service = await self._open()
        routine = await run_blocking(service.routines.get, name)
        if not routine.spec.webhook:
            raise FreeholdError(
                "routine.conflict", f"{name} is not triggered by a webhook", hint="Set webhook = true for it"
            )
        secret = make_secret()
        await run_blocking(self._vault.set, secret_name(name), secret)
        return RoutineHookBody(url=f"{self._context.services.base_url}/v1/hooks/{name}", secret=secret)

    @post("/v1/hooks/{name}", status_code=202, scope="anyone", max_body=MAX_BODY)
    async def receive_hook(self, name: UrlName, request: Request) -> HookAnswerBody:
        """Begin a routine by a request that is signed as Standard Webhooks describes it."""
        service = await self._open()
        body = await request.body()
        try:
            secret = (await run_blocking(self._vault.get, secret_name(name))).reveal()
        except FreeholdError:
            raise refused() from None
        id = verify_request(secret, request.headers, body, service.routines.clock.now())
        routine = await run_blocking(service.routines.find, name)
        if routine is None or not routine.spec.webhook:
            raise refused()
        data = {"id": id, "body": read_body(body)}
        run = await run_blocking(partial(service.runs.trigger, name, f"webhook:{id}", data, who="webhook"))
        return HookAnswerBody(run=None if run is None else run.id)
