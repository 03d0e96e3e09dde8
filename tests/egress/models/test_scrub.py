"""A key never comes back, and nothing else is changed or held for longer than it could be one."""

from hypothesis import given
from hypothesis import strategies as st

from freehold.egress.models.scrub import Scrubber

KEY = b"aab-key-aab"


@given(st.lists(st.sampled_from([b"a", b"aa", b"b", b"-key-", KEY, KEY[:5], KEY[5:], b"other"]), max_size=30))
def test_any_cut_gives_what_replacing_the_whole_would(pieces: list[bytes]) -> None:
    scrubber = Scrubber(KEY)
    out = b"".join(scrubber.feed(piece) for piece in pieces) + scrubber.end()
    assert out == b"".join(pieces).replace(KEY, b"*" * len(KEY))


def test_what_cannot_be_a_key_is_never_held() -> None:
    scrubber = Scrubber(KEY)
    assert scrubber.feed(b"data: hello\n\n") == b"data: hello\n\n"
    assert scrubber.feed(b"a") == b""
    assert scrubber.feed(b"x") == b"ax"


def test_without_a_key_everything_passes() -> None:
    assert Scrubber(b"").feed(b"anything") == b"anything"
