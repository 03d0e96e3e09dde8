"""Waiting for what happens inside, where nothing tells us of it."""

import asyncio
from collections.abc import Awaitable, Callable

from freehold.computer import Computer, Running


async def until(happened: Callable[[], Awaitable[bool]]) -> None:
    """Ask again until it did; a test's own time limit is the end of it."""
    while not await happened():  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(0.01)


async def until_there(computer: Computer, path: str) -> None:
    await until(lambda: computer.files.exists(path))


async def alive(computer: Computer) -> list[Running]:
    return [one for one in await computer.processes() if one.state not in "ZX"]


async def until_quiet(computer: Computer) -> None:
    """Until nothing runs inside but the guest, and every zombie is reaped."""

    async def quiet() -> bool:
        return await computer.processes() == []

    await until(quiet)
