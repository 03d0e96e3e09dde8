"""Runs a file of code in an isolate, for `freehold run --python FILE`."""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from freehold.computer import CodeLanguage, CodeResult, Computer, OutputChunk, ResultItem
from freehold.errors import FreeholdError
from freehold.home import Home


@dataclass(frozen=True)
class CodeFile:
    """A file of code, and how to run it. `path` may be -, for the input."""

    language: str
    path: str
    arguments: tuple[str, ...]
    call: str | None
    timeout: float | None


async def run_code_file(home: Home, file: CodeFile) -> int:
    """The exit code. Output is printed as it arrives."""
    code = await asyncio.to_thread(_read_code, file)
    async with Computer.connect(home.computer_socket()) as computer:
        language: CodeLanguage = getattr(computer, file.language)
        result = await language.execute(
            code,
            call=file.call,
            arguments=file.arguments,
            timeout=file.timeout,
            listener=_print_part,
            name=file.path,
        )
    if file.call is not None and result.item is not None:
        click.echo(result.item.content.decode(errors="replace"))
    return _report(result)


def _read_code(file: CodeFile) -> str | bytes:
    try:
        content = sys.stdin.buffer.read() if file.path == "-" else Path(file.path).read_bytes()
        return content if file.language == "wasm" else content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise FreeholdError("cli.no-file", f"{file.path} cannot be read: {error}") from None


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
