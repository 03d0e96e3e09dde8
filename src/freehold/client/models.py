"""What the API answers, as frozen objects. A newer Freehold may say more; what is not known here is left out."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Scope = Literal["read", "prompt", "files", "terminal", "history", "admin"]
State = Literal["ok", "degraded", "failed", "off", "starting"]


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Me(Answer):
    """The caller, as Freehold knows them. `scopes` is None for a browser, which may do everything."""

    who: str
    did: str | None
    handle: str | None
    scopes: tuple[Scope, ...] | None


class Meta(Answer):
    version: str
    manifest_checksum: str
    slots: dict[str, str]


class Component(Answer):
    name: str
    state: State
    since: datetime
    last_error: str | None
    required: bool


class Health(Answer):
    ready: bool
    components: tuple[Component, ...]


class SignIn(Answer):
    """One signed-in browser."""

    id: str
    label: str
    address: str
    method: str
    created: datetime
    seen: datetime
    expires: datetime
    current: bool


class Token(Answer):
    """One API token, without its secret."""

    name: str
    scopes: tuple[Scope, ...]
    created: datetime
    expires: datetime | None
    used: datetime | None


class Ended(Answer):
    ended: int


class Event(Answer):
    """One entry of the timeline."""

    seq: int
    at: str
    kind: str
    who: str
    data: dict[str, Any]


class EventPage(Answer):
    """Entries in order; `next` is the `after` of the following page, None when this was the last."""

    events: tuple[Event, ...]
    next: int | None


class Egress(Answer):
    """The mode, the rules in force, what waits for an answer and what was decided last."""

    mode: Literal["deny", "ask", "allow"]
    rules: tuple[dict[str, Any], ...]
    pending: tuple[dict[str, Any], ...]
    recent: tuple[dict[str, Any], ...]
    connections: int
    counters: dict[str, int]


class HistoryEntry(Answer):
    """One state of the files: who made it, why, when, and how much it changed."""

    id: int
    at: float
    kind: str
    who: dict[str, str]
    why: str
    added: int
    changed: int
    removed: int
    lines_added: int | None
    lines_removed: int | None
    good: bool
    equals: int
    notes: tuple[str, ...]


class HistoryPage(Answer):
    entries: tuple[HistoryEntry, ...]


class HistoryChanges(Answer):
    """What one entry changed, path by path; `total` counts those that were left out, too."""

    entry: HistoryEntry
    changes: tuple[dict[str, str], ...]
    total: int


class HistoryDiff(Answer):
    """What one entry changed, line by line."""

    entry: HistoryEntry
    files: tuple[dict[str, Any], ...]
    total: int


class HistoryComparison(Answer):
    """What differs between two states; `old` is None for the state before all entries."""

    old: HistoryEntry | None
    new: HistoryEntry
    files: tuple[dict[str, Any], ...]
    total: int


class HistoryPlan(Answer):
    """What would happen to every path; nothing has happened yet."""

    kind: str
    target: int
    steps: tuple[dict[str, str], ...]
    total: int
    conflicts: tuple[dict[str, str], ...]


class HistoryOutcome(Answer):
    """What was done, as an entry of its own, and what could not be settled."""

    entry: HistoryEntry
    done: int
    unsettled: tuple[dict[str, str], ...]


class ShownFile(Answer):
    """A file as it was. `base64` is None for what has no content, such as a folder."""

    path: str
    what: str
    mode: int
    size: int
    base64: str | None = None


class SshDoor(Answer):
    """Where the SSH server is; `connected` is None when it does not answer."""

    enabled: bool
    host: str
    port: int
    fingerprint: str
    known_hosts: str
    connected: int | None


class SshCertificate(Answer):
    id: str
    certificate: str
    key_id: str
    expires: datetime
    known_hosts: str
    config: str


class SshCredential(Answer):
    id: str
    kind: str
    label: str
    fingerprint: str
    created: datetime
    expires: datetime
    used: datetime | None
    used_from: str | None
    revoked: bool


class SshRevoked(Answer):
    id: str


class PreviewPort(Answer):
    """A port inside that something listens on; the program and the manifest's service are None when not known."""

    port: int
    process: str | None
    service: str | None


class PreviewPorts(Answer):
    ports: tuple[PreviewPort, ...]


class PreviewAddress(Answer):
    """`address` opens once, within half a minute; `origin` is where it leads."""

    address: str
    origin: str
