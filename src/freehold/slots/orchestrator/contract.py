"""The orchestrator slot: runs. A run is one agent with one prompt, in a throw-away computer."""

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from freehold.slots.contract import SlotCall, SlotContract, SlotWrite
from freehold.strict_json import EpochSeconds
from freehold.timeline.event import Json

MAX_PROMPT = 64 * 1024
MAX_TITLE = 200
MAX_FOLDER = 1000
MAX_ENTRY = 2**53
MAX_PAGE = 200
MAX_WAIT = 5.0
MAX_EVENTS = 200

RunState = Literal["starting", "working", "needs_you", "done", "failed", "ended"]
UNFINISHED: tuple[RunState, ...] = ("starting", "working", "needs_you")
RunOutcome = Literal["pending", "none", "merged", "dropped"]
"""What became of its changes. `none`: there are none."""
ChangeKind = Literal["added", "changed", "removed"]
RunPermission = Literal["ask", "network", "pods", "memory", "beads", "events", "history", "runs"]
PERMISSIONS: tuple[RunPermission, ...] = get_args(RunPermission)
PERMISSION_WORDS: Mapping[RunPermission, str] = {
    "ask": "ask the owner",
    "network": "use the network by the owner's rules",
    "pods": "use personal documents that are granted to its agent",
    "memory": "remember and recall",
    "beads": "read and change work items",
    "events": "publish events",
    "history": "read history and the timeline, and undo",
    "runs": "begin runs",
}
"""What each permission lets a run do. Where the owner is asked first, that stays so."""


@dataclass(frozen=True)
class Run:
    """`parent` is the session that wanted it; None for the owner. `cost` includes that of its own runs.

    `ended`: somebody ended it before it was done, or it was `lost`: the process that ran it died. `computer` is where it works. `began_by` is who wanted it: `owner`,
    `token:NAME` or `session:ID`. `entry` is that of history which has the state that its folder was copied from; None: as
    the folder was when the run began.
    """

    id: str
    session: str
    agent: str
    title: str
    state: RunState
    parent: str | None
    depth: int
    folder: str | None
    budget: float | None
    cost: float | None
    created: EpochSeconds
    finished: EpochSeconds | None
    error: str | None
    added: int
    changed: int
    removed: int
    outcome: RunOutcome
    computer: str
    permissions: tuple[RunPermission, ...] = PERMISSIONS
    began_by: str = "owner"
    lost: bool = False
    entry: int | None = None


@dataclass(frozen=True)
class RunPage:
    """The newest first. `cost` is what all runs of the session have cost that was asked for, or all runs.

    It is counted as far as it is known, with the runs below them, and not only for those on this page.
    """

    runs: tuple[Run, ...]
    cursor: str | None
    cost: float = 0.0


@dataclass(frozen=True)
class RunEvent:
    """One event of its session: a message, a tool call, the end of the turn."""

    seq: int
    at: str
    kind: str
    data: Mapping[str, object]


@dataclass(frozen=True)
class RunEvents:
    """`cursor` reads on from here."""

    run: Run
    events: tuple[RunEvent, ...]
    cursor: int


@dataclass(frozen=True)
class RunChange:
    """One file that the run has changed. `diff` is None for one that is not a short text.

    `conflict`: the file of the owner is another one than at the beginning, so merging would lose a change. `mode` is
    that of the file as it would be, with its type; None for one that is removed. `link` is where a link leads.
    `runs_by_itself` says what starts such a file without anybody asking for it, in plain words.
    """

    path: str
    kind: ChangeKind
    size: int
    diff: str | None
    conflict: bool
    mode: int | None = None
    link: str | None = None
    runs_by_itself: str | None = None

    @property
    def traits(self) -> tuple[str, ...]:
        """What the owner must know of the file besides its content, in plain words."""
        mode = self.mode or 0
        is_program = stat.S_ISREG(mode) and mode & 0o111
        return (
            *([f"a link to {self.link}"] if stat.S_ISLNK(mode) else []),
            *([f"a program (mode {stat.S_IMODE(mode):o})"] if is_program else []),
            *([f"runs by itself: {self.runs_by_itself}"] if self.runs_by_itself else []),
        )


@dataclass(frozen=True)
class RunChanges:
    """`total` counts all changes; `files` may hold only the first of them."""

    run: Run
    files: tuple[RunChange, ...]
    total: int = 0


class RunWrite(SlotWrite[Run]):
    identifiers: ClassVar[frozenset[str]] = frozenset({"id", "agent", "model", "folder", "how", "permissions", "key"})

    def describe(self, reply: Any) -> Mapping[str, Json]:
        assert isinstance(reply, Run)
        older: Mapping[str, Json] = {} if reply.entry is None else {"entry": reply.entry}
        return {"id": reply.id, "session": reply.session, "agent": reply.agent, "state": reply.state, **older}


@dataclass(frozen=True)
class SpawnRun(RunWrite):
    """Let an agent work on a prompt, in a throw-away computer with a copy of a folder of the workspace.

    The copy is the folder as it was right after an `entry` of history, or as it is now. An older state can hold what was
    deleted since: who begins such a run needs the permission `history`, and a program the scope of that name.

    It is ended when it has cost more than `budget`. It may do what `permissions` name, and never more than the run that
    begins it; None is as much as that one. Without `ask`, what it asks is answered with no.
    """

    method: ClassVar[str] = "spawn"
    event: ClassVar[str] = "orchestrator.spawned"
    prompt: str
    agent: str | None = None
    model: str | None = None
    title: str | None = None
    folder: str | None = None
    budget: float | None = None
    permissions: tuple[RunPermission, ...] | None = None
    key: str | None = None
    entry: int | None = None


@dataclass(frozen=True)
class TerminateRun(RunWrite):
    """Ends it and its computer. Its changes until then can be taken. Idempotent.

    A session ends its own runs, a program those that it began, the owner and a program with the scope admin all.
    """

    method: ClassVar[str] = "terminate"
    event: ClassVar[str] = "orchestrator.terminated"
    id: str
    key: str | None = None


@dataclass(frozen=True)
class TakeChanges(RunWrite):
    """Merge the changes of a finished run into the workspace, or drop them.

    A change that would overwrite one of somebody else is refused, and with it all of them, unless `force`. Who may end a
    run may take its changes.
    """

    method: ClassVar[str] = "take_changes"
    seconds_allowed: ClassVar[float | None] = 920.0
    event: ClassVar[str] = "orchestrator.changes_taken"
    id: str
    how: Literal["merge", "drop"]
    force: bool = False
    key: str | None = None


@dataclass(frozen=True)
class GetRun(SlotCall[Run]):
    method: ClassVar[str] = "get"
    id: str


@dataclass(frozen=True)
class ListRuns(SlotCall[RunPage]):
    """Runs of one session, or all. `active`: only those that have not finished."""

    method: ClassVar[str] = "list"
    parent: str | None = None
    active: bool = False
    limit: int = 50
    cursor: str | None = None


@dataclass(frozen=True)
class ReadRun(SlotCall[RunEvents]):
    """Events after a cursor. Waits up to so many seconds for the first one, or for the end of the run."""

    method: ClassVar[str] = "stream"
    id: str
    after: int = 0
    limit: int = 100
    seconds: float = 0.0


@dataclass(frozen=True)
class GetChanges(SlotCall[RunChanges]):
    method: ClassVar[str] = "changes"
    seconds_allowed: ClassVar[float | None] = 610.0
    id: str


CONTRACT = SlotContract("orchestrator", 1, (SpawnRun, TerminateRun, TakeChanges, GetRun, ListRuns, ReadRun, GetChanges))
