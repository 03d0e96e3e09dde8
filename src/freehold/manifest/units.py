"""Sizes and durations as people write them, stored as plain numbers."""

import re
import shlex
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field, Strict, StringConstraints, WithJsonSchema

_SIZES: Mapping[str, int] = {
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "tb": 1000**4,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
    "tib": 1024**4,
}
_DURATIONS: Mapping[str, float] = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_MAX_BYTES = 1024**6
_MAX_SECONDS = 36500 * 86400
_MAX_TEXT = 40
_QUANTITY = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,6})?)\s*([A-Za-z]{1,3})", re.ASCII)


def parse_size(value: object) -> object:
    """`"4GiB"` → 4294967296. Numbers pass through as bytes; what is no size raises ValueError."""
    if isinstance(value, str):
        value = round(_quantity(value, _SIZES, 'a size such as "512MiB" or "4GiB"'))
    return _within(value, _MAX_BYTES, "1048576TiB")


def parse_seconds(value: object) -> object:
    """`"10m"` → 600. Numbers pass through as seconds; a fraction of a second is refused."""
    parsed = parse_moments(value)
    if isinstance(value, str) and isinstance(parsed, float):
        if not parsed.is_integer():
            raise ValueError(f'{value!r} is not a whole number of seconds; write it like "30s"')
        return int(parsed)
    return parsed


def parse_moments(value: object) -> object:
    """`"750ms"` → 0.75. Numbers pass through as seconds."""
    if isinstance(value, str):
        value = float(_quantity(value, _DURATIONS, 'a duration such as "30s", "10m", "24h" or "7d"'))
    return _within(value, _MAX_SECONDS, "36500d")


def _within(value: object, most: int, shown: str) -> object:
    """Beyond these, files, clocks and the kernel count wrongly; nobody means them."""
    if isinstance(value, (int, float)) and not -most <= value <= most and value == value:
        raise ValueError(f"{value:.3g} is more than {shown}")
    return value


def _quantity(text: str, units: Mapping[str, float], wanted: str) -> float:
    found = _QUANTITY.fullmatch(text.strip())
    if found is None or found[2].lower() not in units:
        raise ValueError(f"{text!r} is not {wanted}; the units are {', '.join(units)}")
    number = float(found[1]) if "." in found[1] else int(found[1])
    return round(number * units[found[2].lower()], 6)


def split_command(value: object) -> object:
    """`"npm run dev"` → `("npm", "run", "dev")`: words as a shell would see them, but no shell ever runs."""
    if not isinstance(value, str):
        return value
    return tuple(shlex.split(value))


def show_size(size: int) -> str:
    """The shortest exact spelling that `parse_size` reads back."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        factor = _SIZES[unit.lower()]
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return f"{size}B"


def show_seconds(seconds: float) -> str:
    """The shortest exact spelling that `parse_seconds` reads back."""
    for unit in ("d", "h", "m", "s"):
        factor = _DURATIONS[unit]
        if seconds and seconds % factor == 0:
            return f"{seconds // factor:.0f}{unit}"
    return f"{seconds * 1000:.0f}ms" if seconds else "0s"


def _written_as(kind: str, number: str, pattern: str, most: int) -> WithJsonSchema:
    schemas = [
        {"type": number, "minimum": 0, "maximum": most},
        {"type": "string", "pattern": pattern, "maxLength": _MAX_TEXT},
    ]
    return WithJsonSchema({"title": kind, "anyOf": schemas})


Bytes = Annotated[
    int,
    BeforeValidator(parse_size),
    _written_as("size", "integer", r"^[0-9]+(\.[0-9]+)? *[KMGTkmgt]?[Ii]?[Bb]$", _MAX_BYTES),
]
Seconds = Annotated[
    int,
    BeforeValidator(parse_seconds),
    _written_as("duration", "integer", r"^[0-9]+(\.[0-9]+)? *(ms|[smhdw])$", _MAX_SECONDS),
]
Moments = Annotated[
    float,
    BeforeValidator(parse_moments),
    _written_as("duration", "number", r"^[0-9]+(\.[0-9]+)? *(ms|[smhdw])$", _MAX_SECONDS),
]
"""Seconds that may have a fraction."""

Port = Annotated[int, Field(ge=1, le=65535)]
Words = Annotated[tuple[str, ...], Strict(False)]
"""A list of strings. Lists of TOML become tuples; what is inside stays strict."""

Folder = Annotated[str, StringConstraints(pattern=r"^\.?[\w-][\w.-]*(/\.?[\w-][\w.-]*)*$", max_length=200)]
"""A folder below another one: relative, and no name leads out or stands for several."""

Folders = Annotated[tuple[Folder, ...], Strict(False)]

Command = Annotated[
    tuple[str, ...],
    Strict(False),
    BeforeValidator(split_command),
    WithJsonSchema({"title": "command", "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
