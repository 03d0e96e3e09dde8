"""The diff of one file, line by line. Binary contents are reported as binary and never shown."""

import json
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import diff_bytes, unified_diff

from freehold.errors import FreeholdError
from freehold.history.line_matcher import match_lines
from freehold.history.model import ChangeWord, PathChange, PathVersion
from freehold.history.names import show_name
from freehold.history.restore_plan import describe_version

MAX_DIFF_BYTES = 4 << 20
"""The largest version that is compared line by line."""
MAX_DIFF_REPLY = 12 << 20
"""The longest diff as JSON, so that the reply of the keeper arrives: hidden and invalid characters need many bytes."""
MAX_LINES = 4000
"""So many different lines are compared with each other. Of more, the diff has all old ones and then all new ones."""
_CONTEXT = 3
_HUNK = re.compile(rb"^@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@")

Read = Callable[[int], bytes]


@dataclass(frozen=True)
class FileDiff:
    """`text` is a unified diff. It is empty when only the mode, time or type changed, or when `note` gives a reason."""

    path: bytes
    word: ChangeWord
    old_mode: int | None
    new_mode: int | None
    old_size: int | None
    new_size: int | None
    binary: bool
    added: int | None
    removed: int | None
    text: bytes
    note: str


def diff_change(change: PathChange, read: Read) -> FileDiff:
    old, new = change.old, change.new

    def make(
        *, binary: bool = False, added: int | None = None, removed: int | None = None, text: bytes = b"", note: str = ""
    ) -> FileDiff:
        modes = (old.mode if old else None, new.mode if new else None)
        sizes = (old.size if old else None, new.size if new else None)
        return FileDiff(change.path, change.word, *modes, *sizes, binary, added, removed, text, note)

    if old is not None and new is not None and stat.S_IFMT(old.mode) != stat.S_IFMT(new.mode):
        return make(note=f"{describe_version(old)} became {describe_version(new)}")
    either = new or old
    assert either is not None
    if either.is_folder or (either.is_noted_only and not either.is_file):
        return make(note=describe_version(either))
    if any(side is not None and side.content is None for side in (old, new)):
        return make(note=f"{describe_version(either)}; its content was not stored")
    if any(side is not None and side.size > MAX_DIFF_BYTES for side in (old, new)):
        return make(binary=True, note=f"too large to show: {_size(old)} → {_size(new)}")
    try:
        before, after = (
            read(side.content) if side is not None and side.content is not None else b"" for side in (old, new)
        )
    except FreeholdError as error:
        return make(note=error.message)
    if is_binary(before) or is_binary(after):
        return make(binary=True, note=f"binary: {_size(old)} → {_size(new)}")
    added, removed = count_lines(before, after)
    text = b"" if before == after else make_unified_diff(before, after, change.path)
    if len(json.dumps(text.decode("utf-8", "backslashreplace"))) > MAX_DIFF_REPLY:
        return make(binary=True, note=f"too large to show: {_size(old)} → {_size(new)}")
    return make(added=added, removed=removed, text=text)


def is_binary(data: bytes) -> bool:
    return b"\0" in data[:8000]


def count_lines(before: bytes, after: bytes) -> tuple[int, int]:
    """Lines added and removed, as in the unified diff."""
    old, new, _ = _middle(before.splitlines(), after.splitlines())
    if not old or not new:
        return len(new), len(old)
    matched = match_lines(old, new) if max(len(old), len(new)) <= MAX_LINES else None
    if matched is None:
        return len(new), len(old)
    added = removed = 0
    for tag, i1, i2, j1, j2 in matched:
        if tag != "equal":
            removed += i2 - i1
            added += j2 - j1
    return added, removed


def make_unified_diff(before: bytes, after: bytes, path: bytes) -> bytes:
    """Where too many lines differ, or they take too long to compare, all old ones are removed and all new ones added."""
    all_old, all_new = before.splitlines(True), after.splitlines(True)
    old, new, start = _middle(all_old, all_new)
    lead = min(_CONTEXT, start)
    ahead = start - lead
    name = show_name(path).encode()
    if max(len(old), len(new)) > MAX_LINES or match_lines(old, new) is None:
        tail = all_old[start + len(old) :][:_CONTEXT]
        shown = _replace_all(all_old[ahead:start], old, new, tail, name)
    else:
        shown = diff_bytes(
            unified_diff,
            all_old[ahead : start + len(old) + _CONTEXT],
            all_new[ahead : start + len(new) + _CONTEXT],
            b"a/" + name,
            b"b/" + name,
            lineterm=b"\n",
            n=_CONTEXT,
        )
    lines = []
    for line in shown:
        line = _HUNK.sub(lambda match: _shift_hunk(match, ahead), line)
        lines.append(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n")
    return b"".join(lines)


def _replace_all(
    lead: Sequence[bytes], old: Sequence[bytes], new: Sequence[bytes], tail: Sequence[bytes], name: bytes
) -> Iterator[bytes]:
    """The lines of a diff with one hunk, numbered as if nothing were before it."""
    yield b"--- a/" + name + b"\n"
    yield b"+++ b/" + name + b"\n"
    around = len(lead) + len(tail)
    yield b"@@ -%b +%b @@\n" % (_range_of(around + len(old)), _range_of(around + len(new)))
    for sign, part in ((b" ", lead), (b"-", old), (b"+", new), (b" ", tail)):
        yield from (sign + line for line in part)


def _range_of(count: int) -> bytes:
    """Lines from the first on, as a hunk names them. No lines begin at the line before."""
    return b"1" if count == 1 else b"%d,%d" % (1 if count else 0, count)


def _shift_hunk(match: "re.Match[bytes]", ahead: int) -> bytes:
    first, first_count, second, second_count = match.groups()
    return b"@@ -%d%s +%d%s @@" % (int(first) + ahead, first_count, int(second) + ahead, second_count)


def _middle(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[list[bytes], list[bytes], int]:
    """Both sides without their common first and last lines, and the number of common first lines."""
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return list(old[start : len(old) - end]), list(new[start : len(new) - end]), start


def _size(version: PathVersion | None) -> str:
    return f"{version.size} bytes" if version is not None else "nothing"
