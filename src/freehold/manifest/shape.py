"""The shape of the manifest, read from the model: which keys there are, and what stands below each."""

import difflib
import json
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import WithJsonSchema
from pydantic.fields import FieldInfo

from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath
from freehold.manifest.sections.base import Section
from freehold.manifest.sections.minds import Agent, Agents
from freehold.manifest.units import show_seconds, show_size


@dataclass(frozen=True)
class Shape:
    """What may stand at one key: a table of fixed keys, tables by free name, a list of tables, or a value."""

    model: type[Section] | None
    many: typing.Literal["", "named", "listed"] = ""
    field: FieldInfo | None = None

    @property
    def keys(self) -> Mapping[str, FieldInfo]:
        return self.model.model_fields if self.model and not self.many else {}


ROOT = Shape(Manifest)


def step(shape: Shape, part: str | int) -> Shape | None:
    """One key further down, or None when there is no such key."""
    if shape.many == "listed":
        return Shape(shape.model) if isinstance(part, int) else None
    if not isinstance(part, str):
        return None
    if shape.many == "named":
        return Shape(shape.model)
    if part in shape.keys:
        return _shape_of(shape.keys[part])
    return Shape(Agent) if shape.model is Agents else None


def shape_at(path: KeyPath) -> Shape | None:
    """What may stand at a path, or None when nothing may."""
    shape: Shape | None = ROOT
    for part in path:
        shape = step(shape, part) if shape else None
    return shape


def every_key(shape: Shape = ROOT, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    """All keys that hold a value, in the model's order; a free name is written `<name>`, a list element `[]`."""
    for name, field in shape.keys.items():
        below = _shape_of(field)
        if below.model is None:
            yield (*path, name), field
        elif below.many:
            yield from every_key(Shape(below.model), (*path, name, "<name>" if below.many == "named" else "[]"))
        else:
            yield from every_key(below, (*path, name))
    if shape.model is Agents:
        yield from every_key(Shape(Agent), (*path, "<name>"))


def _shape_of(field: FieldInfo) -> Shape:
    annotation: Any = field.annotation
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return Shape(annotation, field=field)
    inner = [arg for arg in typing.get_args(annotation) if isinstance(arg, type) and issubclass(arg, Section)]
    if inner:
        named = typing.get_origin(annotation) is not tuple
        return Shape(inner[0], many="named" if named else "listed", field=field)
    return Shape(None, field=field)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    lowered = name[:100].lower().replace("-", "_")
    found = difflib.get_close_matches(lowered, list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def kind_of(field: FieldInfo) -> str:
    """`size`, `duration` or `command` for a value with a spelling of its own, else nothing."""
    optional = [arg for arg in typing.get_args(field.annotation) if typing.get_origin(arg) is typing.Annotated]
    metadata = [*field.metadata, *(m for arg in optional for m in arg.__metadata__)]
    titles = [m.json_schema.get("title") for m in metadata if isinstance(m, WithJsonSchema) and m.json_schema]
    return str(titles[0]) if titles else ""


def default_of(field: FieldInfo) -> str | None:
    """The default as TOML writes it, or None for a key that is not set unless it is written."""
    if field.default is None:
        return None
    match kind_of(field):
        case "size":
            return to_toml(show_size(field.default))
        case "duration":
            return to_toml(show_seconds(field.default))
    return to_toml(field.default)


def example_of(name: str, field: FieldInfo) -> str:
    """A line that could stand in the manifest: `port = 3000`."""
    value = to_toml(field.examples[0]) if field.examples else default_of(field)
    return f"{name} = {value}"


def to_toml(value: object) -> str:
    """A value as TOML writes it on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(k)} = {to_toml(v)}" for k, v in value.items()) + " }" if value else "{}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
