"""The agents' room on a real computer, with an actor for an agent and nobody else in the house."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from freehold.agents.approvals import Approval, Approvals
from freehold.agents.ground import Ground, Spent
from freehold.agents.registry import Access
from freehold.agents.room import Room
from freehold.agents.store import EventRow, SessionRow, Store
from freehold.computer import Computer
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.manifest import load_manifest
from freehold.timeline import Timeline

Json = dict[str, Any]
PATIENCE = 30.0
KINDS = ("resume", "load", "plain", "newer")


class Audience:
    """Remembers all that watchers were told, and lets a test wait for it."""

    def __init__(self) -> None:
        self.told: dict[str, list[EventRow]] = {}
        self.deltas: list[Json] = []
        self.rows: list[SessionRow] = []
        self.approvals: list[Approval] = []
        self._bell = asyncio.Event()

    def events(self, session: str, events: list[EventRow]) -> None:
        self.told.setdefault(session, []).extend(events)
        self._ring()

    def delta(self, session: str, data: Json) -> None:
        self.deltas.append(data)
        self._ring()

    async def until_said(self, words: str) -> None:
        """Until these words were passed on, whether they are kept yet or not."""
        async with asyncio.timeout(PATIENCE):
            while words not in "".join(delta["text"] for delta in self.deltas):
                await self._bell.wait()

    def session(self, row: SessionRow) -> None:
        self.rows.append(row)

    def gone(self, session: str) -> None:
        self.told.pop(session, None)

    def approval(self, approval: Approval) -> None:
        self.approvals.append(approval)

    def installing(self, data: Json) -> None:
        return

    def _ring(self) -> None:
        rung, self._bell = self._bell, asyncio.Event()
        rung.set()

    async def until(self, session: str, kind: str, count: int = 1, **wanted: Any) -> EventRow:
        """The `count`th event of this kind whose data holds these values."""
        async with asyncio.timeout(PATIENCE):
            while True:
                bell = self._bell
                found = [
                    event
                    for event in self.told.get(session, [])
                    if event.kind == kind and all(event.data.get(key) == value for key, value in wanted.items())
                ]
                if len(found) >= count:
                    return found[count - 1]
                await bell.wait()


class FreeMoney:
    """No model: actors need none."""

    stopped = False
    block: FreeholdError | None = None

    def access(self, provider: str | None, session: str, model: str | None) -> Access:
        raise FreeholdError("models.not-found", "There is none")

    def set_turn(self, session: str, turn: str | None) -> None:
        return

    async def spent(self, session: str, turn: str) -> Spent | None:
        return None

    def blocked(self, session: str) -> FreeholdError | None:
        return self.block

    def end_session(self, session: str) -> None:
        return

    def is_stopped(self) -> bool:
        return self.stopped


class Stage:
    """One room that runs; `again` ends it as a crash would and starts another on the same files."""

    def __init__(self, computer: Computer, folder: Path, idle: float) -> None:
        self.computer = computer
        self.home = Home(root=folder, run=folder / "run")
        self.idle = idle
        self.marks: list[Json] = []
        self.money = FreeMoney()

    async def start(self, group: asyncio.TaskGroup) -> None:
        self.timeline = Timeline(self.home.timeline)
        self.audience = Audience()
        store = Store(self.timeline)

        def told(session: str, events: list[EventRow], approval: Approval) -> None:
            self.audience.events(session, events)
            self.audience.approval(approval)

        ground = Ground(
            home=self.home,
            manifest=load_manifest(self.home.manifest, {}, home=self.home.root).manifest,
            store=store,
            approvals=Approvals(store, told, self.audience.session),
            watchers=self.audience,
            money=self.money,
            computer=lambda: self.computer,
            keeper=self._keeper,
        )
        self.room = Room(ground, idle=self.idle)
        store.prepare()
        self._group = group
        self._task = group.create_task(self.room.run())
        await self.room.ready.wait()

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self.timeline.close()

    async def again(self) -> None:
        await self.stop()
        await self.start(self._group)

    async def _keeper(self, method: str, params: Json) -> Any:
        self.marks.append({"method": method, **params})
        if method == "history.mark":
            return {"entry": len(self.marks), "changed": True}
        if method == "history.log":
            who = self.marks[-2]["who"]
            return {"entries": [{"id": len(self.marks) - 1, "who": who, "added": 1, "changed": 0, "removed": 0}]}
        return {"asked": params}

    async def open(self, agent: str = "actor") -> str:
        return (await self.room.open(agent, None, None, who="owner")).id

    async def say(self, session: str, *steps: Json, key: str | None = None, when: Any = "now", **more: Any) -> int:
        text = more.pop("text", None) or f"[{json.dumps(list(steps))}]"
        prompt = {"text": text, "files": more.pop("files", []), "images": more.pop("images", [])}
        turn, _ = await self.room.prompt(session, prompt, key or uuid.uuid4().hex, when, who="owner")
        return turn

    async def play(self, session: str, *steps: Json, **more: Any) -> EventRow:
        """A prompt to its end."""
        turn = await self.say(session, *steps, **more)
        return await self.ended(session, turn)

    async def ended(self, session: str, turn: int) -> EventRow:
        async with asyncio.timeout(PATIENCE):
            count = 1
            while True:
                event = await self.audience.until(session, "turn.ended", count)
                if event.turn == turn:
                    return event
                count += 1

    def said(self, session: str) -> str:
        told = self.audience.told.get(session, [])
        return "".join(event.data["text"] for event in told if event.kind == "message")


@asynccontextmanager
async def staged(computer: Computer, workspace: Path, folder: Path, *, idle: float = 600.0) -> AsyncIterator[Stage]:
    actor = workspace / "actor.py"
    actor.write_bytes((Path(__file__).parent / "actor.py").read_bytes())
    actor.chmod(0o644)
    lines = [
        '[agents]\ndefault = "actor"\n[agents.actor]\ncommand = "python3 /workspace/actor.py resume"\nmode = "ask"\n'
    ]
    lines += [f'[agents.{kind}]\ncommand = "python3 /workspace/actor.py {kind}"\nmode = "ask"\n' for kind in KINDS]
    lines.append('[agents.missing]\ncommand = "/nowhere/agent"\n')
    folder.mkdir(exist_ok=True)
    (folder / "freehold.toml").write_text("".join(lines))
    stage = Stage(computer, folder, idle)
    async with asyncio.TaskGroup() as group:
        await stage.start(group)
        try:
            yield stage
        finally:
            await stage.stop()
