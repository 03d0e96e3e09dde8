"""What changed and the way back, drawn without script."""

import time
from typing import Any

from freehold.keeper.page.frame import draw, draw_said, text
from freehold.keeper.page.overview import ago

FATES = {
    "write": "put back",
    "link": "put back link",
    "folder": "make folder",
    "remove": "remove",
    "mode": "set mode",
    "keep": "leave as is",
}
KINDS = {
    "turn": "Agent's turn",
    "command": "Command",
    "snapshot": "Changes found",
    "quiet": "Changes found",
    "undo": "Undo",
    "redo": "Redo",
    "restore": "Restore",
    "revert": "Revert",
}
SIGNS = {"added": ("+", "plus"), "changed": ("~", ""), "removed": ("−", "minus")}
MAX_STEPS = 500


def draw_past(state: dict[str, Any], entries: list[dict[str, Any]], changes: dict[int, dict[str, Any]]) -> str:
    """The history part of the overview. `changes` holds the first few paths of each entry."""
    redo = '<a class="button" href="/redo">Redo…</a>' if entries and entries[0]["kind"] == "undo" else ""
    undo = '<a class="button main" href="/undo">Undo the last change…</a>' if len(entries) > 1 else ""
    rows = "".join(_entry(entry, changes.get(entry["id"])) for entry in entries)
    rows = rows or '<div class="row"><div class="what"><p>Nothing has changed yet.</p></div></div>'
    actions = f'<span class="right">{redo}{undo}</span>' if undo or redo else ""
    return f'{_interrupted(state)}{_notices(state)}<h2>What changed{actions}</h2><section class="card">{rows}</section>'


def draw_preview(verb: str, plan: dict[str, Any], entry: int | None) -> str:
    """Every path and what would happen to it, and a button that does it."""
    steps = [step for step in plan["steps"] if step["fate"] in FATES]
    items = "".join(
        f'<li><span class="fate">{text(FATES[step["fate"]])}</span><span class="mono">{text(step["path"])}</span>'
        + (f'<span class="note">{text(step["detail"])}</span>' if step["detail"] else "")
        + "</li>"
        for step in steps[:MAX_STEPS]
    )
    more = plan["total"] - len(plan["steps"]) + max(0, len(steps) - MAX_STEPS)
    if more > 0:
        items += f'<li><span class="note">and {more} more</span></li>'
    if not steps:
        items = '<li><span class="note">No file would change.</span></li>'
    if verb == "undo":
        title = "Undo the last change" if entry is None else f"Go back to before #{entry}"
    else:
        title = "Redo what was undone"
    field = f'<input type="hidden" name="entry" value="{entry}">' if entry is not None else ""
    count = f"{len(steps) + max(0, plan['total'] - len(plan['steps']))} path{'s' if len(steps) != 1 else ''}"
    body = (
        f"<h2>{text(title)} <small>{count}</small></h2>"
        f'<section class="card"><ul class="paths">{items}</ul></section>'
        '<p class="note">What is there now is taken into the history first: this can be undone, too.</p>'
        f'<div class="actions"><form method="post" action="/{verb}">{field}<button class="main">{verb.capitalize()}</button></form>'
        '<a class="button" href="/">Cancel</a></div>'
    )
    return draw(title, body)


def draw_outcome(outcome: dict[str, Any]) -> str:
    """For a restore that could not settle everything: precisely what differs."""
    unsettled = "".join(
        f'<li><span class="mono">{text(one["path"])}</span><span class="note">{text(one["reason"])}</span></li>'
        for one in outcome["unsettled"][:MAX_STEPS]
    )
    words = f"{outcome['done']} paths were put back, {len(outcome['unsettled'])} could not be"
    body = (
        draw_said(
            words,
            "Something was writing to them, or they are not ours to change. Undo again when it is quiet.",
            bad=True,
        )
        + f'<section class="card"><ul class="paths">{unsettled}</ul></section>'
        '<div class="actions"><a class="button main" href="/">Back</a></div>'
    )
    return draw("Not everything was put back", body)


def describe_done(entry: dict[str, Any]) -> str:
    """One sentence about an undo or redo that is over."""
    count = entry["added"] + entry["changed"] + entry["removed"]
    verb = {"undo": "Undone", "redo": "Redone"}.get(entry["kind"], "Done")
    return f"{verb}: {count} path{'s' if count != 1 else ''} put back (entry #{entry['id']})"


def _entry(entry: dict[str, Any], changes: dict[str, Any] | None) -> str:
    who = entry["who"]
    by = who.get("agent") or {"owner": "you", "unknown": ""}.get(who["by"], who["by"])
    said = who.get("prompt") or entry["why"]
    facts = [f"#{entry['id']}", ago(entry["at"], time.time()), *([f"by {by}"] if by else []), *([said] if said else [])]
    counts = "".join(
        f' <span class="{tone}">{sign}{entry[word]}</span>' for word, (sign, tone) in SIGNS.items() if entry[word]
    )
    lines = [
        f'<span class="{tone}">{sign}{entry[name]}</span>'
        for name, sign, tone in (("lines_added", "+", "plus"), ("lines_removed", "−", "minus"))
        if entry[name]
    ]
    count = entry["added"] + entry["changed"] + entry["removed"]
    counts += f" path{'s' if count != 1 else ''}" + (f" · {' '.join(lines)} lines" if lines else "")
    undo = f'<a class="button" href="/undo?entry={entry["id"]}" aria-label="Undo back to before entry {entry["id"]}">Back to before…</a>'
    return (
        f'<div class="row"><div class="what"><b>{text(KINDS.get(entry["kind"], entry["kind"]))}</b>'
        f'<span class="note">{counts}</span><p>{text(" · ".join(facts))}</p>{_changes(changes)}</div>'
        f"{undo if entry['id'] > 1 else ''}</div>"
    )


def _changes(changes: dict[str, Any] | None) -> str:
    if not changes or not changes["changes"]:
        return ""
    shown = changes["changes"]
    items = ""
    for change in shown:
        sign, tone = SIGNS[change["word"]]
        items += f'<li class="mono"><span class="{tone}">{sign}</span> {text(change["path"])}</li>'
    if changes["total"] > len(shown):
        items += f"<li>and {changes['total'] - len(shown)} more</li>"
    return f"<details><summary>{text(shown[0]['path'])}{' …' if changes['total'] > 1 else ''}</summary><ul>{items}</ul></details>"


def _notices(state: dict[str, Any]) -> str:
    return "".join(
        draw_said(one["message"], one["hint"], bad=True)
        for one in state["notices"]
        if one["code"] != "history.interrupted"
    )


def _interrupted(state: dict[str, Any]) -> str:
    found = state["interrupted"]
    if found is None:
        return ""
    words = f"A {found['kind']} was under way when the keeper last ended. Its end and its beginning are both kept."
    return (
        f'<div class="said bad"><b>{text(words)}</b><div class="actions">'
        '<form method="post" action="/recover"><input type="hidden" name="finish" value="yes"><button class="main">Finish it</button></form>'
        '<form method="post" action="/recover"><input type="hidden" name="finish" value="no"><button>Go back to before it</button></form>'
        "</div></div>"
    )
