"""`freehold diff`."""

import json

import click

from freehold.cli._history import WORDS, EntryNumber, Json, ask
from freehold.cli._options import home_option, json_option
from freehold.home import Home

_BAR = 40


@click.command()
@click.argument("entry", type=EntryNumber())
@click.argument("path", required=False)
@click.option("--stat", "only_stat", is_flag=True, help="Only how much changed in each file.")
@home_option
@json_option
def command(home: Home, entry: int, path: str | None, only_stat: bool, as_json: bool) -> None:
    """Show what ENTRY changed, line by line.

    \b
    Examples:
      freehold diff 12
      freehold diff 12 workspace/src --stat
    """
    answer = ask(home, "history.diff", {"entry": entry, "path": path})
    if as_json:
        click.echo(json.dumps(answer))
        return
    if only_stat:
        _stat(answer)
    else:
        for each in answer["files"]:
            _file(each)
    if answer["total"] > len(answer["files"]):
        click.echo(f"… and {answer['total'] - len(answer['files'])} more files")


def _file(each: Json) -> None:
    sign, tone = WORDS[each["word"]]
    modes = [oct(mode & 0o7777) if mode is not None else None for mode in (each["old_mode"], each["new_mode"])]
    mode = f"  mode {modes[0]} → {modes[1]}" if None not in modes and modes[0] != modes[1] else ""
    note = f"  ({each['note']})" if each["note"] else ""
    click.secho(f"{sign} {each['path']}{mode}{note}", fg=tone, bold=True)
    for line in each["text"].split("\n")[2:]:
        click.echo(_coloured(_harmless(line)))


def _coloured(line: str) -> str:
    tone = {"+": "green", "-": "red", "@": "cyan", "\\": "white"}.get(line[:1])
    return click.style(line, fg=tone) if tone else line


def _harmless(line: str) -> str:
    """A line of somebody's file may hold control sequences; a terminal is not to obey them."""
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() or char == "\t" else f"\\x{ord(char):02x}" for char in line)


def _stat(answer: Json) -> None:
    widest = max((len(each["path"]) for each in answer["files"]), default=0)
    most = max(((each["added"] or 0) + (each["removed"] or 0) for each in answer["files"]), default=0) or 1
    for each in answer["files"]:
        if each["added"] is None:
            click.echo(f" {each['path']:<{widest}} | {each['note']}")
            continue
        added, removed = each["added"], each["removed"]
        scale = min(1.0, _BAR / most)
        bar = click.style("+" * round(added * scale), fg="green") + click.style("-" * round(removed * scale), fg="red")
        click.echo(f" {each['path']:<{widest}} | {added + removed:>5} {bar}")
    added = sum(each["added"] or 0 for each in answer["files"])
    removed = sum(each["removed"] or 0 for each in answer["files"])
    click.echo(f" {answer['total']} paths, {added} lines added, {removed} removed")
