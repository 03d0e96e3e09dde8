"""Environment variables that override the file."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import ConfigDict, TypeAdapter, ValidationError

from freehold.manifest.problem import ENVIRONMENT, KeyPath, ManifestProblem, cut_printable, show_key, show_value
from freehold.manifest.renamed_keys import RENAMED_KEYS
from freehold.manifest.shape import ROOT, KeyShape, find_nearest, list_keys, shape_at, show_example, step_into

PREFIX = "FREEHOLD_"
NAMED_VARIABLES: Mapping[str, KeyPath] = {
    "OWNER_DID": ("owner", "did"),
    "PUBLIC_URL": ("gateway", "public_url"),
    "ATPROTO_SERVICE": ("owner", "service"),
    "SANDBOX_HOST": ("computer", "host"),
}
"""Variables with a name of their own; `FREEHOLD_<SECTION>_<KEY>` wins when both are set."""

_SWITCHES = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}


@dataclass
class EnvironmentOverrides:
    """Values from the environment by key, and the problems found in them."""

    values: dict[KeyPath, object] = field(default_factory=dict)
    variables: dict[KeyPath, str] = field(default_factory=dict)
    problems: list[ManifestProblem] = field(default_factory=list)

    def variable(self, path: KeyPath) -> str | None:
        """The variable that set this key or something around it."""
        return next(
            (self.variables[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self.variables), None
        )


def read_overrides(environ: Mapping[str, str], tree: Mapping[str, object]) -> EnvironmentOverrides:
    """All overrides in the environment. An empty variable counts as not set."""
    found = EnvironmentOverrides()
    for name, path in NAMED_VARIABLES.items():
        if environ.get(name):
            _read_variable(found, name, path, environ[name])
    for name in sorted(environ):
        if name.startswith(PREFIX) and environ[name]:
            _read_general(found, name, environ[name], tree)
    return found


def apply_overrides(tree: Mapping[str, object], overrides: EnvironmentOverrides) -> dict[str, object]:
    """The tree with the environment's values in place. Where the file has something other than a table, the file's problem is reported instead."""
    result = dict(tree)
    for path, value in overrides.values.items():
        at: dict[str, object] = result
        for part in map(str, path[:-1]):
            below = at.get(part, {})
            if isinstance(below, str) and path[0] == "slots":
                below = {"mode": below}
            if not isinstance(below, dict):
                break
            at[part] = dict(below)
            at = at[part]  # type: ignore[assignment]
        else:
            at[str(path[-1])] = value
    return result


def _read_general(found: EnvironmentOverrides, name: str, text: str, tree: Mapping[str, object]) -> None:
    words = name.removeprefix(PREFIX).lower()
    for (section, old), new in RENAMED_KEYS.items():
        if words == f"{section}_{old}":
            words = f"{section}_{new}"
            message = f"{name} is now called {PREFIX}{words.upper()}"
            found.problems.append(ManifestProblem("W009", message, "Use the new name", ENVIRONMENT))
    path = next(_paths(words, ROOT, (), tree), None)
    if path is not None:
        _read_variable(found, name, path, text)
        return
    section, _, rest = words.partition("_")
    if not rest or find_nearest(section, ROOT.keys) is None:
        return  # FREEHOLD_HOME and the like, which are not about the manifest
    known = [PREFIX.lower() + "_".join(path) for path, _ in list_keys() if not {"[]", "<name>"} & set(path)]
    meant = find_nearest(name, known)
    hint = f"Did you mean {meant.upper()}?" if meant else "docs/manifest.md lists them all"
    message = f"{cut_printable(name, 120)} is set, and no key of the manifest has that name"
    found.problems.append(ManifestProblem("W008", message, hint, ENVIRONMENT))


def _paths(words: str, shape: KeyShape, path: KeyPath, tree: object) -> Iterator[KeyPath]:
    """Every key that the words can mean, the likeliest first: longest fixed key, then names the file has."""
    below_tree = tree if isinstance(tree, dict) else {}
    fixed = sorted((key for key in shape.keys if words == key or words.startswith(f"{key}_")), key=len, reverse=True)
    free: list[str] = []
    if shape.many == "named" or shape.named_tables is not None:
        written = {name.lower().replace("-", "_"): name for name in below_tree if isinstance(name, str)}
        parts = words.split("_")
        heads = ["_".join(parts[:end]) for end in range(1, len(parts))]
        free = sorted(
            (written.get(head, head) for head in heads if head not in fixed), key=lambda name: name not in below_tree
        )
    for part in [*fixed, *free]:
        rest = words[len(part) :].removeprefix("_")
        below = step_into(shape, part)
        if below is None:
            continue
        if not rest and below.model is None:
            yield (*path, part)
        elif rest:
            yield from _paths(rest, below, (*path, part), below_tree.get(part))


def _read_variable(found: EnvironmentOverrides, name: str, path: KeyPath, text: str) -> None:
    shape = shape_at(path)
    field = shape.field if shape else None
    if field is None:
        raise LookupError(f"{name} stands for {show_key(path)}, which holds no value")
    wanted: TypeAdapter[object] = TypeAdapter(
        field.rebuild_annotation(), config=ConfigDict(strict=True, allow_inf_nan=False)
    )
    for reading in _readings(text):
        try:
            wanted.validate_python(reading)
        except ValidationError:
            continue
        found.values[path] = reading
        found.variables[path] = name
        return
    shown = show_value(text)
    hint = f"Example: {name}={show_example('', field).removeprefix(' = ')}"
    message = f"{name} is {shown}, which {show_key(path)} cannot be"
    found.problems.append(ManifestProblem("E007", message, hint, ENVIRONMENT, key=show_key(path)))


def _readings(text: str) -> list[object]:
    """Possible meanings of a variable: the text, a TOML value, a switch, a list separated by commas."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return []
    readings: list[object] = [text]
    try:
        readings.append(tomllib.loads(f"value = {text}")["value"])
    except (ValueError, RecursionError):
        readings += [_SWITCHES[text.lower()]] if text.lower() in _SWITCHES else []
    readings.append([part.strip() for part in text.split(",") if part.strip()])
    return readings
