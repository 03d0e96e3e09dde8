import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.guest import codec
from freehold.guest.wire import WireError

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(st.characters()), inner, max_size=5),
    max_leaves=20,
)


@given(st.dictionaries(st.text(st.characters()), JSON, max_size=5))
def test_it_encodes_and_decodes_json(message: dict[str, object]) -> None:
    assert json.loads(codec.encode_message(message)) == message
    assert codec.decode_message(json.dumps(message).encode()) == message
    assert b"\n" not in codec.encode_message(message)


@given(st.binary(max_size=200))
def test_garbage_is_a_wire_error_and_nothing_else(garbage: bytes) -> None:
    try:
        assert isinstance(codec.decode_message(garbage), dict)
    except WireError:
        return


@pytest.mark.parametrize("bomb", [b"[" * 100_000, b'{"a":' * 50_000, b"1" * 100_000, b"{}{}", b"[]", b""], ids=range(6))
def test_bombs_are_a_wire_error(bomb: bytes) -> None:
    with pytest.raises(WireError):
        codec.decode_message(bomb)


def test_values_without_a_json_form_are_refused() -> None:
    with pytest.raises(TypeError):
        codec.encode_message({"a": object()})
