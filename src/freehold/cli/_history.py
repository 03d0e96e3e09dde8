"""What the verbs about files share: asking the keeper, or the history itself when no keeper runs, and how answers look."""

import time
from collections.abc import Callable
from typing import Any

import click

from freehold.agents.visible import make_visible
from freehold.errors import FreeholdError
from freehold.home import Home

Json = dict[str, Any]

OWNER: Json = {"by": "owner"}
# A restore of a very large tree takes its time; the keeper goes on even when nobody waits.
PATIENCE = 600.0

FATES = {
    "write": ("write", "green"),
    "link": ("write", "green"),
    "folder": ("make", "green"),
    "remove": ("remove", "red"),
    "mode": ("mode", "yellow"),
    "time": ("time", "white"),
    "keep": ("leave", "cyan"),
}
WORDS = {"added": ("+", "green"), "changed": ("~", "yellow"), "removed": ("-", "red")}


def ask(home: Home, method: str, params: Json | None = None) -> Json:
    """Undo needs nothing: when no keeper answers, the history is opened right here, under the keeper's lock."""
    from freehold.keeper.client import call_keeper

    try:
        answer: Json = call_keeper(home, method, params or {}, timeout=PATIENCE)
    except FreeholdError as error:
        if error.code != "keeper.not-running":
            raise
        return _ask_here(home, method, params or {})
    return answer


def _ask_here(home: Home, method: str, params: Json) -> Json:
    from freehold.history import History, Settings
    from freehold.history.database import remembered
    from freehold.history.service import HistoryService
    from freehold.keeper.lock import hold_home

    kept = remembered(home.history)
    if kept is None:
        raise FreeholdError(
            "history.empty",
            f"There is no history in {home.root} yet",
            hint="It begins when Freehold first runs: freehold up",
        )
    folders = {"workspace": home.workspace, "home": home.agent_home}
    names, ignore = kept
    roots = {name: folders[name] for name in names if name in folders}
    with hold_home(home), History(home.history, roots, Settings(ignore=ignore)) as history:
        return HistoryService(history).handle(method, params)


def entry_number(text: str) -> int:
    """`12` or `#12`."""
    number = text.removeprefix("#")
    if not number.isdigit():
        raise click.BadParameter(f"'{text}' is not the number of an entry; freehold log lists them")
    return int(number)


class EntryNumber(click.ParamType[int]):
    name = "entry"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        return value if isinstance(value, int) else entry_number(str(value))


def describe_plan(plan: Json) -> list[str]:
    verb = {"undo": "Undo", "redo": "Redo", "restore": "Restore", "revert": "Revert"}[plan["kind"]]
    lines = [f"{verb}: files as in entry {plan['target']}; nothing has been written."]
    for step in plan["steps"]:
        word, tone = FATES[step["fate"]]
        detail = f"  ({step['detail']})" if step["detail"] else ""
        lines.append(f"  {click.style(f'{word:<7}', fg=tone)} {step['path']}{detail}")
    if plan["total"] > len(plan["steps"]):
        lines.append(f"  … and {plan['total'] - len(plan['steps'])} more")
    if not plan["steps"] and not plan["conflicts"]:
        lines.append("  Nothing would change.")
    for conflict in plan["conflicts"]:
        lines.append(f"  {click.style('choose ', fg='magenta')} {conflict['path']}  ({conflict['reason']})")
    return lines


def describe_outcome(outcome: Json) -> list[str]:
    entry = outcome["entry"]
    many = outcome["done"]
    lines = [f"Entry {entry['id']}: {_words(entry['why'])}; {many} {'path' if many == 1 else 'paths'} put back."]
    for left in outcome["unsettled"]:
        lines.append(f"  {click.style('not as planned', fg='yellow')} {left['path']}: {left['reason']}")
    return lines


def describe_entry(entry: Json, now: float) -> str:
    counts = []
    for word, (sign, tone) in WORDS.items():
        if entry[word]:
            counts.append(click.style(f"{sign}{entry[word]}", fg=tone))
    if entry["lines_added"] is not None and (entry["lines_added"] or entry["lines_removed"]):
        counts.append(click.style(f"lines +{entry['lines_added']} -{entry['lines_removed']}", dim=True))
    who = describe_who(entry["who"])
    good = click.style(" known good", fg="green") if entry["good"] else ""
    why = f"  {_words(entry['why'])}" if entry["why"] else ""
    number = click.style(str(entry["id"]).rjust(5), bold=True)
    return f"{number}  {ago(now - entry['at']):<9} {entry['kind']:<9} {who}  {' '.join(counts)}{why}{good}"


def _words(text: str) -> str:
    """A prompt or a command, on one line and harmless to the terminal."""
    return make_visible(" ".join(text.split()), lines=False)


def describe_who(who: Json) -> str:
    name = who.get("agent") or (f"terminal {who['terminal']}" if who.get("terminal") else who["by"])
    turn = f" turn {who['turn']}" if who.get("turn") else ""
    return f"{name}{turn}"


def ago(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return f"{max(0, int(seconds))} s ago"


def echo_lines(lines: list[str]) -> None:
    for line in lines:
        click.echo(line)


def run_or_preview(
    home: Home, method: str, params: Json, *, dry_run: bool, as_json: bool, after: Callable[[Json], None] | None = None
) -> None:
    """Carry out an undo, redo, restore or revert, or show what it would do. Exits 1 when something is not as planned."""
    import json
    import sys

    answer = ask(home, method, params | ({"dry_run": True} if dry_run else {"who": OWNER}))
    if as_json:
        click.echo(json.dumps(answer))
    else:
        echo_lines(describe_plan(answer) if dry_run else describe_outcome(answer))
    if after is not None:
        after(answer)
    if answer.get("unsettled") or answer.get("conflicts"):
        sys.exit(1)


def now() -> float:
    return time.time()
