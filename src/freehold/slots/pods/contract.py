"""The pods slot: documents, folders, who may reach them, and who did."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from freehold.slots.contract import Record, SlotCall, SlotContract, SlotTransfer, SlotWrite
from freehold.strict_json import EpochSeconds
from freehold.timeline.event import Json

MAX_PATH = 1000
MAX_NAME = 200
MAX_DEPTH = 32
MAX_MEDIA = 100
MAX_DOCUMENT = 8 * 1024 * 1024
MAX_PATCH = 1000
"""How many operations one JSON Patch has."""
MAX_PAGE = 500
MAX_RECORDS = 20
MAX_WAIT = 5.0
TRANSFER_SECONDS = 300.0
"""Each of `MAX_RECORDS` documents of a page is several requests to a server that may be far away."""

AccessMode = Literal["read", "write"]
"""`write` includes `read`."""
PatchKind = Literal["json", "n3"]
AccessAct = Literal["read", "list", "write", "delete", "refused"]


@dataclass(frozen=True)
class DocumentInfo:
    """A document or a folder. The path of a folder ends with `/`, and it has neither a media type nor an ETag.

    An ETag changes with the content. It is None where the store tells it only when the document is read.
    """

    path: str
    media: str | None
    etag: str | None
    size: int | None
    modified: EpochSeconds | None

    @property
    def is_folder(self) -> bool:
        return self.path.endswith("/")


@dataclass(frozen=True)
class PodDocument:
    """`content` is None when the caller has this version already."""

    info: DocumentInfo
    content: bytes | None


@dataclass(frozen=True)
class PodPage:
    """Entries by name. `cursor` gets the next page; None on the last one."""

    entries: tuple[DocumentInfo, ...]
    cursor: str | None


@dataclass(frozen=True)
class DeletedDocument:
    path: str


@dataclass(frozen=True)
class PodGrant:
    """An agent may reach everything in a folder. The root is the empty path.

    With a `session` only in this conversation; `once`: for one call of it.
    """

    agent: str
    folder: str
    mode: AccessMode
    granted: EpochSeconds
    session: str | None = None
    once: bool = False


@dataclass(frozen=True)
class GrantList:
    grants: tuple[PodGrant, ...]


@dataclass(frozen=True)
class PodAccess:
    """One time that somebody other than the owner reached, or tried to reach, something."""

    number: int
    at: EpochSeconds
    who: str
    agent: str | None
    act: AccessAct
    path: str


@dataclass(frozen=True)
class AccessPage:
    """The newest first."""

    entries: tuple[PodAccess, ...]
    cursor: int | None


@dataclass(frozen=True)
class PodRecords:
    records: tuple[Record, ...]
    cursor: str | None


@dataclass(frozen=True)
class PodImport:
    """`kept`: documents that were the same already."""

    created: int
    replaced: int
    kept: int


@dataclass(frozen=True)
class GetDocument(SlotCall[PodDocument]):
    """With `known`, the ETag of a version that the caller has, only what is newer is sent."""

    method: ClassVar[str] = "get"
    path: str
    known: str | None = None


@dataclass(frozen=True)
class ListFolder(SlotCall[PodPage]):
    """What is in a folder. The root is the empty path."""

    method: ClassVar[str] = "list"
    folder: str = ""
    limit: int = 100
    cursor: str | None = None


@dataclass(frozen=True)
class FindDocuments(SlotCall[PodPage]):
    """Documents below a folder by their media type: `application/json`, or `image/*`."""

    method: ClassVar[str] = "find"
    media: str
    folder: str = ""
    limit: int = 100
    cursor: str | None = None


@dataclass(frozen=True)
class AwaitChange(SlotCall[PodDocument]):
    """Answers when a document has another ETag than this one, or after so many seconds. Without the content."""

    method: ClassVar[str] = "await"
    path: str
    etag: str
    seconds: float = 1.0


class DocumentWrite(SlotWrite[DocumentInfo]):
    identifiers: ClassVar[frozenset[str]] = frozenset({"path", "media", "if_match", "key", "kind", "encoding"})

    def describe(self, reply: Any) -> Mapping[str, Json]:
        assert isinstance(reply, DocumentInfo)
        return {"path": reply.path, "size": reply.size, "media": reply.media}


@dataclass(frozen=True)
class PutDocument(DocumentWrite):
    """Writes a whole document. Folders on the way are made.

    With `if_match`, only when it has this ETag; with `is_new`, only when it does not exist.
    """

    method: ClassVar[str] = "put"
    event: ClassVar[str] = "pods.written"
    path: str
    media: str
    content: str
    encoding: Literal["text", "base64"] = "text"
    if_match: str | None = None
    is_new: bool = False
    key: str | None = None


@dataclass(frozen=True)
class PatchDocument(DocumentWrite):
    """Changes a part of a document: a JSON document by JSON Patch (RFC 6902), or one on a Solid server by N3 Patch."""

    method: ClassVar[str] = "patch"
    event: ClassVar[str] = "pods.patched"
    path: str
    patch: str
    kind: PatchKind = "json"
    if_match: str | None = None
    key: str | None = None


@dataclass(frozen=True)
class CreateFolder(DocumentWrite):
    """Idempotent."""

    method: ClassVar[str] = "create_folder"
    event: ClassVar[str] = "pods.folder_created"
    path: str
    key: str | None = None


@dataclass(frozen=True)
class DeleteDocument(SlotWrite[DeletedDocument]):
    """A folder must be empty."""

    method: ClassVar[str] = "delete"
    event: ClassVar[str] = "pods.deleted"
    identifiers: ClassVar[frozenset[str]] = frozenset({"path", "if_match", "key"})
    path: str
    if_match: str | None = None
    key: str | None = None

    def describe(self, reply: Any) -> Mapping[str, Json]:
        assert isinstance(reply, DeletedDocument)
        return {"path": reply.path}


class GrantWrite(SlotWrite[GrantList]):
    """Answers the grants of this agent. Only the owner changes them."""

    identifiers: ClassVar[frozenset[str]] = frozenset({"agent", "folder", "mode", "session", "key"})
    agent: str
    folder: str

    def describe(self, reply: Any) -> Mapping[str, Json]:
        return {"agent": self.agent, "folder": self.folder}


@dataclass(frozen=True)
class GrantAccess(GrantWrite):
    """Idempotent, unless it is for `once`. Replaces an earlier grant of the same reach for the same folder.

    With a `session` it holds for this conversation only, and with `once` for one call of it.
    """

    method: ClassVar[str] = "grant"
    event: ClassVar[str] = "pods.granted"
    agent: str
    folder: str
    mode: AccessMode
    key: str | None = None
    session: str | None = None
    once: bool = False

    def describe(self, reply: Any) -> Mapping[str, Json]:
        reach = "always" if self.session is None else "once" if self.once else "conversation"
        told: dict[str, Json] = {"agent": self.agent, "folder": self.folder, "mode": self.mode, "reach": reach}
        return told if self.session is None else {**told, "session": self.session}


@dataclass(frozen=True)
class RevokeAccess(GrantWrite):
    """Whatever this agent was granted for this folder, also in single conversations."""

    method: ClassVar[str] = "revoke"
    event: ClassVar[str] = "pods.revoked"
    agent: str
    folder: str
    key: str | None = None


@dataclass(frozen=True)
class EndGrants(SlotWrite[GrantList]):
    """A conversation was deleted, and what it was granted ends. Answers what that was."""

    method: ClassVar[str] = "end_grants"
    event: ClassVar[str] = "pods.revoked"
    identifiers: ClassVar[frozenset[str]] = frozenset({"session", "key"})
    session: str
    key: str | None = None

    def describe(self, reply: Any) -> Mapping[str, Json]:
        return {"session": self.session}


@dataclass(frozen=True)
class ListGrants(SlotCall[GrantList]):
    method: ClassVar[str] = "list_grants"
    agent: str | None = None


@dataclass(frozen=True)
class ListAccess(SlotCall[AccessPage]):
    """Who reached what, the newest first. `folder` and `agent` narrow it down."""

    method: ClassVar[str] = "list_access"
    folder: str | None = None
    agent: str | None = None
    limit: int = 100
    before: int | None = None


@dataclass(frozen=True)
class ExportPods(SlotCall[PodRecords]):
    seconds_allowed: ClassVar[float | None] = TRANSFER_SECONDS
    method: ClassVar[str] = "export"
    limit: int = MAX_RECORDS
    cursor: str | None = None


@dataclass(frozen=True)
class ImportPods(SlotWrite[PodImport]):
    """Documents and folders of an export. Idempotent: a document replaces the one at its path."""

    seconds_allowed: ClassVar[float | None] = TRANSFER_SECONDS
    method: ClassVar[str] = "import"
    event: ClassVar[str] = "pods.imported"
    records: tuple[Record, ...]
    key: str | None = None

    def describe(self, reply: Any) -> Mapping[str, Json]:
        assert isinstance(reply, PodImport)
        return {"created": reply.created, "replaced": reply.replaced, "kept": reply.kept}


CONTRACT = SlotContract(
    "pods",
    1,
    (
        GetDocument,
        ListFolder,
        FindDocuments,
        AwaitChange,
        PutDocument,
        PatchDocument,
        CreateFolder,
        DeleteDocument,
        GrantAccess,
        RevokeAccess,
        EndGrants,
        ListGrants,
        ListAccess,
        ExportPods,
        ImportPods,
    ),
    SlotTransfer(MAX_RECORDS, lambda cursor: ExportPods(cursor=cursor), lambda records: ImportPods(records)),
)
