"""What a program in the computer can make the terminal of the page do: nothing that takes long."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gateway.naive_terminal_filter import naive_filter

from freehold.gateway.terminal_filter import MAX_MARKS, MAX_STRING, TerminalFilter

CASES: list[tuple[str, str, str]] = [
    tuple(case) for case in json.loads((Path(__file__).parent / "terminal_filter_cases.json").read_text())
]
TOKEN = re.compile(
    r"""[^\x1b\x80-\x9f]
      | \x1b\[ (?P<parameters>[\x30-\x3f]{0,256}) [\x20-\x2f]{0,4} (?P<final>[\x40-\x7e])
      | \x1b[P\]] (?P<string>[^\x07\x18\x1a\x1b\x80-\x9f]*) \x1b\\
      | \x1b [\x20-\x2f]{0,4} [\x30-\x4f\x51-\x57\x59-\x5a\x5c\x60-\x7e]
    """,
    re.VERBOSE | re.DOTALL,
)
"""Everything that may come out of the filter, one token after the other."""

pieces = st.one_of(
    st.sampled_from(
        [
            "\x1b", "\x1b[", "\x9b", "\x1b]", "\x1bP", "\x90", "\x1b_", "\x1bX", "\x1b\\", "\x9c", "\x07", "\x18", "\x1a",
            ";", ":", "?", "2147483647", "0", "1", "1000", "1001", "10000", "b", "L", "m", "t", "H", " ", "'", "$", "\n",
            "\x7f", "a", "é", "\u0301", "\u200d", "\u1160", "漢", "😀", "\x85", "\u0301" * 20, "9" * 300, "x" * 5000,
        ]
    ),
    st.text(max_size=5),
)  # fmt: skip
outputs = st.one_of(st.lists(pieces, max_size=20).map(lambda parts: "".join(parts).encode()), st.binary(max_size=60))


def whole(data: bytes) -> bytes:
    return TerminalFilter().feed(data)


@pytest.mark.parametrize(("claim", "output", "drawn"), CASES, ids=[case[0].replace(" ", "-") for case in CASES])
def test_filtered(claim: str, output: str, drawn: str) -> None:
    data = output.encode()
    assert whole(data).decode() == drawn
    terminal_filter = TerminalFilter()
    assert b"".join(terminal_filter.feed(data[at : at + 1]) for at in range(len(data))).decode() == drawn


@settings(deadline=None, max_examples=200)
@given(outputs, st.lists(st.integers(min_value=1, max_value=40), max_size=30))
def test_however_output_is_cut_a_second_implementation_draws_the_same(output: bytes, sizes: list[int]) -> None:
    terminal_filter = TerminalFilter()
    drawn, at = b"", 0
    for size in sizes:
        drawn += terminal_filter.feed(output[at : at + size])
        at += size
    assert drawn + terminal_filter.feed(output[at:]) == naive_filter(output)


@settings(deadline=None, max_examples=200)
@given(outputs)
def test_only_whole_and_limited_sequences_come_out(output: bytes) -> None:
    drawn = whole(output).decode()
    at = marks = 0
    while at < len(drawn):
        token = TOKEN.match(drawn, at)
        assert token is not None, drawn[at : at + 40]
        at = token.end()
        if (final := token.group("final")) is not None:
            assert final != "t"
            most = 9999 if final in "JKcghlmnpqrsu" else 1000 if final in "@ABCDEFGHILMPSTXZ^`abdef}~" else 9999
            assert all(int(number) <= most for number in re.findall(r"\d+", token.group("parameters")))
        assert len(token.group("string") or "") <= MAX_STRING
        marks = marks + 1 if token.group() == "\u0301" else 0
        assert marks <= MAX_MARKS


@settings(deadline=None, max_examples=200)
@given(outputs)
def test_filtered_output_is_not_changed_again(output: bytes) -> None:
    once = whole(output)
    assert whole(once) == once


def test_three_million_marks_are_sixteen() -> None:
    assert whole(b"a" + "\u0301".encode() * 3_000_000).decode() == "a" + "\u0301" * MAX_MARKS


@pytest.mark.parametrize("introducer", ["\x1b]0;", "\x1bP", "\x1b_", "\x9d"])
def test_a_giant_string_is_left_out_and_takes_no_memory(introducer: str) -> None:
    terminal_filter = TerminalFilter()
    assert terminal_filter.feed(b"before" + introducer.encode()) == b"before"
    for _ in range(200):
        assert terminal_filter.feed(b"x" * 32 * 1024) == b""
        assert len(terminal_filter._rest) <= MAX_STRING + 8
    assert terminal_filter.feed(b"x\x1b\\after") == b"after"


def test_a_replay_that_begins_within_a_character_shows_no_broken_one() -> None:
    assert whole("é".encode()[1:] + b"x") == b"x"
    assert whole(b"x\xa9") == "x\ufffd".encode()


@pytest.mark.parametrize("sequence", ["\x1b]0;x\x1b\\", "\x1b]0;x\x18", "\x1b_x\x1b["])
def test_very_many_strings_are_read_once(sequence: str) -> None:
    """Before, what follows was copied for each of them: hundreds of gigabytes for this output."""
    count = 300_000
    assert len(whole(sequence.encode() * count + b"m")) <= len(sequence) * count + 1
