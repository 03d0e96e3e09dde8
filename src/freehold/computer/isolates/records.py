"""The records of an execution, as the host reads them. `freehold.guest.isolates.records` has the guest's copy.

Every byte may be hostile: an isolate runs foreign code, and the guest may be compromised as well.
"""

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from freehold.computer.library.frames import protocol_error

RECORD = struct.Struct("<BI")
STDOUT, STDERR, ITEM, RESULT = range(4)
MAX_ITEM = 64 * 1024 * 1024
MAX_ITEMS = 10_000
MAX_REQUEST = 32 * 1024 * 1024
MAX_HEAD = 64 * 1024
MAX_COLUMNS = 10_000

ItemRole = Literal["value", "display", "file"]
ItemType = Literal["json", "text", "bytes", "table", "image/png", "image/jpeg", "image/svg+xml"]
_ROLES = ("value", "display", "file")
_TYPES = ("json", "text", "bytes", "table", "image/png", "image/jpeg", "image/svg+xml")


@dataclass(frozen=True)
class DataTable:
    """A data frame: its columns, the first rows, and how many rows it has. `index` is empty if it has none."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    index: tuple[Any, ...]
    total: int


@dataclass(frozen=True)
class ResultItem:
    """The value of the last expression, something that was displayed, or a file. `name` is empty unless it is a file."""

    role: ItemRole
    type: ItemType
    content: bytes
    name: str = ""

    def value(self) -> Any:
        """JSON as Python values, a table as `DataTable`, text as `str`, everything else as `bytes`."""
        if self.type == "json":
            return read_json(self.content, "an item")
        if self.type == "table":
            return read_table(self.content)
        if self.type == "text":
            return self.content.decode(errors="replace")
        return self.content


class RecordReader:
    """Turns the bytes of a channel into records. More than `most` bytes are refused, and so are records without any."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._buffer = bytearray()

    def feed(self, data: memoryview) -> Iterator[tuple[int, bytes]]:
        """Kind and payload of every complete record."""
        self._left -= len(data)
        if self._left < 0:
            raise protocol_error("more output of an isolate than was asked for")
        self._buffer += data
        at = 0
        while len(self._buffer) - at >= RECORD.size:
            kind, size = RECORD.unpack_from(self._buffer, at)
            if kind > ITEM or not 0 < size <= MAX_ITEM:
                raise protocol_error(f"a record of kind {kind} with {size} bytes")
            if len(self._buffer) - at - RECORD.size < size:
                break
            start = at + RECORD.size
            at = start + size
            yield kind, bytes(self._buffer[start:at])
        del self._buffer[:at]


def read_item(payload: bytes) -> ResultItem:
    head, separator, content = payload.partition(b"\n")
    if not separator or len(head) > MAX_HEAD:
        raise protocol_error("an item without a description")
    description = read_json(head, "the description of an item")
    role = description.get("role") if isinstance(description, dict) else None
    kind = description.get("type", "bytes") if role in _ROLES else None
    name = description.get("name", "") if role in _ROLES else ""
    if kind not in _TYPES or not isinstance(name, str) or bool(name) != (role == "file"):
        raise protocol_error("an item of an unknown kind")
    return ResultItem(role, kind, content, name)  # type: ignore[arg-type]


def read_table(content: bytes) -> DataTable:
    found = read_json(content, "a table")
    if not isinstance(found, dict):
        raise protocol_error("a table that is not an object")
    columns, rows, index, total = found.get("columns"), found.get("rows"), found.get("index", []), found.get("total")
    if not isinstance(columns, list) or len(columns) > MAX_COLUMNS or not all(isinstance(one, str) for one in columns):
        raise protocol_error("a table without columns")
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == len(columns) for row in rows):
        raise protocol_error("a table whose rows do not match its columns")
    if not isinstance(index, list) or type(total) is not int or total < len(rows):
        raise protocol_error("a table without its size")
    return DataTable(tuple(columns), tuple(map(tuple, rows)), tuple(index), total)


def read_json(content: bytes, what: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise protocol_error(f"{what} is not JSON") from None
