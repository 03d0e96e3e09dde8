"""Runs of the orchestrator in this gateway: each is a session whose agent works in a computer of its own."""

import asyncio
import logging
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from freehold.agents.sessions.service import SessionService
from freehold.agents.threads import run_blocking
from freehold.computer import Computer
from freehold.computer.contract.conventions import HOST_COMMANDS, WORKSPACE
from freehold.errors import FreeholdError
from freehold.gateway.computer_access import ComputerAccess
from freehold.gateway.computer_link import ComputerLink
from freehold.gateway.run_changes import apply_changes, collect_changes, compare_changes, read_facts
from freehold.history.calls import RequestAuthor, TakeSnapshot
from freehold.keeper.calls import KeeperCaller, ListComputers, StartComputer, StopComputer
from freehold.slots.orchestrator.contract import FileChange, RunEvent, RunState
from freehold.slots.orchestrator.engine import (
    ChangedFile,
    ChildReport,
    ChildSpec,
    FileFacts,
    IsOverBudget,
    Report,
)

PREFIX = "run-"
"""How the names of computers begin in which runs work."""
LINK_TIMEOUT = 20.0
COPY_TIMEOUT = 300.0
LOOK_AGAIN = 0.25
BUDGET_INTERVAL = 1.0
LIMITS = {"memory": 2 * 1024**3, "disk": 4 * 1024**3}

log = logging.getLogger(__name__)


