"""Styles streamed Markdown for a terminal. Text is printed as soon as its style is known and never rewritten."""

import re

BOLD, DIM, CYAN, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[0m"
_UNDECIDED = re.compile(r"[ \t]*(?:#{0,6}|`{0,3}|[-*+]?)")
_HEADING = re.compile(r"(#{1,6}) ")
_BULLET = re.compile(r"([ \t]*)[-*+] ")


class MarkdownStream:
    """The input must be free of control characters. The only ones in the output are added here."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour
        self._start = ""
        """The start of a line whose style is not known yet."""
        self._at_start = True
        self._fenced = False
        self._fence_line = False
        self._heading = False
        self._bold = False
        self._code = False
        self._star = False

    def feed(self, text: str) -> str:
        if not self._colour:
            return text
        return "".join(self._feed_char(char) for char in text)

    def end(self) -> str:
        """Return the text that was held back, and reset the style."""
        if not self._colour:
            return ""
        held = self._style_line_start() if self._at_start else ("*" if self._star else "")
        self.__init__(colour=True)  # type: ignore[misc]
        return f"{held}{PLAIN}"

    def _feed_char(self, char: str) -> str:
        if char == "\n":
            return self._end_line()
        if self._at_start:
            self._start += char
            if _UNDECIDED.fullmatch(self._start):
                return ""
            return self._style_line_start()
        return self._style_char(char)

    def _style_line_start(self) -> str:
        """Choose the style of the line by its first characters."""
        start, self._start, self._at_start = self._start, "", False
        if start.lstrip().startswith("```"):
            self._fenced = not self._fenced
            self._fence_line = True
            return f"{DIM}{start}"
        if self._fenced:
            return f"{CYAN}{start}"
        if heading := _HEADING.match(start):
            self._heading = True
            return BOLD + self._style_inline(start[heading.end() :])
        if bullet := _BULLET.match(start):
            return f"{bullet[1]}• " + self._style_inline(start[bullet.end() :])
        return self._style_inline(start)

    def _style_inline(self, text: str) -> str:
        return "".join(self._style_char(char) for char in text)

    def _style_char(self, char: str) -> str:
        if self._fenced or self._fence_line:
            return char
        if char == "`":
            self._code = not self._code
            return CYAN if self._code else self._current_style()
        if self._code:
            return char
        if char == "*":
            if not self._star:
                self._star = True
                return ""
            self._star = False
            self._bold = not self._bold
            return self._current_style()
        star, self._star = "*" if self._star else "", False
        return star + char

    def _current_style(self) -> str:
        return f"{PLAIN}{BOLD}" if self._bold or self._heading else PLAIN

    def _end_line(self) -> str:
        held = self._style_line_start() if self._at_start else ("*" if self._star else "")
        self._at_start, self._start, self._star = True, "", False
        self._heading = self._bold = self._code = self._fence_line = False
        return f"{held}{PLAIN}\n"
