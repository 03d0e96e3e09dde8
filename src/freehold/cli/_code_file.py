"""Runs a file of code in an isolate, for `freehold run --python FILE`."""

import asyncio
import os
import sys
from pathlib import Path

import click

from freehold.computer import CodeLanguage, CodeResult, Computer, OutputChunk, ResultItem
from freehold.errors import FreeholdError
from freehold.home import Home


async def run_code_file(home: Home, language: str, path: str, timeout: float | None) -> int:
    """The exit code. Output is printed as it arrives."""
    code = await asyncio.to_thread(_read_code, path)
    async with Computer.connect(home.computer_socket()) as computer:
        runner: CodeLanguage = getattr(computer, language)
        result = await runner.execute(code, timeout=timeout, listener=_print_part, name=path)
    return _report(result)


def _read_code(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise FreeholdError("cli.no-file", f"{path} cannot be read: {error}") from None


def _print_part(part: OutputChunk | ResultItem) -> None:
    if isinstance(part, OutputChunk):
        descriptor = sys.stderr.fileno() if part.stream == "stderr" else sys.stdout.fileno()
        view = memoryview(part.data)
        while view:
            view = view[os.write(descriptor, view) :]


def _report(result: CodeResult) -> int:
    if result.limit is not None:
        click.echo(f"The code was ended at its limit: {result.limit}.", err=True)
        return 124
    if result.error is not None:
        click.echo(result.error.traceback or f"{result.error.name}: {result.error.message}", err=True, nl=False)
    return result.exit_code if result.exit_code >= 0 else 128 - result.exit_code
