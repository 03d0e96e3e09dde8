"""The JSON of a request is parsed once; what is sent is what was checked, for every parser."""

import json
from typing import Any

import pydantic_core
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freehold.egress.models.request_json import MAX_VALUES, encode_request_json, parse_request_json
from freehold.errors import FreeholdError

SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=5)


@settings(deadline=None)
@given(OBJECTS)
def test_a_second_parser_reads_what_was_checked(content: dict[str, Any]) -> None:
    checked = parse_request_json(json.dumps(content).encode())
    sent = encode_request_json(checked)
    assert pydantic_core.from_json(sent, allow_inf_nan=False) == json.loads(sent) == checked == content


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60) | OBJECTS.map(lambda content: json.dumps(content).encode()), st.data())
def test_whatever_is_accepted_is_read_alike_by_a_second_parser(body: bytes, data: st.DataObject) -> None:
    """Bytes are changed at random. What is accepted means the same to another parser, before and after."""
    changed = bytearray(body)
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(changed)))
        changed[at:at] = data.draw(
            st.sampled_from([b'"', b"\\u005f", b"\\", b",", b"{", b"}", b"\x00", b"\xff", b"1e9", b":"])
        )
    try:
        checked = parse_request_json(bytes(changed))
    except FreeholdError:
        return
    try:
        sent = encode_request_json(checked)
    except FreeholdError:
        return
    assert pydantic_core.from_json(sent) == json.loads(sent)
    if "\\ud" not in changed.decode().lower():  # half a character is replaced
        assert pydantic_core.from_json(bytes(changed)) == json.loads(sent) == checked


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1, "a": 2}',
        b'{"a": 1, "\\u0061": 2}',
        b'{"x": [{"b": 1, "b": 1}]}',
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": -Infinity}',
        b'{"a": 1e999}',
        b'{"a": 9223372036854775808}',
        b'{"a": -9223372036854775809}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'\xef\xbb\xbf{"a": 1}',
        '{"a": 1}'.encode("utf-16"),
        '{"a": 1}'.encode("utf-32-le"),
        b'{"a": "\xff"}',
        b'{"a": "\xed\xa0\x80"}',
        b'{"a": "\xc0\xaf"}',
        b"{'a': 1}",
        b'{"a": 1,}',
        b'{"a": 1} {"b": 2}',
        b'{"a": 1}\x00',
        b'{"a": "\x01"}',
        b'{"a": 01}',
        b'{"a": +1}',
        b'{"a": .5}',
        b"{a: 1}",
        b'{"a": 1} // x',
        b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"[]",
        b"null",
        b"",
    ],
)
def test_what_two_parsers_could_read_differently_is_refused(body: bytes) -> None:
    with pytest.raises(FreeholdError) as refused:
        parse_request_json(body)
    assert refused.value.code == "models.malformed"


def test_half_a_character_is_replaced() -> None:
    """JavaScript makes one by cutting a text; some parsers refuse the whole request for it."""
    checked = parse_request_json(b'{"a": "cut \\ud83d", "b": "\\ud83d\\ude00"}')
    assert encode_request_json(checked) == '{"a":"cut \ufffd","b":"\U0001f600"}'.encode()


def test_keys_that_become_one_by_this_are_refused() -> None:
    with pytest.raises(FreeholdError, match="twice"):
        encode_request_json(parse_request_json(b'{"a": {"x\\ud800": 1, "x\\ud801": 2}}'))


def test_a_repeated_key_among_very_many_is_found_in_one_pass() -> None:
    """With a pass for each key this took hours, and the gateway served nobody meanwhile."""
    names = [*range(MAX_VALUES - 2), MAX_VALUES - 3]
    body = "{" + ",".join(f'"{name}":0' for name in names) + "}"
    with pytest.raises(FreeholdError, match="twice"):
        parse_request_json(body.encode())


@pytest.mark.parametrize("value", ["1", '""', "[]", "{}", "null", "[[[[1]]]]", '"a,b"', '"\\\\"', '"\\""'])
def test_more_values_than_a_request_needs_are_refused_before_they_are_parsed(value: str) -> None:
    """The parser lets nothing else run. Thirty megabytes of empty lists took it ten seconds."""
    with pytest.raises(FreeholdError, match="values"):
        parse_request_json(b'{"a":[' + b",".join([value.encode()] * (MAX_VALUES + 1)) + b"]}")


@pytest.mark.parametrize("text", ["a,[{", 'say "x", ', "\\,", '\\",'])
def test_a_long_text_with_many_marks_is_one_value(text: str) -> None:
    content = {"a": text * MAX_VALUES}
    assert parse_request_json(json.dumps(content).encode()) == content
