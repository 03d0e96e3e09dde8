"""A server that is a program inside the computer, over stdio."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from freehold.computer import Computer
from freehold.computer.contract.conventions import AGENTS_PATH, BASE_ENVIRONMENT, WORKSPACE
from freehold.computer.library.process import Process
from freehold.errors import FreeholdError
from freehold.mcp.protocol import MAX_MESSAGE, Json, decode_message
from freehold.mcp.section import McpServerSection

_PATH = f"{AGENTS_PATH}/.node/bin:{BASE_ENVIRONMENT['PATH']}"


class InsideTransport:
    def __init__(self, name: str, process: Process) -> None:
        self._name = name
        self._process = process
        self._pending = bytearray()

    async def send(self, message: Json) -> None:
        await self._process.write(json.dumps(message).encode() + b"\n")

    @asynccontextmanager
    async def ask(self, message: Json) -> AsyncIterator[AsyncIterator[Json]]:
        await self.send(message)
        yield self._read_messages()

    async def _read_messages(self) -> AsyncIterator[Json]:
        """Lines that are no messages are skipped: some programs write words there as well."""
        while True:
            line = await self._read_line()
            if line.startswith(b"{"):
                yield decode_message(self._name, line)

    async def _read_line(self) -> bytes:
        while (end := self._pending.find(b"\n")) < 0:
            data = await self._process.stdout.read()
            if not data:
                raise FreeholdError("mcp.ended", f"The MCP server {self._name} has ended")
            self._pending += data
            if len(self._pending) > MAX_MESSAGE:
                raise FreeholdError("mcp.too-large", f"The MCP server {self._name} sent more than {MAX_MESSAGE} bytes")
        line = bytes(self._pending[:end]).strip()
        del self._pending[: end + 1]
        return line


@asynccontextmanager
async def open_inside(
    computer: Computer, name: str, section: McpServerSection, session: str
) -> AsyncIterator[InsideTransport]:
    """Starts the program, behind the walls of the session's own programs. It ends with this block."""
    env = {"PATH": _PATH, **section.env}
    try:
        process = await computer.spawn(list(section.command), cwd=WORKSPACE, env=env, apart=session)
    except FreeholdError as error:
        raise FreeholdError("mcp.not-started", f"The MCP server {name} cannot be started: {error.message}") from error
    async with process:
        # Not in a task group: that would wrap the error of the caller's block.
        draining = asyncio.ensure_future(_drain(process))
        try:
            yield InsideTransport(name, process)
        finally:
            process.kill()
            draining.cancel()
            await asyncio.gather(draining, return_exceptions=True)


async def _drain(process: Process) -> None:
    """So that the program never waits to write. Nobody reads it."""
    with suppress(FreeholdError):
        while await process.stderr.read():
            pass
