"""What a hostile program of a workflow says: bounded in size and in work."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.errors import FreeholdError
from freehold.routines.workflows import messages
from freehold.routines.workflows.messages import LineBuffer, WentIdle, read_message


@given(st.lists(st.binary(max_size=20), max_size=30))
def test_lines_are_the_same_however_their_bytes_come(parts: list[bytes]) -> None:
    buffer = LineBuffer()
    found = [line for part in parts for line in buffer.feed(part)]
    assert found == b"".join(parts).split(b"\n")[:-1]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_line_without_an_end_is_refused_at_its_bound(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MAX_LINE", 2000)
    buffer = LineBuffer()
    for _ in range(2000 // size):
        assert buffer.feed(b"x" * size) == []
    with pytest.raises(FreeholdError, match="longer than 2000 bytes"):
        buffer.feed(b"x" * size)
    with pytest.raises(FreeholdError, match="longer than 2000 bytes"):
        LineBuffer().feed(b"x" * 2001 + b"\n")


def test_a_line_that_comes_byte_by_byte_costs_no_more_than_its_bytes() -> None:
    """A million small pieces: looking at all of them for each would never end."""
    buffer = LineBuffer()
    for _ in range(messages.MAX_LINE):
        assert not buffer.feed(b"x")
    with pytest.raises(FreeholdError, match="longer than"):
        buffer.feed(b"x")


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(line: bytes) -> None:
    with suppress(FreeholdError):  # anything else ends the execution, and not only its workflow
        read_message(line)


def test_another_encoding_is_not_guessed() -> None:
    """Python would read UTF-16 as well, where half characters hide."""
    assert read_message(b'{"idle": 1}') == WentIdle(1)
    with pytest.raises(FreeholdError):
        read_message('{"idle": 1}'.encode("utf-16"))
