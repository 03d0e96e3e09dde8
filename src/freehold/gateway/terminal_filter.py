"""Lets only sequences through that a terminal emulator draws in bounded time.

A program in the computer writes what it likes to its terminal, and the page draws it. A few bytes can ask an emulator to
repeat a character two thousand million times. The filter reads all output, live or replayed, and writes it again: text,
whole control sequences with limited numbers, and whole strings of limited length. What is malformed, endless or asks for
another window is left out. `web/src/features/terminal/terminalFilter.logic.ts` is the same filter in the page; both are
tested with `tests/gateway/terminal_filter_cases.json`.
"""

import codecs
import re
import unicodedata
from functools import lru_cache

MAX_NUMBER = 9999
"""The largest parameter that means something: numbers of modes and colours are below it."""
MAX_COUNT = 1000
"""The largest count of lines, columns or repetitions: no screen has more."""
MAX_PARAMETERS = 32
MAX_STRING = 4096
"""The longest title, link or answer in a string sequence."""
MAX_MARKS = 16
"""Marks that are drawn above one character."""

_COUNTED = frozenset("@ABCDEFGHILMPSTXZ^`abdef}~")
"""Sequences whose parameters count lines, columns or repetitions, or name a place on the screen."""
_DROPPED = frozenset("t")
"""Sequences that ask for another size, place or title of the window."""
_START = re.compile("[\x1b\x80-\x9f]")
_CONTROL_SEQUENCE = re.compile("[\x30-\x3f]{0,256}[\x20-\x2f]{0,4}")
_ESCAPE_SEQUENCE = re.compile("[\x20-\x2f]{0,4}")
_STRING_END = re.compile("[\x07\x18\x1a\x1b\x80-\x9f]")
_STRINGS = {"P": "P", "]": "]", "X": "", "^": "", "_": "", "\x90": "P", "\x9d": "]", "\x98": "", "\x9e": "", "\x9f": ""}
"""The introducers of strings, and as what they are written again. Programs and terminals ignore the empty ones."""
_CONTINUATION = bytes(range(0x80, 0xC0))
_LONG_NUMBER = re.compile("[0-9]{4,}")
"""Shorter numbers are below every limit."""
_HARMLESS = re.compile("(?:\x1b\\[\\??[0-9]{0,3}(?:;[0-9]{0,3}){0,7}[A-Za-su-z])+")
"""Sequences that need no change, many at once, because most output has many."""


