"""A routine and its runs, as they are stored."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from freehold.routines.rules import TriggerKind, WorkKind, trigger_of
from freehold.routines.section import RoutineSection
from freehold.strict_json import EpochSeconds

RoutineState = Literal["on", "paused", "over"]
"""`over`: its only time has passed."""
RoutineRunState = Literal["due", "started", "parked", "done", "failed", "uncertain", "skipped", "cancelled"]
OPEN: tuple[RoutineRunState, ...] = ("started", "parked")
UNFINISHED: tuple[RoutineRunState, ...] = ("due", "started", "parked")

KEY = "routine:"
"""How the key of a prompt begins that a routine sends."""
ROUTINE = "routine:"
"""How the name begins of a routine that has begun something."""
MANIFEST = "manifest"
"""The source of a routine that stands in freehold.toml."""

ROUTINE_COLUMNS = "name, spec, source, state, reason, next, zone, created, failures, session"
RUN_COLUMNS = (
    "number, id, routine, cause, due, begin, held, state, attempt, started, finished, session, turn, cost, quiet,"
    " result, error, data, work"
)


@dataclass(frozen=True)
class Routine:
    """`source` is `manifest`, or who made it: `owner`, `token:NAME`, `session:ID`.

    `zone` is the time zone for which `next` was computed. `failures` counts those in a row. `session` is the one that
    all runs go on with, once there is one.
    """

    name: str
    spec: RoutineSection
    source: str
    state: RoutineState
    reason: str | None
    next: EpochSeconds | None
    zone: str
    created: EpochSeconds
    failures: int
    session: str | None

    @property
    def trigger(self) -> TriggerKind:
        return trigger_of(self.spec)


@dataclass(frozen=True)
class RoutineRun:
    """One run of a routine. Times in seconds since 1970.

    `begin`: not before this time. `held`: it waits for the end of another run. `data` is what the trigger told, from
    outside. `work` is what it has begun with, whatever the routine says later; None before it has begun.
    """

    number: int
    id: str
    routine: str
    cause: str
    due: EpochSeconds
    begin: EpochSeconds
    held: bool
    state: RoutineRunState
    attempt: int
    started: EpochSeconds | None
    finished: EpochSeconds | None
    session: str | None
    turn: int | None
    cost: float | None
    quiet: bool
    result: str | None
    error: str | None
    data: Mapping[str, Any]
    work: WorkKind | None

    @property
    def key_prefix(self) -> str:
        """How the keys of the prompts of all attempts begin."""
        return f"{KEY}{self.id}:"

    @property
    def prompt_key(self) -> str:
        """By which the session recognises the prompt of this attempt: it is sent once."""
        return f"{self.key_prefix}{self.attempt}"


@dataclass(frozen=True)
class RunMark:
    """A run in the strip of the last ones."""

    id: str
    state: RoutineRunState
    due: EpochSeconds
    cost: float | None
    quiet: bool


def encode_spec(spec: RoutineSection) -> str:
    return json.dumps(spec.model_dump(exclude_defaults=True), sort_keys=True)


@lru_cache(maxsize=256)
def _decode_spec(text: str) -> RoutineSection:
    return RoutineSection.model_validate(json.loads(text))


def read_routine(row: tuple[Any, ...]) -> Routine:
    name, spec, *rest = row
    return Routine(name, _decode_spec(spec), *rest)


def read_run(row: tuple[Any, ...]) -> RoutineRun:
    values: dict[str, Any] = dict(zip(RUN_COLUMNS.split(", "), row, strict=True))
    values.update(held=bool(values["held"]), quiet=bool(values["quiet"]), data=json.loads(values["data"]))
    return RoutineRun(**values)
