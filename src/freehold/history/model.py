"""The values of history that travel between modules: authors, entries, versions, changes, restore plans and results."""

import stat
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from freehold.strict_json import EpochSeconds

EntryKind = Literal["snapshot", "turn", "command", "undo", "redo", "restore", "revert", "merge", "quiet"]
AuthorKind = Literal["agent", "terminal", "ssh", "owner", "unknown"]
RequestOrigin = Literal["browser", "token", "session", "ssh", "recovery_page", "command_line", "channel"]

FLAG_COMPLETE = 0
FLAG_CHANGING = 1  # stored, but the file changed during every attempt to read it
FLAG_TOO_LARGE = 2  # only the name and the size are recorded; in stores of Freehold 0.1.0
FLAG_UNREADABLE = 3  # only the name and the size are recorded
FLAG_OVER_QUOTA = 4  # only the name and the size are recorded
FLAG_OVER_RATE = 5  # only the name and the size are recorded

FLAG_WORDS = {
    FLAG_CHANGING: "changed while it was read",
    FLAG_TOO_LARGE: "is larger than the limit of history",
    FLAG_UNREADABLE: "could not be read",
    FLAG_OVER_QUOTA: "did not fit into the quota",
    FLAG_OVER_RATE: "is beyond what its author may add to history in an hour",
}


@dataclass(frozen=True)
class Author:
    """Who made an entry. Changes are attributed by time, not by the process that wrote them.

    Stored as JSON in the column `who`, without the fields that are None.
    """

    by: AuthorKind = "unknown"
    agent: str | None = None
    session: str | None = None
    turn: str | None = None
    prompt: str | None = None
    terminal: str | None = None
    beside: str | None = None
    """Who else was active at the same time, separated by spaces: `agent:SESSION:TURN`, or another `by`."""
    via: RequestOrigin | None = None
    """How an undo, redo, restore or revert was requested."""
    sign_in: str | None = None
    """The id of the sign-in, for a request from a browser."""
    token: str | None = None
    """The name of the API token, for a request with one."""
    connection: str | None = None
    """The id of the SSH connection, for changes made over SSH."""


UNKNOWN = Author()


class SessionTurn(NamedTuple):
    """One turn of one session. Its changes can be in several entries."""

    session: str
    turn: str

    def has_made(self, who: Author) -> bool:
        """Whether the entry of this author was recorded for this turn. An entry that reverts the turn is the owner's."""
        return who.by == "agent" and (who.session, who.turn) == self

    def is_beside(self, who: Author) -> bool:
        """Whether this turn was active when the entry of another author was recorded."""
        return f"agent:{self.session}:{self.turn}" in (who.beside or "").split()


@dataclass(frozen=True)
class EntryRecord:
    """One history entry: a recorded state with its author, its reason and its counts."""

    id: int
    at: EpochSeconds
    kind: EntryKind
    who: Author
    why: str
    added: int
    changed: int
    removed: int
    lines_added: int | None
    lines_removed: int | None
    good: bool
    equals: int
    """The entry that has the same state; its own id unless it is an undo or redo."""
    notes: tuple[str, ...]


class PathVersion(NamedTuple):
    """One state of one path. It is valid in the entries `born <= entry < died`.

    `place` is the id of the path in the store.
    """

    id: int
    place: int
    born: int
    died: int | None
    mode: int  # with the file type, as in st_mode
    mtime: int
    size: int
    content: int | None
    flag: int
    ino: int
    ctime: int
    nlink: int
    node: int = 0
    """The id of the file when it has several names; its state is then stored once for all of them."""

    # A large restore asks these millions of times: the masks are faster than `stat.S_ISDIR`.

    @property
    def is_folder(self) -> bool:
        return self.mode & 0o170000 == stat.S_IFDIR

    @property
    def is_file(self) -> bool:
        return self.mode & 0o170000 == stat.S_IFREG

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def is_noted_only(self) -> bool:
        """True when nothing can be restored: a device, FIFO or socket, or a file whose content was not stored."""
        return self.content is None and not self.is_folder

    def is_same_as(self, other: "PathVersion") -> bool:
        """Whether a restore from one to the other would change nothing that is visible to the owner."""
        if (self.mode, self.mtime, self.content) != (other.mode, other.mtime, other.content):
            return False
        if self.is_folder:
            return True
        return self.size == other.size and self.group == other.group

    def differs_only_in_time(self, other: "PathVersion") -> bool:
        """Whether a program wrote the same content again, or set a time. False when the content is not known."""
        if self.mtime == other.mtime or self.is_noted_only:
            return False
        return self.is_same_as(other._replace(mtime=self.mtime))

    @property
    def group(self) -> int:
        """Names with the same group are hard links of one file; 0 when there is only one name."""
        return self.node if self.node and self.is_file else 0


ChangeWord = Literal["added", "changed", "removed"]


