"""What every slot has in common: typed calls, who calls, and what an implementation must do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, get_args, runtime_checkable

from freehold.timeline.event import Json
from freehold.typed_call import Reply_co, TypedCall

SlotName = Literal["beads", "pods", "memory", "events", "orchestrator"]
SLOT_NAMES: tuple[SlotName, ...] = get_args(SlotName)

MAX_KEY = 200
"""The characters of an idempotency key."""

Reply = TypeVar("Reply")


class SlotCall(TypedCall[Reply_co], Generic[Reply_co]):
    """One request to a slot. Subclasses are frozen dataclasses; `method` is also the word in metrics."""

    identifiers: ClassVar[frozenset[str]] = frozenset({"id", "key", "cursor", "path", "folder", "known", "etag"})
    """Text fields that name something, such as an id. The privacy filter reads every other text field.

    A text `content` beside an `encoding` that is `base64` is read as the bytes that it stands for.
    """
    record_identifiers: ClassVar[frozenset[str]] = frozenset()
    """The same for the keys of records that the call stores."""
    seconds_allowed: ClassVar[float | None] = None
    """How long a call may take that is known to be slow, such as a merge of many files. None: as long as any."""


class SlotWrite(SlotCall[Reply_co], Generic[Reply_co]):
    """A request that changes something. `event` is the kind of the timeline event that records it.

    With a `key`, the same request has its effect once: a repetition gets the first answer again, and another request
    with this key is refused.
    """

    event: ClassVar[str]
    key: str | None

    def describe(self, reply: Any) -> Mapping[str, Json]:
        """What the timeline records of this change: names and numbers, never content."""
        raise NotImplementedError


class SlotUpkeep(SlotCall[Reply_co], Generic[Reply_co]):
    """An inner request that changes only what can be made again, such as an index. The timeline does not record it."""


@dataclass(frozen=True)
class SlotCaller:
    """Who calls. `name` is how the timeline records it: `owner`, `token:NAME` or `session:ID`.

    Who acts by a token of another Freehold has the name of the token first: `token:NAME/session:ID`.

    `agent`: the name of the agent of a session, where the slot needs it. `above`: those of the sessions for which a run
    works, if it is one; it may reach no more than each of them. `is_admin`: a program that may act on what others began.
    """

    name: str
    agent: str | None = None
    above: tuple[str, ...] = ()
    is_admin: bool = False

    @property
    def is_owner(self) -> bool:
        """The owner of this Freehold, who may act on what others hold."""
        return self.name == "owner"

    @property
    def realm(self) -> str | None:
        """What the names of all those begin with on whose things this caller may act; None for nobody else's.

        The owner has everybody (an empty text), the owner of another Freehold has all who act by the same token.
        """
        is_owner = self.name == "owner" or self.name.endswith("/owner")
        return self.name.removesuffix("owner") if is_owner else None

    @property
    def session(self) -> str | None:
        """The id of the session that calls. Before one of another Freehold stands its token: `token:NAME/ID`."""
        realm, slash, name = self.name.rpartition("/")
        return f"{realm}{slash}{name.removeprefix('session:')}" if name.startswith("session:") else None


@dataclass(frozen=True)
class CallContext:
    """One call that is being carried out: who called, and when (seconds since 1970, as exact as APIs tell a time)."""

    caller: SlotCaller
    now: float


Record = Mapping[str, object]
"""One entry of an export, as a JSON object. It has an `id`."""


class RecordPage(Protocol):
    """Entries in the order of the store. `cursor` gets the next page; None on the last one."""

    @property
    def records(self) -> tuple[Record, ...]: ...

    @property
    def cursor(self) -> str | None: ...


@dataclass(frozen=True)
class SlotTransfer:
    """The calls that read pages of records and store them. Storing is idempotent."""

    page_size: int
    export_page: Callable[[str | None], SlotCall[RecordPage]]
    import_page: Callable[[tuple[Record, ...]], SlotCall[Any]]


@dataclass(frozen=True)
class SlotContract:
    """The calls of one slot. The version grows when a call changes in a way that a caller can notice."""

    name: SlotName
    version: int
    calls: tuple[type[SlotCall[Any]], ...]
    transfer: "SlotTransfer | None" = None
    """How everything in it is read out and stored elsewhere; None for a slot that keeps nothing."""


class SlotImplementation(Protocol):
    """One way to keep a slot. `call` raises `SlotError` and nothing else for what a caller can meet."""

    kind: str
    """The word in metrics and in `/v1/slots`: `local`, `postgres`, `freehold`, `off`."""
    records_events: bool
    """Whether a write stores its timeline event itself, in one transaction with the change."""

    async def connect(self) -> None:
        """Idempotent. Raises `SlotError` (unavailable) when it cannot be reached."""
        ...

    async def health(self) -> str | None:
        """Really asks the store. Raises `SlotError` (unavailable).

        A text says what the owner should know although calls are answered, such as a sink that takes no events.
        """
        ...

    async def close(self) -> None:
        """Idempotent."""
        ...

    async def call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply: ...


@runtime_checkable
class WorkingImplementation(Protocol):
    """An implementation that also works in the background, in the one process that runs the slot."""

    async def work(self) -> None:
        """Until cancelled. Waits by itself until it is connected."""
        ...


@runtime_checkable
class TrialStore(Protocol):
    """An implementation that can remove all that a trial has stored."""

    async def drop_schema(self) -> None:
        """Only for a place that was made for a trial."""
        ...


CleanLeaving = Callable[[Sequence[Mapping[str, Any]]], list[Mapping[str, Any]]]
"""The same data as it may leave. Blocking."""


@runtime_checkable
class FilteredImplementation(Protocol):
    """An implementation that tells others what did not come by a call, so that it needs the privacy filter itself."""

    def filter_by(self, clean: "CleanLeaving") -> None: ...
