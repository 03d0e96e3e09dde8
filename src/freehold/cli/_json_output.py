"""What `--json` prints. Each command declares it with the option, and docs/cli.md has it from there."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import click

from freehold.strict_json import EpochNanoseconds, EpochSeconds

F = TypeVar("F", bound=Callable[..., Any])
_MOMENTS = {get_args(EpochSeconds)[1]: 1, get_args(EpochNanoseconds)[1]: 1_000_000_000}
"""The marks of moments that are numbers, with how many make a second."""


@dataclass(frozen=True)
class JsonOutput:
    """One thing that a command prints. `shape` is a dataclass or a typed dictionary, or `module:name` of one.

    With the form `lines` each line is an object of its own.
    """

    shape: str | type
    form: Literal["object", "list", "lines"] = "object"
    when: str = ""
    """With which options it is printed; empty for always."""


class JsonOption(click.Option):
    """`--json`, with what it prints."""

    def __init__(self, *arguments: Any, outputs: tuple[JsonOutput, ...] = (), **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.outputs = outputs


def json_option(*outputs: JsonOutput) -> Callable[[F], F]:
    """Add `--json`. The command receives a bool named `as_json`, and prints `outputs` with `echo_json`."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print JSON for scripts.", cls=JsonOption, outputs=outputs
    )


def echo_json(value: object, *, indent: int | None = None) -> None:
    click.echo(json.dumps(encode_output(value), indent=indent))


def encode_output(value: object) -> Any:
    """As `strict_json.encode`, with every moment of a dataclass as text: ISO 8601, UTC."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, datetime):
        return format_moment(value.timestamp())
    if isinstance(value, list | tuple):
        return [encode_output(item) for item in value]
    if isinstance(value, Mapping):
        return {name: encode_output(item) for name, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        found = {}
        for name, optional, moment in _list_fields(type(value)):
            item = getattr(value, name)
            if item is not None or not optional:
                found[name] = format_moment(item / moment) if moment and item is not None else encode_output(item)
        return found
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def format_moment(seconds: float) -> str:
    """A number of seconds since 1970 as the timeline writes moments: UTC with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@cache
def _list_fields(shape: type) -> tuple[tuple[str, bool, int], ...]:
    """Each field: its name, whether it is left out when it is None, and how many make a second when it is a moment."""
    hints = get_type_hints(shape, include_extras=True)
    return tuple((field.name, field.default is None, _find_moment(hints[field.name])) for field in fields(shape))


def _find_moment(hint: Any) -> int:
    """0 when it is no moment. `None` beside it does not matter."""
    choices = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    marks = [mark for choice in choices for mark in getattr(choice, "__metadata__", ())]
    return next((_MOMENTS[mark] for mark in marks if mark in _MOMENTS), 0)
