"""Sets the hostile agent on a service of sessions that runs on a real computer."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.agents.session_harness import SessionHarness

from freehold.agents.sessions.approval_store import ApprovalRow
from freehold.computer import Computer

Json = dict[str, Any]
AGENT = Path(__file__).with_name("hostile_agent.py")
ASKING = {"modes": {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}]}}
"""What an agent says at session/new when it is in a mode that asks."""


def tool_call(**fields: Any) -> Json:
    """The act of asking for permission for a tool call."""
    acts = {name: fields.pop(name) for name in ("during", "yes", "no") if name in fields}
    more = fields.pop("params", {})
    return {"ask": {"params": {"toolCall": {"toolCallId": "t1", **fields}, **more}, **acts}}


class HostileSession:
    """One session of the hostile agent."""

    def __init__(self, harness: SessionHarness, session: str) -> None:
        self.harness = harness
        self.id = session
        self._asked = 0
        self._forgotten = 0

    async def prompt(self, *acts: Json) -> int:
        return await self.harness.prompt(self.id, text=json.dumps(list(acts)))

    async def play(self, *acts: Json) -> Json:
        """Runs one turn to its end. Returns the data of its end."""
        turn = await self.prompt(*acts)
        return (await self.harness.wait_ended(self.id, turn)).data

    async def wait_asked(self) -> ApprovalRow:
        """The next approval that waits for the owner."""
        self._asked += 1
        event = await self.harness.watchers.until(self.id, "approval", self._asked, state="pending")
        return self.harness.sessions.dependencies.approvals.store.get(event.data["id"])

    async def ask(self, *acts: Json) -> ApprovalRow:
        """Sends acts of which one asks, and waits for that. The turn is left running."""
        await self.prompt(*acts)
        return await self.wait_asked()

    async def answer(self, approval: ApprovalRow, answer: Any) -> None:
        await self.harness.sessions.answer(approval.id, answer, who="owner")

    async def stop(self) -> None:
        """Cancels the turn, if one is running."""
        await self.harness.sessions.cancel(self.id)
        turns = [event.turn for event in self.harness.watchers.events[self.id] if event.kind == "turn.started"]
        if turns:
            await self.harness.wait_ended(self.id, turns[-1] or 0)

    @property
    def said(self) -> str:
        """Everything that the agent has said, or since `forget_said`."""
        return self.harness.text_of(self.id)[self._forgotten :]

    def forget_said(self) -> None:
        self._forgotten = len(self.harness.text_of(self.id))

    def forget_wait(self) -> None:
        """The last `wait_asked` was given up: the approval that it waited for is still to come."""
        self._asked -= 1

    @property
    def asked(self) -> int:
        """How often the owner was asked."""
        events = self.harness.watchers.events.get(self.id, [])
        return sum(event.kind == "approval" and event.data["state"] == "pending" for event in events)


class HostileHarness:
    """Opens sessions with hostile agents of different characters. `base` is the service that they attack."""

    def __init__(self, base: SessionHarness, workspace: Path) -> None:
        self.base = base
        self._workspace = workspace
        self._count = 0

    async def open(
        self, *, new: Json | None = None, manifest: str = "", exception: bool = False, **more: Any
    ) -> HostileSession:
        """`new` is its answer to session/new; `manifest` are lines of its section; `more` is its character."""
        self._count += 1
        name = f"hostile{self._count}"
        character = self._workspace / f"{name}.json"
        character.write_text(json.dumps({"new": ASKING if new is None else new, **more}))
        with self.base.home.manifest.open("a") as file:
            file.write(
                f'[agents.{name}]\ncommand = "python3 /workspace/hostile_agent.py /workspace/{name}.json"\n{manifest}\n'
            )
            if exception:
                file.write('[security.exceptions.unasked-agent]\nreason = "the test"\n')
        await self.base.restart()
        return await self.reopen()

    async def reopen(self) -> HostileSession:
        """Another session with the last agent."""
        return HostileSession(self.base, await self.base.open(f"hostile{self._count}"))


@asynccontextmanager
async def run_hostile_harness(computer: Computer, workspace: Path, folder: Path) -> AsyncIterator[HostileHarness]:
    (workspace / "hostile_agent.py").write_bytes(AGENT.read_bytes())
    folder.mkdir(exist_ok=True)
    (folder / "freehold.toml").write_text("[ssh]\nenabled = false\n")
    base = SessionHarness(computer, folder, 600.0)
    async with asyncio.TaskGroup() as group:
        await base.start(group)
        try:
            yield HostileHarness(base, workspace)
        finally:
            await base.stop()
