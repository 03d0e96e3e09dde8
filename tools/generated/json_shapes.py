"""What `--json` prints, in a notation for people: one line a field, with its type."""

import dataclasses
import importlib
import types
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import (
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from pydantic import BaseModel

from freehold.cli._json_output import JsonOutput
from freehold.history.calls import RestorePreview, RestoreReport
from freehold.history.model import EntryRecord
from freehold.strict_json import EpochNanoseconds, EpochSeconds, IsoTime

_TIMES = {get_args(hint)[1] for hint in (EpochSeconds, EpochNanoseconds, IsoTime)}
_PLAIN = {str: "text", int: "integer", float: "number", bool: "true or false", Any: "any value", object: "any value"}
_FORMS = {
    "object": "prints one object",
    "list": "prints a list of objects",
    "lines": "prints one object a line",
}
_SHARED: Mapping[type, str] = {EntryRecord: "history entry", RestoreReport: "restore report", RestorePreview: "plan"}
"""Objects of several commands. They are described once, under their own heads."""


def describe_shared() -> str:
    parts = ["## Objects of several commands\n"]
    for shape, name in _SHARED.items():
        parts += [f"### {name.capitalize()}\n", "```text", *_object_lines(shape, 0), "```\n"]
    return "\n".join(parts)


def describe_output(output: JsonOutput) -> str:
    """A sentence, and the fields of the object."""
    when = {"": "`--json`", "PORT": "`PORT --json`", "no PORT": "`--json` without `PORT`"}.get(
        output.when, f"`{output.when} --json`"
    )
    shape = load_shape(output)
    if shape in _SHARED:
        name = _SHARED[shape]
        return f"{when} {_FORMS[output.form]}: a [{name}](#{name.replace(' ', '-')}).\n"
    return "\n".join([f"{when} {_FORMS[output.form]}:\n", "```text", *_object_lines(shape, 0), "```", ""])


def load_shape(output: JsonOutput) -> type:
    if isinstance(output.shape, type):
        return output.shape
    module, _, name = output.shape.partition(":")
    found: type = getattr(importlib.import_module(module), name)
    return found


def list_fields(shape: type) -> Mapping[str, tuple[Any, bool]]:
    """The fields of a shape: the type of each, and whether it can be missing."""
    hints = get_type_hints(shape, include_extras=True)
    if dataclasses.is_dataclass(shape):
        return {field.name: (hints[field.name], field.default is None) for field in dataclasses.fields(shape)}
    if is_typeddict(shape):
        return {
            name: (get_args(hint)[0], True) if get_origin(hint) is NotRequired else (hint, False)
            for name, hint in hints.items()
        }
    assert issubclass(shape, BaseModel)
    return {name: (hints[name], False) for name in shape.model_fields}


def is_shape(hint: Any) -> bool:
    return isinstance(hint, type) and (
        dataclasses.is_dataclass(hint) or is_typeddict(hint) or issubclass(hint, BaseModel)
    )


def _object_lines(shape: type, depth: int) -> Iterator[str]:
    indent = "  " * depth
    for name, (hint, optional) in list_fields(shape).items():
        inner, words = _describe(hint)
        yield f"{indent}{name}{'?' if optional else ''}: {words.removesuffix(' or null') if optional else words}"
        if inner is not None:
            yield from _object_lines(inner, depth + 1)


def _describe(hint: Any) -> tuple[type | None, str]:
    """The object inside, if there is one, and the type in words."""
    if hint is datetime or set(getattr(hint, "__metadata__", ())) & _TIMES:
        return None, "time"
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        found = [_describe(choice) for choice in arguments if choice is not types.NoneType]
        words = " or ".join(dict.fromkeys(words for _, words in found))
        return next((inner for inner, _ in found if inner is not None), None), (
            f"{words} or null" if types.NoneType in arguments else words
        )
    if origin is Literal:
        return None, " or ".join(str(choice) if isinstance(choice, int) else f'"{choice}"' for choice in arguments)
    if origin in (list, tuple):
        inner, words = _describe(arguments[0])
        return inner, "list of objects" if inner is not None else f"list, each {words}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        inner, words = _describe(arguments[1])
        return inner, "object of objects" if inner is not None else f"object, each value {words}"
    if hint in _SHARED:
        return None, _SHARED[hint]
    if is_shape(hint):
        return hint, "object"
    if getattr(hint, "__metadata__", None) is not None:
        return _describe(arguments[0])
    return None, _PLAIN.get(hint, "text")
