"""The calls about working copies of folders, and about the changes that are made in them."""

from dataclasses import dataclass, field
from typing import ClassVar

from freehold.history.calls import EntryReply, FileDiffText, PathReason, RequestAuthor
from freehold.typed_call import NoResult, TypedCall


@dataclass(frozen=True)
class WorkingCopyReply:
    """`entry` has the state that was copied."""

    name: str
    entry: int


@dataclass(frozen=True)
class ChangeSetReply:
    """How many files and links a set adds, changes and removes. `skipped` says what could not be stored."""

    name: str
    added: int
    changed: int
    removed: int
    skipped: tuple[str, ...]


@dataclass(frozen=True)
class ChangeSetDiff:
    """`conflicts` cannot be merged without a decision. The paths of both begin with `workspace/`."""

    files: tuple[FileDiffText, ...]
    total: int
    conflicts: tuple[PathReason, ...]


@dataclass(frozen=True)
class ChangeSetFile:
    """A part of a file that a set adds or changes, from `offset`, as base64. `mode` has its type, as `st_mode`."""

    path: str
    mode: int
    size: int
    offset: int
    data: str


@dataclass(frozen=True)
class ChangeSetPart:
    """Read on from `index` and `offset`; there is nothing more when `index` is None."""

    files: tuple[ChangeSetFile, ...]
    index: int | None
    offset: int


@dataclass(frozen=True)
class MergeReply:
    """The entry that has the changes."""

    entry: int


@dataclass(frozen=True)
class CheckOutFolder(TypedCall[WorkingCopyReply]):
    """Make a working copy of a folder as `entry` has it, or as it is now. Without a folder the copy is empty."""

    method: ClassVar[str] = "history.check_out"
    name: str
    folder: str | None = None
    entry: int | None = None


@dataclass(frozen=True)
class FindFolder(TypedCall[EntryReply]):
    """The entry, if it has this folder and a working copy could be made of it. Fails as `CheckOutFolder` does."""

    method: ClassVar[str] = "history.find_folder"
    folder: str
    entry: int


@dataclass(frozen=True)
class CollectCopy(TypedCall[ChangeSetReply]):
    """Store what was changed in a working copy, and remove the copy. Nothing may write to it any more. Idempotent."""

    method: ClassVar[str] = "history.collect_copy"
    name: str


@dataclass(frozen=True)
class CompareChangeSet(TypedCall[ChangeSetDiff]):
    """The changes of a set, each beside the file as it is now."""

    method: ClassVar[str] = "history.compare_change_set"
    name: str
    limit: int = 200


@dataclass(frozen=True)
class ReadChangeSet(TypedCall[ChangeSetPart]):
    """The contents of what a set adds or changes, a piece at a time, in path order. Folders are left out."""

    method: ClassVar[str] = "history.read_change_set"
    name: str
    index: int = 0
    offset: int = 0


@dataclass(frozen=True)
class MergeChangeSet(TypedCall[MergeReply]):
    """Bring the changes of a set into the tree, as one entry. A second time changes nothing.

    Fails with `history.conflicts`, and writes nothing, when others changed the same lines, unless `force`.
    """

    method: ClassVar[str] = "history.merge"
    name: str
    force: bool = False
    why: str = ""
    who: RequestAuthor = field(kw_only=True)


@dataclass(frozen=True)
class DropCopy(TypedCall[NoResult]):
    """Forget a working copy and its changes. Idempotent."""

    method: ClassVar[str] = "history.drop_copy"
    name: str
