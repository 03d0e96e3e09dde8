"""Environment variables that stand above the file."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import ConfigDict, TypeAdapter, ValidationError

from freehold.manifest.problem import ENVIRONMENT, KeyPath, Problem, dotted, printable, show
from freehold.manifest.sections.minds import Agents
from freehold.manifest.shape import ROOT, Shape, every_key, example_of, nearest, shape_at, step

PREFIX = "FREEHOLD_"
NAMED: Mapping[str, KeyPath] = {
    "OWNER_DID": ("owner", "did"),
    "PUBLIC_URL": ("gateway", "public_url"),
    "ATPROTO_SERVICE": ("owner", "service"),
    "SANDBOX_HOST": ("computer", "host"),
}
"""Variables with a name of their own; `FREEHOLD_<SECTION>_<KEY>` wins when both are set."""

PROVIDERS: Mapping[str, str] = {"OPENAI_API_KEY": "openai", "ANTHROPIC_API_KEY": "anthropic"}
"""A key in one of these makes a provider of that name and kind present; the value itself is never read here."""

_SWITCHES = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}


@dataclass
class Overrides:
    """What the environment says: values by key, and what could not be understood."""

    values: dict[KeyPath, object] = field(default_factory=dict)
    variables: dict[KeyPath, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def variable(self, path: KeyPath) -> str | None:
        """The variable that set this key or something around it."""
        return next(
            (self.variables[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self.variables), None
        )


def read_overrides(environ: Mapping[str, str], tree: Mapping[str, object]) -> Overrides:
    """Everything in the environment that speaks about the manifest. An empty variable says nothing."""
    found = Overrides()
    for name, path in NAMED.items():
        if environ.get(name):
            _take(found, name, path, environ[name])
    for name in sorted(environ):
        if name.startswith(PREFIX) and environ[name]:
            _read_general(found, name, environ[name], tree)
    _read_providers(found, environ, tree)
    return found


def apply_overrides(tree: Mapping[str, object], overrides: Overrides) -> dict[str, object]:
    """The tree with the environment's values in place. Where the file holds no table, its own mistake is left to be told."""
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


def _read_general(found: Overrides, name: str, text: str, tree: Mapping[str, object]) -> None:
    words = name.removeprefix(PREFIX).lower()
    path = next(_paths(words, ROOT, (), tree), None)
    if path is not None:
        _take(found, name, path, text)
        return
    section, _, rest = words.partition("_")
    if not rest or nearest(section, ROOT.keys) is None:
        return  # FREEHOLD_HOME and the like, which are not about the manifest
    known = [PREFIX.lower() + "_".join(path) for path, _ in every_key() if not {"[]", "<name>"} & set(path)]
    meant = nearest(name, known)
    hint = f"Did you mean {meant.upper()}?" if meant else "docs/manifest.md lists them all"
    message = f"{printable(name, 120)} is set, and no key of the manifest has that name"
    found.problems.append(Problem("W008", message, hint, ENVIRONMENT))


def _paths(words: str, shape: Shape, path: KeyPath, tree: object) -> Iterator[KeyPath]:
    """Every key that the words can mean, the likeliest first: longest fixed key, then names the file has."""
    below_tree = tree if isinstance(tree, dict) else {}
    fixed = sorted((key for key in shape.keys if words == key or words.startswith(f"{key}_")), key=len, reverse=True)
    free: list[str] = []
    if shape.many == "named" or shape.model is Agents:
        written = {name.lower().replace("-", "_"): name for name in below_tree if isinstance(name, str)}
        parts = words.split("_")
        heads = ["_".join(parts[:end]) for end in range(1, len(parts))]
        free = sorted(
            (written.get(head, head) for head in heads if head not in fixed), key=lambda name: name not in below_tree
        )
    for part in [*fixed, *free]:
        rest = words[len(part) :].removeprefix("_")
        below = step(shape, part)
        if below is None:
            continue
        if not rest and below.model is None:
            yield (*path, part)
        elif rest:
            yield from _paths(rest, below, (*path, part), below_tree.get(part))


def _take(found: Overrides, name: str, path: KeyPath, text: str) -> None:
    shape = shape_at(path)
    field = shape.field if shape else None
    if field is None:
        raise LookupError(f"{name} stands for {dotted(path)}, which holds no value")
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
    shown = show(text)
    hint = f"Example: {name}={example_of('', field).removeprefix(' = ')}"
    message = f"{name} is {shown}, which {dotted(path)} cannot be"
    found.problems.append(Problem("E007", message, hint, ENVIRONMENT, key=dotted(path)))


def _readings(text: str) -> list[object]:
    """What a variable can mean, the plainest first: the text, a TOML value, a switch, a list with commas."""
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


def _read_providers(found: Overrides, environ: Mapping[str, str], tree: Mapping[str, object]) -> None:
    models = tree.get("models", {})
    for variable, kind in PROVIDERS.items():
        written = models.get(kind) if isinstance(models, dict) else None
        if not environ.get(variable) or (isinstance(written, dict) and "key" in written):
            continue
        path: KeyPath = ("models", kind, "key")
        found.values.setdefault(path, f"env:{variable}")
        found.variables.setdefault(path, variable)
        if not isinstance(written, dict) or "kind" not in written:
            found.values.setdefault(("models", kind, "kind"), kind)
