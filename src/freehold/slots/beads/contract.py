"""The beads slot: its items, and the calls that every implementation answers in the same way."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from freehold.slots.contract import Record, SlotCall, SlotContract, SlotTransfer, SlotWrite
from freehold.strict_json import EpochSeconds
from freehold.timeline.event import Json

BeadKind = Literal["task", "bug", "feature", "epic", "chore"]
BeadStatus = Literal["open", "in_progress", "closed"]
KINDS: tuple[BeadKind, ...] = get_args(BeadKind)
STATUSES: tuple[BeadStatus, ...] = get_args(BeadStatus)

MAX_TITLE = 500
MAX_TEXT = 64 * 1024
MAX_LABELS = 20
MAX_LABEL = 60
MAX_NEEDS = 100
MAX_PRIORITY = 4
MAX_PAGE = 200
MAX_RECORDS = 200
"""How many records one import takes."""


@dataclass(frozen=True)
class Bead:
    """A work item. It is `in_progress` exactly while somebody holds it.

    `blocked`: it, or an item that it is part of, needs an item that is not closed yet. `version` grows with each change.
    """

    id: str
    title: str
    description: str
    kind: BeadKind
    priority: int
    status: BeadStatus
    holder: str | None
    parent: str | None
    labels: tuple[str, ...]
    needs: tuple[str, ...]
    related: tuple[str, ...]
    sessions: tuple[str, ...]
    blocked: bool
    created: EpochSeconds
    created_by: str
    updated: EpochSeconds
    closed: EpochSeconds | None
    close_reason: str | None
    evidence: str | None
    version: int


@dataclass(frozen=True)
class BeadComment:
    number: int
    at: EpochSeconds
    author: str
    text: str


@dataclass(frozen=True)
class BeadChange:
    """One change of an item: what it was called, who made it, and the fields it set."""

    version: int
    at: EpochSeconds
    who: str
    action: str
    fields: Mapping[str, object]


@dataclass(frozen=True)
class BeadDetails:
    """An item with everything about it. `blocks` are the items that need this one."""

    bead: Bead
    children: tuple[str, ...]
    blocks: tuple[str, ...]
    comments: tuple[BeadComment, ...]
    history: tuple[BeadChange, ...]


@dataclass(frozen=True)
class BeadPage:
    """Items in the order of priority and age. `cursor` gets the next page; None on the last one."""

    beads: tuple[Bead, ...]
    cursor: str | None


@dataclass(frozen=True)
class BeadRecords:
    """Items as records of beads' own JSON lines, in the order of their ids."""

    records: tuple[Record, ...]
    cursor: str | None


@dataclass(frozen=True)
class BeadImport:
    """What an import did. An item that is newer here than its record is kept."""

    created: int
    replaced: int
    kept: int


class BeadWrite(SlotWrite[Bead]):
    """A change of one item. The timeline records its id, state and holder."""

    identifiers: ClassVar[frozenset[str]] = frozenset({"id", "key", "parent", "needs", "kind", "session"})

    def describe(self, reply: Any) -> Mapping[str, Json]:
        assert isinstance(reply, Bead)
        facts: dict[str, Json] = {"id": reply.id, "status": reply.status, "version": reply.version}
        return {**facts, "holder": reply.holder} if reply.holder is not None else facts


@dataclass(frozen=True)
class GetBead(SlotCall[BeadDetails]):
    method: ClassVar[str] = "get"
    id: str


@dataclass(frozen=True)
class ListBeads(SlotCall[BeadPage]):
    """Items that match everything that is given. `ready`: open and not blocked. `text` is part of title or description.

    They come by priority and age. With `status` closed the last closed is first.
    """

    method: ClassVar[str] = "list"
    status: BeadStatus | None = None
    ready: bool = False
    kind: BeadKind | None = None
    label: str | None = None
    holder: str | None = None
    parent: str | None = None
    text: str | None = None
    limit: int = 50
    cursor: str | None = None


@dataclass(frozen=True)
class CreateBead(BeadWrite):
    method: ClassVar[str] = "create"
    event: ClassVar[str] = "beads.created"
    title: str
    description: str = ""
    kind: BeadKind = "task"
    priority: int = 2
    labels: tuple[str, ...] = ()
    parent: str | None = None
    needs: tuple[str, ...] = ()
    key: str | None = None


