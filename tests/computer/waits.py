"""Waits for conditions inside that cause no event."""

from tests.support.condition import until

from freehold.computer import Computer, RunningProcess


async def until_there(computer: Computer, path: str) -> None:
    await until(lambda: computer.files.exists(path))


async def alive(computer: Computer) -> list[RunningProcess]:
    return [one for one in await computer.processes() if one.state not in "ZX"]


async def until_quiet(computer: Computer) -> None:
    """Wait until only the guest runs inside and every zombie is reaped."""

    async def quiet() -> bool:
        return await computer.processes() == []

    await until(quiet)
