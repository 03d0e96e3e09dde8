"""What goes wrong in a soak, each thing in turn. A fault is over when Freehold is ready again."""

import asyncio
import os
import random
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from tests.soak.client import SoakClient
from tests.soak.stand import SoakStand
from tests.soak.workers import SoakRecord
from tests.support.full_disk import fill_disk

RECOVERY_DEADLINE = 90.0
POLL_INTERVAL = 0.1
LONG_STOP = 33.0
"""Longer than the keeper waits for a program that does not answer."""
MAX_FREE = 20_000
"""With less than this many bytes free a disk is full."""
DAY = 86_400.0


@dataclass(frozen=True)
class Fault:
    name: str
    strike: Callable[[], Awaitable[None]]


class FaultSource:
    """Makes the faults of a run. All that is random comes from `dice`."""

    def __init__(self, stand: SoakStand, client: SoakClient, record: SoakRecord, dice: random.Random) -> None:
        self._stand = stand
        self._client = client
        self._record = record
        self._dice = dice

    def list_faults(self) -> list[Fault]:
        """One of each kind, in a random order."""
        killed = ("gateway", "ssh", "sandbox", "guest", "agent", "orphan guard")
        faults = [Fault(f"kill -9 {kind}", self._killer(kind)) for kind in killed]
        faults += [
            Fault("kill -9 keeper, freehold up", self._kill_keeper),
            Fault("SIGSTOP", self._stop_one),
            Fault("clock jump", self._jump_clock),
        ]
        if self._stand.own_disk:
            faults.append(Fault("full disk", self._fill_disk))
        self._dice.shuffle(faults)
        return faults

    async def wait_ready(self) -> bool:
        """Until Freehold answers that it is ready and the computer can be used."""
        with suppress(TimeoutError):
            async with asyncio.timeout(RECOVERY_DEADLINE):
                while True:
                    ready = await self._client.ask("GET", "/ready")
                    files = await self._client.ask("GET", "/v1/files/list")
                    if ready is not None and ready.ok and files is not None and files.ok:
                        return True
                    await asyncio.sleep(POLL_INTERVAL)
        return False

    def _killer(self, kind: str) -> Callable[[], Awaitable[None]]:
        async def strike() -> None:
            pids = self._stand.find_processes(kind)
            if pids:
                self._send(self._dice.choice(pids), signal.SIGKILL)
            else:
                self._record.counts[f"no {kind} to kill"] += 1

        return strike

    async def _kill_keeper(self) -> None:
        for command in await self._stand.kill_keeper():
            self._record.report(f"a process has outlived its keeper: {command}")
        self._record.report(await self._stand.start())

    async def _stop_one(self) -> None:
        kind = self._dice.choice(("keeper", "gateway", "ssh", "guest", "agent", "sandbox"))
        seconds = LONG_STOP if self._dice.random() < 0.2 else self._dice.uniform(2, 8)
        pids = self._stand.find_processes(kind)
        if not pids:
            return
        pid = self._dice.choice(pids)
        self._send(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._send(pid, signal.SIGCONT)

    async def _jump_clock(self) -> None:
        """Minutes, a day or a year, in either direction; the next jump is from there."""
        self._stand.set_clock(self._dice.choice((-1, 1)) * self._dice.choice((300.0, DAY, 40 * DAY, 366 * DAY)))

    async def _fill_disk(self) -> None:
        ballast = await asyncio.to_thread(fill_disk, self._stand.disk, self._dice.randrange(MAX_FREE))
        try:
            await asyncio.sleep(self._dice.uniform(3, 8))
        finally:
            ballast.unlink()

    @staticmethod
    def _send(pid: int, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
