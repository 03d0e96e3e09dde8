"""Shared by the history commands: call the keeper, or open the history when no keeper runs, and print the replies."""

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from freehold.agents.visible_text import make_visible
from freehold.cli._completion import offer, read_entry_names
from freehold.cli._json_output import echo_json
from freehold.errors import FreeholdError
from freehold.history import calls
from freehold.history.author import author_json, describe_author
from freehold.history.model import EntryRecord, FinalFate
from freehold.history.restore_event import RestoreCall, make_restore_event
from freehold.home import Home
from freehold.typed_call import TypedCall

if TYPE_CHECKING:
    from freehold.history import History

Reply = TypeVar("Reply")

FATE_COLORS: dict[FinalFate, str] = {
    "write": "green",
    "link": "green",
    "folder": "green",
    "remove": "red",
    "mode": "yellow",
    "time": "yellow",
    "keep": "cyan",
    "failed": "red",
}
CHANGE_SIGNS = {"added": ("+", "green"), "changed": ("~", "yellow"), "removed": ("-", "red")}


def make_author() -> calls.RequestAuthor:
    """The owner, on the command line of this machine or over SSH."""
    return calls.RequestAuthor(by="owner", via="ssh" if os.environ.get("SSH_CONNECTION") else "command_line")


def ask(home: Home, call: TypedCall[Reply]) -> Reply:
    """The reply of the keeper. When no keeper runs, the history is opened here, under the lock of the home."""
    from freehold.keeper.client import call_keeper

    try:
        return call_keeper(home, call, timeout=calls.RESTORE_TIMEOUT)
    except FreeholdError as error:
        if error.code != "keeper.not-running":
            raise
        return _answer_without_keeper(home, call)


def carry_out(home: Home, call: RestoreCall, *, shown: bool) -> calls.RestoreReport:
    """As `ask`, with its progress on a terminal and Ctrl-C to cancel it."""
    import secrets
    from dataclasses import replace

    from freehold.cli._restore_progress import KeeperRestores, RestoreRun
    from freehold.keeper.client import call_keeper

    restore_id = secrets.token_hex(8)
    call = replace(call, restore_id=restore_id)

    def work(run: RestoreRun) -> calls.RestoreReport:
        def use(history: "History") -> None:
            run.source = history

        try:
            return call_keeper(home, call, timeout=calls.RESTORE_TIMEOUT)
        except FreeholdError as error:
            if error.code != "keeper.not-running":
                raise
            return _answer_without_keeper(home, call, use)

    return RestoreRun(restore_id, work, KeeperRestores(home)).wait(shown=shown)


def _answer_without_keeper(
    home: Home, call: TypedCall[Reply], opened: "Callable[[History], None]" = lambda history: None
) -> Reply:
    from freehold.history import History, HistorySettings
    from freehold.history.database import read_tracked_folders
    from freehold.history.service import HistoryService
    from freehold.keeper.lock import lock_home

    tracked = read_tracked_folders(home.history)
    if tracked is None:
        raise FreeholdError(
            "history.empty",
            f"There is no history in {home.root} yet",
            hint="History begins when Freehold runs for the first time: freehold up",
        )
    folders = {"workspace": home.workspace, "home": home.agent_home, "pods": home.pods}
    names, ignore = tracked
    roots = {name: folders[name] for name in names if name in folders}
    with lock_home(home), History(home.history, roots, HistorySettings(ignore=ignore)) as history:
        opened(history)
        reply = HistoryService(history).answer(call)
        if isinstance(call, RestoreCall) and isinstance(reply, calls.RestoreReport):
            _record_event(home, call, reply)
        return reply


def _record_event(home: Home, call: RestoreCall, report: calls.RestoreReport) -> None:
    """The keeper does this otherwise. A timeline that cannot be written does not make an undo fail."""
    import sqlite3

    from freehold.timeline import Timeline

    event = make_restore_event(call, report)
    try:
        with Timeline(home.timeline) as timeline:
            timeline.append(event.kind, event.data, who=event.who)
    except (FreeholdError, sqlite3.Error, OSError) as error:
        click.secho(f"warning: the event {event.kind} was not added to the timeline: {error}", fg="yellow", err=True)


