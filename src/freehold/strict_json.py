"""Plain JSON values to dataclasses and back. The decoder refuses unknown fields, missing fields and wrong types.

Supported types: `str`, `int`, `float`, `bool`, `None`, `Literal`, unions, `list`, `tuple[T, ...]`, `dict[str, T]`,
`Mapping[str, T]`, dataclasses of these, and `object` for any JSON value.
"""

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
EpochSeconds = Annotated[float, "seconds since 1970"]
EpochNanoseconds = Annotated[int, "nanoseconds since 1970"]
IsoTime = Annotated[str, "ISO 8601, UTC"]
"""A moment as text, as in `2026-11-16T05:30:00.125Z`. What `--json` prints has every moment in this form."""
Decoder = Callable[[object, str], Any]
MAX_DEPTH = 64
"""How deep a value of type `object` may be nested."""
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1
"""What SQLite and the kernel can store. A larger number is refused where it is read, not where it is used."""


class WrongShape(ValueError):
    """The value does not have the declared type. The text names the field and the reason."""


def decode(shape: type[T], value: object) -> T:
    """`value` as `shape`; raises `WrongShape`."""
    return cast("T", _decoder(cast("Any", shape))(value, ""))


def encode(value: object) -> Any:
    """A dataclass as plain JSON. A field whose default is None is left out when it is None."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {name: encode(item) for name, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        found = {}
        for name, optional in _field_names(type(value)):
            item = getattr(value, name)
            if item is not None or not optional:
                found[name] = encode(item)
        return found
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


@cache
def _field_names(shape: type) -> tuple[tuple[str, bool], ...]:
    return tuple((field.name, field.default is None) for field in fields(shape))


@cache
def _decoder(hint: Any) -> Decoder:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _union(get_args(hint))
    if origin is Literal:
        return _literal(get_args(hint))
    if origin in (list, tuple):
        return _sequence(origin, get_args(hint))
    if origin in (dict, Mapping):
        return _mapping(get_args(hint))
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and is_dataclass(hint):
        return _dataclass(hint)
    raise TypeError(f"{hint!r} is not supported")


def _dataclass(shape: type) -> Decoder:
    known = {field.name: field for field in fields(shape)}
    needed = [name for name, one in known.items() if one.default is MISSING and one.default_factory is MISSING]
    # Resolved at first use, so that a type may contain itself.
    decoders: dict[str, Decoder] = {}

    def read(value: object, where: str) -> Any:
        if not isinstance(value, dict):
            raise _wrong(where, "an object", value)
        if not decoders:
            decoders.update((name, _decoder(hint)) for name, hint in get_type_hints(shape).items() if name in known)
        for name in value:
            if name not in known:
                raise WrongShape(
                    f"{_at(where, str(name)[:100])} is not a known field; known: {', '.join(known) or 'none'}"
                )
        for name in needed:
            if name not in value:
                raise WrongShape(f"{_at(where, name)} is missing")
        return shape(**{name: decoders[name](item, _at(where, name)) for name, item in value.items()})

    return read


def _union(choices: tuple[Any, ...]) -> Decoder:
    optional = types.NoneType in choices
    decoders = [_decoder(choice) for choice in choices if choice is not types.NoneType]

    def read(value: object, where: str) -> Any:
        if value is None and optional:
            return None
        if len(decoders) == 1:
            return decoders[0](value, where)
        for decoder in decoders:
            try:
                return decoder(value, where)
            except WrongShape:
                continue
        raise _wrong(where, "one of its types", value)

    return read


def _literal(choices: tuple[Any, ...]) -> Decoder:
    def read(value: object, where: str) -> Any:
        for choice in choices:
            if type(choice) is type(value) and choice == value:
                return choice
        raise _wrong(where, " or ".join(repr(choice) for choice in choices), value)

    return read


def _sequence(make: Any, arguments: tuple[Any, ...]) -> Decoder:
    if make is tuple and (len(arguments) != 2 or arguments[1] is not ...):
        raise TypeError("only tuples of any length are supported: tuple[T, ...]")
    decoder = _decoder(arguments[0])

    def read(value: object, where: str) -> Any:
        if not isinstance(value, list):
            raise _wrong(where, "a list", value)
        return make(decoder(item, f"{where}[{place}]") for place, item in enumerate(value))

    return read


def _mapping(arguments: tuple[Any, ...]) -> Decoder:
    if arguments[0] is not str:
        raise TypeError("only objects with text keys are supported: dict[str, T]")
    decoder = _decoder(arguments[1])

    def read(value: object, where: str) -> Any:
        if not isinstance(value, dict):
            raise _wrong(where, "an object", value)
        for name in value:
            if not isinstance(name, str):
                raise _wrong(f"a key of {where or 'the value'}", "text", name)
        return {name: decoder(item, _at(where, name[:100])) for name, item in value.items()}

    return read


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise _wrong(where, "text", value)
    return value


def _truth(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(where, "true or false", value)
    return value


def _whole(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(where, "a whole number", value)
    if not MIN_INTEGER <= value <= MAX_INTEGER:
        raise WrongShape(f"{where or 'the value'} must be a whole number from -2**63 to 2**63 - 1")
    return value


def _number(value: object, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            raise _wrong(where, "a finite number", value) from None
        if math.isfinite(number):
            return number
    raise _wrong(where, "a finite number", value)


def _nothing(value: object, where: str) -> None:
    if value is not None:
        raise _wrong(where, "null", value)


def _anything(value: object, where: str, depth: int = 0) -> object:
    """Any JSON value, as it is."""
    if depth > MAX_DEPTH:
        raise WrongShape(f"{where or 'the value'} is nested more than {MAX_DEPTH} deep")
    if isinstance(value, list):
        return [_anything(item, where, depth + 1) for item in value]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {name: _anything(item, where, depth + 1) for name, item in value.items()}
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise _wrong(where, "a JSON value", value)


_PLAIN: dict[Any, Decoder] = {
    str: _text,
    bool: _truth,
    int: _whole,
    float: _number,
    object: _anything,
    None: _nothing,
    types.NoneType: _nothing,
}


def _at(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _wrong(where: str, wanted: str, value: object) -> WrongShape:
    """Names the type and not the value, which may be long or secret."""
    found = "null" if value is None else type(value).__name__
    return WrongShape(f"{where or 'the value'} must be {wanted}, not {found}")
