"""The nouns of history: who, entries, changes, plans and what came of them."""

import stat
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Kind = Literal["snapshot", "turn", "command", "undo", "redo", "restore", "revert", "quiet"]
By = Literal["agent", "terminal", "ssh", "owner", "unknown"]

FLAG_FINE = 0
FLAG_UNSETTLED = 1  # kept, but it was being written to during every attempt at reading it
FLAG_TOO_LARGE = 2  # noted only
FLAG_UNREADABLE = 3  # noted only
FLAG_OVER_QUOTA = 4  # noted only

FLAG_WORDS = {
    FLAG_UNSETTLED: "was being written to while it was read",
    FLAG_TOO_LARGE: "is larger than history keeps",
    FLAG_UNREADABLE: "could not be read",
    FLAG_OVER_QUOTA: "did not fit into the quota",
}


@dataclass(frozen=True)
class Who:
    """Whose doing an entry is, as far as known: changes are attributed by when they happened, not by which process wrote."""

    by: By = "unknown"
    agent: str | None = None
    session: str | None = None
    turn: str | None = None
    prompt: str | None = None
    terminal: str | None = None
    beside: str | None = None
    """Who else was at work meanwhile, by name, separated by spaces: `agent:SESSION:TURN`, or another `by`."""


UNKNOWN = Who()


class Turn(NamedTuple):
    """One turn of one session, whose work can be several entries."""

    session: str
    turn: str

    def made(self, who: Who) -> bool:
        """Whether an entry was taken for this turn; one that takes it back is the owner's."""
        return who.by == "agent" and (who.session, who.turn) == self

    def was_beside(self, who: Who) -> bool:
        """Whether it was at work while another's entry was taken."""
        return f"agent:{self.session}:{self.turn}" in (who.beside or "").split()


@dataclass(frozen=True)
class Entry:
    id: int
    at: float
    kind: Kind
    who: Who
    why: str
    added: int
    changed: int
    removed: int
    lines_added: int | None
    lines_removed: int | None
    good: bool
    equals: int
    """The entry whose state this one has; its own id unless it is an undo or redo."""
    notes: tuple[str, ...]


class Version(NamedTuple):
    """One state of one place, alive in the entries `born <= entry < died`."""

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

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def is_noted_only(self) -> bool:
        """True when there is nothing to put back: a device, FIFO or socket, or a file that was not kept."""
        return not self.is_folder and self.content is None

    def same_as(self, other: "Version") -> bool:
        """Whether a restore from one to the other would change nothing an owner can see."""
        if (self.mode, self.mtime, self.content) != (other.mode, other.mtime, other.content):
            return False
        if self.is_folder:
            return True
        return self.size == other.size and self.group == other.group

    @property
    def group(self) -> int:
        """Files with the same group are names of one inode; 0: the only name."""
        return self.ino if self.nlink > 1 and self.is_file else 0


ChangeWord = Literal["added", "changed", "removed"]


@dataclass(frozen=True)
class Change:
    """What happened to one path between two entries. Folders of which only the time differs are left out of counts."""

    path: bytes
    word: ChangeWord
    old: Version | None
    new: Version | None

    @property
    def only_folder_time(self) -> bool:
        return bool(
            self.old and self.new and self.old.is_folder and self.new.is_folder and self.old.mode == self.new.mode
        )


Fate = Literal["write", "link", "folder", "remove", "mode", "time", "keep"]


class Step(NamedTuple):
    """What a restore will do to one path."""

    path: tuple[bytes, ...]
    fate: Fate
    place: int
    live: Version | None
    target: Version | None
    detail: str = ""


@dataclass(frozen=True)
class Conflict:
    """A path that was changed again after the entry being taken back."""

    path: tuple[bytes, ...]
    reason: str
    place: int
    before: Version | None
    after: Version | None
    now: Version | None


@dataclass(frozen=True)
class Plan:
    """What would be done; nothing has been written."""

    kind: Kind
    target: int
    steps: tuple[Step, ...]
    conflicts: tuple[Conflict, ...] = ()
    shared: bool = False
    """Others were at work while what is taken back was done: some of it may be theirs."""


@dataclass(frozen=True)
class Outcome:
    """What a restore came to. `unsettled` names every path that is not as planned, and why."""

    entry: Entry
    done: int
    unsettled: tuple[tuple[bytes, str], ...] = ()


@dataclass(frozen=True)
class Mark:
    """The entry whose state the tree is in now, and whether this call made it."""

    entry: int
    changed: bool


@dataclass(frozen=True)
class Notice:
    """Something the owner is to know; told through the `tell` callback and kept until the cause is gone."""

    code: str
    message: str
    hint: str = ""
    at: float = 0.0


@dataclass(frozen=True)
class Interrupted:
    """A restore that was under way when the process ended."""

    kind: Kind
    began: float
    before: int
    target: int
    paths: tuple[bytes, ...] = field(default=())
