"""The replies about workflows as frozen objects."""

from datetime import datetime
from typing import Any

from freehold.client.models import ApiModel


class WorkflowInfo(ApiModel):
    """One workflow. `cost` in US dollars. `run` is the run of a routine that began it."""

    id: str
    number: int
    file: str
    name: str
    state: str
    who: str
    run: str | None
    created: datetime
    started: datetime | None
    finished: datetime | None
    budget: float | None
    cost: float | None
    error: str | None

    @property
    def is_finished(self) -> bool:
        return self.finished is not None


class WorkflowFileInfo(ApiModel):
    path: str
    word: str


class WorkflowStepInfo(ApiModel):
    """One step. `place` is its number, such as 3, or 3.2.1 for the first of the second branch of a gather.

    `files` are the first of what it has changed; `entry` is its entry of history.
    """

    place: str
    kind: str
    title: str
    state: str
    attempt: int
    begun: datetime
    finished: datetime | None
    wake: datetime | None
    session: str | None
    turn: int | None
    cost: float | None
    question: str | None
    choices: tuple[str, ...]
    result: Any
    error: str | None
    entry: int | None
    files: tuple[WorkflowFileInfo, ...]
    files_total: int


class WorkflowDetails(WorkflowInfo):
    """`output` is the end of what its file has printed."""

    data: dict[str, Any]
    result: Any
    output: str | None
    digest: str | None
    steps: tuple[WorkflowStepInfo, ...]


class WorkflowListPage(ApiModel):
    workflows: tuple[WorkflowInfo, ...]
    cursor: int | None
