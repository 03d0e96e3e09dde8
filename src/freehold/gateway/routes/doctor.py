"""The doctor: tries to break out of a computer on this machine, and reports what happened."""

import asyncio
from dataclasses import asdict
from datetime import datetime
from typing import Literal

from fastapi import Request
from pydantic import BaseModel

from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import RequestBody
from freehold.gateway.moments import to_moment
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import delete, get, post


class EscapeAttemptBody(BaseModel):
    """One escape attempt. `unclear` counts as a failure: the attempt proved nothing."""

    name: str
    claim: str
    outcome: Literal["refused", "escaped", "unclear"]
    seen: str


class MissingWallBody(BaseModel):
    """A wall that cannot be built on this machine, and how to get it."""

    wall: str
    message: str
    hint: str


class IsolationFactsBody(BaseModel):
    """How a computer is isolated. `limits` names the mechanism that enforces each limit."""

    backend: str
    version: str
    runs_as: str
    walls: list[str]
    limits: dict[str, str]


class TriedExceptionBody(BaseModel):
    """What an exception of the manifest allows, used once, sealed. `adds` is everything that it adds."""

    name: str
    adds: list[str]
    is_right: bool
    seen: str


class DoctorReportBody(BaseModel):
    """The result of the last examination. `problem` says why it did not finish."""

    at: str
    who: str
    quick: bool
    seconds: float
    ok: bool
    problem: str | None
    facts: dict[str, str]
    missing_walls: list[MissingWallBody]
    manifest_errors: list[str]
    isolation: IsolationFactsBody | None
    attempts: list[EscapeAttemptBody]
    exceptions: list[TriedExceptionBody] = []


class DoctorRunBody(BaseModel):
    """A running examination. `total` is 0 until it is known."""

    since: datetime
    quick: bool
    total: int
    attempts: list[EscapeAttemptBody]


class DoctorStateBody(BaseModel):
    running: DoctorRunBody | None
    last: DoctorReportBody | None


class StartDoctorBody(RequestBody):
    """`quick` skips the attempts to use up memory, disk and processes."""

    quick: bool = False


class DoctorRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._doctor = context.doctor

    async def _state(self) -> DoctorStateBody:
        last = await asyncio.to_thread(self._doctor.read_last_report)
        current = self._doctor.current
        running = None
        if current is not None:
            attempts = [EscapeAttemptBody(**asdict(verdict)) for verdict in current.attempts]
            running = DoctorRunBody(
                since=to_moment(current.since), quick=current.quick, total=current.total, attempts=attempts
            )
        return DoctorStateBody(running=running, last=None if last is None else DoctorReportBody.model_validate(last))

    @get("/v1/doctor", scope="read")
    async def read_doctor(self) -> DoctorStateBody:
        """The last report, and the progress of a running examination."""
        return await self._state()

    @post("/v1/doctor", scope="admin")
    async def start_doctor(self, body: StartDoctorBody, request: Request) -> DoctorStateBody:
        """Try every escape in temporary computers. Progress is published on the topic `doctor`."""
        self._doctor.start(quick=body.quick, who=principal_of(request.scope).who)
        return await self._state()

    @delete("/v1/doctor", scope="admin")
    async def stop_doctor(self, request: Request) -> DoctorStateBody:
        """Stop a running examination. The last report stays."""
        self._doctor.stop(who=principal_of(request.scope).who)
        return await self._state()
