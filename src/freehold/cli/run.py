"""`freehold run`."""

import asyncio
import os
import signal
import stat
import sys
from typing import TYPE_CHECKING

import click

from freehold.cli._options import home_option
from freehold.computer.contract.conventions import WORKSPACE
from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.computer.library.process import Process
    from freehold.computer.library.stream import ChannelStream

CHUNK = 64 * 1024


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND…]")
@click.option("--python", metavar="FILE", help="Run a Python file in an isolate; - reads it from the input.")
@click.option("--javascript", metavar="FILE", help="Run a JavaScript file in an isolate.")
@click.option("--typescript", metavar="FILE", help="Run a TypeScript file in an isolate.")
@click.option("--wasm", metavar="FILE", help="Run a WebAssembly module in an isolate, in bytes or as text.")
@click.option("--call", metavar="CALL", help="With --wasm: call a function, as in 'add(40, 2)', and print its value.")
@click.option("--package", "packages", multiple=True, metavar="NAME", help="A package prepared for code. Repeatable.")
@click.option("--input", "inputs", multiple=True, metavar="FILE", help="A file for the code's folder. Repeatable.")
@click.option("--output", "outputs", multiple=True, metavar="NAME", help="A file of the code to keep here. Repeatable.")
@click.option("--limit", "limits", multiple=True, metavar="NAME=VALUE", help="Raise a limit of code, as memory=1GiB.")
@click.option("--timeout", type=click.FloatRange(min=0.1), metavar="SECONDS", help="End the command after this time.")
@click.option(
    "--cwd", default=WORKSPACE, show_default=True, metavar="FOLDER", help="The working folder in the computer."
)
@home_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    words: tuple[str, ...],
    call: str | None,
    packages: tuple[str, ...],
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    limits: tuple[str, ...],
    timeout: float | None,
    cwd: str,
    home: Home,
    **files: str | None,
) -> None:
    """Run a command or a file of code in the computer.

    Prints its output and exits with its exit code. The history records what it changed. A single word is run by a
    shell; several words are run as a program with arguments. Piped input is passed on. For an interactive terminal,
    use freehold ssh.

    A file of code is read on this machine and runs in an isolate: a process with 128 MiB, 30 seconds of processor time,
    one minute, and neither files nor network but what --input gives it. --limit and --timeout raise these limits. The
    words after it are its arguments.

    \b
    Examples:
      freehold run pytest -q
      freehold run --python report.py --year 2026
      freehold run --input data.csv --output plot.png --limit memory=1GiB --python plot.py
      freehold run --wasm add.wasm --call 'add(40, 2)'
      freehold run 'grep -r TODO . | wc -l'
      tar c notes | freehold run tar x
    """
    given = {language: path for language, path in files.items() if path is not None}
    if len(given) > 1 or not (given or words):
        raise click.UsageError("Give a command, or one of --python, --javascript, --typescript and --wasm with a file.")
    if call is not None and "wasm" not in given:
        raise click.UsageError("--call needs --wasm.")
    if not given and (packages or inputs or outputs or limits):
        raise click.UsageError("--package, --input, --output and --limit are for --python, --javascript and the like.")
    for language, path in given.items():
        from freehold.cli._code_file import CodeFile, read_limits, run_code_file

        allowed = read_limits(limits, timeout)
        file = CodeFile(language, path, words, call, packages, inputs, outputs, allowed)
        ctx.exit(asyncio.run(run_code_file(home, file)))
    ctx.exit(asyncio.run(_run(home, list(words) if len(words) > 1 else words[0], cwd, timeout)))


async def _run(home: Home, command: list[str] | str, cwd: str, timeout: float | None) -> int:
    from freehold.computer import Computer
    from freehold.history.calls import MarkFiles, RequestAuthor
    from freehold.keeper.client import KeeperClient
    from freehold.observe.secrets import mask_secrets

    keeper = KeeperClient(home)
    shown = command if isinstance(command, str) else " ".join(command)
    who, why = RequestAuthor(by="owner"), mask_secrets(shown)[:200]
    await keeper.call(MarkFiles("before", "command", who, why))
    try:
        opening = Computer.connect(home.computer_socket())
        async with opening as computer, await computer.spawn(command, cwd=cwd, timeout=timeout) as process:
            with computer.hold_awake():
                code = await _wait_for_exit(process)
    except OSError as error:
        raise FreeholdError(
            "computer.not-connected", f"Cannot connect to the computer: {error}", hint="See its state: freehold status"
        ) from None
    finally:
        await keeper.call(MarkFiles("after", "command", who, why))
    return code


async def _wait_for_exit(process: "Process") -> int:
    """The exit code, or 128 plus the number of the signal that ended the process."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, process.signal, number)
    input_task = asyncio.ensure_future(_copy_input(process))
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_copy_output(process.stdout, sys.stdout.fileno()))
            group.create_task(_copy_output(process.stderr, sys.stderr.fileno()))
        ended = await process.wait()
    finally:
        input_task.cancel()
        await asyncio.gather(input_task, return_exceptions=True)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
    if ended.timed_out:
        click.echo("The command was ended at its time limit.", err=True)
        return 124
    return ended.code if ended.code is not None else 128 + (ended.signal or 0)


async def _copy_output(stream: "ChannelStream", descriptor: int) -> None:
    """Copy output to our own. When our reader closes the pipe, the command ends."""
    while data := await stream.read():
        view = memoryview(data)
        while view:
            view = view[await asyncio.to_thread(os.write, descriptor, view) :]


async def _copy_input(process: "Process") -> None:
    """Copy our input to the process, unless it is a terminal."""
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        await _copy_pipe(process)
    elif not sys.stdin.isatty():
        # A file or /dev/null: reading never blocks, and the event loop cannot watch it.
        while data := await asyncio.to_thread(os.read, sys.stdin.fileno(), CHUNK):
            await process.write(data)
    process.close_stdin()


async def _copy_pipe(process: "Process") -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        while data := await reader.read(CHUNK):
            await process.write(data)
    finally:
        transport.close()
