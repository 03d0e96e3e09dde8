"""Work that neighbours have sent here. Each job is a run of the orchestrator, in a computer of its own with an empty folder."""

import asyncio
import base64
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freehold.errors import FreeholdError
from freehold.history.calls import ChangeSetFile, ReadChangeSet
from freehold.mesh.archive import MAX_BYTES, MAX_FILES, ArchiveFile, digest_of, pack_files
from freehold.mesh.neighbours import Neighbour
from freehold.mesh.nostr.event import NostrEvent, sign_event
from freehold.mesh.nostr.keys import NostrKey
from freehold.mesh.section import MeshWorkSection
from freehold.mesh.sent_jobs import WorkRequest
from freehold.slots import Slot
from freehold.slots.contract import SlotCaller
from freehold.slots.errors import SlotError
from freehold.slots.orchestrator.contract import (
    UNFINISHED,
    GetRun,
    ReadRun,
    Run,
    RunEvents,
    RunPermission,
    SpawnRun,
    TerminateRun,
)

if TYPE_CHECKING:
    from freehold.gateway.services import Services

WORK_RESULT = 24_570
"""The kind of the event that signs an archive."""
COPY_PREFIX = "run-"
READ_TIMEOUT = 60.0


@dataclass(frozen=True)
class SignedArchive:
    packed: bytes
    signature: NostrEvent


