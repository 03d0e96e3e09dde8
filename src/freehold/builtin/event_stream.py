"""Server-sent events of an MCP server, read as they come, by the rules of WHATWG. The host reads them by this too."""

import re

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_EVENT = 16 * 1024 * 1024


class EventReader:
    """Only these three ends of a line count, so that JSON may hold any other character. An unfinished event is none."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[str] = []
        self._size = 0
        self._kind = ""
        self._is_first_line = True
        self._after_return = False

    def feed(self, piece: bytes) -> list[str]:
        """The texts of the messages that this piece ends. Raises `ValueError` for an event without end."""
        if not piece:
            return []
        begin = 1 if self._after_return and piece.startswith(b"\n") else 0
        self._after_return = piece.endswith(b"\r")
        *lines, rest = _LINE_END.split(piece[begin:])
        found = []
        for line in lines:
            self._line += line
            if (text := self._take_line(bytes(self._line))) is not None:
                found.append(text)
            self._line.clear()
        self._line += rest
        if self._size + len(self._line) > MAX_EVENT:
            raise ValueError(f"an event of more than {MAX_EVENT} bytes")
        return found

    def _take_line(self, line: bytes) -> str | None:
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            return self._end_event()
        name, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode(errors="replace")
        if name == b"data":
            self._data.append(text)
            self._size += len(line)
        elif name == b"event":
            self._kind = text
        return None

    def _end_event(self) -> str | None:
        """Its data, unless it is blank or of another kind than a message."""
        text, is_message = "\n".join(self._data), self._kind in ("", "message")
        self._data, self._size, self._kind = [], 0, ""
        return text if is_message and text.strip() else None
