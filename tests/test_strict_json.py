"""The strict decoder: what it accepts, what it refuses, and a fuzz against random values."""

import json
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.history import calls as history_calls
from freehold.history import copy_calls
from freehold.keeper import calls as keeper_calls
from freehold.strict_json import WrongShape, decode, encode
from freehold.typed_call import TypedCall, TypedStream, result_type


@dataclass(frozen=True)
class Inner:
    name: str
    size: int | None = None


@dataclass(frozen=True)
class Outer:
    word: Literal["a", "b"]
    flag: bool
    count: int
    share: float
    inner: Inner
    items: tuple[Inner, ...] = ()
    names: list[str] = field(default_factory=list)
    sizes: dict[str, int | float] = field(default_factory=dict)
    extra: object = None
    choice: int | str | None = None


GOOD: dict[str, Any] = {"word": "a", "flag": True, "count": 3, "share": 1, "inner": {"name": "x"}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def test_a_value_becomes_the_dataclass_and_back() -> None:
    body = GOOD | {"items": [{"name": "y", "size": 2}], "names": ["n"], "sizes": {"s": 2, "t": 0.5}, "choice": "c"}
    found = decode(Outer, body)
    assert found == Outer("a", True, 3, 1.0, Inner("x"), (Inner("y", 2),), ["n"], {"s": 2, "t": 0.5}, None, "c")
    assert decode(Outer, json.loads(json.dumps(encode(found)))) == found


def test_a_field_that_is_none_by_default_is_left_out() -> None:
    assert encode(Inner("x")) == {"name": "x"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"word": "c"}, "word must be 'a' or 'b', not str"),
        ({"flag": 1}, "flag must be true or false, not int"),
        ({"count": True}, "count must be a whole number, not bool"),
        ({"count": 1.0}, "count must be a whole number, not float"),
        ({"count": None}, "count must be a whole number, not null"),
        ({"share": "1"}, "share must be a finite number, not str"),
        ({"share": float("nan")}, "share must be a finite number, not float"),
        ({"share": 10**400}, "share must be a finite number, not int"),
        ({"inner": {}}, "inner.name is missing"),
        ({"inner": []}, "inner must be an object, not list"),
        ({"inner": {"name": "x", "other": 1}}, "inner.other is not a known field; known: name, size"),
        ({"items": [{"name": 1}]}, r"items\[0\].name must be text, not int"),
        ({"items": {"name": "x"}}, "items must be a list, not dict"),
        ({"names": [None]}, r"names\[0\] must be text, not null"),
        ({"sizes": {"s": "large"}}, "sizes.s must be one of its types, not str"),
        ({"choice": []}, "choice must be one of its types, not list"),
        ({"extra": float("inf")}, "extra must be a JSON value, not float"),
        ({"more": 1}, "more is not a known field"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(WrongShape, match=message):
        decode(Outer, GOOD | change)


@pytest.mark.parametrize("name", sorted(GOOD))
def test_a_missing_field_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(WrongShape, match=f"{name} is missing"):
        decode(Outer, {key: value for key, value in GOOD.items() if key != name})


def test_a_value_that_is_nested_too_deep_is_refused() -> None:
    deep: Any = None
    for _ in range(500):
        deep = [deep]
    with pytest.raises(WrongShape, match="nested more than"):
        decode(Outer, GOOD | {"extra": deep})


def list_requests() -> list[type[Any]]:
    found = [
        one
        for one in [*vars(history_calls).values(), *vars(copy_calls).values(), *vars(keeper_calls).values()]
        if isinstance(one, type)
    ]
    bases: tuple[type[Any], ...] = (TypedCall, TypedStream)
    return [one for one in found if issubclass(one, bases) and one not in bases]


REQUESTS = list_requests()
SHAPES = [*REQUESTS, *(result_type(one) for one in REQUESTS), Outer]


def test_every_call_of_the_keeper_has_its_own_method() -> None:
    methods = [one.method for one in REQUESTS]
    assert len(methods) == len(set(methods)) > 20


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@given(data=st.data())
def test_random_values_are_decoded_to_the_declared_type_or_refused(shape: type[Any], data: st.DataObject) -> None:
    """The fuzz: nothing but `WrongShape` is raised, and what is accepted survives the way back."""
    names = [one.name for one in fields(shape)]
    keys = st.sampled_from([*names, "other"]) if names else st.just("other")
    value = data.draw(JSON | st.dictionaries(keys, JSON, max_size=len(names)))
    try:
        found = decode(shape, value)
    except WrongShape:
        return
    assert isinstance(found, shape)
    assert decode(shape, json.loads(json.dumps(encode(found)))) == found


NUMBERS = st.integers(-(2**63), 2**63 - 1)
INNERS = st.builds(Inner, size=st.none() | NUMBERS)


@given(
    st.builds(
        Outer,
        count=NUMBERS,
        share=st.floats(allow_nan=False, allow_infinity=False),
        inner=INNERS,
        items=st.lists(INNERS, max_size=3).map(tuple),
        sizes=st.dictionaries(st.text(), NUMBERS | st.floats(allow_nan=False, allow_infinity=False), max_size=3),
        extra=JSON,
        choice=st.none() | st.text() | NUMBERS,
    )
)
def test_every_value_of_the_type_survives_the_way_there_and_back(value: Outer) -> None:
    assert decode(Outer, json.loads(json.dumps(encode(value)))) == value


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**64, 10**30])
def test_a_number_that_cannot_be_stored_is_refused(number: int) -> None:
    """SQLite raises an error for it, which would be a bug of whoever asked the database."""
    with pytest.raises(WrongShape, match="count must be a whole number from -2"):
        decode(Outer, {**GOOD, "count": number})
    with pytest.raises(WrongShape):
        decode(Outer, {**GOOD, "inner": {"name": "x", "size": number}})
    with pytest.raises(WrongShape, match="entry"):
        decode(history_calls.UndoChanges, {"entry": number, "who": {"by": "owner"}})


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 0])
def test_every_number_that_can_be_stored_is_accepted(number: int) -> None:
    assert decode(Outer, {**GOOD, "count": number}).count == number
