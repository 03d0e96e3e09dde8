"""The replies of the API as frozen objects. Unknown fields, from a newer Freehold, are ignored."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Scope = Literal[
    "read",
    "prompt",
    "files",
    "terminal",
    "history",
    "beads",
    "pods",
    "memory",
    "events",
    "orchestrator",
    "neighbour",
    "routines",
    "admin",
]


class ApiModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class SignInInfo(ApiModel):
    """One signed-in browser."""

    id: str
    label: str
    address: str
    method: str
    created: datetime
    seen: datetime
    expires: datetime
    current: bool


class TokenInfo(ApiModel):
    """One API token, without its secret."""

    name: str
    scopes: tuple[Scope, ...]
    created: datetime
    expires: datetime | None
    used: datetime | None


class Ended(ApiModel):
    ended: int


class EventInfo(ApiModel):
    """One timeline event."""

    seq: int
    at: str
    kind: str
    who: str
    data: dict[str, Any]
    hash: str = ""


class EventPage(ApiModel):
    """Events in order. Pass `next` as `after` to get the next page; None on the last page."""

    events: tuple[EventInfo, ...]
    next: int | None


class EgressInfo(ApiModel):
    """The mode, the rules in force, what waits for an answer and what was decided last."""

    mode: Literal["deny", "ask", "allow"]
    rules: tuple[dict[str, Any], ...]
    pending: tuple[dict[str, Any], ...]
    recent: tuple[dict[str, Any], ...]
    connections: int
    counters: dict[str, int]


class HistoryEntry(ApiModel):
    """One history entry: who made the change, why, when, and how much changed."""

    id: int
    at: datetime
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


class HistoryPage(ApiModel):
    entries: tuple[HistoryEntry, ...]


class HistoryChanges(ApiModel):
    """The paths that one entry changed. `total` also counts paths that were left out."""

    entry: HistoryEntry
    changes: tuple[dict[str, str], ...]
    total: int


class HistoryDiff(ApiModel):
    """The lines that one entry changed."""

    entry: HistoryEntry
    files: tuple[dict[str, Any], ...]
    total: int


class HistoryComparison(ApiModel):
    """The difference between two states. `old` is None for the state before the first entry."""

    old: HistoryEntry | None
    new: HistoryEntry
    files: tuple[dict[str, Any], ...]
    total: int


class HistoryPlan(ApiModel):
    """What an action would do to each path. Nothing was changed.

    `shared`: others changed files during the turn, so some of its changes may be theirs.
    """

    kind: str
    target: int
    steps: tuple[dict[str, str], ...]
    total: int
    counts: dict[str, int]
    summary: str
    conflicts: tuple[dict[str, str], ...]
    shared: bool = False


class HistoryOutcome(ApiModel):
    """What was done: its own entry, the fate of each path, and each path that does not have the planned state."""

    entry: HistoryEntry
    done: int
    fates: tuple[dict[str, str], ...]
    total: int
    counts: dict[str, int]
    summary: str
    unsettled: tuple[dict[str, str], ...]
    total_unsettled: int


class RestoreState(ApiModel):
    """How far an undo, redo, restore, revert or rewind is. It is `cancellable` until the first file changes."""

    id: str
    kind: str
    phase: str
    done: int
    total: int
    cancellable: bool
    words: str


class RestoreCancelled(ApiModel):
    """`cancelled`: no file changes. `too-late`: it is finished. `not-found`: it has ended, or has not arrived yet."""

    outcome: Literal["cancelled", "too-late", "not-found"]


class ShownFile(ApiModel):
    """A file in the state of an entry. `base64` is None for a path without content, such as a folder.

    `mtime` is in nanoseconds since 1970. `more`: the file is larger than what came.
    """

    path: str
    what: str
    mode: int
    size: int
    mtime: int = 0
    base64: str | None = None
    more: bool = False


class SshServerInfo(ApiModel):
    """The SSH server. `connected` is the number of connections; None when the server does not answer."""

    enabled: bool
    host: str
    port: int
    user: str = ""
    forwarding: bool = False
    fingerprint: str
    known_hosts: str
    connected: int | None


class SshCertificate(ApiModel):
    id: str
    certificate: str
    key_id: str
    expires: datetime
    known_hosts: str
    config: str


class SshCredential(ApiModel):
    id: str
    kind: str
    label: str
    key_id: str = ""
    fingerprint: str
    created: datetime
    expires: datetime
    used: datetime | None
    used_from: str | None
    revoked: bool


class SshRevoked(ApiModel):
    id: str


class PreviewPort(ApiModel):
    """A port in the computer on which a process listens. `process` and `service` are None when unknown."""

    port: int
    process: str | None
    service: str | None


class PreviewPorts(ApiModel):
    ports: tuple[PreviewPort, ...]


class NamedSite(ApiModel):
    """A site of a feature, such as the editor. It starts when it is opened, and ends when nobody uses it."""

    name: str
    enabled: bool
    running: bool


class NamedSites(ApiModel):
    sites: tuple[NamedSite, ...]


class PreviewAddress(ApiModel):
    """`address` works once, within 30 seconds. `origin` is the origin of the preview."""

    address: str
    origin: str


class ModelProviderInfo(ApiModel):
    """A model provider. `key` refers to its key. `agent` is the only agent that may use it; None for all.

    `inside` is its address in the computer.
    """

    name: str
    kind: str
    address: str
    model: str | None
    key: str | None
    auth: str
    agent: str | None
    default: bool
    problem: str | None
    inside: str = ""


class ModelsInfo(ApiModel):
    """The providers. Without any, `help` says how to connect one. `unapplied`: why the manifest is not in force."""

    models: tuple[ModelProviderInfo, ...]
    help: str | None
    stopped: bool
    unapplied: str | None = None


class OfferedModelInfo(ApiModel):
    """A model of a provider. Prices are US dollars for a million tokens. None where they are not known."""

    name: str
    input_price: float | None
    output_price: float | None
    window: int | None


class ModelTrial(ApiModel):
    """What a provider answered. `said` are its own words about a failure."""

    name: str
    ok: bool
    status: int
    milliseconds: int
    words: str
    said: str
    models: tuple[str, ...] = ()
    offered: tuple[OfferedModelInfo, ...]
    suggested: str | None = None


class KnownProviderInfo(ApiModel):
    """A provider that Freehold knows by name. `address` is None when you have to say it."""

    name: str
    title: str
    kind: str
    auth: str
    address: str | None
    key_page: str | None
    local: bool
    agent: str | None
    note: str


class FoundProviderInfo(ApiModel):
    """A provider that was found on the machine of the Freehold, and is not used yet."""

    name: str
    title: str
    variable: str | None
    address: str | None
    models: tuple[str, ...]
    words: str


class ModelOffers(ApiModel):
    known: tuple[KnownProviderInfo, ...]
    found: tuple[FoundProviderInfo, ...]


class ModelChange(ApiModel):
    """`file` has the change now: the manifest, or its overlay when the manifest cannot be written."""

    name: str
    file: str
    overlay: bool


class CodeItem(ApiModel):
    """The value of the last expression, something displayed, or a file. `data` is base64; one of the two is None."""

    role: Literal["value", "display", "file"]
    type: str
    name: str
    text: str | None
    data: str | None


class CodeFailure(ApiModel):
    name: str
    message: str
    traceback: str


class CodeEnd(ApiModel):
    """How code ended. `limit` names the limit that ended it."""

    error: CodeFailure | None
    exit_code: int
    limit: str | None
    duration: float
    processor: float


class CodeRun(CodeEnd):
    """Code that has ended, with everything that it wrote."""

    stdout: str
    stderr: str
    items: tuple[CodeItem, ...]


class CodeOutput(ApiModel):
    stream: Literal["stdout", "stderr"]
    text: str


class CodeStreamError(ApiModel):
    code: str
    message: str
    hint: str


class CodePart(ApiModel):
    """A part of a stream: output, an item, or the end. Exactly one of them is there."""

    output: CodeOutput | None = None
    item: CodeItem | None = None
    end: CodeEnd | None = None
    failure: CodeStreamError | None = None


class CodeContextState(ApiModel):
    id: str
    language: str
    label: str
    state: Literal["ready", "busy", "ended"]
    created: datetime
    executions: int


class CodeContextDeleted(ApiModel):
    id: str