class TerminalFilter:
    """Filters one stream of output. Whole sequences come out; the start of one waits for its end."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = False
        self._rest = ""
        self._discarding = False
        self._marks = MAX_MARKS

    def feed(self, data: bytes) -> bytes:
        """What may be drawn of the next output; empty while a sequence is not complete."""
        if not self._begun:
            data = data.lstrip(_CONTINUATION)  # a replay may begin within a character
            self._begun = data != b""
        text = self._rest + self._decoder.decode(data)
        self._rest = ""
        parts: list[str] = []
        at = self._discard(text, 0) if self._discarding else 0
        while at < len(text):
            found = _START.search(text, at)
            end = len(text) if found is None else found.start()
            if end > at:
                parts.append(self._without_marks(text[at:end]))
            at = end
            if found is not None:
                at = self._sequence(text, at, parts)
        return "".join(parts).encode("utf-8", "replace")

    def _sequence(self, text: str, at: int, parts: list[str]) -> int:
        """Read the sequence that starts here; the position after it."""
        self._marks = MAX_MARKS
        if (harmless := _HARMLESS.match(text, at)) is not None:
            parts.append(harmless.group())
            return harmless.end()
        if text[at] == "\x1b":
            if at + 1 == len(text):
                return self._wait(text, at)
            kind, body = text[at + 1], at + 2
        else:
            kind, body = text[at], at + 1
            if kind == "\x9b":
                kind = "["
            elif kind not in _STRINGS:
                return body  # other C1 controls have a form with ESC that programs use
        if kind == "[":
            return self._control_sequence(text, at, body, parts)
        if kind in _STRINGS:
            return self._string(text, at, body, _STRINGS[kind], parts)
        return self._escape_sequence(text, at, parts)

    def _control_sequence(self, text: str, start: int, body: int, parts: list[str]) -> int:
        matched = _CONTROL_SEQUENCE.match(text, body)
        assert matched is not None  # it matches the empty string
        end = matched.end()
        if end == len(text):
            return self._wait(text, start)
        if not "\x40" <= text[end] <= "\x7e":
            return end  # malformed: drawing goes on with the character that is not part of it
        if (written := _limited(matched.group(), text[end])) is not None:
            parts.append(written)
        return end + 1

    def _escape_sequence(self, text: str, start: int, parts: list[str]) -> int:
        matched = _ESCAPE_SEQUENCE.match(text, start + 1)
        assert matched is not None  # it matches the empty string
        end = matched.end()
        if end == len(text):
            return self._wait(text, start)
        if not "\x30" <= text[end] <= "\x7e":
            return end
        parts.append(text[start : end + 1])
        return end + 1

    def _string(self, text: str, start: int, body: int, kind: str, parts: list[str]) -> int:
        found = _STRING_END.search(text, body)
        end = len(text) if found is None else found.start()
        if end == len(text) or _is_last_escape(text, end):
            if end - body <= MAX_STRING:
                return self._wait(text, start)
            self._discarding = True
            return self._discard(text, end)
        after, is_whole = _end_of_string(text, end)
        if is_whole and kind != "" and end - body <= MAX_STRING:
            content = self._without_marks(text[body:end])
            parts.append(f"\x1b{kind}{content}\x1b\\")
            self._marks = MAX_MARKS
        return after

    def _discard(self, text: str, at: int) -> int:
        """Skip to the end of a string that is too long; the position after it."""
        found = _STRING_END.search(text, at)
        if found is None:
            return len(text)
        if _is_last_escape(text, found.start()):
            return self._wait(text, found.start())
        self._discarding = False
        return _end_of_string(text, found.start())[0]

    def _wait(self, text: str, start: int) -> int:
        self._rest = text[start:]
        return len(text)

    def _without_marks(self, text: str) -> str:
        """The text with at most `MAX_MARKS` marks directly after each character."""
        if text.isascii():
            self._marks = 0 if " " <= text[-1:] <= "~" else MAX_MARKS
            return text
        kept: list[str] = []
        for char in text:
            if char < " " or char == "\x7f":
                self._marks = MAX_MARKS
            elif not is_mark(char):
                self._marks = 0
            elif self._marks >= MAX_MARKS:
                continue
            else:
                self._marks += 1
            kept.append(char)
        return "".join(kept)


@lru_cache(4096)
def is_mark(char: str) -> bool:
    """Whether a character may take no place of its own, but be added to the one before it.

    Beside the marks of Unicode these are the Hangul letters that join, and one sign that was a mark in Unicode 6.
    """
    category = unicodedata.category(char)
    return char > "\x7f" and (
        category[0] == "M" or category == "Cf" or "\u1160" <= char <= "\u11ff" or char == "\u06de"
    )


def _limited(parameters: str, final: str) -> str | None:
    """A control sequence with limited parameters; None for one that is left out."""
    if final in _DROPPED or parameters.count(";") + parameters.count(":") >= MAX_PARAMETERS:
        return None
    most = MAX_COUNT if final in _COUNTED else MAX_NUMBER
    limited = _LONG_NUMBER.sub(lambda found: found.group() if _at_most(found.group(), most) else str(most), parameters)
    return f"\x1b[{limited}{final}"


def _at_most(digits: str, most: int) -> bool:
    return len(digits) <= len(str(most)) and int(digits) <= most


def _is_last_escape(text: str, at: int) -> bool:
    """Whether the text ends with this character, and it is ESC: what follows decides what it means."""
    return at == len(text) - 1 and text[at] == "\x1b"


def _end_of_string(text: str, end: int) -> tuple[int, bool]:
    """The position after the end of a string, and whether it ended as it should."""
    if text[end] in "\x07\x9c":
        return end + 1, True
    if text[end] == "\x1b":
        is_whole = text[end + 1 : end + 2] == "\\"
        return (end + 2 if is_whole else end), is_whole
    # Cancelled, or another control begins.
    return (end + 1 if text[end] in "\x18\x1a" else end), False
