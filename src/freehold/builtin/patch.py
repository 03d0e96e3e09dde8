"""Patches as models write them: `*** Update File:` blocks or unified diffs, applied completely or not at all."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from freehold.builtin.tool_call import ToolError

_NUMBERS = re.compile(r"-(\d+)(?:,\d+)? \+\d+")
_STARTS = {"*** Add File: ": "add", "*** Update File: ": "update", "*** Delete File: ": "delete"}


@dataclass
class Hunk:
    """Old lines and the new lines that replace them. `near` is a line number and `anchor` a line before them, if known."""

    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    near: int | None = None
    anchor: str | None = None


@dataclass
class FilePatch:
    """The part of a patch for one file."""

    path: str
    kind: str
    hunks: list[Hunk] = field(default_factory=list)
    moved_to: str | None = None


@dataclass(frozen=True)
class PatchedFile:
    """A file before and after the patch; None when it does not exist."""

    path: str
    old: str | None
    new: str | None


def apply_patch_text(patch: str, read: Callable[[str], str | None]) -> list[PatchedFile]:
    """The files after the patch. Nothing is written. Raises `ToolError` for the first part that does not apply."""
    changes = list(_parse(patch))
    if not changes:
        raise ToolError(
            "This patch names no file. Begin each part with *** Add File:, *** Update File: or *** Delete File:"
        )
    outcomes: list[PatchedFile] = []
    for change in changes:
        old = read(change.path)
        if change.kind == "add":
            if old is not None:
                raise ToolError(f"{change.path} exists already; update it instead")
            outcomes.append(PatchedFile(change.path, None, _join_lines(change.hunks[0].new if change.hunks else [])))
            continue
        if old is None:
            raise ToolError(f"{change.path} does not exist")
        if change.kind == "delete":
            outcomes.append(PatchedFile(change.path, old, None))
            continue
        new = _apply_hunks(change, old)
        if change.moved_to is None:
            outcomes.append(PatchedFile(change.path, old, new))
        else:
            outcomes += [PatchedFile(change.path, old, None), PatchedFile(change.moved_to, read(change.moved_to), new)]
    return outcomes


def _parse(patch: str) -> Iterator[FilePatch]:
    change: FilePatch | None = None
    before: str | None = None
    for line in patch.splitlines():
        start = next((word for word in _STARTS if line.startswith(word)), None)
        if start is not None:
            if change is not None:
                yield change
            change = FilePatch(line[len(start) :].strip(), _STARTS[start])
        elif line.startswith("--- ") and _is_file_header(line):
            before = _read_name(line)
        elif line.startswith("+++ ") and before is not None:
            if change is not None:
                yield change
            after = _read_name(line)
            kind = "add" if before == "/dev/null" else "delete" if after == "/dev/null" else "update"
            change = FilePatch(before if kind == "delete" else after, kind)
            before = None
        elif line.startswith("*** Move to: ") and change is not None:
            change.moved_to = line.removeprefix("*** Move to: ").strip()
        elif line.startswith(("*** ", "diff --git ", "index ", "new file mode", "deleted file mode", "\\ No newline")):
            continue
        elif change is not None:
            _add_line(change, line)
    if change is not None:
        yield change


def _is_file_header(line: str) -> bool:
    return line[4:].startswith(("a/", "/dev/null", "b/")) or "\t" in line or "/" in line or "." in line


def _read_name(line: str) -> str:
    name = line[4:].split("\t")[0].strip()
    return name[2:] if name.startswith(("a/", "b/")) else name


def _add_line(change: FilePatch, line: str) -> None:
    if line.startswith("@@"):
        numbers = _NUMBERS.search(line)
        anchor = line.strip("@").strip() if numbers is None else ""
        change.hunks.append(Hunk(near=int(numbers[1]) if numbers else None, anchor=anchor or None))
        return
    if not change.hunks:
        if not line.strip():
            return
        change.hunks.append(Hunk())
    hunk = change.hunks[-1]
    mark, text = line[:1], line[1:]
    if mark in ("", " "):
        hunk.old.append(text)
        hunk.new.append(text)
    elif mark == "-":
        hunk.old.append(text)
    elif mark == "+":
        hunk.new.append(text)
    else:
        raise ToolError(f"{change.path}: a line of a patch must begin with a space, - or +, not {mark!r}: {line[:80]}")


def _apply_hunks(change: FilePatch, text: str) -> str:
    lines = text.split("\n")
    at = 0
    for hunk in change.hunks:
        if not hunk.old and not hunk.new:
            continue
        place = _find(hunk, lines, at)
        if place is None:
            shown = "\n".join(hunk.old[:8]) or hunk.anchor or ""
            raise ToolError(f"{change.path} does not have these lines; read it again:\n{shown}")
        lines[place : place + len(hunk.old)] = hunk.new
        at = place + len(hunk.new)
    return "\n".join(lines)


def _find(hunk: Hunk, lines: list[str], start: int) -> int | None:
    """The position of the old lines: an exact match, otherwise one that ignores spaces at line ends; the nearest of several."""
    if hunk.anchor is not None:
        anchors = [at for at in range(start, len(lines)) if lines[at].strip() == hunk.anchor]
        if not anchors:
            return None
        start = anchors[0] + 1 if not hunk.old or hunk.old[0].strip() != hunk.anchor else anchors[0]
    if not hunk.old:
        return start if hunk.anchor is not None else len(lines) - (1 if lines[-1] == "" else 0)
    size = len(hunk.old)
    for same in (str, str.rstrip):
        wanted = [same(line) for line in hunk.old]
        found = [
            at for at in range(start, len(lines) - size + 1) if [same(line) for line in lines[at : at + size]] == wanted
        ]
        if found:
            near = hunk.near
            return found[0] if near is None else min(found, key=lambda at: abs(at + 1 - near))
    return None


def _join_lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
