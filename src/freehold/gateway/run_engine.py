"""Runs of the orchestrator in this gateway: each is a session whose agent works in a computer of its own."""

import asyncio
import logging
import secrets
import stat
from contextlib import suppress
from dataclasses import replace

from freehold.agents.catalogue.registry import choose_provider, find_agent
from freehold.agents.sessions.self_running_files import describe_self_running
from freehold.agents.sessions.service import SessionService
from freehold.agents.threads import run_blocking
from freehold.computer import Computer
from freehold.computer.contract.conventions import EGRESS_PORT
from freehold.egress.models.prices import Prices
from freehold.errors import FreeholdError
from freehold.gateway.computer_access import ComputerAccess
from freehold.history.calls import RESTORE_TIMEOUT, FileDiffText, RequestAuthor
from freehold.history.copy_calls import (
    CheckOutFolder,
    CollectCopy,
    CompareChangeSet,
    DropCopy,
    FindFolder,
    MergeChangeSet,
)
from freehold.keeper.calls import KeeperCaller, StartComputer, StopComputer
from freehold.slots.orchestrator.contract import RunChange, RunEvent, RunState
from freehold.slots.orchestrator.engine import (
    ChangeCounts,
    ChildReport,
    ChildSpec,
    IsOverBudget,
    Report,
    SessionCost,
    SessionWanted,
)

PREFIX = "run-"
"""How the names of the computers and of the working copies of runs begin."""
WORKSPACE = "workspace"
LINK_TIMEOUT = 20.0
COPY_TIMEOUT = 300.0
MAX_ROOM_WAIT = 30 * 86_400.0
"""Seconds for which a run waits for room in a fleet. A computer of this machine starts at once, or the keeper says why not."""
MAX_SHOWN = 200
LOOK_AGAIN = 0.25
BUDGET_INTERVAL = 1.0
MAX_ASKING = 86_400.0
"""Seconds for which a run waits for one answer of the owner. It keeps a computer and a place of few."""
MAX_REPORTS, REPORT_DELAY = 720, 5.0
"""How often the end of a run is told when it cannot be stored, and the seconds between."""
MAX_MOVES = 3
"""On how many machines a run is begun, one after the other: it goes on elsewhere up to twice."""
MOVED = (
    "Freehold: {why}. Your computer was started again on another machine. The files in /workspace are as they were last "
    "saved, and what was not saved is gone. Look at them, and go on with your task."
)
LIMITS = {"memory": 2 * 1024**3, "disk": 4 * 1024**3}

log = logging.getLogger(__name__)


