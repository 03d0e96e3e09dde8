"""A service of sessions on a real computer, with a scripted agent and with doubles for models and the keeper."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from tests.support.condition import DEADLINE

from freehold.agents.sessions.approval_store import ApprovalRow
from freehold.agents.sessions.approvals import Approvals
from freehold.agents.sessions.dependencies import HostGrant, SessionDependencies
from freehold.agents.sessions.rows import SessionEventRow, SessionRow
from freehold.agents.sessions.service import SessionService
from freehold.agents.sessions.store import SessionStore
from freehold.computer import Computer
from freehold.egress.models import ActiveStop, Endpoint, ModelUsage, TokenCounts
from freehold.errors import FreeholdError
from freehold.history.calls import EntryList, ListEntries, MarkFiles, PlanRestore, RestoreEntry, RestorePreview
from freehold.history.model import Author, EntryRecord, SnapshotResult
from freehold.home import Home
from freehold.keeper.calls import (
    ComputerUsage,
    DiskStatus,
    GetKeeperStatus,
    KeeperProcess,
    KeeperStatus,
    ManifestFile,
)
from freehold.manifest import load_manifest
from freehold.timeline import Timeline
from freehold.typed_call import TypedCall

Json = dict[str, Any]
Reply = TypeVar("Reply")
EVENT_TIMEOUT = DEADLINE
STOPPED = ActiveStop("2026-01-01T00:00:00Z", "owner", "test")
KINDS = ("resume", "load", "plain", "newer", "models")


class RecordingWatchers:
    """Records everything that is published, and lets a test wait for it."""

    def __init__(self) -> None:
        self.events: dict[str, list[SessionEventRow]] = {}
        self.deltas: list[Json] = []
        self.rows: list[SessionRow] = []
        self.approvals: list[ApprovalRow] = []
        self._changed = asyncio.Event()

    def publish_events(self, session: str, events: list[SessionEventRow]) -> None:
        self.events.setdefault(session, []).extend(events)
        self._notify()

    async def wait_event(self, session: str, after: int) -> None:
        while not any(one.seq > after for one in self.events.get(session, ())):
            await self._changed.wait()

    def publish_delta(self, session: str, data: Json) -> None:
        self.deltas.append(data)
        self._notify()

    async def until_text(self, text: str) -> None:
        """Until this text was published, stored or not."""
        async with asyncio.timeout(EVENT_TIMEOUT):
            while text not in "".join(delta["text"] for delta in self.deltas):
                await self._changed.wait()

    def publish_session(self, row: SessionRow) -> None:
        self.rows.append(row)

    def publish_deleted(self, session: str) -> None:
        self.events.pop(session, None)

    def publish_approval(self, approval: ApprovalRow) -> None:
        self.approvals.append(approval)

    def publish_installation(self, data: Json) -> None:
        return

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def until(self, session: str, kind: str, count: int = 1, **wanted: Any) -> SessionEventRow:
        """The `count`th event of this kind whose data has these values."""
        async with asyncio.timeout(EVENT_TIMEOUT):
            while True:
                changed = self._changed
                found = [
                    event
                    for event in self.events.get(session, [])
                    if event.kind == kind and all(event.data.get(key) == value for key, value in wanted.items())
                ]
                if len(found) >= count:
                    return found[count - 1]
                await changed.wait()


class NoModels:
    """A model gateway without models: the scripted agent needs none."""

    stopped: ActiveStop | None = None
    block: FreeholdError | None = None

    def endpoint_for(self, provider: str | None, session: str) -> Endpoint:
        raise FreeholdError("models.not-found", "There are no models")

    def set_turn(self, session: str, turn: str | None) -> None:
        return

    async def usage_of(self, session: str, turn: str | None = None) -> ModelUsage:
        return ModelUsage(0, TokenCounts(), None)

    def blocked(self, session: str) -> FreeholdError | None:
        return self.block

    def end_session(self, session: str) -> None:
        return


class NoHostAccess:
    """For sessions without host tools and without network permissions."""

    def grant(self, session: str) -> HostGrant:
        return HostGrant({})

    def mcp_servers(self, session: str, *, http: bool, expands_variables: bool) -> list[Json]:
        return []

    def revoke(self, session: str) -> None:
        return

    def forget(self, session: str) -> None:
        return


class RecordingKeeper:
    """Records every call and answers as if each turn had added one file. `service` answers instead, if it is set.

    It is asked for its status again and again; that is not recorded.
    """

    def __init__(self) -> None:
        self.calls: list[TypedCall[Any]] = []
        self.service: Callable[[TypedCall[Any]], Any] | None = None
        self.count_memory_kills: Callable[[], int | None] = lambda: 0

    async def call(self, call: TypedCall[Reply], *, timeout: float | None = None) -> Reply:
        if isinstance(call, GetKeeperStatus):
            return cast("Reply", make_keeper_status(self.count_memory_kills()))
        self.calls.append(call)
        if self.service is not None:
            return cast("Reply", await asyncio.to_thread(self.service, call))
        return cast("Reply", self._answer(call))

    def _answer(self, call: TypedCall[Any]) -> Any:
        if isinstance(call, MarkFiles):
            return SnapshotResult(len(self.calls), True)
        if isinstance(call, ListEntries):
            marked = self.calls[-2]
            author = marked.who.as_author() if isinstance(marked, MarkFiles) else Author()
            entry = EntryRecord(len(self.calls) - 1, 0.0, "turn", author, "", 1, 0, 0, None, None, False, 0, ())
            return EntryList((entry,))
        if isinstance(call, (PlanRestore, RestoreEntry)):
            return RestorePreview("restore", call.entry, (), 0, {}, "", (), False)
        return None


def make_keeper_status(memory_kills: int | None) -> KeeperStatus:
    usage = ComputerUsage(None, None, None, None, None, None, memory_kills, None)
    disk = DiskStatus("/", 1, 1, "ok", "")
    return KeeperStatus(
        "0", "/", "", True, None, (), KeeperProcess(1, 0.0, None), (), (), "", "", ManifestFile("", ""), (), None, usage,
        None, disk, None, (),
    )  # fmt: skip


class SessionHarness:
    """One running service of sessions. `restart` ends it as a crash would, and starts another on the same files."""

    def __init__(self, computer: Computer, folder: Path, idle: float) -> None:
        self.computer = computer
        self.home = Home(root=folder, run=folder / "run")
        self.idle = idle
        self.keeper = RecordingKeeper()
        self.models = NoModels()

    async def start(self, group: asyncio.TaskGroup) -> None:
        self.timeline = Timeline(self.home.timeline)
        self.watchers = RecordingWatchers()
        store = SessionStore(self.timeline)

        def publish_approval(session: str, events: list[SessionEventRow], approval: ApprovalRow) -> None:
            self.watchers.publish_events(session, events)
            self.watchers.publish_approval(approval)

        manifest = load_manifest(self.home.manifest, {}, home=self.home.root).manifest
        dependencies = SessionDependencies(
            home=self.home,
            read_manifest=lambda: manifest,
            store=store,
            approvals=Approvals(store, publish_approval, self.watchers.publish_session),
            watchers=self.watchers,
            models=self.models,
            host=NoHostAccess(),
            computer=lambda: self.computer,
            keeper=self.keeper,
        )
        self.sessions = SessionService(dependencies, idle=self.idle)
        store.prepare()
        self._group = group
        self._task = group.create_task(self.sessions.run())
        await self.sessions.ready.wait()

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self.timeline.close()

    async def restart(self) -> None:
        await self.stop()
        await self.start(self._group)

    async def open(self, agent: str = "actor") -> str:
        return (await self.sessions.open(agent, None, None, who="owner")).id

    async def prompt(self, session: str, *steps: Json, key: str | None = None, when: Any = "now", **more: Any) -> int:
        text = more.pop("text", None) or f"[{json.dumps(list(steps))}]"
        prompt = {"text": text, "files": more.pop("files", []), "images": more.pop("images", [])}
        turn, _ = await self.sessions.prompt(session, prompt, key or uuid.uuid4().hex, when, who="owner")
        return turn

    async def run_turn(self, session: str, *steps: Json, **more: Any) -> SessionEventRow:
        """Sends a prompt and waits until its turn has ended."""
        turn = await self.prompt(session, *steps, **more)
        return await self.wait_ended(session, turn)

    async def wait_ended(self, session: str, turn: int) -> SessionEventRow:
        async with asyncio.timeout(EVENT_TIMEOUT):
            count = 1
            while True:
                event = await self.watchers.until(session, "turn.ended", count)
                if event.turn == turn:
                    return event
                count += 1

    def text_of(self, session: str) -> str:
        events = self.watchers.events.get(session, [])
        return "".join(event.data["text"] for event in events if event.kind == "message")


@asynccontextmanager
async def run_harness(
    computer: Computer, workspace: Path, folder: Path, *, idle: float = 600.0, memory: int | None = None
) -> AsyncIterator[SessionHarness]:
    """`memory`: the limit of the computer, in MiB, as the manifest says it."""
    actor = workspace / "actor.py"
    actor.write_bytes((Path(__file__).parent / "actor.py").read_bytes())
    actor.chmod(0o644)
    lines = [
        '[agents]\ndefault = "actor"\n[agents.actor]\ncommand = "python3 /workspace/actor.py resume"\nmode = "ask"\n'
    ]
    lines += [f'[agents.{kind}]\ncommand = "python3 /workspace/actor.py {kind}"\nmode = "ask"\n' for kind in KINDS]
    lines.append('[agents.missing]\ncommand = "/nowhere/agent"\n')
    if memory is not None:
        lines.append(f'[computer.limits]\nmemory = "{memory}MiB"\n')
    folder.mkdir(exist_ok=True)
    (folder / "freehold.toml").write_text("".join(lines))
    harness = SessionHarness(computer, folder, idle)
    async with asyncio.TaskGroup() as group:
        await harness.start(group)
        try:
            yield harness
        finally:
            await harness.stop()