@dataclass(frozen=True)
class UpdateBead(BeadWrite):
    """Sets the fields that are given. `parent` as an empty text takes the item out of its parent.

    With a `version`, an item that has changed since then is not touched.
    """

    method: ClassVar[str] = "update"
    event: ClassVar[str] = "beads.updated"
    id: str
    title: str | None = None
    description: str | None = None
    kind: BeadKind | None = None
    priority: int | None = None
    labels: tuple[str, ...] | None = None
    parent: str | None = None
    version: int | None = None
    key: str | None = None


@dataclass(frozen=True)
class ClaimBead(BeadWrite):
    """The caller becomes the holder. Idempotent for the holder; anybody else is told who it is.

    A session may be named by the owner, who sets it on the item: it becomes the holder, and is linked with the item.
    """

    method: ClassVar[str] = "claim"
    event: ClassVar[str] = "beads.claimed"
    id: str
    session: str | None = None
    key: str | None = None


@dataclass(frozen=True)
class ReleaseBead(BeadWrite):
    """The item is open again. Only its holder and the owner may release it."""

    method: ClassVar[str] = "release"
    event: ClassVar[str] = "beads.released"
    id: str
    key: str | None = None


@dataclass(frozen=True)
class CloseBead(BeadWrite):
    """Only its holder and the owner may close an item that is held.

    An item on which a session has worked is closed only with evidence: what shows that it is done.
    """

    method: ClassVar[str] = "close"
    event: ClassVar[str] = "beads.closed"
    id: str
    reason: str
    evidence: str | None = None
    key: str | None = None


@dataclass(frozen=True)
class ReopenBead(BeadWrite):
    method: ClassVar[str] = "reopen"
    event: ClassVar[str] = "beads.reopened"
    id: str
    key: str | None = None


@dataclass(frozen=True)
class AddNeed(BeadWrite):
    """The item waits until another one is closed. A cycle is refused. Idempotent."""

    method: ClassVar[str] = "add_need"
    event: ClassVar[str] = "beads.need_added"
    id: str
    needs: str
    key: str | None = None


@dataclass(frozen=True)
class RemoveNeed(BeadWrite):
    """Idempotent."""

    method: ClassVar[str] = "remove_need"
    event: ClassVar[str] = "beads.need_removed"
    id: str
    needs: str
    key: str | None = None


@dataclass(frozen=True)
class CommentBead(BeadWrite):
    method: ClassVar[str] = "comment"
    event: ClassVar[str] = "beads.commented"
    id: str
    text: str
    key: str | None = None


@dataclass(frozen=True)
class ExportBeads(SlotCall[BeadRecords]):
    method: ClassVar[str] = "export"
    limit: int = MAX_RECORDS
    cursor: str | None = None


@dataclass(frozen=True)
class ImportBeads(SlotWrite[BeadImport]):
    """Records of beads' own JSON lines. All of them are stored, or none. Idempotent."""

    record_identifiers: ClassVar[frozenset[str]] = frozenset(
        {"id", "issue_id", "depends_on_id", "type", "status", "issue_type", "sessions", "action"}
        | {"created_at", "updated_at", "closed_at"}
    )
    method: ClassVar[str] = "import"
    event: ClassVar[str] = "beads.imported"
    records: tuple[Record, ...]
    key: str | None = None

    def describe(self, reply: Any) -> Mapping[str, Json]:
        assert isinstance(reply, BeadImport)
        return {"created": reply.created, "replaced": reply.replaced, "kept": reply.kept}


CONTRACT = SlotContract(
    "beads",
    1,
    (
        GetBead,
        ListBeads,
        CreateBead,
        UpdateBead,
        ClaimBead,
        ReleaseBead,
        CloseBead,
        ReopenBead,
        AddNeed,
        RemoveNeed,
        CommentBead,
        ExportBeads,
        ImportBeads,
    ),
    SlotTransfer(MAX_RECORDS, lambda cursor: ExportBeads(cursor=cursor), lambda records: ImportBeads(records)),
)
