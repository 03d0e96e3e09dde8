"""Work that was sent to neighbours: sent once, followed to its end, and its files kept until the owner decides."""

import asyncio
import base64
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from freehold.errors import FreeholdError
from freehold.gateway.rate_limit import RateLimit
from freehold.mesh.archive import MAX_PACKED, ArchiveFile, digest_of, read_archive, read_folder
from freehold.mesh.hosted_work import WORK_RESULT
from freehold.mesh.neighbours import Neighbour
from freehold.mesh.nostr.event import BadEvent, read_signed_event
from freehold.mesh.returned_files import ReturnedFiles
from freehold.mesh.sent_jobs import OPEN, SentJob, SentJobs, WorkRequest, WorkState
from freehold.mesh.work_events import WorkEvents, show_text
from freehold.observe.logs import log_unexpected
from freehold.timeline.event import Json

if TYPE_CHECKING:
    from freehold.mesh.mesh import Mesh

MAX_OPEN = 20
MAX_RETURNED = 50
MAX_PAGES = 20
"""Answers that are read when the events of finished work are asked for again."""
ASKS_PER_SECOND, ASK_BURST = 5, 20
MIN_WAIT, MAX_WAIT = 0.5, 60.0
WAIT_THERE = 5
RESULT_TIMEOUT = 120.0
KEPT_SECONDS = 7 * 86_400
"""How long work waits for a neighbour that does not let it in."""
NOT_LET_IN = (401, 403, 410)
"""It may pair again, or give the grant back."""
SIGNATURE_HEADER = "freehold-signature"


