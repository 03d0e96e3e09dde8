"""Read a manifest file into a tree of plain values, or explain why it cannot be read."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from freehold.manifest.line_numbers import find_key_line, find_key_lines
from freehold.manifest.problem import KeyPath, ManifestProblem, show_key, show_path

MAX_BYTES = 256 * 1024
MAX_DEPTH = 16

_AT_LINE = re.compile(r"^(?P<what>.*?) \(at (?:line (?P<line>\d+), column \d+|(?P<end>end of document))\)$", re.DOTALL)

_ENDLESS_KEY = re.compile(r"""(?<![\w."'-])(?:(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){64}""", re.ASCII)
"""A dotted key of this many parts; `tomllib` takes minutes over a longer one."""


@dataclass(frozen=True)
class ManifestSource:
    """The content of one file. When it could not be read, `tree` is empty and `problems` says why."""

    path: Path
    tree: Mapping[str, object]
    text: str
    problems: tuple[ManifestProblem, ...] = ()

    def line(self, path: KeyPath) -> int | None:
        return find_key_line(path, self._lines)

    @cached_property
    def _lines(self) -> dict[KeyPath, int]:
        return find_key_lines(self.text)


def read_source(path: Path) -> ManifestSource:
    """Read a manifest. A file that does not exist is an empty one."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return ManifestSource(path, {}, "")
    except NotADirectoryError:
        taken = next((folder for folder in path.parents if folder.exists()), path.parent)
        return _refuse(
            path, "E001", f"{taken} is a file, and a home is a folder", "Choose another with --home or FREEHOLD_HOME"
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return _refuse(
            path,
            "E001",
            f"The manifest cannot be read: {reason}",
            "Check its owner and mode: it should be a file of yours with mode 0600",
        )
    if len(data) > MAX_BYTES:
        return _refuse(
            path,
            "E004",
            f"The manifest is larger than {MAX_BYTES // 1024} KiB",
            "A manifest is a page or two; is this the right file?",
        )
    return parse_source(path, data)


def parse_source(path: Path, data: bytes) -> ManifestSource:
    """The same for bytes that are already here."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        return _refuse(path, "E002", "The manifest is not UTF-8 text", "Save it as UTF-8", line=line)
    if _ENDLESS_KEY.search(text):
        return _too_deep(path)
    try:
        tree = tomllib.loads(text)
    except RecursionError:
        return _too_deep(path)
    except ValueError as error:
        return _bad_syntax(path, text, str(error))
    return _check_values(ManifestSource(path, tree, text))


def _bad_syntax(path: Path, text: str, said: str) -> ManifestSource:
    found = _AT_LINE.match(said)
    what, line = said, None
    if found:
        what = found["what"]
        line = int(found["line"]) if found["line"] else text.count("\n") + 1
    return _refuse(
        path,
        "E003",
        f"This is not TOML: {what}",
        'Strings need quotes, tables look like [gateway], keys like port = 3000, lists like ["a", "b"]',
        line=line,
    )


def _check_values(source: ManifestSource) -> ManifestSource:
    """Refuses what TOML can say and nothing here can mean: endless nesting, NUL in a string, endless numbers."""
    problems: list[ManifestProblem] = []
    open_values: list[tuple[KeyPath, object]] = [((), source.tree)]
    while open_values:
        path, value = open_values.pop()
        if len(path) > MAX_DEPTH:
            return _too_deep(source.path)
        wrong = ""
        if isinstance(value, dict):
            open_values += [((*path, key), below) for key, below in value.items()]
            wrong = "A key holds a NUL character" if any("\0" in key for key in value) else ""
        elif isinstance(value, list):
            open_values += [((*path, index), below) for index, below in enumerate(value)]
        elif isinstance(value, str) and "\0" in value:
            wrong = "A string holds a NUL character"
        elif isinstance(value, int) and value.bit_length() > 63:
            wrong = "A number is too large for TOML, which ends at 9223372036854775807"
        if wrong:
            place = show_path(source.path)
            problems.append(ManifestProblem("E006", wrong, "Remove it", place, source.line(path), show_key(path)))
    return ManifestSource(source.path, {}, source.text, tuple(problems)) if problems else source


def _too_deep(path: Path) -> ManifestSource:
    return _refuse(
        path,
        "E004",
        f"The manifest is nested more than {MAX_DEPTH} levels deep",
        "Nothing in a manifest is nested deeper than five",
    )


def _refuse(path: Path, code: str, message: str, hint: str, *, line: int | None = None) -> ManifestSource:
    return ManifestSource(path, {}, "", (ManifestProblem(code, message, hint, show_path(path), line),))
