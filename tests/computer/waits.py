"""Waits for conditions inside that cause no event."""

import asyncio
from collections.abc import Awaitable, Callable

from freehold.computer import Computer, RunningProcess


async def until(happened: Callable[[], Awaitable[bool]]) -> None:
    """Ask again until it is true. The time limit of the test ends it."""
    while not await happened():  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(0.01)


async def until_there(computer: Computer, path: str) -> None:
    await until(lambda: computer.files.exists(path))


async def alive(computer: Computer) -> list[RunningProcess]:
    return [one for one in await computer.processes() if one.state not in "ZX"]


async def until_quiet(computer: Computer) -> None:
    """Wait until only the guest runs inside and every zombie is reaped."""

    async def quiet() -> bool:
        return await computer.processes() == []

    await until(quiet)
