"""Work that neighbours have sent here. Each job is a run of the orchestrator, in a computer of its own with an empty folder."""

import asyncio
import base64
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freehold.errors import FreeholdError
from freehold.history.copy_calls import ChangeSetFile, ReadChangeSet
from freehold.mesh.archive import MAX_BYTES, MAX_FILES, ArchiveFile, digest_of, find_problem, pack_files
from freehold.mesh.archive_response import TIMEOUT
from freehold.mesh.neighbours import Neighbour
from freehold.mesh.nostr.event import NostrEvent, sign_event
from freehold.mesh.nostr.keys import NostrKey
from freehold.mesh.section import MeshWorkSection
from freehold.mesh.sent_jobs import WorkRequest
from freehold.slots import Slot
from freehold.slots.contract import SlotCaller
from freehold.slots.orchestrator.contract import (
    MAX_PAGE,
    UNFINISHED,
    GetRun,
    ListRuns,
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
    """What a neighbour asks for is data: it is the prompt of an agent that gets no folder of this Freehold.

    `require_work` raises `mesh.denied` for a key that may not send work any more.
    """

    def __init__(self, services: "Services", section: MeshWorkSection, require_work: Callable[[str], object]) -> None:
        self._services = services
        self._section = section
        self._require_work = require_work
        self._begin = asyncio.Lock()
        self._archives: dict[str, float] = {}
        """Until when an archive is sent to whom."""

    async def begin(self, neighbour: Neighbour, id: str, request: WorkRequest) -> Run:
        """Begins a job once, however often it is asked for by the same id."""
        beginning = asyncio.ensure_future(self._begin_once(neighbour, id, request))
        beginning.add_done_callback(_ignore_result)
        # Also when its request is cut off: a job that began and is not noted could not be ended with the others.
        return await asyncio.shield(beginning)

    async def _begin_once(self, neighbour: Neighbour, id: str, request: WorkRequest) -> Run:
        async with self._begin:
            self._require_work(neighbour.pubkey)  # it may have been taken back while this request waited
            known = await self._find(neighbour, id)
            if known is not None:
                return await self._get(known)
            if len(await self._list_active(neighbour)) >= self._section.max_jobs:
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
        return await self._end(await self._get(await self._require(neighbour, id)))

    async def stop_all(self, neighbour: Neighbour) -> None:
        """Ends its jobs that run, also one that is about to begin. For one that may not send work any more."""
        async with self._begin:
            with suppress(FreeholdError):  # there is no orchestrator any more, and so no run
                for run in await self._list_active(neighbour):
                    with suppress(FreeholdError):  # it has just ended
                        await self._end(run)

    def begin_archive(self, neighbour: Neighbour) -> None:
        """One archive at a time for each neighbour: it is in memory as a whole. Raises `mesh.too-many`."""
        now = time.monotonic()
        if self._archives.get(neighbour.pubkey, now) > now:
            raise FreeholdError("mesh.too-many", "An archive is sent to you already", hint="Wait for its end")
        self._archives[neighbour.pubkey] = now + 2 * TIMEOUT

    def end_archive(self, neighbour: Neighbour) -> None:
        """Idempotent."""
        self._archives.pop(neighbour.pubkey, None)

    async def pack(self, neighbour: Neighbour, id: str, key: NostrKey) -> SignedArchive:
        """The files that a finished job has made, signed. Links, special files and names that are not plain are left out."""
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

    async def _list_active(self, neighbour: Neighbour) -> list[Run]:
        """Its jobs that have not finished, however many others it has begun since."""
        found: list[Run] = []
        cursor: str | None = None
        while True:
            page = await self._slot.call(ListRuns(active=True, limit=MAX_PAGE, cursor=cursor), SlotCaller("freehold"))
            found += page.runs
            cursor = page.cursor
            if cursor is None:
                break
        sql = "SELECT 1 FROM mesh_hosted_work WHERE pubkey = ? AND run = ?"
        query = self._services.timeline.query
        return [one for one in found if await asyncio.to_thread(query, sql, (neighbour.pubkey, one.id))]

    async def _end(self, run: Run) -> Run:
        """In the name of who began it: the neighbour may have had another one then."""
        return await self._slot.call(TerminateRun(run.id), SlotCaller(run.began_by))

    def _note(self, neighbour: Neighbour, id: str, run: Run) -> None:
        with self._services.timeline.transaction() as tx:
            tx.execute(
                "INSERT INTO mesh_hosted_work (pubkey, id, run, created) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (neighbour.pubkey, id, run.id, time.time()),
            )
            tx.append("mesh.work_received", {"neighbour": neighbour.name, "run": run.id})


def _ignore_result(done: "asyncio.Future[Run]") -> None:
    """Who waits gets it. When nobody waits any more, a refusal is no error of ours."""
    if not done.cancelled():
        done.exception()


def _take(found: dict[str, tuple[int, bytearray]], one: ChangeSetFile) -> int:
    """Adds a part of a file. How many bytes it has."""
    path = one.path.removeprefix("workspace/")
    if not stat.S_ISREG(one.mode) or find_problem(path) is not None:
        return 0  # one of them would refuse all others
    data = base64.b64decode(one.data)
    found.setdefault(path, (one.mode, bytearray()))[1].extend(data)
    return len(data)
