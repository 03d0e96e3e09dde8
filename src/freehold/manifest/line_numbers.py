"""The line number of each key in a TOML text, which `tomllib` does not tell."""

import tomllib
from bisect import bisect_right

from freehold.manifest.problem import KeyPath

_BLANK = " \t\r\n"


def find_key_lines(text: str) -> dict[KeyPath, int]:
    """Every table, key and array element by path. The text must be TOML that `tomllib` accepts."""
    return _Walk(text).walk()


def find_key_line(path: KeyPath, lines: dict[KeyPath, int]) -> int | None:
    """The line of a key, or of the nearest table around it that is written down."""
    for end in range(len(path), 0, -1):
        if path[:end] in lines:
            return lines[path[:end]]
    return None


class _Walk:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.starts = [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]
        self.lines: dict[KeyPath, int] = {}
        self.counts: dict[KeyPath, int] = {}

    def walk(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        self._skip_blank()
        while self.at < len(self.text):
            if self.text.startswith("[[", self.at):
                self.at += 2
                array = self._enter(self._key())
                index = self.counts.get(array, 0)
                self.counts[array] = index + 1
                table = (*array, index)
                self._note(array, table)
                self.at += 2
            elif self.text[self.at] == "[":
                self.at += 1
                table = self._enter(self._key())
                self._note(table)
                self.at += 1
            else:
                self._pair(table)
            self._skip_blank()
        return self.lines

    def _enter(self, key: tuple[str, ...]) -> KeyPath:
        """A header that passes through an array of tables means its latest element."""
        path: KeyPath = ()
        for depth, part in enumerate(key, 1):
            path = (*path, part)
            if depth < len(key) and path in self.counts:
                path = (*path, self.counts[path] - 1)
        return path

    def _note(self, *paths: KeyPath) -> None:
        line = bisect_right(self.starts, self.at)
        for path in paths:
            for end in range(1, len(path) + 1):
                self.lines.setdefault(path[:end], line)

    def _pair(self, table: KeyPath) -> None:
        start = self.at
        path = (*table, *self._key())
        after, self.at = self.at, start
        self._note(path)
        self.at = after + 1
        self._value(path)

    def _key(self) -> tuple[str, ...]:
        """Reads up to the `=` or `]` that ends the key, and stands there."""
        parts: list[str] = []
        while True:
            self._skip_blank()
            start = self.at
            if self.text[start] in "\"'":
                self._skip_string()
                parts.append(tomllib.loads(f"k={self.text[start : self.at]}")["k"])
            else:
                while self.text[self.at] not in " \t.=]":
                    self.at += 1
                parts.append(self.text[start : self.at])
            self._skip_blank()
            if self.text[self.at] != ".":
                return tuple(parts)
            self.at += 1

    def _value(self, path: KeyPath) -> None:
        self._skip_blank()
        opening = self.text[self.at]
        if opening in "\"'":
            self._skip_string()
        elif opening == "[":
            self.at += 1
            index = 0
            while self._more("]"):
                self._note((*path, index))
                self._value((*path, index))
                index += 1
            self.at += 1
        elif opening == "{":
            self.at += 1
            while self._more("}"):
                self._pair(path)
            self.at += 1
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}#\n":
                self.at += 1

    def _more(self, closing: str) -> bool:
        self._skip_blank()
        if self.text[self.at] == ",":
            self.at += 1
            self._skip_blank()
        return self.text[self.at] != closing

    def _skip_string(self) -> None:
        quote = self.text[self.at]
        if self.text.startswith(quote * 3, self.at):
            self.at += 3
            while not self.text.startswith(quote * 3, self.at):
                self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
            self.at += 3
            # Up to two quotes more belong to the string: """a""""" ends in two of its own.
            for _ in range(2):
                if self.text.startswith(quote, self.at):
                    self.at += 1
            return
        self.at += 1
        while self.text[self.at] != quote:
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += 1

    def _skip_blank(self) -> None:
        while self.at < len(self.text):
            if self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif self.text[self.at] in _BLANK:
                self.at += 1
            else:
                return
