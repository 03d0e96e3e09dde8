"""Content-defined cuts at the speed of `re` and `crc32`, so that an insert in the middle of a large file costs a little.

Candidates are the few byte values below (found by the regular expression engine in C); a candidate is a cut when the
CRC of the bytes before it says so. Cuts depend only on nearby content, hence find themselves again after an insert.
"""

import re
from collections.abc import Iterator
from itertools import islice
from zlib import crc32

SMALLEST = 64 << 10
LARGEST = 1 << 20
_WINDOW = 48
_MASK = 0x0FFF
# Common enough in text and in binaries; a run of one value counts once, so that padding costs nothing.
_CANDIDATE = re.compile(rb"([\n,=H\x8b\xc3\xe8])(?!\1)", re.DOTALL)
# A file made to be slow (every byte a candidate) is cut at LARGEST instead.
_MAX_CANDIDATES = 1 << 16


def first_cut(data: bytes) -> int:
    """The length of the first chunk of `data`, which is `LARGEST` bytes unless the file ends before."""
    end = min(len(data), LARGEST)
    if end <= SMALLEST:
        return end
    for match in islice(_CANDIDATE.finditer(data, SMALLEST, end), _MAX_CANDIDATES):
        at = match.start()
        if crc32(data[at - _WINDOW : at]) & _MASK == 0:
            return at
    return end


def cut(data: bytes) -> Iterator[bytes]:
    """All chunks of a whole content."""
    start = 0
    while start < len(data):
        length = first_cut(data[start : start + LARGEST])
        yield data[start : start + length]
        start += length
