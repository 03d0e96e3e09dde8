"""The replies of `/v1/programs` and `/v1/retention` as frozen objects."""

from datetime import datetime
from typing import Literal

from freehold.client.models import ApiModel
from freehold.strict_json import IsoTime

ProgramPhase = Literal["stopped", "idle", "starting", "ready", "unhealthy", "waiting", "crash-looping", "stopping"]


class RunningProgram(ApiModel):
    """One program. `since` is when its state began, `memory` is in bytes, `next_start_in` in seconds."""

    name: str
    state: ProgramPhase
    required: bool
    pid: int | None
    since: datetime
    restarts: int
    memory: int | None
    last_error: str | None
    next_start_in: float | None
    can_restart: bool


class PortInfo(ApiModel):
    name: str
    host: str
    port: int


class AdviceInfo(ApiModel):
    """A warning about the manifest. It does not prevent a start."""

    code: str
    message: str
    hint: str


class MountInfo(ApiModel):
    """A mount of the computer. `words` say what is wrong, or nothing."""

    target: str
    source: str
    kind: str
    writable: bool
    state: Literal["starting", "ready", "failing", "down"]
    words: str


class SleepInfo(ApiModel):
    """The sleep of the computer. `after` and `seconds` (asleep since its start) in seconds, `given_back` in bytes."""

    after: float
    asleep: bool
    since: datetime | None
    given_back: int | None
    times: int
    seconds: float
    trouble: str | None


class IsolationInfo(ApiModel):
    """How the computer is isolated. `limits` names the mechanism that enforces each limit."""

    backend: str
    version: str
    runs_as: str
    walls: tuple[str, ...]
    limits: dict[str, str]


class ExceptionInfo(ApiModel):
    """A protection that the manifest lowers. `adds` is all that it adds to the computer, in sentences."""

    name: str
    reason: str
    until: str | None
    why: str
    adds: tuple[str, ...]


class ProgramListing(ApiModel):
    """All programs. `missing` are the required ones that are not ready; `usage` is the present use of the computer.

    `sleep` is None for a computer that never sleeps.
    """

    version: str
    ready: bool
    missing: tuple[str, ...]
    programs: tuple[RunningProgram, ...]
    ports: tuple[PortInfo, ...]
    usage: dict[str, float | None] | None
    limits: dict[str, float]
    advice: tuple[AdviceInfo, ...]
    home: str = ""
    since: IsoTime | None = None
    isolation: IsolationInfo | None = None
    mounts: tuple[MountInfo, ...] = ()
    sleep: SleepInfo | None = None
    exceptions: tuple[ExceptionInfo, ...] = ()


class ProgramRestart(ApiModel):
    """`begun` is False for the gateway itself: it answers before it restarts."""

    name: str
    begun: bool
    state: ProgramPhase | None


class RetentionRuleInfo(ApiModel):
    """How long one kind of record is kept. `setting` in freehold.toml changes the rule."""

    name: str
    title: str
    kept: str
    now: str
    last_archived: str | None
    where: tuple[str, ...]
    setting: str | None


class RetentionRules(ApiModel):
    rules: tuple[RetentionRuleInfo, ...]