class SentWork:
    """`run` follows all jobs that are not finished, also those of before a restart."""

    def __init__(self, mesh: "Mesh") -> None:
        self._mesh = mesh
        self._timeline = mesh.services.timeline
        self.jobs = SentJobs(self._timeline)
        self.returned = ReturnedFiles(mesh.services)
        self._events = WorkEvents()
        self._asks = RateLimit(ASKS_PER_SECOND, ASK_BURST)
        self._asking: set[str] = set()
        self._news = asyncio.Event()
        self._retry = asyncio.Event()
        self._new: asyncio.Queue[str] = asyncio.Queue()
        self._sending = asyncio.Lock()
        self._accepting = asyncio.Lock()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for job in await asyncio.to_thread(self.jobs.list, OPEN):
                group.create_task(self._follow(job.id))
            while True:
                group.create_task(self._follow(await self._new.get()))

    def retry(self) -> None:
        """A neighbour that was away is back: nobody waits longer."""
        self._retry.set()
        self._retry = asyncio.Event()

    # For the owner

    async def send(self, neighbour: Neighbour, request: WorkRequest, who: str, id: str | None = None) -> SentJob:
        """Stored before it is sent. Whatever happens then, it is begun once at most.

        `id` is given by who may ask again after a lost answer: the same request is sent once. Raises `mesh.conflict`
        when another one has it.
        """
        self._mesh.require_address(neighbour)
        if not request.prompt.strip():
            raise FreeholdError("mesh.bad-value", "The prompt is empty", hint="Write what shall be done")
        async with self._sending:
            known = None if id is None else await asyncio.to_thread(self.jobs.find, id)
            if known is not None:
                await self._require_same(known, neighbour, request)
                return known
            await self._check_room()
            job = SentJob(
                id or secrets.token_hex(8),
                neighbour.pubkey,
                request.words,
                "sending",
                None,
                time.time(),
                budget=request.budget,
            )
            await asyncio.to_thread(self.jobs.insert, job, request, neighbour.name, who)
        self._new.put_nowait(job.id)
        return job

    async def _check_room(self) -> None:
        if len(await asyncio.to_thread(self.jobs.list, OPEN)) >= MAX_OPEN:
            raise FreeholdError("mesh.too-many", f"{MAX_OPEN} jobs are not finished", hint="Wait for one of them")
        if len(await asyncio.to_thread(self.jobs.list, ("returned",))) >= MAX_RETURNED:
            raise FreeholdError(
                "mesh.too-many",
                f"The files of {MAX_RETURNED} jobs wait for your decision",
                hint="Accept or drop some of them: freehold mesh work",
            )

    async def _require_same(self, known: SentJob, neighbour: Neighbour, request: WorkRequest) -> None:
        stored = await asyncio.to_thread(self.jobs.read_request, known.id)
        same = (request.prompt, request.words, request.budget, request.permissions)
        if known.neighbour != neighbour.pubkey or same != (
            stored.prompt,
            stored.words,
            stored.budget,
            stored.permissions,
        ):
            raise FreeholdError("mesh.conflict", "This key was used for another request", hint="Use a new key")

    def is_asking(self, id: str) -> bool:
        """Whether its agent waits for an answer of the owner there."""
        return id in self._asking

    def events(self, id: str) -> list[dict[str, Any]]:
        """What its agent said and did, as far as it was heard since the last start."""
        return self._events.list(id)

    async def read_events(self, job: SentJob) -> list[dict[str, Any]]:
        """As `events`. Those of work that finished before the last start are asked for again, if the neighbour answers.

        They are kept only when all of them came: the next call asks again for what is missing.
        """
        if job.state in OPEN or job.agent is None or job.id in self._events:
            return self.events(job.id)
        heard = WorkEvents()
        with suppress(FreeholdError):
            for _ in range(MAX_PAGES):
                if not heard.take(job.id, await self._ask_events(job, heard.last(job.id), 0)):
                    break
            self._events.adopt(job.id, heard)
        return heard.list(job.id)

    async def wait_news(self, seconds: float) -> None:
        """Until something is heard of any work, or so many seconds are over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()

    def files(self, job: SentJob) -> list[ArchiveFile]:
        """What it returned and what waits for the owner's decision. Blocks."""
        return self.returned.read(job.id) if job.state == "returned" else []

    async def stop(self, id: str) -> SentJob:
        """Asks the neighbour to end it. What was not sent yet is never sent."""
        job = await asyncio.to_thread(self.jobs.get, id)
        if job.state == "sending":
            await self._change(id, state="ended", error="You stopped it before it was taken", finished=time.time())
        elif job.state == "working":
            neighbour = self._neighbour(job)
            await self._mesh.ask_neighbour(neighbour, f"/v1/mesh/hosted/{id}/stop", {})
        return await asyncio.to_thread(self.jobs.get, id)

    async def accept(self, id: str, folder: str, who: str, *, force: bool) -> SentJob:
        """Brings the returned files into a folder of the workspace, as one entry of history that can be undone.

        Files that exist there and differ are refused, and with them all, unless `force`.
        """
        parts = read_folder(folder)
        async with self._accepting:
            job = await asyncio.to_thread(self.jobs.get, id)
            if job.state != "returned":
                raise FreeholdError(
                    "mesh.conflict", f"The files of this work are {job.state}, so they cannot be accepted"
                )
            why = f"work of {self._name(job)}: {job.title}"
            entry = await self.returned.merge(id, parts, why, who, force=force)
            await self._change(id, state="accepted", entry=entry, folder="/".join(parts))
            await asyncio.to_thread(self.returned.forget, id)
            data: dict[str, Json] = {"work": id, "entry": entry, "folder": "/".join(parts), "files": job.files}
            await asyncio.to_thread(self._timeline.append, "mesh.work_accepted", data, who=who)
        return await asyncio.to_thread(self.jobs.get, id)

    async def drop(self, id: str, who: str) -> SentJob:
        """Forgets the returned files."""
        async with self._accepting:
            job = await asyncio.to_thread(self.jobs.get, id)
            if job.state != "returned":
                raise FreeholdError(
                    "mesh.conflict", f"The files of this work are {job.state}, so they cannot be dropped"
                )
            await asyncio.to_thread(self.returned.forget, id)
            await self._change(id, state="dropped")
            await asyncio.to_thread(self._timeline.append, "mesh.work_dropped", {"work": id}, who=who)
        return await asyncio.to_thread(self.jobs.get, id)

    # Following one job

    async def _follow(self, id: str) -> None:
        wait = MIN_WAIT
        while True:
            retry = self._retry
            try:
                job = await asyncio.to_thread(self.jobs.get, id)
                if job.state not in OPEN:
                    return
                if await self._advance(job):
                    wait = MIN_WAIT
                    continue
            except FreeholdError as error:
                if await self._is_refused(id, error):
                    await self._give_up(id, error)
                    return
                await self._change(id, error=error.message)
            except Exception as error:
                log_unexpected(error, "work at a neighbour could not be followed")
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await retry.wait()
            wait = min(MAX_WAIT, wait * 2)

    async def _advance(self, job: SentJob) -> bool:
        neighbour = self._neighbour(job)
        if job.state == "sending":
            request = await asyncio.to_thread(self.jobs.read_request, job.id)
            body: dict[str, Any] = {"id": job.id, "prompt": request.prompt, "title": job.title}
            limits = {"budget": request.budget, "permissions": request.permissions}
            body |= {name: value for name, value in limits.items() if value is not None}
            await self._mesh.ask_neighbour(neighbour, "/v1/mesh/hosted", body)
            await self._change(job.id, only_if="sending", state="working", error=None)
            if (await asyncio.to_thread(self.jobs.get, job.id)).state == "ended":
                # It was stopped while it was on its way.
                await self._mesh.ask_neighbour(neighbour, f"/v1/mesh/hosted/{job.id}/stop", {})
            return True
        # A neighbour that answers at once, although nothing happened, must not keep us busy.
        if wait := self._asks.wait(job.id):
            await asyncio.sleep(wait)
            self._asks.wait(job.id)
        found = await self._ask_events(job, self._events.last(job.id), WAIT_THERE)
        is_more = self._events.take(job.id, found)
        await self._note_progress(job, found)
        state = found.get("state")
        if state in ("done", "failed", "ended") and not is_more:  # one answer may not have had all that was said
            await self._finish(job, neighbour, cast(WorkState, state), found)
        return True

    async def _ask_events(self, job: SentJob, after: int, wait: int) -> dict[str, Any]:
        address = self._mesh.require_address(self._neighbour(job))
        path = f"/v1/mesh/hosted/{job.id}/events?after={after}&wait={wait}"
        return await self._mesh.peers.send(self._mesh.key, address, "GET", path, timeout=wait + 15.0)

    async def _note_progress(self, job: SentJob, found: Mapping[str, Any]) -> None:
        agent, cost = found.get("agent"), found.get("cost")
        values: dict[str, object] = {} if job.error is None else {"error": None}
        shown = show_text(agent, 100) or job.agent
        if shown != job.agent:
            values["agent"] = shown
        if isinstance(cost, int | float) and 0 <= cost < 1e9 and cost != job.cost:
            values["cost"] = float(cost)
        (self._asking.add if found.get("state") == "needs_you" else self._asking.discard)(job.id)
        if values:
            await asyncio.to_thread(self.jobs.change, job.id, values)
        self._tell_news()

    def _tell_news(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _finish(self, job: SentJob, neighbour: Neighbour, state: WorkState, found: Mapping[str, Any]) -> None:
        error = show_text(found.get("error"), 500) or None
        state = "lost" if found.get("lost") is True else state
        returned = 0
        if found.get("files"):
            packed = await self._fetch(job, neighbour)
            files = await asyncio.to_thread(read_archive, packed)
            if files:
                await asyncio.to_thread(self.returned.keep, job.id, packed)
                state, returned = "returned", len(files)
        await self._change(job.id, state=state, error=error, finished=time.time(), files=returned)
        data = {"work": job.id, "neighbour": neighbour.name, "state": state}
        await asyncio.to_thread(self._timeline.append, "mesh.work_finished", data)

    async def _fetch(self, job: SentJob, neighbour: Neighbour) -> bytes:
        """The archive, when its signature is that of this neighbour for this work. Raises `mesh.bad-signature`."""
        answer = await self._mesh.peers.send_raw(
            self._mesh.key,
            self._mesh.require_address(neighbour),
            "GET",
            f"/v1/mesh/hosted/{job.id}/archive",
            timeout=RESULT_TIMEOUT,
            max_reply=MAX_PACKED,
        )
        packed = answer.content
        try:
            event = read_signed_event(base64.b64decode(answer.headers.get(SIGNATURE_HEADER, "")[:8192], validate=True))
        except (BadEvent, ValueError):
            event = None
        is_right = (
            event is not None
            and event.pubkey == neighbour.pubkey
            and event.kind == WORK_RESULT
            and event.tag("work") == job.id
            and event.tag("p") == self._mesh.key.public
            and event.tag("x") == digest_of(packed)
        )
        if not is_right:
            raise FreeholdError("mesh.bad-signature", f"{neighbour.name} returned an archive that it did not sign")
        return packed

    async def _is_refused(self, id: str, error: FreeholdError) -> bool:
        """Whether it is of no use to ask again. What was not taken yet waits until its neighbour lets it in again."""
        if error.kind.status in NOT_LET_IN:
            job = await asyncio.to_thread(self.jobs.get, id)
            return job.state != "sending" or time.time() - job.created > KEPT_SECONDS
        return error.kind.status < 500 and error.kind.status not in (408, 429)

    async def _give_up(self, id: str, error: FreeholdError) -> None:
        """It was refused, or is not known there any more. It is never sent a second time."""
        job = await asyncio.to_thread(self.jobs.get, id)
        if job.state not in OPEN:
            return  # the owner has stopped it meanwhile
        state: WorkState = "lost" if job.state == "working" and error.kind.status in (401, 403, 404, 410) else "failed"
        await self._change(id, state=state, error=error.message, finished=time.time())
        data = {"work": id, "neighbour": self._name(job), "state": state}
        await asyncio.to_thread(self._timeline.append, "mesh.work_finished", data)

    def _neighbour(self, job: SentJob) -> Neighbour:
        found = self._mesh.neighbours.find(job.neighbour)
        if found is None:
            raise FreeholdError("mesh.not-found", "The neighbour is not paired any more")
        return found

    def _name(self, job: SentJob) -> str:
        found = self._mesh.neighbours.find(job.neighbour)
        return "a former neighbour" if found is None else found.name

    async def _change(self, id: str, *, only_if: WorkState | None = None, **values: object) -> None:
        await asyncio.to_thread(self.jobs.change, id, values, only_if)
        self._tell_news()
