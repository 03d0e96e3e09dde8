"""The replies about routines as frozen objects."""

from datetime import datetime
from typing import Any

from freehold.client.models import ApiModel


class RoutineRunInfo(ApiModel):
    """One run. `cost` in US dollars."""

    id: str
    number: int
    routine: str
    state: str
    cause: str
    due: datetime
    begin: datetime
    attempt: int
    started: datetime | None
    finished: datetime | None
    session: str | None
    turn: int | None
    cost: float | None
    quiet: bool
    result: str | None
    error: str | None

    @property
    def is_finished(self) -> bool:
        return self.finished is not None


class RoutineRunDetails(RoutineRunInfo):
    """`data` is what the trigger told: it comes from outside."""

    data: dict[str, Any]


class RoutineRunMarkInfo(ApiModel):
    """A run in the strip of the last ones."""

    id: str
    state: str
    due: datetime
    cost: float | None
    quiet: bool


class RoutineInfo(ApiModel):
    """One routine. `settings` has the keys that are set. `recent` are its last runs, the newest first."""

    name: str
    source: str
    state: str
    reason: str | None
    trigger: str
    work: str
    next: datetime | None
    zone: str
    failures: int
    session: str | None
    cost: float
    settings: dict[str, Any]
    last: RoutineRunInfo | None
    recent: tuple[RoutineRunMarkInfo, ...]


class RoutineListPage(ApiModel):
    routines: tuple[RoutineInfo, ...]
    cursor: str | None


class RoutineRunListPage(ApiModel):
    runs: tuple[RoutineRunInfo, ...]
    cursor: int | None


class RoutineTimes(ApiModel):
    times: tuple[datetime, ...]
    zone: str


class RemovedRoutine(ApiModel):
    name: str


class RoutineWebhook(ApiModel):
    """Where the requests go, and the secret that signs them. It is shown once."""

    url: str
    secret: str
