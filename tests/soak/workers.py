"""The owner in the soak: prompts sessions, answers what agents ask, edits and restores files, and uses SSH."""

import asyncio
import random
import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.soak.client import CONNECTION_LOST, RETRY_INTERVAL, SoakClient
from tests.soak.file_model import FileModel
from tests.soak.ledger import Event, Ledger, SentAnswer, SentPrompt
from tests.soak.script import Work, WorkStep, plan_work

TURN_DEADLINE = 180.0
"""A turn that has not ended after so many seconds is stuck, whatever happened meanwhile."""
TURNS_PER_SESSION = 40
PAUSE = 0.1


@dataclass
class SoakRecord:
    """What all workers share: what was acknowledged, what the files may be, and what went wrong."""

    ledger: Ledger = field(default_factory=Ledger)
    files: FileModel = field(default_factory=FileModel)
    findings: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def report(self, finding: str | None) -> None:
        if finding is not None:
            self.findings.append(finding)


class SessionWorker:
    """Prompts one session after the other, each for some turns, without a pause."""

    def __init__(self, number: int, client: SoakClient, record: SoakRecord, dice: random.Random) -> None:
        self._number = number
        self._client = client
        self._record = record
        self._dice = dice
        self._session = ""
        self._seq = 0
        self._turns = 0

    async def run(self) -> None:
        while not self._record.stopping.is_set():
            if self._turns % TURNS_PER_SESSION == 0:
                self._session = (await self._client.ask_until_ok("POST", "/v1/sessions", {}))["id"]
                self._seq = 0
            self._turns += 1
            await self._run_turn(plan_work(self._dice, self._number, self._turns))
            await asyncio.sleep(PAUSE)

    async def _run_turn(self, work: Work) -> None:
        before = [self._begin(step) for step in work.steps]
        prompt = SentPrompt(self._session, uuid.UUID(int=self._dice.getrandbits(128)).hex, work.prompt)
        self._record.ledger.prompts[prompt.key] = prompt
        turn = await self._send(prompt)
        follower = TurnFollower(self._client, self._record, prompt.session, turn, work.answers)
        try:
            async with asyncio.timeout(TURN_DEADLINE):
                self._seq = await follower.follow(self._seq)
        except TimeoutError:
            self._record.report(f"turn {turn} of session {self._session} did not end within {TURN_DEADLINE:g} s")
            self._turns = -1  # go on with another session
            return
        self._record.counts[f"turns that ended with {follower.ending}"] += 1
        for place, step in enumerate(work.steps):
            self._settle(step, before[place], follower.outcome(step))

    async def _send(self, prompt: SentPrompt) -> int:
        body = {"text": prompt.text, "key": prompt.key}
        while True:
            accepted = await self._client.ask_until_ok("POST", f"/v1/sessions/{prompt.session}/prompt", body)
            self._record.report(self._record.ledger.note_prompt(prompt, accepted["turn"]))
            self._record.counts["prompts acknowledged"] += 1
            return int(accepted["turn"])

    def _begin(self, step: WorkStep) -> frozenset[str | None]:
        if step.kind == "write":
            return self._record.files.begin(step.path, step.content)
        self._record.files.begin_line(step.path, step.text)
        return frozenset()

    def _settle(self, step: WorkStep, before: frozenset[str | None], outcome: str) -> None:
        files = self._record.files
        self._record.counts[f"{step.kind}s: {outcome}"] += 1
        if step.kind == "write" and outcome == "done":
            files.settle(step.path, step.content)
        elif step.kind == "write" and outcome == "refused":
            files.refuse(step.path, before)
        elif outcome == "done":
            files.settle_line(step.path, step.text)
        elif outcome == "refused":
            files.refuse_line(step.path, step.text)


class TurnFollower:
    """Follows the events of a session to the end of one turn, and answers what the agent asks."""

    def __init__(
        self, client: SoakClient, record: SoakRecord, session: str, turn: int, answers: tuple[str, ...]
    ) -> None:
        self._client = client
        self._record = record
        self._session = session
        self._turn = turn
        self._answers = iter(answers)
        self._tools: dict[str, Event] = {}
        self._rejected: set[str] = set()
        self._asked: set[str] = set()
        self.ending = ""

    async def follow(self, seq: int) -> int:
        """Returns the number of the last event. The connection may be lost any number of times."""
        while True:
            try:
                async with self._client.events(self._session, seq) as events:
                    async for event in events:
                        if event["seq"] != seq + 1:
                            self._record.report(
                                f"event {event['seq']} of session {self._session} came after {seq} on the socket"
                            )
                        seq = event["seq"]
                        if await self._handle(event):
                            return seq
            except CONNECTION_LOST:
                pass
            await asyncio.sleep(RETRY_INTERVAL)

    async def _handle(self, event: Event) -> bool:
        """Returns whether it is the end of the turn."""
        self._record.report(self._record.ledger.note_event(self._session, event))
        data = event["data"]
        if event["kind"] == "approval" and data["state"] == "pending":
            await self._answer(data)
        elif event["kind"] == "tool" and event["turn"] == self._turn:
            self._tools[data["id"]] = data
        elif event["kind"] == "turn.ended" and event["turn"] == self._turn:
            error = data.get("error") or {}
            self.ending = error.get("code") or data["stop_reason"]
            return True
        return False

    async def _answer(self, approval: dict[str, Any]) -> None:
        """Until it is known to be answered: by this, by an earlier try whose answer was lost, or by nobody any more."""
        if approval["id"] in self._asked:
            return
        self._asked.add(approval["id"])
        answer = next(self._answers, "once")
        body = {"answer": answer, "digest": approval["digest"]}
        while True:
            reply = await self._client.ask("POST", f"/v1/approvals/{approval['id']}", body)
            if reply is not None and reply.ok:
                self._record.ledger.answers[approval["id"]] = SentAnswer(self._session, approval["id"], answer)
                self._record.counts["answers acknowledged"] += 1
                if answer == "reject":
                    self._rejected.add(approval["tool"])
                return
            if reply is not None and reply.status in (404, 409):
                return
            await asyncio.sleep(RETRY_INTERVAL)

    def outcome(self, step: WorkStep) -> str:
        """What is known of a step: `done`, `refused`, or `unknown`."""
        for tool in self._tools.values():
            given = tool.get("raw_input") or {}
            same_path = step.kind == "write" and step.path == given.get("path")
            # A rejected write shows no content; it is known by its path, which the turn writes only once.
            if same_path and tool["id"] in self._rejected and len(self._find_writes(step.path)) == 1:
                return "refused"
            written = same_path and step.text in str(tool.get("content"))
            run = step.kind == "append" and step.text in str(given.get("command"))
            if not written and not run:
                continue
            if tool["id"] in self._rejected:
                return "refused"
            succeeded = written or "[exit code 0]" in str(tool["content"])
            return "done" if tool["status"] == "completed" and succeeded else "unknown"
        return "unknown"

    def _find_writes(self, path: str) -> list[Event]:
        return [tool for tool in self._tools.values() if (tool.get("raw_input") or {}).get("path") == path]
