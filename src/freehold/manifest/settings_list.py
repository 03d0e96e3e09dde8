"""Every setting of a manifest with its value, where it is set, and whether the page may change it."""

import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic.fields import FieldInfo

from freehold.errors import FreeholdError
from freehold.manifest.environment import read_overrides
from freehold.manifest.loader import load_manifest
from freehold.manifest.model import Manifest
from freehold.manifest.overlay import LIVE_SECTIONS, merge_overlay, read_overlay
from freehold.manifest.problem import KeyPath
from freehold.manifest.reader import ManifestSource, read_source
from freehold.manifest.secret_text import scrub
from freehold.manifest.shape import ROOT, list_keys, read_kind, show_default, step_into, to_toml
from freehold.manifest.units import show_seconds, show_size

SettingPlace = typing.Literal["default", "file", "overlay", "environment"]
SettingKind = typing.Literal["text", "number", "truth", "choice", "list", "size", "duration", "other"]
SAFE = (
    "agents.default", "agents.model", "budget.", "code.", "computer.limits.", "computer.sleep_after", "egress.allow", "egress.deny",
    "git.", "history.quiet", "history.quota", "history.rate", "retention.",
)  # fmt: skip
"""What the page may change: limits, times and choices that open no door and that a second change takes back."""
_CHANGEABLE: typing.Container[SettingKind] = ("text", "number", "truth", "choice", "list", "size", "duration")


@dataclass(frozen=True)
class ListedSetting:
    """`value` and `default` are as the manifest writes them; None when there is none.

    `waits`: the file has another value than the one in force, which takes effect after a restart. `line` is where it is,
    or where its section begins.
    """

    key: str
    kind: SettingKind
    choices: tuple[str, ...]
    value: str | None
    default: str | None
    meaning: str
    place: SettingPlace
    file: str
    line: int | None
    is_live: bool
    can_change: bool
    waits: bool


@dataclass(frozen=True)
class ListedSection:
    name: str
    meaning: str
    settings: tuple[ListedSetting, ...]


def list_settings(path: Path, environ: Mapping[str, str], in_force: Manifest, *, home: Path) -> list[ListedSection]:
    """Blocking. Tables with free names, such as `[models.NAME]`, are listed as they are written."""
    written = load_manifest(path, environ, home=home).manifest
    source, overlay = read_source(path), read_overlay(path)
    tree = merge_overlay(source.tree, overlay.tree)
    files = _Files(source, overlay, read_overrides(environ, tree).values)
    found: dict[str, list[ListedSetting]] = {}
    known: set[tuple[str, ...]] = set()
    for key, field in list_keys():
        if "<name>" in key or "[]" in key:
            continue
        known.add(key)
        values = (_value_at(written, key), _value_at(in_force, key))
        found.setdefault(key[0], []).append(_describe(key, field, values, files))
    for key, value in _leaves(tree):
        if key not in known and not any(key[: len(one)] == one for one in known):
            found.setdefault(key[0], []).append(_describe_free(key, value, files))
    return [ListedSection(name, _meaning_of(name), tuple(settings)) for name, settings in found.items()]


def check_changeable(key: str) -> FieldInfo:
    """The field of a setting that the page may change. Raises `manifest.read-only` for every other."""
    parts = tuple(key.split("."))
    field = next((field for known, field in list_keys() if known == parts), None)
    if field is None or not _is_safe(key) or _kind_of(field)[0] not in _CHANGEABLE:
        raise FreeholdError(
            "manifest.read-only", f"{key!a:.100} cannot be changed here", hint="Change it in freehold.toml"
        )
    return field


@dataclass(frozen=True)
class _Files:
    source: ManifestSource
    overlay: ManifestSource
    environment: Mapping[KeyPath, object]

    def find(self, key: tuple[str, ...]) -> tuple[SettingPlace, ManifestSource, int | None]:
        if key in self.environment:
            return "environment", self.source, None
        for place, source in (("overlay", self.overlay), ("file", self.source)):
            if _has(source.tree, key):
                return typing.cast("SettingPlace", place), source, source.line(key)
        return "default", self.source, self.source.line(key[:1]) if key[0] in self.source.tree else None


def _describe(key: tuple[str, ...], field: FieldInfo, values: tuple[object, object], files: _Files) -> ListedSetting:
    kind, choices = _kind_of(field)
    place, source, line = files.find(key)
    name = ".".join(key)
    is_live = key[0] in LIVE_SECTIONS
    return ListedSetting(
        key=name,
        kind=kind,
        choices=choices,
        value=_show(values[0], kind),
        default=show_default(field),
        meaning=str(field.description or ""),
        place=place,
        file=source.path.name,
        line=line,
        is_live=is_live,
        can_change=_is_safe(name) and kind in _CHANGEABLE and place != "environment",
        waits=not is_live and values[0] != values[1],
    )


def _describe_free(key: tuple[str, ...], value: object, files: _Files) -> ListedSetting:
    place, source, line = files.find(key)
    return ListedSetting(
        ".".join(key), "other", (), _show(value, "other"), None, "", place, source.path.name, line,
        key[0] in LIVE_SECTIONS, False, False,
    )  # fmt: skip


def _kind_of(field: FieldInfo) -> tuple[SettingKind, tuple[str, ...]]:
    spelled = read_kind(field)
    if spelled in ("size", "duration"):
        return typing.cast("SettingKind", spelled), ()
    plain: typing.Any = field.annotation
    if type(None) in typing.get_args(plain):
        plain = next(one for one in typing.get_args(plain) if one is not type(None))
    if typing.get_origin(plain) is typing.Annotated:
        plain = typing.get_args(plain)[0]
    if typing.get_origin(plain) is typing.Literal:
        return "choice", tuple(str(one) for one in typing.get_args(plain))
    if typing.get_origin(plain) is tuple and typing.get_args(plain)[0] is str:
        return "list", ()
    kinds: Mapping[object, SettingKind] = {str: "text", int: "number", float: "number", bool: "truth"}
    return kinds.get(plain, "other"), ()


def _show(value: object, kind: SettingKind) -> str | None:
    if value is None:
        return None
    if kind == "size" and isinstance(value, int):
        value = show_size(value)
    elif kind == "duration" and isinstance(value, int | float):
        value = show_seconds(value)
    elif not isinstance(value, bool | int | float | str | list | tuple | Mapping):
        value = str(value)
    return scrub(to_toml(value))


def _value_at(manifest: Manifest, key: tuple[str, ...]) -> object:
    at: object = manifest
    for part in key:
        at = getattr(at, part)
    return at


def _leaves(tree: Mapping[str, object], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name), value


def _has(tree: Mapping[str, object], key: tuple[str, ...]) -> bool:
    at: object = tree
    for part in key:
        if not isinstance(at, Mapping) or part not in at:
            return False
        at = at[part]
    return True


def _meaning_of(section: str) -> str:
    shape = step_into(ROOT, section)
    return (shape.model.__doc__ or "").strip().split("\n\n")[0] if shape is not None and shape.model else ""


def _is_safe(key: str) -> bool:
    return any(key == one or (one.endswith(".") and key.startswith(one)) for one in SAFE)
