"""The bodies of `/v1/workflows`."""

import json
from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from freehold.gateway.inputs import RecordBody, RequestBody
from freehold.gateway.moments import to_moment
from freehold.routines.section import UnattendedAsks
from freehold.routines.workflows.records import StepKind, StepState, Workflow, WorkflowState, WorkflowStep
from freehold.routines.workflows.step_store import MAX_ANSWER

MAX_PLACE = 64
MAX_SHOWN = 16_000
"""Characters of the result of a step that are shown."""


class RunWorkflowBody(RequestBody):
    file: str = Field(max_length=1000, description="A Python file, from the workspace on.")
    data: RecordBody = Field(default_factory=dict, description="What its main is called with.")
    budget: float | None = Field(default=None, gt=0, lt=1_000_000, description="US dollars that its agents may cost.")
    asks: UnattendedAsks = Field(
        default="park", description="What happens when an agent asks for a permission: it waits for you, or gets a no."
    )


class RetryWorkflowBody(RequestBody):
    step: str | None = Field(
        default=None, max_length=MAX_PLACE, description="From this step on; by default from where it ended."
    )


class AnswerWorkflowBody(RequestBody):
    step: str = Field(max_length=MAX_PLACE)
    answer: str = Field(min_length=1, max_length=MAX_ANSWER)


class SignalWorkflowBody(RequestBody):
    name: str = Field(max_length=200, pattern=r"^[A-Za-z0-9_.-]{1,200}$")
    data: RecordBody = Field(default_factory=dict)


class WorkflowBody(BaseModel):
    """One workflow. `run` is the run of a routine that began it. `cost` in US dollars. `error` is null without the scope prompt."""

    id: str
    number: int
    file: str
    name: str
    state: WorkflowState
    who: str
    run: str | None
    created: datetime
    started: datetime | None
    finished: datetime | None
    budget: float | None
    cost: float | None
    error: str | None


class WorkflowFileBody(BaseModel):
    path: str
    word: str


class WorkflowStepBody(BaseModel):
    """One step. `place` is its number, such as 3, or 3.2.1 for the first of the second branch of a gather.

    `wake` is when it goes on by itself. A long `result` is cut, and is text then. `files` are the first of what it has changed; `entry` is its entry of history.
    """

    place: str
    kind: StepKind
    title: str
    state: StepState
    attempt: int
    begun: datetime
    finished: datetime | None
    wake: datetime | None
    session: str | None
    turn: int | None
    cost: float | None
    question: str | None
    choices: list[str]
    result: Any
    error: str | None
    entry: int | None
    files: list[WorkflowFileBody]
    files_total: int


class WorkflowDetailsBody(WorkflowBody):
    """`output` is the end of what its file has printed."""

    data: dict[str, Any]
    result: Any
    output: str | None
    digest: str | None
    steps: list[WorkflowStepBody]


class WorkflowPageBody(BaseModel):
    """The newest first. Send `cursor` as `before` to get the next page; null on the last one."""

    workflows: list[WorkflowBody]
    cursor: int | None


def describe_workflow(workflow: Workflow, *, words: bool) -> WorkflowBody:
    """Without `words` what its steps said is left out."""
    return WorkflowBody.model_validate(_values(workflow) if words else {**_values(workflow), "error": None})


def describe_details(
    workflow: Workflow, steps: list[WorkflowStep], files: dict[str, tuple[list[WorkflowFileBody], int]]
) -> WorkflowDetailsBody:
    """`files` are what the steps have changed, by their places."""
    shown = [_describe_step(step, *files.get(step.place, ([], 0))) for step in steps]
    return WorkflowDetailsBody.model_validate({**_values(workflow), "data": dict(workflow.data), "steps": shown})


def _values(workflow: Workflow) -> dict[str, Any]:
    return {**vars(workflow), "name": workflow.name, **_moments(workflow, "created", "started", "finished")}


def _describe_step(step: WorkflowStep, files: list[WorkflowFileBody], total: int) -> WorkflowStepBody:
    moments = _moments(step, "begun", "finished", "wake")
    choices = list(step.given.get("choices", ())) if step.kind == "ask" else []
    given = {**vars(step), **moments, "choices": choices, "files": files, "files_total": total}
    given.update(question=step.given.get("question"), result=_cut(step.result))
    return WorkflowStepBody.model_validate(given)


def _cut(value: Any) -> Any:
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… (cut off)"


def _moments(record: object, *names: str) -> dict[str, datetime | None]:
    return {name: to_moment(moment) if (moment := getattr(record, name)) else None for name in names}
