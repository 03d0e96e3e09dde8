"""Runs a file of code in an isolate, for `freehold run --python FILE`."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from freehold.computer import (
    CodeLanguage,
    CodeResult,
    Computer,
    DataTable,
    Grants,
    IsolateLimits,
    OutputChunk,
    ResultItem,
)
from freehold.errors import FreeholdError
from freehold.home import Home

_RAISED: Mapping[str, str] = {
    "memory": "--limit memory=1GiB",
    "files": "--limit memory=1GiB",
    "processor": "--limit processor=10m",
    "wall_time": "--timeout 600",
    "output": "--limit output=16MiB",
    "results": "--limit results=64MiB",
    "file_size": "--limit file_size=1GiB",
}
"""What the owner can write to raise a limit. The values are examples."""


@dataclass(frozen=True)
class CodeFile:
    """A file of code, and how to run it. `path` may be -, for the input.

    `inputs` are files of this machine, which the code finds in its folder by their names. `outputs` are the names of files
    there that are kept in the working folder of this machine.
    """

    language: str
    path: str
    arguments: tuple[str, ...]
    call: str | None
    packages: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    limits: IsolateLimits


def read_limits(given: Sequence[str], timeout: float | None) -> IsolateLimits:
    """The limits of `--limit NAME=VALUE`. `--timeout` is the time that the code may take, also if that is longer."""
    found = {}
    for one in given:
        name, _, text = one.partition("=")
        if name not in vars(IsolateLimits()):
            names = ", ".join(vars(IsolateLimits()))
            raise click.UsageError(f"--limit {one}: the limits are {names}.")
        try:
            found[name] = _read_limit(name, text)
        except ValueError as error:
            raise click.UsageError(f"--limit {one}: {error}") from None
    if timeout is not None:
        found["wall_time"] = timeout
    return replace(IsolateLimits(), **found)


def _read_limit(name: str, text: str) -> Any:
    if name == "open_files":
        return int(text)
    from freehold.manifest.units import parse_moments, parse_size  # few raise a limit

    parse: Callable[[object], object] = parse_moments if name in ("processor", "wall_time") else parse_size
    return parse(text)


async def run_code_file(home: Home, file: CodeFile) -> int:
    """The exit code. Output is printed as it arrives."""
    for name in file.outputs:
        if Path(name).name != name:
            raise click.UsageError(f"--output {name}: name a file of the code's own folder, without a folder.")
    code = await asyncio.to_thread(_read_code, file)
    inputs = await asyncio.to_thread(_read_inputs, file.inputs)
    async with Computer.connect(home.computer_socket()) as computer:
        language: CodeLanguage = getattr(computer, file.language)
        result = await language.execute(
            code,
            call=file.call,
            arguments=file.arguments,
            limits=file.limits,
            grants=Grants(packages=file.packages),
            inputs=inputs,
            outputs=file.outputs,
            listener=_print_part,
            name=file.path,
        )
    if file.call is not None and result.item is not None:
        click.echo(result.item.content.decode(errors="replace"))
    kept = await asyncio.to_thread(_keep_files, result, file.outputs)
    return _report(result) or (0 if kept else 1)


def _read_code(file: CodeFile) -> str | bytes:
    content = sys.stdin.buffer.read() if file.path == "-" else _read_file(file.path)
    try:
        return content if file.language == "wasm" else content.decode()
    except UnicodeDecodeError as error:
        raise _cannot_read(file.path, error) from None


def _read_inputs(paths: Sequence[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for path in paths:
        name = Path(path).name
        if name in found:
            raise click.UsageError(f"--input {path}: there is another file with this name.")
        found[name] = _read_file(path)
    return found


def _read_file(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise _cannot_read(path, error) from None


def _cannot_read(path: str, error: Exception) -> FreeholdError:
    return FreeholdError("cli.no-file", f"{path} cannot be read: {error}")


def _keep_files(result: CodeResult, names: Sequence[str]) -> bool:
    """Write the files that were asked for, and no other. False if the code has not made all of them."""
    missing = [name for name in names if name not in result.files]
    for name in dict.fromkeys(names):
        if name in result.files:
            try:
                Path(name).write_bytes(result.files[name])
            except OSError as error:
                raise FreeholdError("cli.not-writable", f"{name} cannot be written: {error}") from None
    if missing and result.ok:
        click.echo(f"The code has not made {', '.join(missing)}.", err=True)
    return not missing


def _print_part(part: OutputChunk | ResultItem) -> None:
    if isinstance(part, OutputChunk):
        descriptor = sys.stderr.fileno() if part.stream == "stderr" else sys.stdout.fileno()
        view = memoryview(part.data)
        while view:
            view = view[os.write(descriptor, view) :]
    elif part.role == "display":
        _print_displayed(part)


def _print_displayed(item: ResultItem) -> None:
    """A table has a line for each row, with tabs. What cannot be text is named on stderr."""
    if item.type not in ("table", "json", "text"):
        click.echo(f"[{item.type}, {len(item.content)} bytes]", err=True)
        return
    found = item.value() if item.type == "table" else None
    if not isinstance(found, DataTable):
        click.echo(item.content.decode(errors="replace"))
        return
    for row in (found.columns, *found.rows):
        click.echo("\t".join(cell if isinstance(cell, str) else json.dumps(cell) for cell in row))
    if found.total > len(found.rows):
        click.echo(f"The first {len(found.rows)} of {found.total} rows.", err=True)


def _report(result: CodeResult) -> int:
    if result.limit is not None:
        click.echo(f"The code was ended at its limit: {result.limit}.", err=True)
        click.echo(f"To raise it: {_RAISED[result.limit]}", err=True)
        return 124
    if result.error is not None:
        click.echo(result.error.traceback or f"{result.error.name}: {result.error.message}", err=True, nl=False)
    return result.exit_code if result.exit_code >= 0 else 128 - result.exit_code