@dataclass(frozen=True)
class PathChange:
    """What happened to one path between two entries."""

    path: bytes
    word: ChangeWord
    old: PathVersion | None
    new: PathVersion | None

    @property
    def is_only_time(self) -> bool:
        """True when only the time differs. Such changes make no entry, are not counted and not shown."""
        return self.old is not None and self.new is not None and self.old.differs_only_in_time(self.new)


Fate = Literal["write", "link", "folder", "remove", "mode", "time", "keep"]
"""What a restore does to one path; `fates` has the words for each."""


class RestoreStep(NamedTuple):
    """What a restore will do to one path."""

    path: tuple[bytes, ...]
    fate: Fate
    place: int
    live: PathVersion | None
    target: PathVersion | None
    detail: str = ""

    @property
    def is_only_folder_time(self) -> bool:
        """True when only the time of a folder is set. Such steps are not shown and not counted."""
        return self.fate == "time" and self.live is not None and self.live.is_folder


@dataclass(frozen=True)
class RevertConflict:
    """A path that was changed again after the entry that is reverted."""

    path: tuple[bytes, ...]
    reason: str
    place: int
    before: PathVersion | None
    after: PathVersion | None
    now: PathVersion | None


@dataclass(frozen=True)
class RestorePlan:
    """What would be done. Nothing has been written."""

    kind: EntryKind
    target: int
    steps: tuple[RestoreStep, ...]
    conflicts: tuple[RevertConflict, ...] = ()
    shared: bool = False
    """Others were active during the reverted turn, so some of the changes may be theirs."""


FinalFate = Literal["write", "link", "folder", "remove", "mode", "time", "keep", "failed"]


class PathFate(NamedTuple):
    """What a restore would do to one path, or did to it. The same list is shown by every page, API and command."""

    path: bytes
    fate: FinalFate
    detail: str


@dataclass(frozen=True)
class RestoreResult:
    """What a restore did. `unsettled` names every path that does not have the planned state, and the reason."""

    entry: EntryRecord
    fates: tuple[PathFate, ...]
    unsettled: tuple[tuple[bytes, str], ...] = ()
    set_aside: tuple[tuple[bytes, str], ...] = ()
    """Files that stood in the way and are not stored in history: the path that each had, and where it is kept."""

    @property
    def done(self) -> int:
        """How many paths were changed."""
        return sum(each.fate not in ("keep", "failed") for each in self.fates)


RestorePhase = Literal["waiting", "planning", "preparing", "changing", "recording"]
CancelOutcome = Literal["cancelled", "too-late", "not-found"]
"""Nothing was changed; it changes files already and is finished; it has ended, or has not arrived yet."""


@dataclass(frozen=True)
class RestoreProgress:
    """How far an undo, redo, restore or revert is. Before `changing`, no file has changed and it can be cancelled.

    It is `waiting` while other work on the files is finished.
    """

    id: str
    kind: EntryKind
    phase: RestorePhase
    done: int
    total: int
    """Steps of this phase; 0 when they are not counted."""
    cancellable: bool


@dataclass(frozen=True)
class SnapshotResult:
    """The entry that has the current state of the folders, and whether this call made it."""

    entry: int
    changed: bool


@dataclass(frozen=True)
class HistoryNotice:
    """A message for the owner. It is passed to the `on_notice` callback and stored until the cause is gone."""

    code: str
    message: str
    hint: str = ""
    at: EpochSeconds = 0.0


@dataclass(frozen=True)
class RevertArguments:
    """What a revert was asked to take back: an entry, or everything after `since` up to it, or only one turn of that."""

    entry: int
    since: int | None = None
    of: SessionTurn | None = None
    choose: tuple[tuple[bytes, str], ...] = ()
    """Paths in conflict with the chosen side; the empty path means every one."""
    change_set: str | None = None
    """For a merge: the changes that are merged. `entry` is then the one that the working copy was made from."""


@dataclass(frozen=True)
class InterruptedRestore:
    """A restore that has begun and not ended, as the journal has it: what was asked, and by whom."""

    kind: EntryKind
    began: EpochSeconds
    before: int
    target: int
    paths: tuple[bytes, ...] = field(default=())
    who: Author = UNKNOWN
    why: str = ""
    recorded: int | None = None
    """The entry that has the state in which it was left; None while that state is not recorded."""
    revert: RevertArguments | None = None


@dataclass(frozen=True)
class StoreSize:
    """How much disk space history uses, in bytes."""

    used: int
    quota: int
    entries: int
    contents: int
    kept_bytes: int
    """The size of all contents without compression and deduplication of chunks."""
    set_aside: int
    """Files that a restore moved out of its way. They are not part of `used`; the owner deletes them."""


@dataclass(frozen=True)
class CollectionResult:
    """What a garbage collection did: entries thinned by age and dropped for the quota, and bytes."""

    thinned: int
    dropped: int
    freed: int
    used: int
    quota: int
    waiting: bool
    """The quota is exceeded and the owner was told; the oldest entries are dropped after the grace period."""
