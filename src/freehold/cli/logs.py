"""`freehold logs`."""

import collections
import itertools
import json
import time
from typing import Any

import click

from freehold.cli._options import home_option, json_option
from freehold.home import Home

COLORS = {"warning": "yellow", "error": "red", "critical": "red"}


@click.command()
@click.argument("program", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes.")
@click.option(
    "--since", metavar="TIME", help="Only what is younger: 30s, 10m, 2h, 3d or a time such as 2026-01-31T12:00."
)
@click.option(
    "-n", "--lines", type=click.IntRange(0), help="How many lines to begin with. [default: 100; all with --since]"
)
@home_option
@json_option
def command(program: str | None, follow: bool, since: str | None, lines: int | None, home: Home, as_json: bool) -> None:
    """Show what PROGRAM wrote, or what all of them did. Works with everything down.

    \b
    Examples:
      freehold logs gateway -f
      freehold logs --since 10m
      freehold logs keeper -n 20 --json
    """
    from freehold.keeper.logreader import LogReader, parse_since

    reader = LogReader(home.logs, program)
    kept = reader.kept(parse_since(since, time.time()) if since else None)
    if lines is None and since is None:
        lines = 100
    # The last N of what may be a lot, without holding more than N.
    shown = kept if lines is None else iter(collections.deque(kept, maxlen=lines))
    line = None
    for line in itertools.chain(shown, reader.follow() if follow else ()):
        click.echo(json.dumps(line) if as_json else describe(line, alone=program is not None))
    if line is None:
        younger = " since then" if since else ""
        click.echo(f"Nothing was written{f' by {program}' if program else ''}{younger} in {home.logs}", err=True)


def describe(line: dict[str, Any], *, alone: bool) -> str:
    """One line for people. What programs wrote is shown without anything that a terminal would obey."""
    level = str(line.get("level", ""))
    moment = click.style(str(line.get("time", ""))[11:23], dim=True)
    name = "" if alone else click.style(f" {line.get('program', '')!s:<10}", fg="cyan")
    message = _printable(str(line.get("message", "")))
    mark = click.style(f" {level.upper()}", fg=COLORS[level]) if level in COLORS else ""
    return f"{moment}{name}{mark} {message}"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text).replace("\n", "\n    ")
