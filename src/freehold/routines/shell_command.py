"""A shell command of the owner in the computer, with the end of its output."""

import asyncio
import codecs
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from freehold.agents.sessions.dependencies import SessionDependencies
from freehold.computer import Computer
from freehold.computer.contract.conventions import OWNER_COMMANDS, WORKSPACE
from freehold.computer.library.process import Process
from freehold.computer.library.stream import ChannelStream
from freehold.errors import FreeholdError
from freehold.history.calls import MarkFiles, RequestAuthor
from freehold.history.model import SnapshotResult

MAX_OUTPUT = 6_000
"""Characters of the output that are kept: its end."""


@dataclass(frozen=True)
class ShellEnd:
    """`problem` says why it did not succeed."""

    output: str
    code: int
    problem: str | None


@dataclass
class StoppableCommand:
    """A command that may be stopped at any time, also while it waits for its turn and before its process runs."""

    process: Process | None = None
    is_stopped: bool = False

    def note(self, process: Process) -> None:
        self.process = process
        if self.is_stopped:
            process.kill()

    def stop(self) -> None:
        """Idempotent."""
        self.is_stopped = True
        if self.process is not None:
            self.process.kill()


async def run_shell(
    computer: Computer,
    command: str,
    *,
    told: bytes,
    variables: Mapping[str, str],
    longest: float,
    on_start: Callable[[Process], None],
) -> ShellEnd:
    """`told` is on its standard input. Cancelling this kills it."""
    argv = ["/bin/bash", "-lc", command]
    with computer.hold_awake():
        async with await computer.spawn(
            argv, cwd=WORKSPACE, env=variables, timeout=longest, merge_stderr=True, apart=OWNER_COMMANDS
        ) as process:
            on_start(process)
            feeding = asyncio.ensure_future(_feed(process, told))
            try:
                output = await read_end(process.stdout)
                exit = await process.wait()
            finally:
                feeding.cancel()
                await asyncio.gather(feeding, return_exceptions=True)
    code = exit.code if exit.code is not None else -(exit.signal or 0)
    problem = None
    if exit.timed_out:
        problem = f"It worked for {longest:g} s, which is its longest"
    elif exit.code != 0:
        how = f"exit code {exit.code}" if exit.code is not None else f"signal {exit.signal}"
        problem = f"The command ended with {how}"
    return ShellEnd(output, code, problem)


def tell_reason(routine: str) -> str:
    """What history says about an entry of a routine. That of a workflow has its step after it."""
    return f"routine {routine}"


async def mark_files(
    dependencies: SessionDependencies, phase: Literal["before", "after"], why: str
) -> SnapshotResult | None:
    """What a command changes becomes one entry of history. None without an answer of the keeper: it goes on then."""
    with suppress(FreeholdError):
        return await dependencies.keeper.call(MarkFiles(phase, "command", RequestAuthor(by="owner"), why))
    return None


async def _feed(process: Process, data: bytes) -> None:
    with suppress(FreeholdError):
        await process.write(data)
        process.close_stdin()


async def read_end(stream: ChannelStream, most: int = MAX_OUTPUT) -> str:
    """The end of the output. The rest is read too, so that the program does not block."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    kept, cut = "", False
    while data := await stream.read():
        kept += decoder.decode(data)
        if len(kept) > most:
            kept, cut = kept[-most:], True
    return f"…{kept}" if cut else kept
