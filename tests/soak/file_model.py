"""What each file may contain, by what was acknowledged."""

import os
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class LogLines:
    """The lines of a file that is only appended to: those that must be there, and those that may be."""

    certain: set[str] = field(default_factory=set)
    possible: set[str] = field(default_factory=set)


class FileModel:
    """Before a change is tried, `begin` says so. Its outcome is `settle`, `refuse`, or neither if it is not known.

    Paths are relative to the workspace.
    """

    def __init__(self) -> None:
        self._allowed: dict[str, set[str | None]] = {}
        self._logs: dict[str, LogLines] = {}

    def begin(self, path: str, content: str) -> frozenset[str | None]:
        """The file may have this content from now on. Returns what it could have before, for `refuse`."""
        allowed = self._allowed.setdefault(path, {None})
        before = frozenset(allowed)
        allowed.add(content)
        return before

    def settle(self, path: str, content: str) -> None:
        """The change is known to be done."""
        self._allowed[path] = {content}

    def refuse(self, path: str, before: frozenset[str | None]) -> None:
        """The change is known not to be done."""
        self._allowed[path] = set(before)

    def begin_line(self, path: str, line: str) -> None:
        self._logs.setdefault(path, LogLines()).possible.add(line)

    def settle_line(self, path: str, line: str) -> None:
        self._logs[path].certain.add(line)

    def refuse_line(self, path: str, line: str) -> None:
        self._logs[path].possible.discard(line)

    @property
    def paths(self) -> list[str]:
        return sorted([*self._allowed, *self._logs])

    def find_differences(self, workspace: Path) -> list[str]:
        """What is wrong with the files."""
        found: list[str] = []
        for path, allowed in sorted(self._allowed.items()):
            content = _read(workspace / path)
            if content not in allowed:
                shown = ", ".join(sorted(repr(one)[:60] for one in allowed))
                found.append(f"{path} contains {content!r:.60}, and can only contain {shown}")
        for path, lines in sorted(self._logs.items()):
            found += _compare_lines(path, lines, (_read(workspace / path) or "").splitlines())
        known = set(self.paths)
        for folder, _, names in os.walk(workspace):
            for name in names:
                path = str(Path(folder, name).relative_to(workspace))
                if path not in known:
                    found.append(f"{path} was made by nobody")
        return found


def _compare_lines(path: str, lines: LogLines, present: list[str]) -> list[str]:
    found = [f"{path} has lost the line {line}" for line in sorted(lines.certain - set(present))]
    found += [f"{path} has the line {line!r}, which nobody wrote" for line in sorted(set(present) - lines.possible)]
    if len(present) != len(set(present)):
        twice = sorted({line for line in present if present.count(line) > 1})
        found.append(f"{path} has lines twice: {', '.join(twice[:5])}")
    return found


def _read(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return None
