"""Markdown as it streams in, for a terminal: styled as soon as it can be told what it is, and never rewritten."""

import re

BOLD, DIM, CYAN, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[0m"
_UNDECIDED = re.compile(r"[ \t]*(?:#{0,6}|`{0,3}|[-*+]?)")
_HEADING = re.compile(r"(#{1,6}) ")
_BULLET = re.compile(r"([ \t]*)[-*+] ")


class Markdown:
    """Give it text that is free of control characters; what it gives back holds only our own."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour
        self._start = ""
        """The beginning of a line of which it is not known yet what it is."""
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
        return "".join(self._take(char) for char in text)

    def end(self) -> str:
        """What was held back, and plain letters from here on."""
        if not self._colour:
            return ""
        held = self._decide() if self._at_start else ("*" if self._star else "")
        self.__init__(colour=True)  # type: ignore[misc]
        return f"{held}{PLAIN}"

    def _take(self, char: str) -> str:
        if char == "\n":
            return self._end_line()
        if self._at_start:
            self._start += char
            if _UNDECIDED.fullmatch(self._start):
                return ""
            return self._decide()
        return self._inline(char)

    def _decide(self) -> str:
        """The line has begun: what it is by its first characters."""
        start, self._start, self._at_start = self._start, "", False
        if start.lstrip().startswith("```"):
            self._fenced = not self._fenced
            self._fence_line = True
            return f"{DIM}{start}"
        if self._fenced:
            return f"{CYAN}{start}"
        if heading := _HEADING.match(start):
            self._heading = True
            return BOLD + self._through(start[heading.end() :])
        if bullet := _BULLET.match(start):
            return f"{bullet[1]}• " + self._through(start[bullet.end() :])
        return self._through(start)

    def _through(self, text: str) -> str:
        return "".join(self._inline(char) for char in text)

    def _inline(self, char: str) -> str:
        if self._fenced or self._fence_line:
            return char
        if char == "`":
            self._code = not self._code
            return CYAN if self._code else self._style()
        if self._code:
            return char
        if char == "*":
            if not self._star:
                self._star = True
                return ""
            self._star = False
            self._bold = not self._bold
            return self._style()
        star, self._star = "*" if self._star else "", False
        return star + char

    def _style(self) -> str:
        return f"{PLAIN}{BOLD}" if self._bold or self._heading else PLAIN

    def _end_line(self) -> str:
        held = self._decide() if self._at_start else ("*" if self._star else "")
        self._at_start, self._start, self._star = True, "", False
        self._heading = self._bold = self._code = self._fence_line = False
        return f"{held}{PLAIN}\n"
