"""The program of a workflow: the file, run inside the computer."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.resources import files
from typing import Protocol

from freehold.agents.sessions.dependencies import SessionDependencies
from freehold.computer.contract.conventions import GUEST_PYTHON, HOST_COMMANDS, WORKSPACE
from freehold.computer.library.process import Process
from freehold.errors import FreeholdError
from freehold.routines.shell_command import read_end
from freehold.routines.workflows.records import Workflow

LOST = "The program of the workflow was lost"


class WorkflowProgram(Protocol):
    async def read(self) -> bytes:
        """What it says. Empty when it has ended. Raises when the computer was lost."""
        ...

    async def write(self, data: bytes) -> None:
        """Does nothing once it has ended."""
        ...

    async def read_printed(self) -> str:
        """The end of what it has printed. Returns when it has ended."""
        ...


StartProgram = Callable[[Workflow], AbstractAsyncContextManager[WorkflowProgram]]


class StartedProgram:
    def __init__(self, process: Process, printed: "asyncio.Future[str]") -> None:
        self._process = process
        self._printed = printed

    async def read(self) -> bytes:
        data = await self._process.stdout.read()
        if not data:
            await self._process.wait()
        return data

    async def write(self, data: bytes) -> None:
        await self._process.write(data)

    async def read_printed(self) -> str:
        return await self._printed


def read_runner() -> str:
    return files("freehold.routines.workflows").joinpath("runner.py").read_text()


def encode_begin(workflow: Workflow) -> bytes:
    """The first line that the program gets."""
    begin = {
        "source": workflow.source,
        "file": f"{WORKSPACE}/{workflow.file}",
        "data": dict(workflow.data),
        # A text that was approved cannot import another one that nobody has read.
        "imports": not workflow.pinned,
    }
    return json.dumps(begin).encode() + b"\n"


def start_in_computer(dependencies: SessionDependencies) -> StartProgram:
    """How programs are started in the computer. Leaving the context ends the program and all that it started."""
    runner = read_runner()

    @asynccontextmanager
    async def start(workflow: Workflow) -> AsyncIterator[WorkflowProgram]:
        computer = dependencies.computer()
        argv = [GUEST_PYTHON, "-I", "-c", runner]
        variables = {"WORKFLOW_ID": workflow.id}
        with computer.hold_awake():
            async with await computer.spawn(argv, cwd=WORKSPACE, env=variables, apart=HOST_COMMANDS) as process:
                printed = asyncio.ensure_future(read_end(process.stderr))
                try:
                    await process.write(encode_begin(workflow))
                    yield StartedProgram(process, printed)
                finally:
                    printed.cancel()
                    await asyncio.gather(printed, return_exceptions=True)

    return start


def lost(error: FreeholdError) -> str:
    return f"{LOST}: {error.message}"
