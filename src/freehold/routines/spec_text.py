"""A routine as the lines that stand in freehold.toml: how agents write one, and how it is shown."""

import tomllib
from typing import Any

from pydantic import ValidationError

from freehold.errors import FreeholdError
from freehold.manifest.shape import to_toml
from freehold.routines.section import RoutineSection

MAX_TEXT = 40_000


def read_spec(text: str) -> RoutineSection:
    """Raises `routine.bad-value`."""
    try:
        return validate_spec(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FreeholdError(
            "routine.bad-value",
            f"The routine is not TOML: {error}",
            hint='Such as: cron = "0 7 * * *" and, on a line of its own, prompt = "Report."',
        ) from None


def validate_spec(values: dict[str, Any]) -> RoutineSection:
    """Raises `routine.bad-value`."""
    try:
        return RoutineSection.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise FreeholdError(
            "routine.bad-value",
            f"{key}: {first['msg'].removeprefix('Value error, ')}",
            hint="docs/manifest.md describes the keys of a routine",
        ) from None


def show_spec(spec: RoutineSection) -> str:
    """The keys that are set, one a line."""
    values = spec.model_dump(exclude_defaults=True)
    return "\n".join(f"{key} = {to_toml(value)}" for key, value in values.items())