def read_entry_number(text: str) -> int:
    """`12` or `#12`."""
    number = text.removeprefix("#")
    if not number.isdigit():
        raise click.BadParameter(f"'{text}' is not an entry number. To list the entries: freehold log")
    return int(number)


class EntryNumber(click.ParamType[int]):
    name = "entry"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        return value if isinstance(value, int) else read_entry_number(str(value))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return offer(read_entry_names)(ctx, param, incomplete)


def describe_plan(plan: calls.RestorePreview) -> list[str]:
    lines = [f"{plan.kind.capitalize()} to entry {plan.target}. Nothing has been written."]
    lines += [_describe_fate(step) for step in plan.steps]
    if plan.total > len(plan.steps):
        lines.append(f"  … and {plan.total - len(plan.steps)} more")
    for conflict in plan.conflicts:
        lines.append(f"  {click.style('choose'.ljust(13), fg='magenta')} {conflict.path}  ({conflict.reason})")
    lines.append(f"{plan.summary[0].upper()}{plan.summary[1:]}.")
    return lines


def describe_outcome(outcome: calls.RestoreReport) -> list[str]:
    """The counts, each path that was not restored, and each file that was moved out of the way."""
    lines = [f"Entry {outcome.entry.id}: {_make_one_line(outcome.entry.why)}. {outcome.summary}."]
    lines += [_describe_fate(fate) for fate in outcome.fates if fate.fate in ("keep", "failed")]
    lines += [
        f"  {click.style('kept'.ljust(13), fg='cyan')} {each.path}  (as {each.kept_as})" for each in outcome.set_aside
    ]
    return lines


def _describe_fate(fate: calls.ShownFate) -> str:
    detail = f"  ({fate.detail})" if fate.detail else ""
    return f"  {click.style(f'{fate.word:<13}', fg=FATE_COLORS[fate.fate])} {fate.path}{detail}"


def describe_entry(entry: EntryRecord, now: float) -> str:
    counts = []
    for word, (sign, color) in CHANGE_SIGNS.items():
        if getattr(entry, word):
            counts.append(click.style(f"{sign}{getattr(entry, word)}", fg=color))
    if entry.lines_added is not None and (entry.lines_added or entry.lines_removed):
        counts.append(click.style(f"lines +{entry.lines_added} -{entry.lines_removed}", dim=True))
    who = _make_one_line(describe_author(author_json(entry.who)))
    good = click.style(" known good", fg="green") if entry.good else ""
    # A state that was recorded in the middle of a turn has a reason of its own; what led to it is the prompt.
    reason = entry.who.prompt or entry.why
    why = f"  {_make_one_line(reason)}" if reason else ""
    number = click.style(str(entry.id).rjust(5), bold=True)
    return f"{number}  {format_age(now - entry.at):<9} {entry.kind:<9} {who}  {' '.join(counts)}{why}{good}"


def _make_one_line(text: str) -> str:
    """A prompt or a command on one line, without control sequences."""
    return make_visible(" ".join(text.split()), lines=False)


def format_age(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return f"{max(0, int(seconds))} s ago"


def run_or_preview(
    home: Home,
    act: RestoreCall,
    preview: TypedCall[calls.RestorePreview],
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Carry out an undo, redo, restore or revert, or show what it would do. Exits 1 when a path is not as planned."""
    if dry_run:
        plan = ask(home, preview)
        echo_reply(plan, describe_plan(plan), as_json=as_json)
        failed = bool(plan.conflicts)
    else:
        outcome = carry_out(home, act, shown=not as_json)
        echo_reply(outcome, describe_outcome(outcome), as_json=as_json)
        failed = bool(outcome.unsettled)
    if failed:
        sys.exit(1)


def echo_reply(reply: object, lines: list[str], *, as_json: bool) -> None:
    if as_json:
        echo_json(reply)
        return
    for line in lines:
        click.echo(line)


def now() -> float:
    return time.time()
