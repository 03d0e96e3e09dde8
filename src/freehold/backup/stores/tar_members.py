"""Where the objects of an archive are, read strictly: an archive may come from anywhere.

Plain files count, and folders and further headers are passed over. A name is never used as a path.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

BLOCK = 512
_FILES, _PASSED_OVER = (b"0", b"\0"), (b"5", b"x", b"g")
_SIZE, _TIME, _SUM, _TYPE, _PREFIX = slice(124, 136), slice(136, 148), slice(148, 156), slice(156, 157), slice(345, 500)


class BadArchive(Exception):
    """It is no archive that we or tar would write."""


@dataclass(frozen=True)
class TarMember:
    name: str
    offset: int
    size: int
    modified: int


def read_members(handle: int) -> Iterator[TarMember]:
    """Raises BadArchive, or OSError. No member reaches past the end of the file."""
    end, at = os.fstat(handle).st_size, 0
    while True:
        head = os.pread(handle, BLOCK, at)
        if len(head) < BLOCK:
            raise BadArchive("it was cut off")
        if not any(head):
            return
        size = _parse_octal(head[_SIZE])
        if _parse_octal(head[_SUM]) != sum(head) - sum(head[_SUM]) + len(head[_SUM]) * ord(" "):
            raise BadArchive(f"the header at byte {at} is damaged")
        at += BLOCK
        if at + size > end:
            raise BadArchive("it was cut off")
        kind = head[_TYPE]
        if kind in _FILES:
            name = head[:100].partition(b"\0")[0]
            prefix = head[_PREFIX].partition(b"\0")[0]
            whole = (prefix + b"/" if prefix else b"") + name
            yield TarMember(whole.decode("ascii", "replace").removeprefix("./"), at, size, _parse_octal(head[_TIME]))
        elif kind not in _PASSED_OVER:
            raise BadArchive(f"the entry at byte {at - BLOCK} is neither a file nor a folder")
        at += -(-size // BLOCK) * BLOCK


def _parse_octal(field: bytes) -> int:
    digits = field.partition(b"\0")[0].strip(b" ")
    if not digits.isdigit() or len(digits) > 11:
        raise BadArchive("a number in a header is malformed")
    try:
        return int(digits, 8)
    except ValueError:
        raise BadArchive("a number in a header is malformed") from None
