"""Keys and types: from a tree of plain values to a manifest, with every problem explained.

A wrong value is skipped and the rest is still read, so that all problems are reported at once.
"""

import typing
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, show_key, show_value
from freehold.manifest.secret_text import mask, names_secret
from freehold.manifest.shape import find_nearest, list_keys, shape_at, show_example, to_toml

_WANTED: Mapping[str, str] = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "a string in quotes",
    "tuple_type": "a list",
    "dict_type": "a table",
    "mapping_type": "a table",
    "model_type": "a table",
    "date_type": "a date such as 2027-06-30",
}


@dataclass(frozen=True)
class StructureProblem:
    """An unknown key or a value of the wrong type."""

    code: str
    path: KeyPath
    message: str
    hint: str


def build_manifest(tree: Mapping[str, object]) -> tuple[Manifest, list[StructureProblem]]:
    """The manifest made of all valid values, and a problem for each of the others."""
    left = deepcopy(dict(tree))
    mistakes: list[StructureProblem] = []
    while True:
        try:
            return Manifest.model_validate(left), mistakes
        except ValidationError as error:
            found = {detail["loc"]: _explain(detail) for detail in error.errors(include_url=False)}
        mistakes += found.values()
        # From the end of each list, so that the places of the others stay what they were.
        for path in sorted(found, key=_order, reverse=True):
            _leave_out(left, path)


def _order(path: KeyPath) -> tuple[str, ...]:
    return tuple(f"{part:08d}" if isinstance(part, int) else part for part in path)


def _leave_out(tree: dict[str, object], path: KeyPath) -> None:
    at: Any = tree
    for part in path[:-1]:
        at = at[part]
    if isinstance(at, str):
        # A short form such as `beads = "somewhere"`: the whole value goes.
        _leave_out(tree, path[:-1])
    else:
        del at[path[-1]]


def _explain(detail: ErrorDetails) -> StructureProblem:
    path = detail["loc"]
    context = detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden":
            return _unknown_key(path)
        case "value_error":
            wrong = str(context["error"])
        case "literal_error":
            wrong = f"must be one of {context['expected']}, not {_show_input(path, detail['input'])}"
        case "greater_than_equal" | "less_than_equal":
            wrong = f"must be between 1 and 65535, not {_show_input(path, detail['input'])}"
        case other:
            wanted = _WANTED.get(other, detail["msg"].removeprefix("Input should be "))
            wrong = f"must be {wanted}, not {_show_input(path, detail['input'])}"
    return StructureProblem("E006", path, f"{show_key(path)}: {wrong}", _example(path, detail["input"]))


def _show_input(path: KeyPath, value: object) -> str:
    secret = any(isinstance(part, str) and names_secret(part) for part in path)
    if isinstance(value, str) and secret:
        return mask(value)
    match value:
        case bool():
            return to_toml(value)
        case dict():
            return "a table"
        case list() | tuple():
            return "a list"
    return show_value(value)


def _example(path: KeyPath, value: object) -> str:
    while (shape := shape_at(path)) is None:
        path = path[:-1]
    name = next((part for part in reversed(path) if isinstance(part, str)), "")
    if path[0] == "agents" and len(path) == 2 and find_nearest(name, ["default"]):
        return 'Did you mean agents.default? Example: default = "builtin"'
    if shape.field is not None and shape.model is None:
        meant = find_nearest(value, _choices(shape.field)) if isinstance(value, str) else None
        return "Example: " + (f"{name} = {to_toml(meant)}" if meant else show_example(name, shape.field))
    table = f"[[{show_key(path)}]]" if shape.many == "listed" else f"[{show_key(path)}]"
    keys = ", ".join(shape.model.model_fields) if shape.model else ""
    return f"Write it as a table: {table} with the keys {keys}"


def _choices(field: FieldInfo) -> list[str]:
    return [choice for choice in typing.get_args(field.annotation) if isinstance(choice, str)]


@cache
def _places() -> Mapping[str, list[tuple[str, ...]]]:
    """The paths at which each name is a key. Cached: a file may hold ten thousand unknown names."""
    places: dict[str, list[tuple[str, ...]]] = {}
    for known, _ in list_keys():
        places.setdefault(known[-1], []).append(known)
    return places


def _unknown_key(path: KeyPath) -> StructureProblem:
    around = shape_at(path[:-1])
    keys = around.keys if around else {}
    name = str(path[-1])
    meant = find_nearest(name, keys)
    if meant:
        full = (*path[:-1], meant)
        below = shape_at(full)
        example = f"[{show_key(full)}]" if below and below.model else show_example(meant, keys[meant])
        hint = f"Did you mean {show_key(full)}? Example: {example}"
    else:
        homes = _places().get(name, [])
        where = f"It belongs in [{'.'.join(homes[0][:-1])}]. " if len(homes) == 1 else ""
        inside = f"The keys of [{show_key(path[:-1])}] are" if len(path) > 1 else "The sections are"
        hint = f"{where}{inside} {', '.join(keys)}"
    return StructureProblem("E005", path, f"There is no key {show_key(path)}", hint)
