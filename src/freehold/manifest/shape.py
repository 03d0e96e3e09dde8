"""The keys of the manifest, read from the model."""

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
from freehold.manifest.units import show_seconds, show_size


@dataclass(frozen=True)
class KeyShape:
    """What may stand at one key: a table of fixed keys, tables by free name, a list of tables, or a value."""

    model: type[Section] | None
    many: typing.Literal["", "named", "listed"] = ""
    field: FieldInfo | None = None

    @property
    def keys(self) -> Mapping[str, FieldInfo]:
        return self.model.model_fields if self.model and not self.many else {}

    @property
    def named_tables(self) -> type[Section] | None:
        """What tables of free names hold that stand beside the fixed keys."""
        return self.model.named_tables if self.model and not self.many else None


ROOT = KeyShape(Manifest)


def step_into(shape: KeyShape, part: str | int) -> KeyShape | None:
    """One key further down, or None when there is no such key."""
    if shape.many == "listed":
        return KeyShape(shape.model) if isinstance(part, int) else None
    if not isinstance(part, str):
        return None
    if shape.many == "named":
        return KeyShape(shape.model)
    if part in shape.keys:
        return _shape_of(shape.keys[part])
    return KeyShape(shape.named_tables) if shape.named_tables is not None else None


def shape_at(path: KeyPath) -> KeyShape | None:
    """What may stand at a path, or None when nothing may."""
    shape: KeyShape | None = ROOT
    for part in path:
        shape = step_into(shape, part) if shape else None
    return shape


def list_keys(shape: KeyShape = ROOT, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    """All keys that hold a value, in the model's order; a free name is written `<name>`, a list element `[]`."""
    for name, field in shape.keys.items():
        below = _shape_of(field)
        if below.model is None:
            yield (*path, name), field
        elif below.many:
            yield from list_keys(KeyShape(below.model), (*path, name, "<name>" if below.many == "named" else "[]"))
        else:
            yield from list_keys(below, (*path, name))
    if shape.named_tables is not None:
        yield from list_keys(KeyShape(shape.named_tables), (*path, "<name>"))


def _shape_of(field: FieldInfo) -> KeyShape:
    annotation: Any = field.annotation
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return KeyShape(annotation, field=field)
    inner = [arg for arg in typing.get_args(annotation) if isinstance(arg, type) and issubclass(arg, Section)]
    if inner:
        named = typing.get_origin(annotation) is not tuple
        return KeyShape(inner[0], many="named" if named else "listed", field=field)
    return KeyShape(None, field=field)


def find_nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is closest to this one."""
    import difflib  # only for a manifest with a mistake

    lowered = name[:100].lower().replace("-", "_")
    found = difflib.get_close_matches(lowered, list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def read_kind(field: FieldInfo) -> str:
    """`size`, `duration` or `command` for a value with a spelling of its own, else nothing."""
    optional = [arg for arg in typing.get_args(field.annotation) if typing.get_origin(arg) is typing.Annotated]
    metadata = [*field.metadata, *(m for arg in optional for m in arg.__metadata__)]
    titles = [m.json_schema.get("title") for m in metadata if isinstance(m, WithJsonSchema) and m.json_schema]
    return str(titles[0]) if titles else ""


def show_default(field: FieldInfo) -> str | None:
    """The default as TOML writes it, or None for a key that is not set unless it is written."""
    if field.default is None:
        return None
    match read_kind(field):
        case "size":
            return to_toml(show_size(field.default))
        case "duration":
            return to_toml(show_seconds(field.default))
    return to_toml(field.default)


def show_example(name: str, field: FieldInfo) -> str:
    """A line that could stand in the manifest: `port = 3000`."""
    value = to_toml(field.examples[0]) if field.examples else show_default(field)
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
