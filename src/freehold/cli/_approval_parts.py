"""The lines that show a permission request in the terminal: every part of it, whole, and what is not shown."""

import difflib
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

Json = dict[str, Any]


class PartLine(NamedTuple):
    text: str
    colour: str | None = None


def list_part_lines(approval: Json) -> Iterator[PartLine]:
    """Everything that the owner must see before the answer. Warnings come last, next to the keys."""
    for part in approval.get("parts") or ():
        yield from _list_lines(part)
    if approval.get("lasting_effect"):
        yield PartLine(f"“always” and “for this conversation” allow {approval['lasting_effect']}.")
    if approval.get("asked_again"):
        yield PartLine("The call changed while you were asked. Your former answer did not count.", "red")
    if approval.get("runs_by_itself"):
        yield PartLine("This touches a file that runs by itself, without anybody starting it.", "red")
    if approval.get("names_nothing"):
        yield PartLine("The request names neither a command nor a file. You cannot see what will happen.", "red")
    if not approval.get("complete", True):
        yield PartLine(f"{approval.get('hidden_bytes')} bytes of the request are not shown.", "red")


def _list_lines(part: Json) -> Iterator[PartLine]:
    kind, text = part.get("kind"), str(part.get("text") or "")
    if kind == "diff":
        yield PartLine(_describe_path(part))
        for line in diff_lines(str(part.get("old") or ""), str(part.get("new") or "")):
            yield PartLine(line, {"+": "green", "-": "red"}.get(line[:1]))
    elif kind == "path":
        yield PartLine(_describe_path(part))
    elif kind == "command":
        for line in text.splitlines():
            yield PartLine(f"$ {line}")
    else:
        yield PartLine(f"{part.get('label')}:")
        for line in text.splitlines():
            yield PartLine(f"  {line}")
    if part.get("hidden_bytes"):
        yield PartLine(f"… {part['hidden_bytes']} bytes are not shown", "red")
    if part.get("runs_by_itself"):
        yield PartLine(f"Runs by itself: {part['runs_by_itself']}", "red")
    if part.get("warning"):
        yield PartLine(str(part["warning"]), "red")


def _describe_path(part: Json) -> str:
    led = f" → {part['resolved']}" if part.get("resolved") else ""
    return f"{part.get('path')}{led}"


def diff_lines(old: str, new: str) -> Iterator[str]:
    """The lines of a unified diff, without its two first lines, which name the files. Equal texts give the whole text."""
    if old == new:
        return (f"  {line}" for line in new.splitlines())
    return islice(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2), 2, None)
