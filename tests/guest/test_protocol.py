"""The guest's protocol against the host's: two implementations of one page, compared and fuzzed."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.guest.link_bench import LinkBench

from freehold.computer.library import frames
from freehold.errors import FreeholdError
from freehold.guest import codec, wire

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
MESSAGES = st.dictionaries(st.text(), JSON, max_size=4)
FRAMES = st.lists(
    st.tuples(
        st.integers(wire.OPEN, wire.PONG),
        st.sampled_from([0, 1, 2, 3, 5, 2**32 - 1]),
        st.sampled_from([b"", b"{}", b"[", b"\0", b"\5" * 5, b"\0" * 5]) | st.binary(max_size=60),
    ),
    max_size=20,
)


def test_both_sides_have_the_same_numbers() -> None:
    for name in (
        "PREAMBLE",
        "MAX_PAYLOAD",
        "WINDOW",
        "MAX_WINDOW",
        *["OPEN", "DATA", "SIDE", "END", "GRANT", "MESSAGE", "CLOSE", "PING", "PONG"],
    ):
        assert getattr(wire, name) == getattr(frames, name), name
    for name in ("HEADER", "CREDIT"):
        assert getattr(wire, name).format == getattr(frames, name).format


@given(FRAMES, st.integers(1, 80))
def test_the_host_decodes_what_the_guest_encodes(sent: list[tuple[int, int, bytes]], piece: int) -> None:
    stream = wire.PREAMBLE + b"".join(wire.encode_frame(*frame) for frame in sent)
    decoder = frames.FrameDecoder()
    received = [frame for at in range(0, len(stream), piece) for frame in decoder.feed(stream[at : at + piece])]
    assert received == sent


@settings(deadline=None)
@given(FRAMES, st.integers(1, 80))
def test_the_guest_decodes_what_the_host_encodes(sent: list[tuple[int, int, bytes]], piece: int) -> None:
    """Frame by frame, whatever they mean: the dispatcher sees exactly what was sent, up to the first refusal."""
    stream = frames.PREAMBLE + b"".join(frames.encode_frame(*frame) for frame in sent)
    with LinkBench() as bench:
        seen: list[tuple[int, int, bytes]] = []
        dispatch = bench.link._dispatch

        def record(kind: int, number: int, payload: bytes) -> None:
            seen.append((kind, number, payload))
            dispatch(kind, number, payload)

        bench.link._dispatch = record  # type: ignore[method-assign]
        try:
            for at in range(0, len(stream), piece):
                bench.link._feed(stream[at : at + piece])
        except wire.WireError:
            assert seen == sent[: len(seen)]
        else:
            assert seen == sent


@given(MESSAGES)
def test_messages_of_either_side_are_read_by_the_other(message: dict[str, Any]) -> None:
    assert codec.decode_message(frames.encode_message(message)) == message
    assert frames.decode_message(codec.encode_message(message)) == message


@given(
    st.binary(max_size=120)
    | MESSAGES.map(lambda message: json.dumps(message).encode()).flatmap(
        lambda whole: st.integers(0, len(whole)).map(lambda at: whole[:at] + whole[at + 1 :])
    )
)
def test_whatever_the_guest_accepts_the_host_reads_the_same_way(payload: bytes) -> None:
    """No bytes mean one thing to the guest and another to the host. Constants such as NaN are refused by the host."""
    try:
        by_guest = codec.decode_message(payload)
    except wire.WireError:
        return
    try:
        by_host = frames.decode_message(payload)
    except FreeholdError:
        assert b"NaN" in payload or b"Infinity" in payload
        return
    assert by_guest == by_host


@settings(deadline=None, max_examples=200)
@given(st.binary(min_size=1, max_size=400), st.booleans())
def test_garbage_after_the_preamble_is_served_or_refused(garbage: bytes, with_open_channel: bool) -> None:
    """The decoder raises WireError and nothing else, and keeps no more than one frame."""
    opening = wire.encode_frame(wire.OPEN, 1, b"{}") if with_open_channel else b""
    with LinkBench() as bench:
        try:
            bench.link._feed(wire.PREAMBLE + opening + garbage)
        except wire.WireError:
            return
        assert len(bench.link._inbox) <= len(garbage)


@given(st.integers(wire.MAX_PAYLOAD + 1, 2**32 - 1), st.integers(0, 255), st.integers(0, 2**32 - 1))
def test_a_frame_beyond_the_limit_is_refused_before_it_arrives(size: int, kind: int, channel: int) -> None:
    with LinkBench() as bench:
        try:
            bench.link._feed(wire.PREAMBLE + wire.HEADER.pack(size, kind, channel))
        except wire.WireError as error:
            assert str(size) in str(error)  # noqa: PT017 - the other way out fails the test below
            return
        raise AssertionError("it waits for a frame that is too large")