class HostedWork:
    """What a neighbour asks for is data: it is the prompt of an agent that gets no folder of this Freehold."""

    def __init__(self, services: "Services", section: MeshWorkSection) -> None:
        self._services = services
        self._section = section
        self._begin = asyncio.Lock()

    async def begin(self, neighbour: Neighbour, id: str, request: WorkRequest) -> Run:
        """Begins a job once, however often it is asked for by the same id."""
        async with self._begin:
            known = await self._find(neighbour, id)
            if known is not None:
                return await self._get(known)
            if await self._count_active(neighbour) >= self._section.max_jobs:
                raise FreeholdError(
                    "mesh.too-many",
                    f"{self._section.max_jobs} jobs of you run here already",
                    hint="Wait for one of them",
                )
            wanted = SpawnRun(
                request.prompt,
                self._section.agent,
                self._section.model,
                request.title,
                folder=None,
                budget=min((one for one in (self._section.budget, request.budget) if one is not None), default=None),
                permissions=self._choose_permissions(request),
                key=f"mesh-{neighbour.pubkey[:16]}-{id}",
            )
            run = await self._slot.call(wanted, self._caller(neighbour))
            await asyncio.to_thread(self._note, neighbour, id, run)
        return run

    async def read(self, neighbour: Neighbour, id: str, after: int, seconds: float) -> RunEvents:
        run = await self._require(neighbour, id)
        return await self._slot.call(ReadRun(run, after, 100, seconds), self._caller(neighbour))

    async def stop(self, neighbour: Neighbour, id: str) -> Run:
        return await self._slot.call(TerminateRun(await self._require(neighbour, id)), self._caller(neighbour))

    async def stop_all(self, neighbour: Neighbour) -> None:
        """Ends its jobs that run. For one that was evicted."""
        sql = "SELECT run FROM mesh_hosted_work WHERE pubkey = ? ORDER BY created DESC LIMIT 50"
        for (run,) in await asyncio.to_thread(self._services.timeline.query, sql, (neighbour.pubkey,)):
            with suppress(FreeholdError):  # it has ended and is forgotten, or cannot be reached
                if (await self._get(run)).state in UNFINISHED:
                    await self._slot.call(TerminateRun(run), self._caller(neighbour))

    async def pack(self, neighbour: Neighbour, id: str, key: NostrKey) -> SignedArchive:
        """The files that a finished job has made, signed. Links and special files are left out."""
        run = await self._require(neighbour, id)
        if (await self._get(run)).state in UNFINISHED:
            raise FreeholdError("mesh.unfinished", "The work has not finished", hint="Wait for its end")
        files = await self._read_files(COPY_PREFIX + run)
        packed = await asyncio.to_thread(pack_files, files)
        tags = [["x", digest_of(packed)], ["work", id], ["p", neighbour.pubkey]]
        return SignedArchive(packed, sign_event(key, WORK_RESULT, "", tags))

    async def _read_files(self, name: str) -> list[ArchiveFile]:
        found: dict[str, tuple[int, bytearray]] = {}
        index: int | None = 0
        offset = total = 0
        while index is not None:
            try:
                part = await self._services.keeper.call(ReadChangeSet(name, index, offset), timeout=READ_TIMEOUT)
            except FreeholdError as error:
                if error.code == "history.not-found":  # it has changed nothing
                    return []
                raise
            for one in part.files:
                total += _take(found, one)
            if total > MAX_BYTES or len(found) > MAX_FILES:
                raise FreeholdError(
                    "mesh.too-large", f"The work made more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB"
                )
            index, offset = part.index, part.offset
        return [ArchiveFile(path, bytes(data), bool(mode & 0o100)) for path, (mode, data) in sorted(found.items())]

    @property
    def _slot(self) -> Slot:
        slot = self._services.slots.get("orchestrator")
        if slot.implementation != "local":
            raise FreeholdError(
                "mesh.not-offered", "This Freehold does no work for others: slots.orchestrator is not local"
            )
        return slot

    def _choose_permissions(self, request: WorkRequest) -> tuple[RunPermission, ...]:
        """Never what is the owner's: memory, data, work items, events, history and further runs."""
        given: dict[RunPermission, bool] = {"ask": self._section.may_ask, "network": self._section.network}
        wanted = given if request.permissions is None else request.permissions
        return tuple(name for name, is_given in given.items() if is_given and name in wanted)

    def _caller(self, neighbour: Neighbour) -> SlotCaller:
        return SlotCaller(f"token:neighbour-{neighbour.name}")

    async def _get(self, run: str) -> Run:
        return await self._slot.call(GetRun(run), SlotCaller("freehold"))

    async def _require(self, neighbour: Neighbour, id: str) -> str:
        run = await self._find(neighbour, id)
        if run is None:
            raise FreeholdError("mesh.not-found", f"There is no work {id[:40]!a} of you here")
        return run

    async def _find(self, neighbour: Neighbour, id: str) -> str | None:
        sql = "SELECT run FROM mesh_hosted_work WHERE pubkey = ? AND id = ?"
        rows = await asyncio.to_thread(self._services.timeline.query, sql, (neighbour.pubkey, id))
        return rows[0][0] if rows else None

    async def _count_active(self, neighbour: Neighbour) -> int:
        sql = "SELECT run FROM mesh_hosted_work WHERE pubkey = ? ORDER BY created DESC LIMIT 50"
        active = 0
        for (run,) in await asyncio.to_thread(self._services.timeline.query, sql, (neighbour.pubkey,)):
            try:
                active += (await self._get(run)).state in UNFINISHED
            except SlotError as error:
                if error.problem != "not-found":
                    raise
        return active

    def _note(self, neighbour: Neighbour, id: str, run: Run) -> None:
        with self._services.timeline.transaction() as tx:
            tx.execute(
                "INSERT INTO mesh_hosted_work (pubkey, id, run, created) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (neighbour.pubkey, id, run.id, time.time()),
            )
            tx.append("mesh.work_received", {"neighbour": neighbour.name, "run": run.id})


def _take(found: dict[str, tuple[int, bytearray]], one: ChangeSetFile) -> int:
    """Adds a part of a file. How many bytes it has."""
    path = one.path.removeprefix("workspace/")
    if not stat.S_ISREG(one.mode) or "\\x" in path:
        return 0
    data = base64.b64decode(one.data)
    found.setdefault(path, (one.mode, bytearray()))[1].extend(data)
    return len(data)
