"""Forks processes that run workflows and are killed at a chosen transaction. Their files run on this machine.

Each line of the input names the home, the number of the transaction, and `before` or `after` its commit; 0 kills nothing.
A home with a file `postgres` has its journal there: its content is the address. A transaction of either database counts.
The answer is the exit status of the process, which ends when no workflow is left.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

from tests.agents.session_harness import SessionHarness
from tests.support.condition import until

from freehold.computer import Computer
from freehold.observe.secrets import Secret
from freehold.routines.workflows.journal import Journal, TimelineJournal
from freehold.routines.workflows.postgres_journal import PostgresJournal, PostgresTransaction
from freehold.routines.workflows.program import WorkflowProgram, encode_begin, read_runner
from freehold.routines.workflows.records import Workflow
from freehold.routines.workflows.service import WorkflowService
from freehold.timeline import Timeline, Transaction

TIMEOUT = 60.0
T = TypeVar("T")


class LocalProgram:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout

    async def read(self) -> bytes:
        return await self._stdout.read(65536)

    async def write(self, data: bytes) -> None:
        self._stdin.write(data)
        await self._stdin.drain()

    async def read_printed(self) -> str:
        return ""


@asynccontextmanager
async def start_here(workflow: Workflow) -> AsyncIterator[WorkflowProgram]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-c", read_runner(), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    program = LocalProgram(process)
    await program.write(encode_begin(workflow))
    try:
        yield program
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


class Death:
    """Kills this process before or after the commit of one of its transactions."""

    count = 0
    at = 0
    phase = "before"

    @classmethod
    @contextmanager
    def wait(cls, transaction: AbstractContextManager[T]) -> Iterator[T]:
        cls.count += 1
        is_last = cls.count == cls.at
        with transaction as tx:
            yield tx
            if is_last and cls.phase == "before":
                os.kill(os.getpid(), signal.SIGKILL)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)


class DyingTimeline(Timeline):
    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with Death.wait(super().transaction()) as tx:
            yield tx


class DyingPostgres(PostgresJournal):
    @contextmanager
    def commit(self) -> Iterator[PostgresTransaction]:
        with Death.wait(super().commit()) as tx:
            yield tx


def open_journal(home: Path, timeline: Timeline, *, is_dying: bool = True) -> Journal:
    """The journal of a home."""
    if not (home / "postgres").exists():
        return TimelineJournal(timeline)
    kind = DyingPostgres if is_dying else PostgresJournal
    schema = f"w{home.name.replace('-', '_')}"
    return kind(timeline, {"url": (home / "postgres").read_text(), "schema": schema}, no_secrets, {})


def no_secrets(name: str) -> Secret:
    raise AssertionError(name)


async def main(home: Path) -> None:
    computer: Computer = None  # type: ignore[assignment] # the files of this test need none
    sessions = SessionHarness(computer, home, 600.0)

    async def read_source(file: str) -> str:
        return (home / file).read_text()

    async with asyncio.TaskGroup() as group:
        await sessions.start(group)
        journal = open_journal(home, DyingTimeline(home / "timeline.db"))
        service = WorkflowService(
            sessions.sessions, linger=0.0, start=start_here, read_source=read_source, journal=journal
        )
        running = group.create_task(service.run())
        await service.ready.wait()
        await until(lambda: not service.store.count_states(), TIMEOUT)
        running.cancel()
        journal.relay()
        await sessions.stop()


def run_driver(driver: "subprocess.Popen[str]", home: Path, number: int, phase: str) -> int:
    """Asks such a program for one process. Returns its exit status."""
    assert driver.stdin is not None
    assert driver.stdout is not None
    driver.stdin.write(f"{home} {number} {phase}\n")
    driver.stdin.flush()
    return int(driver.stdout.readline())


def serve(run: Callable[[Path], Coroutine[None, None, None]]) -> None:
    for line in sys.stdin:
        home, number, phase = line.split()
        child = os.fork()
        if child == 0:
            Death.at, Death.phase = int(number), phase
            asyncio.run(run(Path(home)))
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve(main)
