"""A pack: a tar file of blobs, each named by its BLAKE3 hash, compressed with zstd. `zstd -d | tar x` opens it."""

import io
from collections.abc import Iterator

import zstandard

PACK_BYTES = 8 << 20
"""A pack gets no further blob from this size on, before compression."""
MAX_BLOB = 16 << 20
_LEVEL = 3
_MAX_PACK = PACK_BYTES + MAX_BLOB + (64 << 20)
_BLOCK = 512
_ZERO = bytes(_BLOCK)
_HEAD = b"0000600\0" + b"0000000\0" * 2
_TAIL = b" 0" + bytes(100) + b"ustar\x0000" + bytes(247)
_TIME = b"00000000000\0"
_FIXED_SUM = sum(_HEAD) + sum(_TIME) + sum(_TAIL) + 7 * 32


class DamagedPack(Exception):
    """The pack is not what was written."""


def build_pack(blobs: list[tuple[bytes, bytes]]) -> bytes:
    """From pairs of hash and content."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL).compressobj()
    packed = io.BytesIO()  # what it holds is not copied at the end
    for digest, content in blobs:
        packed.write(compressor.compress(_make_header(digest.hex().encode(), len(content))))
        packed.write(compressor.compress(content))
        if len(content) % _BLOCK:
            packed.write(compressor.compress(_ZERO[len(content) % _BLOCK :]))
    packed.write(compressor.compress(_ZERO * 2))
    packed.write(compressor.flush())
    return packed.getvalue()


def read_pack(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """The blobs of a pack. Raises DamagedPack. Whether a content has its hash is for the caller to check."""
    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data) as reader:
            plain = memoryview(reader.read(_MAX_PACK))
    except zstandard.ZstdError as error:
        raise DamagedPack(str(error)) from error
    at = 0
    while at + _BLOCK <= len(plain) and plain[at]:
        head = bytes(plain[at : at + _BLOCK])
        try:
            digest, size = bytes.fromhex(head[:64].decode("ascii")), int(head[124:135], 8)
        except ValueError:
            raise DamagedPack(f"the header at byte {at} is malformed") from None
        begin = at + _BLOCK
        if begin + size > len(plain):
            raise DamagedPack("it was cut off")
        yield digest, plain[begin : begin + size]
        at = begin + -(-size // _BLOCK) * _BLOCK
    if bytes(plain[at:]) != _ZERO * 2:
        raise DamagedPack("it has no end")


def _make_header(name: bytes, size: int) -> bytes:
    digits = b"%011o" % size
    total = _FIXED_SUM + sum(name) + sum(digits)
    return b"".join((name, bytes(100 - len(name)), _HEAD, digits, b"\0", _TIME, b"%06o\0" % total, _TAIL))
