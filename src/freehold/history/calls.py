"""The calls of history: every request and reply, as other processes send and receive them.

Light to import: no store, no SQLite. Paths are text, written as `names.show_name` writes them. `restore_id` is the name
that the caller gives to one undo, redo, restore or revert, to follow and to cancel it; without it, one is made.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from freehold.history.model import (
    Author,
    AuthorKind,
    CancelOutcome,
    ChangeWord,
    CollectionResult,
    EntryKind,
    EntryRecord,
    FinalFate,
    HistoryNotice,
    RequestOrigin,
    RestoreProgress,
    SnapshotResult,
    StoreSize,
)
from freehold.strict_json import EpochNanoseconds, EpochSeconds
from freehold.typed_call import NoResult, TypedCall, TypedStream

MAX_FREE_TEXT_CHARS = 4000
RESTORE_TIMEOUT = 600.0
"""Seconds to wait for a restore of a very large tree. The keeper finishes it even when nobody waits any more."""
Phase = Literal["before", "during", "after"]
Side = Literal["old", "mine"]


@dataclass(frozen=True)
class RequestAuthor:
    """Who asks. `Author` without `beside`, which only history itself can know."""

    by: AuthorKind = "unknown"
    agent: str | None = None
    session: str | None = None
    turn: str | None = None
    prompt: str | None = None
    terminal: str | None = None
    via: RequestOrigin | None = None
    sign_in: str | None = None
    token: str | None = None
    connection: str | None = None

    def as_author(self) -> Author:
        return Author(**vars(self) | {"prompt": None if self.prompt is None else shorten(self.prompt)})


@dataclass(frozen=True)
class TurnReference:
    """One turn of one session."""

    session: str
    turn: int


# Replies


@dataclass(frozen=True)
class InterruptedState:
    """A restore that has begun and not finished. `before` and `target` are entries; `who` asked for it."""

    kind: EntryKind
    began: EpochSeconds
    before: int
    target: int
    who: Author = field(default_factory=Author)


@dataclass(frozen=True)
class HistoryStatus:
    """`degraded` says why changes are found by scans only; null while every folder is watched."""

    newest: int
    watching: bool
    degraded: str | None
    interrupted: InterruptedState | None
    notices: tuple[HistoryNotice, ...]
    sequence: int
    roots: dict[str, str]


@dataclass(frozen=True)
class EntryList:
    """The newest first."""

    entries: tuple[EntryRecord, ...]


@dataclass(frozen=True)
class EntryReply:
    entry: EntryRecord


@dataclass(frozen=True)
class ChangedPath:
    """`what` describes the file, folder or link."""

    path: str
    word: ChangeWord
    what: str


@dataclass(frozen=True)
class EntryChanges:
    """`total` counts all changes; `changes` may hold only the first of them."""

    entry: EntryRecord
    changes: tuple[ChangedPath, ...]
    total: int


@dataclass(frozen=True)
class FileDiffText:
    """`text` is a unified diff; empty when `note` says why there is none."""

    path: str
    word: ChangeWord
    old_mode: int | None
    new_mode: int | None
    old_size: int | None
    new_size: int | None
    binary: bool
    added: int | None
    removed: int | None
    text: str
    note: str


@dataclass(frozen=True)
class EntryDiff:
    entry: EntryRecord
    files: tuple[FileDiffText, ...]
    total: int


@dataclass(frozen=True)
class EntryComparison:
    """`old` is null for the state before the first entry."""

    old: EntryRecord | None
    new: EntryRecord
    files: tuple[FileDiffText, ...]
    total: int


@dataclass(frozen=True)
class FileVersion:
    """A file as it was. `base64` holds its content from `offset` on; `more` says that there is more after it."""

    path: str
    what: str
    mode: int
    mtime: EpochNanoseconds
    size: int
    base64: str | None = None
    offset: int | None = None
    more: bool = False


@dataclass(frozen=True)
class ShownFate:
    """What a restore would do to one path, or did to it. `word` is the fate in words: `restore` or `restored`."""

    path: str
    fate: FinalFate
    word: str
    detail: str


@dataclass(frozen=True)
class PathReason:
    path: str
    reason: str


@dataclass(frozen=True)
class KeptPath:
    """A file that stood in the way of a restore and is not stored in history: its path, and where it is kept."""

    path: str
    kept_as: str


@dataclass(frozen=True)
class RestorePreview:
    """What an undo, redo, restore or revert would do. Nothing has been written.

    `total`, `counts` (by `fates.FateGroup`) and `summary` cover all steps; `steps` may hold only the first of them.
    `shared` is true when others worked at the same time, so that some of the changes may be theirs.
    """

    kind: EntryKind
    target: int
    steps: tuple[ShownFate, ...]
    total: int
    counts: dict[str, int]
    summary: str
    conflicts: tuple[PathReason, ...]
    shared: bool


@dataclass(frozen=True)
class RestoreReport:
    """What an undo, redo, restore or revert did: its own entry, the fate of each path, and each path that is not as planned.

    `done` counts the paths that were changed; `total`, `counts` (by `fates.FateGroup`) and `summary` cover all fates.
    The lists may be cut.
    """

    entry: EntryRecord
    done: int
    fates: tuple[ShownFate, ...]
    total: int
    counts: dict[str, int]
    summary: str
    unsettled: tuple[PathReason, ...]
    total_unsettled: int
    set_aside: tuple[KeptPath, ...] = ()


@dataclass(frozen=True)
class ActiveRestores:
    """The restores that run or wait for their turn, the oldest first."""

    restores: tuple[RestoreProgress, ...]


@dataclass(frozen=True)
class RestoreCancellation:
    outcome: CancelOutcome


@dataclass(frozen=True)
class DamagedPath:
    """A path whose content is damaged in the entries `first` to `last`."""

    path: str
    first: int
    last: int | None


@dataclass(frozen=True)
class ContentDamageReport:
    content: int | None
    reason: str
    touches: tuple[DamagedPath, ...]


@dataclass(frozen=True)
class VerificationReport:
    """`contents` and `bytes` count what was read."""

    contents: int
    bytes: int
    damages: tuple[ContentDamageReport, ...]


@dataclass(frozen=True)
class ChangedFile:
    sequence: int
    path: str
    word: ChangeWord


@dataclass(frozen=True)
class ChangedFiles:
    """File changes up to `sequence`. With `relist` some were lost: list the folders again and go on from `sequence`."""

    sequence: int
    relist: bool
    items: tuple[ChangedFile, ...]


# Requests


@dataclass(frozen=True)
class GetHistoryStatus(TypedCall[HistoryStatus]):
    method: ClassVar[str] = "history.status"


@dataclass(frozen=True)
class MarkFiles(TypedCall[SnapshotResult]):
    """Record the state before or after a turn or a command."""

    method: ClassVar[str] = "history.mark"
    phase: Literal["before", "after"]
    kind: Literal["turn", "command"] = "turn"
    who: RequestAuthor = field(default_factory=RequestAuthor)
    why: str = ""


@dataclass(frozen=True)
class NoteAuthor(TypedCall[NoResult]):
    """Say who works on the files from now on, without a snapshot."""

    method: ClassVar[str] = "history.note"
    phase: Phase
    who: RequestAuthor = field(default_factory=RequestAuthor)
    why: str = ""


@dataclass(frozen=True)
class ForgetAuthors(TypedCall[NoResult]):
    """Nobody of this kind works on the files any more."""

    method: ClassVar[str] = "history.forget"
    by: AuthorKind


@dataclass(frozen=True)
class TakeSnapshot(TypedCall[SnapshotResult]):
    method: ClassVar[str] = "history.snapshot"
    who: RequestAuthor = field(default_factory=RequestAuthor)
    why: str = ""


@dataclass(frozen=True)
class ListEntries(TypedCall[EntryList]):
    """Entries older than `before`; only those that changed `path` when it is given."""

    method: ClassVar[str] = "history.log"
    path: str | None = None
    limit: int = 50
    before: int | None = None


@dataclass(frozen=True)
class ListEntryChanges(TypedCall[EntryChanges]):
    method: ClassVar[str] = "history.changes"
    entry: int
    limit: int = 1000


@dataclass(frozen=True)
class DiffEntry(TypedCall[EntryDiff]):
    method: ClassVar[str] = "history.diff"
    entry: int
    path: str | None = None
    limit: int = 200


@dataclass(frozen=True)
class CompareEntries(TypedCall[EntryComparison]):
    """From `old` to `new`. Without `old`: from the last known good entry when `good`, else from the entry before `new`.

    `skip` leaves out so many of the changed paths: as many as the pages before had.
    """

    method: ClassVar[str] = "history.compare"
    new: int
    old: int | None = None
    good: bool = False
    path: str | None = None
    limit: int = 200
    skip: int = 0


@dataclass(frozen=True)
class ShowFile(TypedCall[FileVersion]):
    method: ClassVar[str] = "history.show"
    entry: int
    path: str
    offset: int = 0


@dataclass(frozen=True)
class PlanUndo(TypedCall[RestorePreview]):
    method: ClassVar[str] = "history.plan_undo"
    entry: int | None = None


@dataclass(frozen=True)
class UndoChanges(TypedCall[RestoreReport]):
    """Go back to before `entry`; by default the last change."""

    method: ClassVar[str] = "history.undo"
    entry: int | None = None
    who: RequestAuthor = field(kw_only=True)
    restore_id: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class PlanRedo(TypedCall[RestorePreview]):
    method: ClassVar[str] = "history.plan_redo"


@dataclass(frozen=True)
class RedoChanges(TypedCall[RestoreReport]):
    """Take back the last undo."""

    method: ClassVar[str] = "history.redo"
    who: RequestAuthor = field(kw_only=True)
    restore_id: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class PlanRestore(TypedCall[RestorePreview]):
    method: ClassVar[str] = "history.plan_restore"
    entry: int
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class RestoreEntry(TypedCall[RestoreReport]):
    """Bring back the state of `entry`: all of it, or only `paths`."""

    method: ClassVar[str] = "history.restore"
    entry: int
    paths: tuple[str, ...] = ()
    who: RequestAuthor = field(kw_only=True)
    restore_id: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class PlanRevert(TypedCall[RestorePreview]):
    method: ClassVar[str] = "history.plan_revert"
    entry: int
    choose: dict[str, Side] = field(default_factory=dict)
    since: int | None = None
    of: TurnReference | None = None


@dataclass(frozen=True)
class RevertEntry(TypedCall[RestoreReport]):
    """Take back what `entry` changed, or everything after `since` up to it, and keep what came later.

    `choose` says for each path in conflict which side stays. With `of`, only that turn's changes are taken back.
    """

    method: ClassVar[str] = "history.revert"
    entry: int
    choose: dict[str, Side] = field(default_factory=dict)
    since: int | None = None
    of: TurnReference | None = None
    who: RequestAuthor = field(kw_only=True)
    restore_id: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class RecoverRestore(TypedCall[RestoreReport]):
    """Finish a restore that was interrupted, or go back to before it."""

    method: ClassVar[str] = "history.recover"
    finish: bool
    who: RequestAuthor = field(kw_only=True)
    restore_id: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class ListRestores(TypedCall[ActiveRestores]):
    """How far each undo, redo, restore and revert is that runs or waits."""

    method: ClassVar[str] = "history.restores"


@dataclass(frozen=True)
class CancelRestore(TypedCall[RestoreCancellation]):
    """Cancel one restore, unless it changes files already. When it was cancelled, it fails with `history.cancelled`."""

    method: ClassVar[str] = "history.cancel"
    restore_id: str


@dataclass(frozen=True)
class SetEntryGood(TypedCall[EntryReply]):
    """Mark an entry (by default the newest) as known good, or remove the mark."""

    method: ClassVar[str] = "history.good"
    entry: int | None = None
    good: bool = True


@dataclass(frozen=True)
class VerifyHistory(TypedCall[VerificationReport]):
    method: ClassVar[str] = "history.verify"


@dataclass(frozen=True)
class MeasureHistory(TypedCall[StoreSize]):
    method: ClassVar[str] = "history.size"


@dataclass(frozen=True)
class CollectGarbage(TypedCall[CollectionResult]):
    method: ClassVar[str] = "history.collect"


@dataclass(frozen=True)
class FollowFiles(TypedStream[ChangedFiles]):
    """File changes after `after`; from now on when it is not given."""

    method: ClassVar[str] = "files.follow"
    after: int | None = None


def shorten(text: str) -> str:
    """Free text, of which the beginning is enough."""
    return text if len(text) <= MAX_FREE_TEXT_CHARS else text[:MAX_FREE_TEXT_CHARS] + "…"
