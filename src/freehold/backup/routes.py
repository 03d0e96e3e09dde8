"""Backups in the API: `/v1/backup`. The recovery key is made on the command line only: it must not pass through a browser."""

import asyncio
import time
from datetime import datetime
from typing import Literal

from fastapi import Request
from pydantic import BaseModel, Field

from freehold.backup.recovery_state import is_set_up, read_recovery_state
from freehold.backup.requests import find_running_work, request_work
from freehold.backup.section import BackupSection
from freehold.backup.status import BackupStatus, describe_trouble, read_status
from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import RequestBody
from freehold.gateway.moments import to_moment
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import get, post


class LastBackupBody(BaseModel):
    number: int
    at: datetime
    checked: datetime = Field(description="When it was last found that nothing has changed since.")
    files: int
    total: int = Field(description="The bytes that it restores.")
    added: int = Field(description="The bytes that were stored for it.")
    notes: list[str] = Field(description="What was left out because it could not be read.")


class BackupCheckBody(BaseModel):
    """A verification, or a restore as a trial."""

    at: datetime
    problems: list[str]
    packs: int | None = Field(default=None, description="Packs that were read back.")
    all_packs: int | None = None
    number: int | None = Field(default=None, description="The backup that was restored.")


class BackupFailureBody(BaseModel):
    at: datetime
    code: str
    message: str
    hint: str


class RecoveryKeyBody(BaseModel):
    """What this machine knows of the recovery key: its public half."""

    recipient: str
    made: str
    tried: str | None


class BackupStateBody(BaseModel):
    """The state of the backups."""

    enabled: bool
    to: str
    after: int
    keep: dict[str, int]
    state: Literal["off", "ok", "warning", "failing"]
    trouble: str | None
    running: str | None = Field(description="The work that is being done: now, verify, rehearse or prune.")
    pending: datetime | None = Field(description="When the first change was made that is in no backup.")
    stored: int | None = Field(description="The size of all backups in bytes, as of the last verification.")
    last: LastBackupBody | None
    failure: BackupFailureBody | None
    verification: BackupCheckBody | None
    rehearsal: BackupCheckBody | None
    recovery_key: RecoveryKeyBody | None


class RequestBackupBody(RequestBody):
    work: Literal["now", "verify"] = "now"


class BackupStartedBody(BaseModel):
    work: Literal["now", "verify"]


class BackupRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services

    @get("/v1/backup", scope="read")
    async def get_backup(self) -> BackupStateBody:
        """The last backup, its verification, the state of the recovery key, and what is wrong."""
        section = self._services.manifest.section(BackupSection)
        status = await asyncio.to_thread(read_status, self._services.home)
        running = await find_running_work(self._services.home) if section.to else None
        recovery = read_recovery_state(self._services.home)
        trouble = (
            describe_trouble(status, has_key=is_set_up(self._services.home), now=time.time()) if section.to else None
        )
        state: Literal["off", "ok", "warning", "failing"] = "off" if not section.to else "ok"
        if trouble is not None:
            state = "failing" if trouble[1] else "warning"
        return BackupStateBody(
            enabled=bool(section.to),
            to=section.to,
            after=section.after,
            keep={"hourly": section.hourly, "daily": section.daily, "weekly": section.weekly},
            state=state,
            trouble=trouble[0] if trouble is not None else None,
            running=running,
            pending=to_moment(status.pending) if status.pending is not None else None,
            stored=status.stored,
            recovery_key=RecoveryKeyBody(**vars(recovery)) if recovery is not None else None,
            **_describe(status),
        )

    @post("/v1/backup/runs", status_code=202, scope="admin")
    async def start_backup(self, body: RequestBackupBody, request: Request) -> BackupStartedBody:
        """Make a backup now, or verify the backups. `GET /v1/backup` says when it has ended."""
        self._services.manifest.section(BackupSection).require_place()
        await request_work(self._services.home, body.work)
        who = principal_of(request.scope).who
        await asyncio.to_thread(self._services.timeline.append, "backup.requested", {"work": body.work}, who=who)
        return BackupStartedBody(work=body.work)


def _describe(status: BackupStatus) -> dict[str, BaseModel | None]:
    last, failure, verification, rehearsal = status.last, status.failure, status.verification, status.rehearsal
    return {
        "last": None
        if last is None
        else LastBackupBody(
            number=last.number,
            at=to_moment(last.at),
            checked=to_moment(last.checked),
            files=last.files,
            total=last.total,
            added=last.added,
            notes=list(last.notes),
        ),
        "failure": None
        if failure is None
        else BackupFailureBody(at=to_moment(failure.at), code=failure.code, message=failure.message, hint=failure.hint),
        "verification": None
        if verification is None
        else BackupCheckBody(
            at=to_moment(verification.at),
            problems=list(verification.problems),
            packs=verification.packs,
            all_packs=verification.all_packs,
        ),
        "rehearsal": None
        if rehearsal is None
        else BackupCheckBody(at=to_moment(rehearsal.at), problems=list(rehearsal.problems), number=rehearsal.number),
    }
