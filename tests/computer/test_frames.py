import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.computer.library import frames
from freehold.errors import FreeholdError
from freehold.guest import wire

KINDS = st.integers(frames.OPEN, frames.PONG)
FRAMES = st.lists(st.tuples(KINDS, st.integers(0, 2**32 - 1), st.binary(max_size=400)), max_size=20)


def test_host_and_guest_have_the_same_protocol() -> None:
    for name in (
        "PREAMBLE",
        "MAX_PAYLOAD",
        "WINDOW",
        "MAX_WINDOW",
        "OPEN",
        "DATA",
        "SIDE",
        "END",
        "GRANT",
        "MESSAGE",
        "CLOSE",
        "PING",
        "PONG",
    ):
        assert getattr(frames, name) == getattr(wire, name), name
    assert frames.HEADER.format == wire.HEADER.format
    assert frames.CREDIT.format == wire.CREDIT.format


@given(FRAMES, st.integers(1, 5000))
def test_frames_survive_any_cutting_of_the_stream(sent: list[tuple[int, int, bytes]], piece: int) -> None:
    stream = frames.PREAMBLE + b"".join(frames.encode_frame(*frame) for frame in sent)
    decoder = frames.FrameDecoder()
    received = []
    for at in range(0, len(stream), piece):
        received += list(decoder.feed(stream[at : at + piece]))
    assert received == sent


@given(st.binary(max_size=5000))
def test_garbage_raises_a_freehold_error_and_no_other(garbage: bytes) -> None:
    for prefix in (b"", frames.PREAMBLE):
        decoder = frames.FrameDecoder()
        try:
            list(decoder.feed(prefix + garbage))
        except FreeholdError as error:
            code = error.code
        else:
            code = "link.protocol"
        assert code in ("link.protocol", "link.version")


def test_a_huge_length_is_refused_before_memory_is_used() -> None:
    decoder = frames.FrameDecoder()
    with pytest.raises(FreeholdError, match="4294967295 bytes"):
        list(decoder.feed(frames.PREAMBLE + frames.HEADER.pack(2**32 - 1, frames.DATA, 1)))


def test_the_error_names_the_other_version() -> None:
    with pytest.raises(FreeholdError) as caught:
        list(frames.FrameDecoder().feed(b"freehold-link 02"))
    assert caught.value.code == "link.version"
    assert "02" in caught.value.message


@pytest.mark.parametrize(
    "bomb",
    [
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"9" * 100_000,
        b'{"a":NaN}',
        b'{"a":1e999999',
        b"\xff\xfe",
        b"[]",
        b"",
        b'{"a":1}{}',
        b"null",
    ],
    ids=lambda bomb: bytes(bomb[:8]).decode("latin-1") or "empty",
)
def test_json_bombs_are_a_protocol_error(bomb: bytes) -> None:
    with pytest.raises(FreeholdError) as caught:
        frames.decode_message(bomb)
    assert caught.value.code == "link.protocol"


def test_a_request_larger_than_a_frame_is_refused_by_the_host() -> None:
    with pytest.raises(FreeholdError, match="too large for the link"):
        frames.encode_message({"op": "x" * frames.MAX_PAYLOAD})


def test_messages_can_contain_any_file_name() -> None:
    name = "a\nb\udcff\u2028"
    assert frames.decode_message(frames.encode_message({"name": name})) == {"name": name}
    assert json.dumps({"name": name}).isascii()
