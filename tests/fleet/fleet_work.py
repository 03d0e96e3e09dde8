"""Computers at work on a fleet, and the processes behind it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from tests.support.condition import until
from tests.support.fleet import RunningFleet
from tests.support.processes import find_descendants

from freehold.computer import Computer, Limits
from freehold.computer.contract.spec import MIB
from freehold.fleet.machine import RemoteMachine

SMALL = Limits(cpus=0.25, memory=256 * MIB, tmp=16 * MIB)
NODES = 2
AT_WORK = 20
RAY_DEADLINE = 200.0
"""Ray takes a minute to start on a machine that is busy."""


def remote(computer: Computer) -> RemoteMachine:
    assert isinstance(computer.machine, RemoteMachine)
    return computer.machine


async def all_ready(fleet: RunningFleet) -> bool:
    found = await fleet.status_now()
    return found.is_ready and sum(node.state == "ready" for node in found.nodes) == NODES and not found.computers


def find_process(fleet: RunningFleet, name: str, words: str) -> int:
    process = fleet.head if name == "head" else fleet.nodes[name]
    assert process is not None
    found = [pid for pid, command in find_descendants(process.pid).items() if words in command]
    assert found, f"{name} has no {words}"
    return found[0]


async def run_jobs(computers: list[Computer]) -> "asyncio.Future[list[bytes | BaseException]]":
    """A job in each computer that writes a line when it begins, so that one that is done twice is seen."""

    async def work(computer: Computer, number: int) -> bytes:
        return (await computer.run(f"echo began >> began; sleep 1.5; wc -l < began; echo done-{number}")).stdout

    jobs = asyncio.gather(*(work(one, number) for number, one in enumerate(computers)), return_exceptions=True)
    await asyncio.sleep(0.5)
    return jobs


@contextlib.asynccontextmanager
async def at_work(fleet: RunningFleet, count: int = AT_WORK) -> AsyncIterator[list[Computer]]:
    computers = await asyncio.gather(*(Computer.start(on=fleet.place, limits=SMALL)._open() for _ in range(count)))
    try:
        yield computers
    finally:
        await asyncio.gather(*(one.close() for one in computers))
        await until(lambda: all_ready(fleet), RAY_DEADLINE)


def split(results: list[bytes | BaseException]) -> tuple[list[bytes], list[BaseException]]:
    return (
        [one for one in results if isinstance(one, bytes)],
        [one for one in results if isinstance(one, BaseException)],
    )
