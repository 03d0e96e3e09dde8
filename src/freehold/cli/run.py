"""`freehold run`."""

import asyncio
import os
import signal
import stat
import sys
from typing import TYPE_CHECKING

import click

from freehold.cli._options import home_option
from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.computer.process import Process
    from freehold.computer.stream import Stream

CHUNK = 64 * 1024


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND…")
@click.option("--timeout", type=click.FloatRange(min=0.1), metavar="SECONDS", help="End it after so long.")
@click.option("--cwd", default="/workspace", show_default=True, metavar="FOLDER", help="Where in the computer.")
@home_option
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...], timeout: float | None, cwd: str, home: Home) -> None:
    """Run a command in the computer: its output is yours, its exit code too, and history marks what it changed.

    One word is given to a shell, several are started as they are. Input that is piped in goes to it; for a terminal
    use freehold ssh.

    \b
    Examples:
      freehold run pytest -q
      freehold run 'grep -r TODO . | wc -l'
      tar c notes | freehold run tar x
    """
    ctx.exit(asyncio.run(_run(home, list(words) if len(words) > 1 else words[0], cwd, timeout)))


async def _run(home: Home, command: list[str] | str, cwd: str, timeout: float | None) -> int:
    from freehold.computer import Computer
    from freehold.keeper.client import KeeperClient
    from freehold.observe.secrets import mask

    keeper = KeeperClient(home)
    shown = command if isinstance(command, str) else " ".join(command)
    mark = {"kind": "command", "who": {"by": "owner"}, "why": mask(shown)[:200]}
    await keeper.call("history.mark", {"phase": "before", **mark})
    try:
        opening = Computer.connect(home.computer_socket)
        async with opening as computer, await computer.spawn(command, cwd=cwd, timeout=timeout) as process:
            code = await _attended(process)
    except OSError as error:
        raise FreeholdError(
            "computer.not-connected", f"The computer cannot be reached: {error}", hint="freehold status shows how it is"
        ) from None
    finally:
        await keeper.call("history.mark", {"phase": "after", **mark})
    return code


async def _attended(process: "Process") -> int:
    """Its exit code; 128 and the signal's number when a signal ended it."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, process.signal, number)
    feeding = asyncio.ensure_future(_feed(process))
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_copy(process.stdout, sys.stdout.fileno()))
            group.create_task(_copy(process.stderr, sys.stderr.fileno()))
        ended = await process.wait()
    finally:
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
    if ended.timed_out:
        click.echo("ended at its time limit", err=True)
        return 124
    return ended.code if ended.code is not None else 128 + (ended.signal or 0)


async def _copy(stream: "Stream", descriptor: int) -> None:
    """To whatever our own output is; a reader who has gone away ends the command, as in any pipe."""
    while data := await stream.read():
        view = memoryview(data)
        while view:
            view = view[await asyncio.to_thread(os.write, descriptor, view) :]


async def _feed(process: "Process") -> None:
    """Our input, when it is not a terminal."""
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        await _feed_pipe(process)
    elif not sys.stdin.isatty():
        # A file, or nothing at all: it never waits, and the loop cannot watch it.
        while data := await asyncio.to_thread(os.read, sys.stdin.fileno(), CHUNK):
            await process.write(data)
    process.close_stdin()


async def _feed_pipe(process: "Process") -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        while data := await reader.read(CHUNK):
            await process.write(data)
    finally:
        transport.close()
