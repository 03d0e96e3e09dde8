"""One soak: work goes on while things go wrong, and afterwards everything that was acknowledged is looked for."""

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.soak.client import SoakClient
from tests.soak.faults import FaultSource
from tests.soak.ledger import Event
from tests.soak.owner import FileWorker, SshWorker
from tests.soak.script import choose_soak_step
from tests.soak.stand import SoakStand
from tests.soak.workers import TURN_DEADLINE, SessionWorker, SoakRecord

from freehold.testing import ScriptedModel

SESSIONS = 4
FAULT_INTERVAL = 6.0
"""Seconds from the start of one fault to the next, so that each kind comes about once a minute."""
EXAMINATION_DEADLINE = 300.0


class Soak:
    def __init__(self, folder: Path, seed: int, *, own_disk: bool, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._dice = random.Random(seed)
        self._own_disk = own_disk
        self._say = say
        self.record = SoakRecord()
        self.struck: Counter[str] = Counter()
        self.slowest_recovery: dict[str, float] = {}

    async def run(self, seconds: float) -> None:
        """Afterwards `record.findings` has what was wrong."""
        async with ScriptedModel(choose_soak_step) as model:
            self.stand = await asyncio.to_thread(SoakStand, self._folder, model.url, own_disk=self._own_disk)
            try:
                self.record.report(await self.stand.start())
                self.client = SoakClient(self.stand.harness.url, self.stand.create_token())
                await self._work(seconds)
                async with asyncio.timeout(EXAMINATION_DEADLINE):
                    await self._examine()
                await self.client.close()
            finally:
                await self.stand.stop()

    async def _work(self, seconds: float) -> None:
        workers: list[SessionWorker | FileWorker | SshWorker] = [
            *(SessionWorker(number, self.client, self.record, self._fork()) for number in range(SESSIONS)),
            FileWorker(self.client, self.record, self._fork()),
            SshWorker(self.stand, self.record),
        ]
        tasks: dict[str, list[asyncio.Task[None]]] = {}
        for worker in workers:
            tasks.setdefault(type(worker).__name__, []).append(asyncio.create_task(worker.run()))
        await self._strike(seconds)
        self.record.stopping.set()
        for name, running in tasks.items():
            _, pending = await asyncio.wait(running, timeout=TURN_DEADLINE)
            for task in pending:
                self.record.report(f"{len(pending)} of {name} did not finish")
                task.cancel()
            for task in running:
                if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                    raise error

    async def _strike(self, seconds: float) -> None:
        """Fault after fault, at least one of each kind."""
        source = FaultSource(self.stand, self.client, self.record, self._fork())
        end = time.monotonic() + seconds
        while not self.struck or time.monotonic() < end:
            for fault in source.list_faults():
                if self.struck and len(self.struck) >= len(source.list_faults()) and time.monotonic() > end:
                    break
                begun = time.monotonic()
                await fault.strike()
                struck = time.monotonic()
                if not await source.wait_ready():
                    self.record.report(f"not ready {time.monotonic() - struck:.0f} s after: {fault.name}")
                took = time.monotonic() - struck
                self.struck[fault.name] += 1
                self.slowest_recovery[fault.name] = max(took, self.slowest_recovery.get(fault.name, 0.0))
                self._say(f"{fault.name}, ready again after {took:.1f} s")
                await asyncio.sleep(max(0.0, begun + FAULT_INTERVAL - time.monotonic()))

    async def _examine(self) -> None:
        """Start once more without any fault, and look for everything."""
        report = self.record.report
        self.stand.set_clock(0.0)
        code = await self.stand.stop()
        if code:
            report(f"freehold up ended with {code} when it was stopped")
        failed = await self.stand.start()
        self.record.findings += self.client.bugs
        self.record.findings += find_tracebacks(self.stand.home.root / "logs")
        if failed is not None:
            report(failed)
            return
        self.record.findings += self.record.ledger.find_missing(await self._read_sessions())
        self.record.findings += self.record.files.find_differences(self.stand.home.workspace)
        await self._compare_history()
        for words in (("timeline", "verify"), ("history", "verify")):
            verified = await self.stand.run(*words)
            if verified.returncode:
                report(f"freehold {' '.join(words)}: {verified.stdout}{verified.stderr}")

    async def _read_sessions(self) -> dict[str, list[Event]]:
        found: dict[str, list[Event]] = {}
        for session in self.record.ledger.events:
            events: list[Event] = []
            after: int | None = 0
            while after is not None:
                path = f"/v1/sessions/{session}/events?after={after}&limit=1000"
                page = await self.client.ask_until_ok("GET", path)
                events += page["events"]
                after = page["next"]
            found[session] = events
            status = (await self.client.ask_until_ok("GET", f"/v1/sessions/{session}"))["status"]
            if status in ("working", "queued"):
                self.record.report(f"session {session} is {status} after the end")
        return found

    async def _compare_history(self) -> None:
        """The newest entry has the files as they are."""
        newest = (await self.client.ask_until_ok("GET", "/v1/history?limit=1"))["entries"][0]["id"]
        compared = await self.client.ask_until_ok("GET", f"/v1/history/compare?old={newest}&new=now")
        if compared["total"]:
            paths = ", ".join(one["path"] for one in compared["files"][:5])
            self.record.report(f"history has not noticed {compared['total']} changes: {paths}")

    def _fork(self) -> random.Random:
        return random.Random(self._dice.getrandbits(64))


def find_tracebacks(logs: Path) -> list[str]:
    """Exceptions that nobody expected, each once, with the line that raised it."""
    found: Counter[str] = Counter()
    for path in sorted(logs.rglob("*")):
        if path.is_file():
            for line in path.read_text(errors="replace").splitlines():
                if "Traceback (most recent call last)" in line:
                    found[f"{path.name}: {re.sub(r'[0-9a-f]{8,}|[0-9]+', '#', line[-400:])}"] += 1
    return [f"{times} × in the log {words}" for words, times in found.items()]
