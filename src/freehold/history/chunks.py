"""Content-defined chunking with `re` and `crc32`, so that an insert in the middle of a large file changes few chunks.

Candidates for a cut are a few byte values, found by the regular expression engine in C. A candidate is a cut when the
CRC of the bytes before it matches. A cut depends only on nearby content, so cuts after an insert stay the same.
"""

import re
from itertools import islice
from zlib import crc32

MIN_CHUNK_BYTES = 64 << 10
MAX_CHUNK_BYTES = 1 << 20
_WINDOW = 48
_MASK = 0x0FFF
# Common in text and in binaries. A run of one value counts once, so that padding costs nothing.
_CANDIDATE = re.compile(rb"([\n,=H\x8b\xc3\xe8])(?!\1)", re.DOTALL)
# A file in which every byte is a candidate would be slow; it is cut at MAX_CHUNK_BYTES instead.
_MAX_CANDIDATES = 1 << 16


def find_cut(data: bytes) -> int:
    """The length of the first chunk of `data`. `data` has MAX_CHUNK_BYTES bytes unless the file ends before."""
    end = min(len(data), MAX_CHUNK_BYTES)
    if end <= MIN_CHUNK_BYTES:
        return end
    for match in islice(_CANDIDATE.finditer(data, MIN_CHUNK_BYTES, end), _MAX_CANDIDATES):
        at = match.start()
        if crc32(data[at - _WINDOW : at]) & _MASK == 0:
            return at
    return end
