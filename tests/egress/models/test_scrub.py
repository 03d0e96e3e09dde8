"""The key is always masked; no other byte is changed or delayed."""

from hypothesis import given
from hypothesis import strategies as st

from freehold.egress.models.scrub import Scrubber

KEY = b"aab-key-aab"


@given(st.lists(st.sampled_from([b"a", b"aa", b"b", b"-key-", KEY, KEY[:5], KEY[5:], b"other"]), max_size=30))
def test_masking_gives_the_same_however_the_data_is_split(pieces: list[bytes]) -> None:
    scrubber = Scrubber(KEY)
    out = b"".join(scrubber.feed(piece) for piece in pieces) + scrubber.end()
    assert out == b"".join(pieces).replace(KEY, b"*" * len(KEY))


def test_bytes_that_cannot_be_the_key_are_not_held_back() -> None:
    scrubber = Scrubber(KEY)
    assert scrubber.feed(b"data: hello\n\n") == b"data: hello\n\n"
    assert scrubber.feed(b"a") == b""
    assert scrubber.feed(b"x") == b"ax"


def test_without_a_key_everything_passes() -> None:
    assert Scrubber(b"").feed(b"anything") == b"anything"
