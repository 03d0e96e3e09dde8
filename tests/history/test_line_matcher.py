"""Lines are compared within a limit of work, and otherwise exactly as by Python's own module."""

from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.history import diff, line_matcher
from freehold.history.diff import count_lines, make_unified_diff
from freehold.history.line_matcher import match_lines
from freehold.history.merge import merge_lines

LINES = st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), max_size=30)


def interleave(other: bytes, count: int) -> list[bytes]:
    """Every second line is the same in all such texts, at the same place, and one of a few."""
    return [line for number in range(count) for line in (b"same %d" % (number % 101), b"%b %d" % (other, number))]


@given(LINES, LINES)
def test_the_matches_are_those_of_the_standard_library(old: list[bytes], new: list[bytes]) -> None:
    assert match_lines(old, new) == SequenceMatcher(None, old, new).get_opcodes()


def test_a_file_that_would_take_minutes_is_shown_as_all_old_and_all_new_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files of 4,000 lines took twenty seconds; a revert of many such files held up every undo."""
    monkeypatch.setattr(line_matcher, "MAX_WORK", 200_000)
    old, new = interleave(b"old", 1_000), interleave(b"new", 1_000)
    assert match_lines(old, new) is None
    before, after = b"\n".join(old), b"\n".join(new)
    assert count_lines(before, after) == (1_999, 1_999)
    shown = make_unified_diff(before, after, b"file").splitlines()
    assert shown[:3] == [b"--- a/file", b"+++ b/file", b"@@ -1,2000 +1,2000 @@"]
    assert [line[1:] for line in shown[3:] if line.startswith((b"-", b" "))] == old
    assert [line[1:] for line in shown[3:] if line.startswith((b"+", b" "))] == new
    assert merge_lines(old, new, [*old, b"one more"]) is None


def test_ordinary_changes_of_a_large_file_are_far_from_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_matcher, "MAX_WORK", line_matcher.MAX_WORK // 20)
    old = [b"    value_%d = compute(%d)" % (number, number) if number % 5 else b"" for number in range(4_000)]
    new = [line if number % 97 else b"changed" for number, line in enumerate(old)]
    matched = match_lines(old, new)
    assert matched is not None
    assert len(matched) > 50


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))
def test_a_diff_of_too_many_lines_has_the_form_of_every_other(lead: int, old: int, new: int, tail: int) -> None:
    around = [b"lead %d\n" % number for number in range(lead)], [b"tail %d\n" % number for number in range(tail)]
    before = b"".join((*around[0], *(b"old %d\n" % number for number in range(old)), *around[1]))
    after = b"".join((*around[0], *(b"new %d\n" % number for number in range(new)), *around[1]))
    if before == after:
        return
    with pytest.MonkeyPatch.context() as patch:
        expected = make_unified_diff(before, after, b"file")
        patch.setattr(diff, "MAX_LINES", -1)
        assert make_unified_diff(before, after, b"file") == expected