class SessionRunEngine:
    """`run` must run as long as it is used."""

    def __init__(self, access: ComputerAccess, keeper: KeeperCaller) -> None:
        self._access = access
        self._keeper = keeper
        self._sessions: SessionService | None = None
        self._computers: dict[str, Computer] = {}
        self._ends: dict[str, tuple[asyncio.Event, list[str]]] = {}
        self._group: asyncio.TaskGroup | None = None

    def use(self, sessions: SessionService) -> None:
        """The two need each other: sessions ask for the computer of a run."""
        self._sessions = sessions

    def own_computer(self, session: str) -> Computer | None:
        return self._computers.get(session)

    async def run(self) -> None:
        """Until cancelled. First stops computers that a former gateway has left."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            await self._stop_leftovers()
            await asyncio.Event().wait()

    async def open_session(
        self, agent: str | None, model: str | None, title: str, parent: str | None, who: str
    ) -> tuple[str, str]:
        row = await self._service().open(agent, title, model, who=who, parent=parent)
        return row.id, row.agent

    def launch(self, child: ChildSpec, report: Report, is_over_budget: IsOverBudget) -> None:
        assert self._group is not None  # `run` comes first
        self._ends[child.id] = (asyncio.Event(), [])
        self._group.create_task(self._live(child, report, is_over_budget))

    def end(self, id: str, reason: str) -> None:
        if id in self._ends:
            event, reasons = self._ends[id]
            reasons.append(reason)
            event.set()

    def end_all(self, reason: str) -> None:
        for id in list(self._ends):
            self.end(id, reason)

    async def read_events(self, session: str, after: int, limit: int) -> tuple[RunEvent, ...]:
        rows = await run_blocking(self._service().dependencies.store.events, session, after=after, limit=limit)
        return tuple(RunEvent(row.seq, row.at, row.kind, row.data) for row in rows)

    async def cost_of(self, session: str) -> float:
        return (await self._service().dependencies.models.usage_of(session)).cost or 0.0

    async def compare(self, changes: Sequence[ChangedFile], room: Path) -> tuple[FileChange, ...]:
        return await compare_changes(self._access.computer, changes, room)

    async def merge(self, changes: Sequence[ChangedFile], room: Path, why: str) -> None:
        """History records the state before and after, so that a merge can be undone."""
        owner = RequestAuthor(by="owner")
        with suppress(FreeholdError):
            await self._keeper.call(TakeSnapshot(owner, f"before: {why}"))
        await apply_changes(self._access.computer, changes, room)
        with suppress(FreeholdError):
            await self._keeper.call(TakeSnapshot(owner, why))

    # One run

    async def _live(self, child: ChildSpec, report: Report, is_over_budget: IsOverBudget) -> None:
        try:
            state, error = await self._work(child, report, is_over_budget)
        except FreeholdError as problem:
            state, error = "failed", problem.message
        except Exception:
            # A bug in one run must not end the others.
            log.exception("a run ended with an unexpected error", extra={"run": child.id})
            state, error = "failed", "Freehold has an error: freehold logs shows the cause"
        finally:
            self._ends.pop(child.id, None)
        with suppress(FreeholdError):
            await report(ChildReport(state=state, error=error))

    async def _work(
        self, child: ChildSpec, report: Report, is_over_budget: IsOverBudget
    ) -> tuple[RunState, str | None]:
        name = PREFIX + child.id
        await self._keeper.call(StartComputer(name, limits=dict(LIMITS), agents=True, who=child.who), timeout=60)
        try:
            async with self._access.link_computer(name, self._access.port_handlers) as link:
                # Errors are kept inside: the block would raise them in a group.
                try:
                    return await self._use(link, child, report, is_over_budget)
                except FreeholdError as error:
                    return "failed", error.message
                except TimeoutError:
                    return "failed", "The computer of the run did not answer in time"
        finally:
            with suppress(FreeholdError):
                await self._keeper.call(StopComputer(name), timeout=60)

    async def _use(
        self, link: ComputerLink, child: ChildSpec, report: Report, is_over_budget: IsOverBudget
    ) -> tuple[RunState, str | None]:
        """Copies the folder, lets the agent work, and keeps what it has changed."""
        async with asyncio.timeout(LINK_TIMEOUT):
            await link.wait_served()
        computer, folder, original = link.computer, child.folder or ".", dict[str, FileFacts]()
        if child.folder is not None:
            original = await read_facts(self._access.computer, folder)
            await copy_folder(self._access.computer, computer, folder)
        begin = await read_facts(computer, folder)
        self._computers[child.session] = computer
        try:
            outcome = await self._prompt(child, report, is_over_budget)
        finally:
            await self._service().stop(child.session, "The run has ended")
            del self._computers[child.session]
        child.room.mkdir(parents=True, exist_ok=True, mode=0o700)
        changes = await collect_changes(computer, folder, begin, original, child.room)
        await report(ChildReport(changes=changes))
        return outcome

    async def _prompt(
        self, child: ChildSpec, report: Report, is_over_budget: IsOverBudget
    ) -> tuple[RunState, str | None]:
        """Sends the prompt, and returns how the turn has ended."""
        service = self._service()
        prompt = {"text": child.prompt, "files": [], "images": []}
        await report(ChildReport(state="working"))
        await service.prompt(child.session, prompt, secrets.token_hex(8), "queue", who=child.who)
        told: RunState = "working"
        asked = 0.0
        while True:
            row = await service.get(child.session)
            if row.status in ("idle", "failed"):
                failed = row.status == "failed"
                return ("failed", await self._find_error(child.session)) if failed else ("done", None)
            ended, reasons = self._ends[child.id]
            if ended.is_set():
                return "ended", reasons[0]
            now: RunState = "needs_you" if row.status == "needs_you" else "working"
            if now == "needs_you" and not child.may_ask:
                await self._refuse_all(child.session)
            elif now != told:
                told = now
                await report(ChildReport(state=now))
            if asyncio.get_running_loop().time() - asked > BUDGET_INTERVAL:
                asked = asyncio.get_running_loop().time()
                if await is_over_budget():
                    return "ended", "It has cost more than its budget"
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN):
                    await ended.wait()

    async def _refuse_all(self, session: str) -> None:
        store = self._service().dependencies.approvals.store
        for approval in await run_blocking(store.list_pending, session):
            with suppress(FreeholdError):  # answered meanwhile
                await self._service().answer(approval.id, "reject", who="freehold")

    async def _find_error(self, session: str) -> str:
        event = await run_blocking(self._service().dependencies.store.find_last_event, session, "error")
        return "The agent failed" if event is None else str(event.data.get("message", "The agent failed"))[:500]

    async def _stop_leftovers(self) -> None:
        with suppress(FreeholdError):
            for one in (await self._keeper.call(ListComputers())).computers:
                if one.name.startswith(PREFIX):
                    with suppress(FreeholdError):
                        await self._keeper.call(StopComputer(one.name), timeout=60)

    def _service(self) -> SessionService:
        assert self._sessions is not None  # `use` comes first
        return self._sessions


async def copy_folder(source: Computer, target: Computer, folder: str) -> None:
    """Copies a folder of the workspace from one computer to another.

    Both ends are programs inside: the host only passes bytes on, and follows no path of an agent.
    """
    # What tar complains about is not read, and would fill its pipe.
    pack = [
        "/bin/sh",
        "-c",
        f'exec /bin/tar --create --file=- --directory={WORKSPACE} -- "$1" 2>/dev/null',
        "sh",
        folder,
    ]
    unpack = ["/bin/sh", "-c", f"exec /bin/tar --extract --file=- --directory={WORKSPACE} --no-same-owner 2>/dev/null"]
    async with asyncio.timeout(COPY_TIMEOUT):
        async with (
            await source.spawn(pack, apart=HOST_COMMANDS) as reading,
            await target.spawn(unpack, apart=HOST_COMMANDS) as writing,
        ):
            while piece := await reading.stdout.read():
                await writing.write(piece)
            writing.close_stdin()
            packed, unpacked = await reading.wait(), await writing.wait()
    # 1: a file changed while it was read, which is no more than what a copy of a living folder is.
    if packed.code not in (0, 1) or unpacked.code != 0:
        raise FreeholdError(
            "computer.command-failed",
            f"The folder {folder!a:.200} could not be copied",
            hint="Check that it exists in the workspace, and that it is not larger than the run may use",
        )
