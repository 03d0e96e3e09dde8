"""A strict reader of tar archives as `pack_files` writes them: plain files, and headers of pax with long or foreign names.

The reader of the standard library is for archives of people one trusts: with some headers it computes for hours.
"""

from collections.abc import Iterator
from dataclasses import dataclass

BLOCK = 512
MAX_PAX = 8 * 1024
_MAGIC = b"ustar\x0000"
_PLAIN, _PAX = b"0", b"x"
_UNUSED = ((108, 116), (116, 124), (136, 148), (329, 337), (337, 345))
"""Where there are numbers that nobody needs: owner, group, time, device."""


class BadTar(ValueError):
    """It is not such an archive. The message says why."""


@dataclass(frozen=True)
class TarEntry:
    """A plain file. Its path is as it was written: whoever uses it checks it."""

    path: str
    mode: int
    data: bytes


def read_entries(packed: bytes) -> Iterator[TarEntry]:
    """One after the other. Raises `BadTar` at the first thing that is not as it should be."""
    place, long_path = 0, None
    while any(header := packed[place : place + BLOCK]):
        kind, mode, size = _check_header(header), _number(header[100:108]), _number(header[124:136])
        data = packed[place + BLOCK : place + BLOCK + size]
        place += BLOCK + -(-size // BLOCK) * BLOCK
        if place > len(packed):
            raise BadTar("it is cut off")
        if kind == _PAX:
            if long_path is not None:
                raise BadTar("a name is given twice")
            long_path = _read_pax(data)
            continue
        path = _read_name(header) if long_path is None else long_path
        if kind != _PLAIN:
            raise BadTar(f"{path[:80]!a} is not a plain file")
        yield TarEntry(path, mode, data)
        long_path = None
    if long_path is not None or place + BLOCK > len(packed) or packed[place:].strip(b"\0"):
        raise BadTar("it has no end, or something follows it")


def _check_header(header: bytes) -> bytes:
    """The kind of an entry."""
    if len(header) != BLOCK or header[257:265] != _MAGIC:
        raise BadTar("a header is missing")
    if sum(header) - sum(header[148:156]) + 8 * ord(" ") != _number(header[148:156]):
        raise BadTar("a header is damaged")
    for begin, end in _UNUSED:
        if header[begin:end].strip(b" \0"):
            _number(header[begin:end])
    return header[156:157]


def _number(field: bytes) -> int:
    digits = field.lstrip(b" ").rstrip(b" \0")
    if not digits or any(one not in b"01234567" for one in digits):
        raise BadTar("a number is damaged")
    return int(digits, 8)


def _read_name(header: bytes) -> str:
    name, prefix = (field.partition(b"\0")[0] for field in (header[:100], header[345:500]))
    return _decode(prefix + b"/" + name if prefix else name)


def _read_pax(data: bytes) -> str:
    """The path that it names. It may name nothing else."""
    length = data.partition(b" ")[0]
    record = data[len(length) + 1 :]
    is_whole = len(data) <= MAX_PAX and 0 < len(length) <= 4 and length.isdigit() and int(length) == len(data)
    if not is_whole or not record.startswith(b"path=") or not record.endswith(b"\n"):
        raise BadTar("a header says more than a name")
    return _decode(record.removeprefix(b"path=")[:-1])


def _decode(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise BadTar(f"the path {ascii(name[:80])[1:]} is not text") from None
