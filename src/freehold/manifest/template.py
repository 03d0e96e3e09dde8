"""The manifest that `freehold init` writes: every key, commented out at its default, with its sentence."""

import textwrap
from collections.abc import Mapping

from pydantic.fields import FieldInfo

from freehold.manifest.edit import Plain
from freehold.manifest.problem import show_key
from freehold.manifest.sections.slots import SlotSection
from freehold.manifest.shape import ROOT, KeyShape, show_default, show_example, step_into, to_toml

_OPENING = """\
# What this Freehold runs. Every key is here, commented out at its default, or with an example when it has none:
# take the # away to change one, and `freehold check` looks at it. All of it is explained in docs/manifest.md.
"""
_EXAMPLES: Mapping[tuple[str, ...], str] = {
    ("computer", "services"): "web",
    ("models",): "local",
    ("security", "exceptions"): "private-egress",
}
"""Names for the examples of tables that the owner names. Sections of features say their own."""


def starter_manifest(values: Mapping[tuple[str, ...], Plain]) -> str:
    """A commented manifest in which only these keys are set."""
    lines = [_OPENING]
    for section in ROOT.keys:
        lines += _lines_at((section,), step_into(ROOT, section), values, example=False)
    return "\n".join(lines).rstrip() + "\n"


def _lines_at(
    path: tuple[str, ...], shape: KeyShape | None, values: Mapping[tuple[str, ...], Plain], *, example: bool
) -> list[str]:
    if shape is None or shape.model is None:
        return []
    if shape.many == "listed":
        return _table(f"# [[{show_key(path)}]]", path, KeyShape(shape.model), values, example=True)
    if shape.many == "named":
        path = (*path, _EXAMPLES.get(path) or shape.model.named_example)
        is_set = any(key[: len(path)] == path for key in values)
        header = f"[{show_key(path)}]" if is_set else f"# [{show_key(path)}]"
        return _table(header, path, KeyShape(shape.model), values, example=True)
    header = f"# [{show_key(path)}]" if example else f"[{show_key(path)}]"
    lines = _table(header, path, shape, values, example=example)
    if shape.named_tables is not None:
        name = shape.model.named_example
        lines += _lines_at((*path, name), KeyShape(shape.named_tables), values, example=True)
    return lines


def _table(
    header: str, path: tuple[str, ...], shape: KeyShape, values: Mapping[tuple[str, ...], Plain], *, example: bool
) -> list[str]:
    """The table itself, then the tables below it: TOML wants keys before sub-tables."""
    lines = [*_comment(shape.model.__doc__ if shape.model else ""), header]
    below: list[str] = []
    for key, field in shape.keys.items():
        inner = step_into(shape, key)
        if inner is not None and inner.model is SlotSection:
            lines += [*_comment(field.description), f'# {key} = "{field.default.mode}"']
            continue
        if inner is not None and inner.model is not None:
            below += _lines_at((*path, key), inner, values, example=example)
            continue
        lines += _comment(field.description)
        if (*path, key) in values:
            lines.append(f"{key} = {to_toml(values[(*path, key)])}")
        else:
            lines.append(f"# {_line(key, field, example)}")
    return [*lines, "", *below]


def _line(key: str, field: FieldInfo, example: bool) -> str:
    default = show_default(field)
    if default is None or (example and field.examples):
        return show_example(key, field)
    return f"{key} = {default}"


def _comment(text: str | None) -> list[str]:
    return textwrap.wrap(
        (text or "").strip(), 110, initial_indent="## ", subsequent_indent="## ", break_on_hyphens=False
    )
