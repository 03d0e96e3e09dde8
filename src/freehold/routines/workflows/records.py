"""A workflow and its steps, as they are stored."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from freehold.routines.section import UnattendedAsks
from freehold.strict_json import EpochSeconds

WorkflowState = Literal["due", "working", "waiting", "done", "failed", "uncertain", "changed", "cancelled"]
"""`uncertain`: nobody knows how far a step came. `changed`: the file or its steps are not those that began."""
StepKind = Literal["step", "command", "agent", "ask", "sleep", "event"]
StepState = Literal["begun", "waiting", "done", "failed", "uncertain", "cancelled"]
UNFINISHED: tuple[WorkflowState, ...] = ("due", "working", "waiting")
KEY = "workflow:"
"""How the key of a prompt begins that a step sends."""

WORKFLOW_COLUMNS = (
    "number, id, file, digest, pinned, source, data, who, run, budget, asks, state, created, started, finished, cost, result,"
    " error, output"
)
STEP_COLUMNS = (
    "number, workflow, place, kind, title, digest, given, state, attempt, begun, finished, wake, after, session, turn,"
    " cost, entry, result, error"
)


@dataclass(frozen=True)
class Workflow:
    """One time that a workflow's file runs. Times in seconds since 1970, `cost` in US dollars.

    `digest` and `source` are those of the file when it began. `pinned`: the digest is that of the text that was
    approved, and no other one may run. `run` is the run of a
    routine that began it. `result` and `data` are JSON values. `output` is the end of what it has printed.
    """

    number: int
    id: str
    file: str
    digest: str | None
    pinned: bool
    source: str | None
    data: Mapping[str, Any]
    who: str
    run: str | None
    budget: float | None
    asks: UnattendedAsks
    state: WorkflowState
    created: EpochSeconds
    started: EpochSeconds | None
    finished: EpochSeconds | None
    cost: float | None
    result: Any
    error: str | None
    output: str | None

    @property
    def name(self) -> str:
        """The name of its file, without the folder and the ending."""
        return self.file.rpartition("/")[2].removesuffix(".py")


@dataclass(frozen=True)
class WorkflowStep:
    """One step. `entry` is the entry of history with what it has changed.

    `session` and `turn` are where its agent works.
    """

    number: int
    workflow: str
    place: str
    kind: StepKind
    title: str
    digest: str
    given: Mapping[str, Any]
    state: StepState
    attempt: int
    begun: EpochSeconds
    finished: EpochSeconds | None
    wake: EpochSeconds | None
    after: int | None
    session: str | None
    turn: int | None
    cost: float | None
    entry: int | None
    result: Any
    error: str | None

    @property
    def prompt_key(self) -> str:
        """By which the session recognises the prompt of this step: it is sent once."""
        return f"{key_prefix(self.workflow)}{self.number}"

    @property
    def may_repeat(self) -> bool:
        return bool(self.given.get("again"))


def key_prefix(workflow: str) -> str:
    """How the keys of the prompts of all its steps begin."""
    return f"{KEY}{workflow}:"


def workflow_of(key: str) -> str | None:
    """The id of the workflow whose step has sent the prompt with this key; None for any other prompt."""
    return key.removeprefix(KEY).rpartition(":")[0] if key.startswith(KEY) else None


def digest_source(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def digest_step(kind: str, given: Mapping[str, Any]) -> str:
    text = json.dumps([kind, given], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_workflow(row: tuple[Any, ...]) -> Workflow:
    values = _read(WORKFLOW_COLUMNS, row, "data", "result")
    return Workflow(**{**values, "pinned": bool(values["pinned"])})


def read_step(row: tuple[Any, ...]) -> WorkflowStep:
    return WorkflowStep(**_read(STEP_COLUMNS, row, "given", "result"))


def _read(columns: str, row: tuple[Any, ...], *encoded: str) -> dict[str, Any]:
    values = dict(zip(columns.split(", "), row, strict=True))
    return {
        name: json.loads(value) if name in encoded and value is not None else value for name, value in values.items()
    }
