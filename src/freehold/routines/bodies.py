"""The bodies of `/v1/routines` and `/v1/hooks`."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from freehold.gateway.inputs import RequestBody
from freehold.gateway.moments import to_moment
from freehold.routines.records import Routine, RoutineRun, RoutineRunState, RoutineState, RunMark
from freehold.routines.rules import TriggerKind, WorkKind, work_of
from freehold.routines.section import RoutineName, RoutineSection

MAX_TIMES = 100
MAX_TEXT = 10_000

ReadsWords = Callable[[WorkKind | None], bool]
"""Whether one who asks may read what work of a kind says. None is a run that has not begun."""


class AddRoutineBody(RequestBody):
    name: RoutineName
    routine: RoutineSection
    replace: bool = Field(default=False, description="Change the routine of this name, if there is one.")


class PlanRoutineBody(RequestBody):
    routine: RoutineSection
    count: int = Field(default=10, ge=1, le=MAX_TIMES)


class RunRoutineBody(RequestBody):
    text: str | None = Field(default=None, max_length=MAX_TEXT, description="What the run is told, as data.")


class RoutineTimesBody(BaseModel):
    """When the routine would begin; empty when it does not begin at times."""

    times: list[datetime]
    zone: str


class RoutineRunBody(BaseModel):
    """One run. `cost` in US dollars. `result` and `error` are null for a token that may not read what its work says."""

    id: str
    number: int
    routine: str
    state: RoutineRunState
    cause: str
    due: datetime
    begin: datetime
    attempt: int
    started: datetime | None
    finished: datetime | None
    session: str | None
    turn: int | None
    cost: float | None
    quiet: bool
    result: str | None
    error: str | None


class RoutineRunDetailsBody(RoutineRunBody):
    """`data` is what the trigger told: it comes from outside. It is empty where `result` is left out."""

    data: dict[str, Any]


class RoutineRunMarkBody(BaseModel):
    """A run in the strip of the last ones."""

    id: str
    state: RoutineRunState
    due: datetime
    cost: float | None
    quiet: bool


class RoutineBody(BaseModel):
    """One routine. `settings` has the keys that are set. `recent` are its last runs, the newest first."""

    name: str
    source: str
    state: RoutineState
    reason: str | None
    trigger: TriggerKind
    work: WorkKind
    next: datetime | None
    zone: str
    failures: int
    session: str | None
    cost: float
    settings: dict[str, Any]
    last: RoutineRunBody | None
    recent: list[RoutineRunMarkBody]


class RoutinePageBody(BaseModel):
    """By name. Send `cursor` as `after` to get the next page; null on the last one."""

    routines: list[RoutineBody]
    cursor: str | None


class RoutineRunPageBody(BaseModel):
    """The newest first. Send `cursor` as `before` to get the next page; null on the last one."""

    runs: list[RoutineRunBody]
    cursor: int | None


class RoutineRemovedBody(BaseModel):
    name: str


class RoutineHookBody(BaseModel):
    """Where the requests go, and the secret that signs them. It is shown once."""

    url: str
    secret: str


class HookAnswerBody(BaseModel):
    """`run` is null for a message that has begun a run before."""

    run: str | None


def describe_run(run: RoutineRun, reads: ReadsWords) -> RoutineRunBody:
    return RoutineRunBody.model_validate(_values(run, reads))


def describe_run_details(run: RoutineRun, reads: ReadsWords) -> RoutineRunDetailsBody:
    return RoutineRunDetailsBody.model_validate(_values(run, reads))


def _values(run: RoutineRun, reads: ReadsWords) -> dict[str, Any]:
    moments = {
        name: None if (moment := getattr(run, name)) is None else to_moment(moment)
        for name in ("due", "begin", "started", "finished")
    }
    words: dict[str, Any] = {} if reads(run.work) else {"result": None, "error": None, "data": {}}
    return {**vars(run), **moments, **words}


def describe_routine(
    routine: Routine, last: RoutineRun | None, recent: list[RunMark], cost: float, reads: ReadsWords
) -> RoutineBody:
    return RoutineBody(
        name=routine.name,
        source=routine.source,
        state=routine.state,
        reason=routine.reason if reads(work_of(routine.spec)) else None,
        trigger=routine.trigger,
        work=work_of(routine.spec),
        next=None if routine.next is None else to_moment(routine.next),
        zone=routine.zone,
        failures=routine.failures,
        session=routine.session,
        cost=cost,
        settings=routine.spec.model_dump(mode="json", exclude_defaults=True),
        last=None if last is None else describe_run(last, reads),
        recent=[RoutineRunMarkBody.model_validate({**vars(mark), "due": to_moment(mark.due)}) for mark in recent],
    )
