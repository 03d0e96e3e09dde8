"""`freehold logs`."""

import collections
import itertools
import time
from typing import Any, NotRequired, TypedDict

import click

from freehold.cli._completion import offer, read_program_names
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.home import Home
from freehold.strict_json import IsoTime

COLORS = {"warning": "yellow", "error": "red", "critical": "red"}


class ShownLine(TypedDict):
    """One line of a log. `data` is the line as the program wrote it, when that was JSON."""

    time: IsoTime
    program: str
    stream: str
    level: NotRequired[str]
    message: NotRequired[str]
    data: NotRequired[dict[str, Any]]


@click.command()
@click.argument("program", required=False, shell_complete=offer(read_program_names))
@click.option("-f", "--follow", is_flag=True, help="Keep printing new lines, until Ctrl-C.")
@click.option(
    "--since", metavar="TIME", help="Only lines since then: 30s, 10m, 2h, 3d or a time such as 2026-01-31T12:00."
)
@click.option(
    "-n", "--lines", type=click.IntRange(0), help="The number of lines to start with. [default: 100; all with --since]"
)
@click.option("--error", "error_id", metavar="ID", help="Only the error with this id, with its cause.")
@home_option
@json_option(JsonOutput(ShownLine, "lines"))
def command(
    program: str | None,
    follow: bool,
    since: str | None,
    lines: int | None,
    error_id: str | None,
    home: Home,
    as_json: bool,
) -> None:
    """Show the logs of PROGRAM, or of all programs.

    Freehold does not need to run.

    \b
    Examples:
      freehold logs gateway -f
      freehold logs --since 10m
      freehold logs keeper -n 20 --json
      freehold logs gateway --error 0a1b2c3d4e5f
    """
    from freehold.keeper.log_reader import LogReader, parse_since

    reader = LogReader(home.logs, program)
    stored = reader.stored_lines(parse_since(since, time.time()) if since else None)
    if error_id is not None:
        stored = (line for line in stored if _is_error(line, error_id))
    elif lines is None and since is None:
        lines = 100
    # The deque keeps only the last N lines in memory.
    shown = stored if lines is None else iter(collections.deque(stored, maxlen=lines))
    line = None
    for line in itertools.chain(shown, reader.follow_lines() if follow else ()):
        if as_json:
            echo_json(line)
        else:
            click.echo(describe_line(line, alone=program is not None))
    if line is None:
        period = " since then" if since else ""
        about = f" about the error {error_id}" if error_id else ""
        click.echo(f"No log lines{f' of {program}' if program else ''}{period}{about} in {home.logs}", err=True)


def describe_line(line: dict[str, Any], *, alone: bool) -> str:
    """One line for people, with the id and the cause of an error. Control characters are replaced."""
    level = str(line.get("level", ""))
    moment = click.style(str(line.get("time", ""))[11:23], dim=True)
    name = "" if alone else click.style(f" {line.get('program', '')!s:<10}", fg="cyan")
    text = str(line.get("message", ""))
    details = _details(line)
    if "error_id" in details:
        text += f" [{details['error_id']}]"
    if "traceback" in details:
        text += f"\n{str(details['traceback']).rstrip()}"
    message = _printable(text)
    mark = click.style(f" {level.upper()}", fg=COLORS[level]) if level in COLORS else ""
    return f"{moment}{name}{mark} {message}"


def _is_error(line: dict[str, Any], error_id: str) -> bool:
    """The keeper writes the id into the message."""
    return _details(line).get("error_id") == error_id or f"[{error_id}]" in str(line.get("message", ""))


def _details(line: dict[str, Any]) -> dict[str, Any]:
    """The line as the program wrote it, if that was JSON."""
    data = line.get("data")
    return data if isinstance(data, dict) else {}


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text).replace("\n", "\n    ")
