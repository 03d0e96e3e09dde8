"""The pieces of a link, cut anywhere, against a second reader that has all bytes at once."""

import itertools
import struct

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from freehold.errors import FreeholdError
from freehold.fleet.pieces import END, LENGTH, PieceReader
from freehold.fleet.wire import PIECE


def read_whole(data: bytes) -> tuple[bytes, bool, bytes] | None:
    """What is in the pieces, whether they end, and what is behind the end. None if a piece is too long."""
    found = b""
    while len(data) >= 4:
        size = struct.unpack("!I", data[:4])[0]
        if size > PIECE:
            return None
        data = data[4:]
        if size == 0:
            return found, True, data
        found += data[:size]
        data = data[size:]
    return found, False, b""


def read_cut(data: bytes, cuts: list[int]) -> tuple[bytes, bool, bytes] | None:
    reader, found = PieceReader(), b""
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for begin, end in itertools.pairwise(edges):
        try:
            found += b"".join(map(bytes, reader.split(memoryview(data)[begin:end])))
        except FreeholdError:
            return None
    return found, reader.is_ended, reader.rest


PIECES = st.binary(max_size=9).map(lambda held: LENGTH.pack(len(held)) + held)
"""An empty one is an end."""
BYTES = st.lists(PIECES | st.binary(max_size=5)).map(b"".join)


@settings(max_examples=500, deadline=None)
@given(BYTES, st.lists(st.integers(0, 200), max_size=8))
@example(b"\0\0\0\4" + END + END + b"next", [4, 5])
@example(LENGTH.pack(PIECE + 1) + b"x", [3])
def test_two_readers_agree(data: bytes, cuts: list[int]) -> None:
    assert read_cut(data, cuts) == read_whole(data)


@given(st.binary(min_size=1, max_size=50), st.lists(st.integers(0, 60), max_size=5))
@example(END, [])
@example(END * 3 + b'{"open": "link"}', [4])
def test_what_is_in_a_piece_is_never_an_end(held: bytes, cuts: list[int]) -> None:
    assert read_cut(LENGTH.pack(len(held)) + held, cuts) == (held, False, b"")


def test_the_longest_piece_is_allowed_and_a_longer_one_is_not() -> None:
    held = bytes(PIECE)
    assert read_cut(LENGTH.pack(PIECE) + held + END, []) == (held, True, b"")
    with pytest.raises(FreeholdError, match="longer than"):
        list(PieceReader().split(memoryview(LENGTH.pack(PIECE + 1))))