class SessionRunEngine:
    """`run` must run as long as it is used. `image` is that of the computers: `computer.image` of the manifest."""

    def __init__(self, access: ComputerAccess, keeper: KeeperCaller, image: str | None) -> None:
        self._access = access
        self._keeper = keeper
        self._image = image
        self._sessions: SessionService | None = None
        self._computers: dict[str, Computer] = {}
        self._permissions: dict[str, frozenset[str]] = {}
        self._sessions_by_computer: dict[str, str] = {}
        self._ends: dict[str, tuple[asyncio.Event, list[str]]] = {}
        self._group: asyncio.TaskGroup | None = None

    def use(self, sessions: SessionService) -> None:
        """The two need each other: sessions ask for the computer of a run."""
        self._sessions = sessions

    @property
    def sessions(self) -> SessionService:
        assert self._sessions is not None  # `use` comes first
        return self._sessions

    def own_computer(self, session: str) -> Computer | None:
        return self._computers.get(session)

    def list_sessions(self) -> dict[str, str]:
        """The name of the computer of each run that has not ended → its session."""
        return dict(self._sessions_by_computer)

    def permissions_of(self, session: str) -> frozenset[str] | None:
        """What the session of a run may do; None for any other session, which may do everything."""
        if not self.sessions.dependencies.store.is_of_run(session):
            return None
        return self._permissions.get(session, frozenset())

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            await asyncio.Event().wait()

    async def check_state(self, folder: str, entry: int) -> None:
        await self._keeper.call(FindFolder(_in_history(folder), entry))

    async def open_session(self, wanted: SessionWanted) -> tuple[str, str]:
        if wanted.is_limited:
            await self._require_price(wanted.agent, wanted.model)
        row = await self.sessions.open(
            wanted.agent, wanted.title, wanted.model, who=wanted.who, parent=wanted.parent, of_run=True
        )
        return row.id, row.agent

    async def _require_price(self, agent: str | None, model: str | None) -> None:
        """A budget that nothing measures would be none."""
        manifest = self.sessions.dependencies.manifest
        definition = find_agent(manifest, agent or manifest.agents.default)
        name = model if model in manifest.models else choose_provider(definition, manifest)
        if name is None:
            is_known, what = definition.name == "builtin", f"{definition.title} uses no model provider of Freehold"
        else:
            prices = await run_blocking(Prices, self._access.models.provider(name).url)
            is_known, what = prices.find("any") is not None, f"The model provider {name} has no known prices"
        if not is_known:
            raise FreeholdError(
                "run.no-price.invalid", f"{what}, so that a budget cannot be kept", hint="Begin it without a budget"
            )

    def launch(self, child: ChildSpec, report: Report, is_over_budget: IsOverBudget) -> None:
        assert self._group is not None  # `run` comes first
        self._ends[child.id] = (asyncio.Event(), [])
        self._permissions[child.session] = frozenset(child.permissions)
        self._sessions_by_computer[PREFIX + child.id] = child.session
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
        rows = await run_blocking(self.sessions.dependencies.store.events, session, after=after, limit=limit)
        return tuple(RunEvent(row.seq, row.at, row.kind, row.data) for row in rows)

    async def wait_event(self, session: str, after: int) -> None:
        await self.sessions.dependencies.watchers.wait_event(session, after)

    async def cost_of(self, session: str) -> SessionCost:
        usage = await self.sessions.dependencies.models.usage_of(session)
        return SessionCost(usage.priced, usage.cost is not None or usage.requests == 0)

    async def compare(self, id: str) -> tuple[tuple[RunChange, ...], int]:
        await self._collect(id)
        found = await self._keeper.call(CompareChangeSet(PREFIX + id, MAX_SHOWN), timeout=COPY_TIMEOUT)
        conflicts = {one.path for one in found.conflicts}
        return tuple(describe_change(one, one.path in conflicts) for one in found.files), found.total

    async def merge(self, id: str, why: str, who: str, *, force: bool) -> None:
        """One entry of history, so that it can be undone."""
        session = who.removeprefix("session:") if who.startswith("session:") else None
        await self._collect(id)
        author = RequestAuthor(by="owner" if session is None else "agent", session=session)
        await self._keeper.call(MergeChangeSet(PREFIX + id, force, why, who=author), timeout=RESTORE_TIMEOUT)

    async def drop(self, id: str) -> None:
        await self._keeper.call(DropCopy(PREFIX + id), timeout=COPY_TIMEOUT)

    async def salvage(self, id: str) -> ChangeCounts:
        try:
            await self._keeper.call(StopComputer(PREFIX + id), timeout=60)
        except FreeholdError as error:
            if error.code not in ("computer.not-temporary", "computer.lost"):  # it has ended
                raise
        return await self._collect(id)

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
            self._permissions.pop(child.session, None)
            self._sessions_by_computer.pop(PREFIX + child.id, None)
        await self._tell_end(child, report, ChildReport(state=state, error=error))

    async def _tell_end(self, child: ChildSpec, report: Report, news: ChildReport) -> None:
        """Also when the disk is full for a while: a run that nobody knows to be over would keep its place."""
        for _ in range(MAX_REPORTS):
            try:
                await report(news)
            except FreeholdError as problem:
                log.warning("the end of a run was not recorded: %s", problem.message, extra={"run": child.id})
            else:
                return
            await asyncio.sleep(REPORT_DELAY)

    async def _work(
        self, child: ChildSpec, report: Report, is_over_budget: IsOverBudget
    ) -> tuple[RunState, str | None]:
        name = PREFIX + child.id
        folder = None if child.folder is None else _in_history(child.folder)
        try:
            await self._keeper.call(CheckOutFolder(name, folder, child.entry), timeout=COPY_TIMEOUT)
        except FreeholdError as error:
            await report(ChildReport(changes=ChangeCounts()))
            return "failed", error.message
        outcome = await self._use_or_move(name, child, report, is_over_budget)
        # When this fails, the copy stays as it is, and is collected by who looks at its changes.
        await report(ChildReport(changes=await self.salvage(child.id)))
        return outcome

    async def _use_or_move(
        self, name: str, child: ChildSpec, report: Report, is_over_budget: IsOverBudget
    ) -> tuple[RunState, str | None]:
        """A run whose computer is lost with its machine goes on in another one, from the last files."""
        for _ in range(MAX_MOVES):
            try:
                outcome = await self._use(name, child, report, is_over_budget)
            except FreeholdError as error:
                outcome = "failed", error.message
            why = await self._find_loss(name) if outcome[0] == "failed" else None
            if why is None:
                return outcome
            log.warning("a run moves: %s", why, extra={"run": child.id})
            child = replace(child, prompt=MOVED.format(why=why))
        return "failed", f"{why}, {MAX_MOVES} times"

    async def _find_loss(self, name: str) -> str | None:
        """Why its computer was lost, if it was. One that still runs is stopped."""
        try:
            await self._keeper.call(StopComputer(name), timeout=60)
        except FreeholdError as error:
            return error.message if error.code == "computer.lost" else None
        return None

    async def _use(
        self, name: str, child: ChildSpec, report: Report, is_over_budget: IsOverBudget
    ) -> tuple[RunState, str | None]:
        """Lets the agent work in a computer whose workspace is the copy."""
        await self._start_computer(name, child)
        if self._ends[child.id][0].is_set():
            return "ended", self._ends[child.id][1][0]
        handlers = self._access.port_handlers
        if "network" not in child.permissions:
            # Nothing inside can connect to anything then, whoever it says it is.
            handlers = {port: handle for port, handle in handlers.items() if port != EGRESS_PORT}
        async with self._access.link_computer(name, handlers) as link:
            # Errors are kept inside: the block would raise them in a group.
            try:
                async with asyncio.timeout(LINK_TIMEOUT):
                    await link.wait_served()
                self._computers[child.session] = link.computer
                try:
                    return await self._prompt(child, report, is_over_budget)
                finally:
                    # First of all its agent ends. Without a computer the session is read only.
                    try:
                        await self.sessions.stop(child.session, "The run has ended")
                    finally:
                        del self._computers[child.session]
            except FreeholdError as error:
                return "failed", error.message
            except TimeoutError:
                return "failed", "The computer of the run did not answer in time"

    async def _start_computer(self, name: str, child: ChildSpec) -> None:
        """In a fleet it waits for room. A run that is ended meanwhile waits no longer."""
        start = StartComputer(name, limits=dict(LIMITS), image=self._image, copy=name, agents=True, who=child.who)
        async with asyncio.TaskGroup() as group:
            ending = group.create_task(self._stop_when_ended(name, self._ends[child.id][0]))
            # An error is kept inside: the group would raise it in a group.
            found = await asyncio.gather(self._keeper.call(start, timeout=MAX_ROOM_WAIT), return_exceptions=True)
            ending.cancel()
        if isinstance(found[0], BaseException) and not self._ends[child.id][0].is_set():
            raise found[0]

    async def _stop_when_ended(self, name: str, ended: asyncio.Event) -> None:
        await ended.wait()
        with suppress(FreeholdError):  # it runs, or has never begun to wait
            await self._keeper.call(StopComputer(name), timeout=60)

    async def _collect(self, id: str) -> ChangeCounts:
        """Nothing when it had no copy yet."""
        try:
            found = await self._keeper.call(CollectCopy(PREFIX + id), timeout=COPY_TIMEOUT)
        except FreeholdError as error:
            if error.code == "history.not-found":
                return ChangeCounts()
            if error.code == "history.too-big":
                await self.drop(id)
                return ChangeCounts(note=error.message)
            raise
        note = f"Not kept: {'; '.join(found.skipped[:5])}" if found.skipped else None
        return ChangeCounts(found.added, found.changed, found.removed, note)

    async def _prompt(
        self, child: ChildSpec, report: Report, is_over_budget: IsOverBudget
    ) -> tuple[RunState, str | None]:
        """Sends the prompt, and returns how the turn has ended."""
        service = self.sessions
        prompt = {"text": child.prompt, "files": [], "images": []}
        await report(ChildReport(state="working"))
        await service.prompt(child.session, prompt, secrets.token_hex(8), "queue", who=child.who)
        told: RunState = "working"
        clock = asyncio.get_running_loop().time
        asked, answered = 0.0, clock()
        while True:
            row = await service.get(child.session)
            if row.status in ("idle", "failed"):
                failed = row.status == "failed"
                return ("failed", await self._find_error(child.session)) if failed else ("done", None)
            ended, reasons = self._ends[child.id]
            if ended.is_set():
                return "ended", reasons[0]
            now: RunState = "needs_you" if row.status == "needs_you" else "working"
            if now != "needs_you":
                answered = clock()
            elif clock() - answered > MAX_ASKING:
                return "ended", "You did not answer its question within a day"
            if now == "needs_you" and "ask" not in child.permissions:
                await self._refuse_all(child.session)
            elif now != told:
                told = now
                await report(ChildReport(state=now))
            if clock() - asked > BUDGET_INTERVAL:
                asked = clock()
                if await is_over_budget():
                    return "ended", "It has cost more than its budget, or that of a run above it"
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN):
                    await ended.wait()

    async def _refuse_all(self, session: str) -> None:
        store = self.sessions.dependencies.approvals.store
        for approval in await run_blocking(store.list_pending, session):
            with suppress(FreeholdError):  # answered meanwhile
                await self.sessions.answer(approval.id, "reject", who="freehold")

    async def _find_error(self, session: str) -> str:
        event = await run_blocking(self.sessions.dependencies.store.find_last_event, session, "error")
        return "The agent failed" if event is None else str(event.data.get("message", "The agent failed"))[:500]


def _in_history(folder: str) -> str:
    """A folder of the workspace as history names it."""
    return f"{WORKSPACE}/{folder}"


def describe_change(one: FileDiffText, conflict: bool) -> RunChange:
    """A file of a change set as the owner is shown it."""
    path, mode, link = one.path.removeprefix(f"{WORKSPACE}/"), one.new_mode, None
    if mode is not None and stat.S_ISLNK(mode):
        lines = [line[1:] for line in one.text.splitlines() if line.startswith("+") and not line.startswith("+++ b/")]
        link = "".join(lines) or one.note or "an unknown place"
    runs = None if mode is None else describe_self_running(f"/{WORKSPACE}/{path}")
    return RunChange(path, one.word, one.new_size or 0, one.text or None, conflict, mode, link, runs)
