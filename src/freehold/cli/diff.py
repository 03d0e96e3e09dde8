"""`freehold diff`."""

import click

from freehold.cli._history import CHANGE_SIGNS, EntryNumber, ask
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.history.calls import DiffEntry, EntryDiff, FileDiffText
from freehold.home import Home

_BAR = 40


@click.command()
@click.argument("entry", type=EntryNumber())
@click.argument("path", required=False)
@click.option("--stat", "only_stat", is_flag=True, help="Show only how much changed in each file.")
@home_option
@json_option(JsonOutput("freehold.history.calls:EntryDiff"))
def command(home: Home, entry: int, path: str | None, only_stat: bool, as_json: bool) -> None:
    """Show what ENTRY changed, line by line.

    \b
    Examples:
      freehold diff 12
      freehold diff 12 workspace/src --stat
    """
    answer = ask(home, DiffEntry(entry, path))
    if as_json:
        echo_json(answer)
        return
    if only_stat:
        _print_stat(answer)
    else:
        for each in answer.files:
            _print_file(each)
    if answer.total > len(answer.files):
        click.echo(f"… and {answer.total - len(answer.files)} more files")


def _print_file(each: FileDiffText) -> None:
    sign, color = CHANGE_SIGNS[each.word]
    modes = [oct(mode & 0o7777) if mode is not None else None for mode in (each.old_mode, each.new_mode)]
    mode = f"  mode {modes[0]} → {modes[1]}" if None not in modes and modes[0] != modes[1] else ""
    note = f"  ({each.note})" if each.note else ""
    click.secho(f"{sign} {each.path}{mode}{note}", fg=color, bold=True)
    for line in each.text.split("\n")[2:]:
        click.echo(_colorize(_escape_controls(line)))


def _colorize(line: str) -> str:
    color = {"+": "green", "-": "red", "@": "cyan", "\\": "white"}.get(line[:1])
    return click.style(line, fg=color) if color else line


def _escape_controls(line: str) -> str:
    """Control sequences in a file must not reach the terminal."""
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() or char == "\t" else f"\\x{ord(char):02x}" for char in line)


def _print_stat(answer: EntryDiff) -> None:
    widest = max((len(each.path) for each in answer.files), default=0)
    most = max(((each.added or 0) + (each.removed or 0) for each in answer.files), default=0) or 1
    for each in answer.files:
        if each.added is None:
            click.echo(f" {each.path:<{widest}} | {each.note}")
            continue
        added, removed = each.added, each.removed or 0
        scale = min(1.0, _BAR / most)
        bar = click.style("+" * round(added * scale), fg="green") + click.style("-" * round(removed * scale), fg="red")
        click.echo(f" {each.path:<{widest}} | {added + removed:>5} {bar}")
    added = sum(each.added or 0 for each in answer.files)
    removed = sum(each.removed or 0 for each in answer.files)
    click.echo(f" {answer.total} paths, {added} lines added, {removed} removed")
