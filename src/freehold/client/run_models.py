"""The replies of the orchestrator slot as frozen objects."""

from datetime import datetime
from typing import Any

from freehold.client.models import ApiModel


class RunInfo(ApiModel):
    """One agent with one prompt, in a throw-away computer. `entry` is that of history whose state it began with."""

    id: str
    session: str
    agent: str
    title: str
    state: str
    parent: str | None
    depth: int
    folder: str | None
    budget: float | None
    cost: float | None
    created: datetime
    finished: datetime | None
    error: str | None
    added: int
    changed: int
    removed: int
    outcome: str
    computer: str
    permissions: tuple[str, ...] = ()
    began_by: str = "owner"
    lost: bool = False
    entry: int | None = None

    @property
    def is_finished(self) -> bool:
        return self.finished is not None


class RunListPage(ApiModel):
    """`cost` is what all runs of the session that was asked for, or all runs, have cost so far."""

    runs: tuple[RunInfo, ...]
    cursor: str | None
    cost: float = 0.0


class RunEventInfo(ApiModel):
    seq: int
    at: str
    kind: str
    data: dict[str, Any]


class RunEventListing(ApiModel):
    run: RunInfo
    events: tuple[RunEventInfo, ...]
    cursor: int


class RunFileChange(ApiModel):
    path: str
    kind: str
    size: int
    diff: str | None
    conflict: bool
    mode: int | None = None
    link: str | None = None
    runs_by_itself: str | None = None
    traits: tuple[str, ...] = ()


class RunChangeListing(ApiModel):
    """`total` counts all changes; `files` may hold only the first of them."""

    run: RunInfo
    files: tuple[RunFileChange, ...]
    total: int = 0
