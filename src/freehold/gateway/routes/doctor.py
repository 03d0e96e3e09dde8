"""The doctor: tries to break out of a computer on this machine, and tells what was seen."""

import asyncio
from typing import Literal

from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict

from freehold.gateway.examining import Examiner
from freehold.gateway.guard import principal_of
from freehold.gateway.needs import needs


class Attempt(BaseModel):
    """One escape that was tried. Unclear is no better than escaped: the attempt told nothing."""

    name: str
    claim: str
    outcome: Literal["refused", "escaped", "unclear"]
    seen: str


class MissingWall(BaseModel):
    """A wall that cannot be built on this machine, and what to do about it."""

    wall: str
    message: str
    hint: str


class IsolationFacts(BaseModel):
    """What really holds a computer; `limits` says by which mechanism each limit is held."""

    backend: str
    version: str
    uid: int
    walls: list[str]
    limits: dict[str, str]


class DoctorReport(BaseModel):
    """What the last examination found. `problem` says why it did not come to its end."""

    at: str
    who: str
    quick: bool
    seconds: float
    ok: bool
    problem: str | None
    facts: dict[str, str]
    missing_walls: list[MissingWall]
    manifest_errors: list[str]
    isolation: IsolationFacts | None
    attempts: list[Attempt]


class DoctorRun(BaseModel):
    """An examination under way; `total` is 0 until it is known."""

    since: float
    quick: bool
    total: int
    attempts: list[Attempt]


class DoctorState(BaseModel):
    running: DoctorRun | None
    last: DoctorReport | None


class Examine(BaseModel):
    """`quick` leaves out the attempts to use up memory, disk and processes."""

    model_config = ConfigDict(extra="forbid")
    quick: bool = False


def add_doctor(app: FastAPI, examiner: Examiner) -> None:
    async def state() -> DoctorState:
        last = await asyncio.to_thread(examiner.last)
        current = examiner.current
        running = None
        if current is not None:
            attempts = [Attempt.model_validate(attempt) for attempt in current.attempts]
            running = DoctorRun(since=current.since, quick=current.quick, total=current.total, attempts=attempts)
        return DoctorState(running=running, last=None if last is None else DoctorReport.model_validate(last))

    @app.get("/v1/doctor")
    @needs("read")
    async def read_doctor() -> DoctorState:
        """What the doctor found last, and how far it is when it is at work."""
        return await state()

    @app.post("/v1/doctor")
    @needs("admin")
    async def start_doctor(body: Examine, request: Request) -> DoctorState:
        """Have the doctor try every escape, in computers of its own; how far it is comes on the topic `doctor`."""
        examiner.start(quick=body.quick, who=principal_of(request.scope).who)
        return await state()

    @app.delete("/v1/doctor")
    @needs("admin")
    async def stop_doctor(request: Request) -> DoctorState:
        """Stop an examination under way; the last report stays."""
        examiner.stop(who=principal_of(request.scope).who)
        return await state()
