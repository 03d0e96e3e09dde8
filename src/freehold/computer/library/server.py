"""A program in the computer that serves one port there, for the host."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

from freehold.computer.library.computer import Computer
from freehold.computer.library.process import Process
from freehold.errors import FreeholdError

WAIT_STEP = 0.05
MAX_WORDS = 4096


@asynccontextmanager
async def start_server(
    computer: Computer, name: str, command: Sequence[str], *, port: int, cwd: str, env: Mapping[str, str]
) -> AsyncIterator[Process]:
    """The program runs during this block, in the group `name`. Begins when it listens on `port` itself.

    Raises `server.cannot-start` when it ends before, or when a program of another group has the port.
    """
    process = await computer.spawn(command, cwd=cwd, env=env, merge_stderr=True, apart=name)
    async with process:
        words = bytearray()
        draining = asyncio.ensure_future(_drain(process, words))
        try:
            await _wait_listening(computer, process, name, port, words)
            yield process
        finally:
            process.kill()
            draining.cancel()
            await asyncio.gather(draining, return_exceptions=True)


async def _wait_listening(computer: Computer, process: Process, name: str, port: int, words: bytearray) -> None:
    ended = asyncio.ensure_future(process.wait())
    try:
        while True:
            inodes = {one.inode for one in await computer.listening_sockets() if one.port == port}
            own = (await computer.socket_holders(inodes, apart=name)).keys() if inodes else set[int]()
            if inodes and inodes <= own:
                return
            if inodes - own:
                raise FreeholdError(
                    "server.cannot-start",
                    f"Another program in the computer listens on port {port}, which the {name} uses",
                    hint="freehold preview lists the programs that listen. End that one, and try again",
                )
            await asyncio.wait([ended], timeout=WAIT_STEP)
            if ended.done():
                last = bytes(words).decode(errors="replace").strip().splitlines()
                why = last[-1][:300] if last else "without a word"
                raise FreeholdError("server.cannot-start", f"The program of the {name} has ended: {why}")
    finally:
        ended.cancel()
        await asyncio.gather(ended, return_exceptions=True)


async def _drain(process: Process, words: bytearray) -> None:
    """So that it never waits to write. The last words are kept."""
    with suppress(FreeholdError):
        while data := await process.stdout.read():
            words += data
            del words[:-MAX_WORDS]
