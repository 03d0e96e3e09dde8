"""Runs of the orchestrator: `/v1/slots/orchestrator`."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from pydantic import BaseModel, Field

from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import DIGITS, Positive, RequestBody, UrlFlag, UrlId, UrlNatural
from freehold.gateway.moments import to_moment
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import get, post
from freehold.slots import SlotCaller
from freehold.slots.contract import MAX_KEY
from freehold.slots.orchestrator.contract import (
    MAX_EVENTS,
    MAX_FOLDER,
    MAX_PAGE,
    MAX_PROMPT,
    MAX_TITLE,
    PERMISSIONS,
    ChangeKind,
    GetChanges,
    GetRun,
    ListRuns,
    ReadRun,
    Run,
    RunOutcome,
    RunPermission,
    RunState,
    SpawnRun,
    TakeChanges,
    TerminateRun,
)

RUNS = "/v1/slots/orchestrator/runs"
RunKey = Annotated[str | None, Field(min_length=1, max_length=MAX_KEY)]


class RunBody(BaseModel):
    """One agent with one prompt, in a throw-away computer. `cost` includes that of the runs below it.

    `lost`: it has ended because the process that ran it died. `entry` is the entry of history whose state it began with;
    null: as the folder was when it began.
    """

    id: str
    session: str
    agent: str
    title: str
    state: RunState
    parent: str | None
    depth: int
    folder: str | None
    budget: float | None
    cost: float | None
    created: datetime
    finished: datetime | None
    error: str | None
    added: int
    changed: int
    removed: int
    outcome: RunOutcome
    computer: str
    permissions: list[RunPermission]
    began_by: str
    lost: bool
    entry: int | None


class RunPageBody(BaseModel):
    """The newest first. Send `cursor` to get the next page; null on the last one.

    `cost` is what all runs of `parent`, or all runs, have cost so far as it is known, with the runs below them.
    """

    runs: list[RunBody]
    cursor: str | None
    cost: float


class RunEventBody(BaseModel):
    seq: int
    at: str
    kind: str
    data: dict[str, Any]


class RunEventsBody(BaseModel):
    """Send `cursor` as `after` to read on."""

    run: RunBody
    events: list[RunEventBody]
    cursor: int


class FileChangeBody(BaseModel):
    """A file that a run has changed. `conflict`: others have changed it too.

    `mode` has the type and the permissions that the file would have, as `st_mode`; null for one that is removed. `link`
    is where a link leads. `runs_by_itself` says what starts such a file without anybody asking for it. `traits` is the
    same in plain words.
    """

    path: str
    kind: ChangeKind
    size: int
    diff: str | None
    conflict: bool
    mode: int | None
    link: str | None
    runs_by_itself: str | None
    traits: list[str]


class RunChangesBody(BaseModel):
    """`total` counts all changes; `files` may hold only the first of them."""

    run: RunBody
    files: list[FileChangeBody]
    total: int


class SpawnRunBody(RequestBody):
    prompt: str = Field(min_length=1, max_length=MAX_PROMPT)
    agent: str | None = Field(default=None, max_length=100, description="Default: the default agent.")
    model: str | None = Field(default=None, max_length=200)
    title: str | None = Field(default=None, min_length=1, max_length=MAX_TITLE)
    folder: str | None = Field(
        default=None, max_length=MAX_FOLDER, description="A folder of the workspace of which it gets a copy."
    )
    budget: float | None = Field(default=None, gt=0, lt=1_000_000, description="It is ended when it has cost more.")
    permissions: list[RunPermission] | None = Field(
        default=None,
        max_length=len(PERMISSIONS),
        description="What it may do besides working in its computer. Default: everything. Without ask, what it asks is "
        "answered with no.",
    )
    entry: Positive | None = Field(
        default=None,
        description="The folder as it was right after this entry of history. Default: as it is now. Needs the scope history.",
    )
    key: RunKey = None


class StopRunBody(RequestBody):
    key: RunKey = None


class TakeChangesBody(RequestBody):
    how: Literal["merge", "drop"]
    force: bool = Field(default=False, description="Overwrite what others have changed meanwhile.")
    key: RunKey = None


class RunRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._slot = context.services.slots.get("orchestrator")

    @get(RUNS, scope="orchestrator")
    async def list_runs(
        self,
        request: Request,
        parent: Annotated[str | None, Query(max_length=64, description="Only runs of this session.")] = None,
        active: UrlFlag = False,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE), DIGITS] = 50,
        cursor: Annotated[str | None, Query(max_length=20)] = None,
    ) -> RunPageBody:
        page = await self._slot.call(ListRuns(parent, active, limit, cursor), _caller(request))
        return RunPageBody(runs=[run_body(one) for one in page.runs], cursor=page.cursor, cost=page.cost)

    @post(RUNS, status_code=201, scope="orchestrator")
    async def spawn_run(self, body: SpawnRunBody, request: Request) -> RunBody:
        """Begin a run. Needs the scope prompt as well, and history to begin it from an older state.

        An older state can hold what was deleted since. An entry that is not kept, or has no such folder, begins nothing.
        """
        principal = principal_of(request.scope)
        principal.require("prompt")
        if body.entry is not None:
            principal.require("history")
        wanted = SpawnRun(
            *(body.prompt, body.agent, body.model, body.title, body.folder, body.budget),
            None if body.permissions is None else tuple(body.permissions),
            body.key,
            body.entry,
        )
        return run_body(await self._slot.call(wanted, _caller(request)))

    @get(f"{RUNS}/{{run}}", scope="orchestrator")
    async def get_run(self, run: UrlId, request: Request) -> RunBody:
        return run_body(await self._slot.call(GetRun(run), _caller(request)))

    @get(f"{RUNS}/{{run}}/events", scope="orchestrator")
    async def read_run(
        self,
        run: UrlId,
        request: Request,
        after: UrlNatural = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_EVENTS), DIGITS] = 100,
        wait: Annotated[int, Query(ge=0, le=5, description="Seconds to wait for an event."), DIGITS] = 0,
    ) -> RunEventsBody:
        """What its agent says and does, after a cursor. Needs the scope prompt as well."""
        principal_of(request.scope).require("prompt")
        found = await self._slot.call(ReadRun(run, after, limit, float(wait)), _caller(request))
        events = [RunEventBody(seq=one.seq, at=one.at, kind=one.kind, data=dict(one.data)) for one in found.events]
        return RunEventsBody(run=run_body(found.run), events=events, cursor=found.cursor)

    @post(f"{RUNS}/{{run}}/stop", scope="orchestrator")
    async def stop_run(self, run: UrlId, body: StopRunBody, request: Request) -> RunBody:
        """End a run and its computer. What it has changed until then can be taken.

        A token ends runs that it began, and those of others with the scope admin.
        """
        return run_body(await self._slot.call(TerminateRun(run, body.key), _caller(request)))

    @get(f"{RUNS}/{{run}}/changes", scope="orchestrator")
    async def get_run_changes(self, run: UrlId, request: Request) -> RunChangesBody:
        """What it has changed in its copy, beside the files as they are now. Needs the scope files as well."""
        principal_of(request.scope).require("files")
        found = await self._slot.call(GetChanges(run), _caller(request))
        files = [FileChangeBody.model_validate({**vars(one), "traits": list(one.traits)}) for one in found.files]
        return RunChangesBody(run=run_body(found.run), files=files, total=max(found.total, len(files)))

    @post(f"{RUNS}/{{run}}/changes", scope="orchestrator")
    async def take_run_changes(self, run: UrlId, body: TakeChangesBody, request: Request) -> RunBody:
        """Merge its changes into the workspace, or drop them. Merging needs the scope files as well.

        A token takes the changes of runs that it began, and those of others with the scope admin.
        """
        if body.how == "merge":
            principal_of(request.scope).require("files")
        wanted = TakeChanges(run, body.how, body.force, body.key)
        return run_body(await self._slot.call(wanted, _caller(request)))


def run_body(run: Run) -> RunBody:
    finished = None if run.finished is None else to_moment(run.finished)
    return RunBody.model_validate({**vars(run), "created": to_moment(run.created), "finished": finished})


def _caller(request: Request) -> SlotCaller:
    principal = principal_of(request.scope)
    return SlotCaller(principal.who, is_admin=principal.has_scope("admin"))
