"""The edge where a call's parameters become a frozen dataclass: unknown names, missing names and wrong types are refused."""

import types
from dataclasses import MISSING, fields
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from freehold.errors import FreeholdError

T = TypeVar("T")


def decode_params(shape: type[T], params: object) -> T:
    """`params` as `shape`, whose fields are str, int, float, bool, None, lists of these, or unions of these."""
    if not isinstance(params, dict):
        raise _bad("params must be an object")
    hints = get_type_hints(shape)
    known = {field.name: field for field in fields(shape)}  # type: ignore[arg-type]
    for name in params:
        if name not in known:
            raise _bad(f"unknown parameter {name!r}; the parameters are: {', '.join(known) or 'none'}")
    for name, field in known.items():
        if name not in params:
            if field.default is MISSING and field.default_factory is MISSING:
                raise _bad(f"parameter {name!r} is missing")
        elif not _fits(params[name], hints[name]):
            raise _bad(f"parameter {name!r} has the wrong type: {type(params[name]).__name__}")
    return shape(**params)


def _fits(value: object, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, choice) for choice in get_args(hint))
    if origin is list:
        return isinstance(value, list) and all(_fits(item, get_args(hint)[0]) for item in value)
    if hint is None or hint is types.NoneType:
        return value is None
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _bad(message: str) -> FreeholdError:
    return FreeholdError("keeper.bad-params", message[0].upper() + message[1:], hint="freehold --help lists the verbs")
