"""The history part of the recovery page: the entries, the preview of an undo, and its result. No scripts."""

import time
from collections.abc import Sequence

from freehold.history.author import author_json, describe_author
from freehold.history.calls import EntryChanges, HistoryStatus, RestorePreview, RestoreReport, ShownFate
from freehold.history.model import EntryRecord
from freehold.keeper.page.frame import escape_text, render_notice, render_page
from freehold.keeper.page.overview import format_age

KINDS = {
    "turn": "Turn of an agent",
    "command": "Command",
    "snapshot": "Changes found",
    "quiet": "Changes found",
    "undo": "Undo",
    "redo": "Redo",
    "restore": "Restore",
    "revert": "Revert",
}
SIGNS = {"added": ("+", "plus"), "changed": ("~", ""), "removed": ("−", "minus")}
MAX_LISTED = 500


def render_history(
    status: HistoryStatus,
    entries: tuple[EntryRecord, ...],
    changes: dict[int, EntryChanges],
    report: RestoreReport | None = None,
) -> str:
    """The history part of the overview. `changes` has the first few paths of each entry; `report` what was just done."""
    redo = '<a class="button" href="redo">Redo…</a>' if entries and entries[0].kind == "undo" else ""
    undo = '<a class="button main" href="undo">Undo the last change…</a>' if len(entries) > 1 else ""
    rows = "".join(_render_entry(entry, changes.get(entry.id)) for entry in entries)
    rows = rows or '<div class="row"><div class="what"><p>Nothing has changed yet.</p></div></div>'
    actions = f'<span class="right">{redo}{undo}</span>' if undo or redo else ""
    done = ""
    if report is not None:
        done = f"<details><summary>Show all {report.total} paths</summary>{_render_fates(report.fates, report.total)}</details>"
    return (
        f"{done}{_render_interrupted(status)}{_render_notices(status)}"
        f'<h2>What changed{actions}</h2><section class="card">{rows}</section>'
    )


def render_preview(verb: str, plan: RestorePreview, entry: int | None) -> str:
    """Each path and what would happen to it, and a button to do it."""
    if verb == "undo":
        title = "Undo the last change" if entry is None else f"Go back to before entry #{entry}"
    else:
        title = "Redo the last undo"
    field = f'<input type="hidden" name="entry" value="{entry}">' if entry is not None else ""
    body = (
        f"<h2>{escape_text(title)} <small>{escape_text(plan.summary)}</small></h2>"
        f'<section class="card">{_render_fates(plan.steps, plan.total)}</section>'
        '<p class="note">The present state is recorded first. You can undo this.</p>'
        f'<div class="actions"><form method="post" action="{verb}">{field}<button class="main">{verb.capitalize()}</button></form>'
        '<a class="button" href="./">Cancel</a></div>'
    )
    return render_page(title, body)


def render_report(report: RestoreReport) -> str:
    """The result of a restore in which some paths do not have the planned state."""
    body = (
        render_notice(
            describe_report(report),
            "Some paths were left alone or could not be changed. The list gives the reason for each. You can try again.",
            bad=True,
        )
        + f'<section class="card">{_render_fates(report.fates, report.total)}</section>'
        '<div class="actions"><a class="button main" href="./">Back</a></div>'
    )
    return render_page("Not all paths were restored", body)


def describe_report(report: RestoreReport) -> str:
    """One sentence about an undo or redo."""
    verb = {"undo": "Undone", "redo": "Redone"}.get(report.entry.kind, "Restored")
    return f"{verb}: {report.summary} (entry #{report.entry.id})"


def _render_fates(fates: Sequence[ShownFate], total: int) -> str:
    """The same list for a preview and for a result; `total` also counts what is not listed."""
    items = "".join(
        f'<li><span class="fate">{escape_text(fate.word)}</span><span class="mono">{escape_text(fate.path)}</span>'
        + (f'<span class="note">{escape_text(fate.detail)}</span>' if fate.detail else "")
        + "</li>"
        for fate in fates[:MAX_LISTED]
    )
    more = total - min(len(fates), MAX_LISTED)
    if more > 0:
        items += f'<li><span class="note">and {more} more</span></li>'
    # A long list scrolls, also by keyboard.
    return f'<ul class="paths" tabindex="0" aria-label="Files">{items or "<li><span class=note>No path changes.</span></li>"}</ul>'


def _render_entry(entry: EntryRecord, changes: EntryChanges | None) -> str:
    author = describe_author(author_json(entry.who)) if entry.who.by != "unknown" else ""
    reason = entry.who.prompt or entry.why
    facts = [
        f"#{entry.id}",
        format_age(entry.at, time.time()),
        *([f"by {author}"] if author else []),
        *([reason] if reason else []),
    ]
    counts = "".join(
        f' <span class="{tone}">{sign}{getattr(entry, word)}</span>'
        for word, (sign, tone) in SIGNS.items()
        if getattr(entry, word)
    )
    lines = [
        f'<span class="{tone}">{sign}{getattr(entry, name)}</span>'
        for name, sign, tone in (("lines_added", "+", "plus"), ("lines_removed", "−", "minus"))
        if getattr(entry, name)
    ]
    count = entry.added + entry.changed + entry.removed
    counts += f" path{'s' if count != 1 else ''}" + (f" · {' '.join(lines)} lines" if lines else "")
    undo = f'<a class="button" href="undo?entry={entry.id}" aria-label="Undo back to before entry {entry.id}">Back to before…</a>'
    return (
        f'<div class="row"><div class="what"><b>{escape_text(KINDS.get(entry.kind, entry.kind))}</b>'
        f'<span class="note">{counts}</span><p>{escape_text(" · ".join(facts))}</p>{_render_changes(changes)}</div>'
        f"{undo if entry.id > 1 else ''}</div>"
    )


def _render_changes(changes: EntryChanges | None) -> str:
    if not changes or not changes.changes:
        return ""
    shown = changes.changes
    items = ""
    for change in shown:
        sign, tone = SIGNS[change.word]
        items += f'<li class="mono"><span class="{tone}">{sign}</span> {escape_text(change.path)}</li>'
    if changes.total > len(shown):
        items += f"<li>and {changes.total - len(shown)} more</li>"
    return f"<details><summary>{escape_text(shown[0].path)}{' …' if changes.total > 1 else ''}</summary><ul>{items}</ul></details>"


def _render_notices(status: HistoryStatus) -> str:
    return "".join(
        render_notice(one.message, one.hint, bad=True) for one in status.notices if one.code != "history.interrupted"
    )


def _render_interrupted(status: HistoryStatus) -> str:
    found = status.interrupted
    if found is None:
        return ""
    asked = describe_author(author_json(found.who)) if found.who.by != "unknown" else "someone"
    words = f"The last {found.kind}, asked for by {asked}, was interrupted. You can finish it, or go back to the state before it."
    return (
        f'<div class="said bad"><b>{escape_text(words)}</b><div class="actions">'
        '<form method="post" action="recover"><input type="hidden" name="finish" value="yes"><button class="main">Finish it</button></form>'
        '<form method="post" action="recover"><input type="hidden" name="finish" value="no"><button>Go back</button></form>'
        "</div></div>"
    )
