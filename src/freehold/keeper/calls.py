"""The keeper's own calls: every request and reply on its socket. Those of history are in `freehold.history.calls`.

Light to import, for the command line. `KeeperClient.call` and `call_keeper` send them, `KeeperApi` answers them.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol, TypeVar

from freehold.strict_json import EpochSeconds, IsoTime
from freehold.typed_call import NoResult, TypedCall

Reply = TypeVar("Reply")
ProgramState = Literal["stopped", "idle", "starting", "ready", "unhealthy", "waiting", "crash-looping", "stopping"]


class KeeperCaller(Protocol):
    """Something that sends calls to the keeper: `KeeperClient`, or a double in tests."""

    async def call(self, call: TypedCall[Reply], *, timeout: float | None = None) -> Reply: ...


@dataclass(frozen=True)
class ProgramStatus:
    """One program now. `since` is when it entered this state (seconds since 1970), `memory` is in bytes.

    `starts` counts its starts, `restarts` those that followed a crash.
    """

    name: str
    state: ProgramState
    required: bool
    pid: int | None
    since: EpochSeconds
    starts: int
    restarts: int
    memory: int | None
    last_error: str | None
    next_start_in: float | None


@dataclass(frozen=True)
class KeeperProcess:
    pid: int
    since: EpochSeconds
    memory: int | None


@dataclass(frozen=True)
class ListeningPort:
    name: str
    host: str
    port: int


@dataclass(frozen=True)
class ManifestFile:
    path: str
    checksum: str


@dataclass(frozen=True)
class ManifestAdvice:
    """A warning about the manifest. It stops nothing."""

    code: str
    message: str
    hint: str


@dataclass(frozen=True)
class IsolationStatus:
    """What isolates the computer. `limits` names the mechanism behind each limit."""

    backend: str
    version: str
    runs_as: str
    walls: tuple[str, ...]
    limits: dict[str, str]


@dataclass(frozen=True)
class ComputerUsage:
    """What the computer uses now. Null where the mechanism cannot tell."""

    memory: int | None
    memory_peak: int | None
    processes: int | None
    cpu_seconds: float | None
    disk: int | None
    inodes: int | None
    out_of_memory: int | None
    refused_processes: int | None


@dataclass(frozen=True)
class SleepStatus:
    """Whether the computer sleeps. `after` is in seconds (`computer.sleep_after`), `since` in seconds since 1970.

    `given_back` is the memory, in bytes, that the host got from the sleep that lasts or was the last. `times` and
    `seconds` count all sleeps since the start of the computer. `trouble` says why it cannot sleep.
    """

    after: float
    asleep: bool
    since: EpochSeconds | None
    given_back: int | None
    times: int
    seconds: float
    trouble: str | None


@dataclass(frozen=True)
class ComputerStatus:
    """All null while no computer runs. `sleep` is null for a computer that never sleeps."""

    isolation: IsolationStatus | None
    usage: ComputerUsage | None
    sleep: SleepStatus | None


@dataclass(frozen=True)
class MountStatus:
    """One mount of the computer. History covers none. `failing`: its server does not do what it should. `down`: it is not mounted.

    `words` say what is wrong, or nothing.
    """

    kind: str
    source: str
    target: str
    writable: bool
    state: Literal["starting", "ready", "failing", "down"]
    words: str


@dataclass(frozen=True)
class ExceptionStatus:
    """A protection that the owner has lowered. `adds` is everything that it adds to the computer, in sentences."""

    name: str
    reason: str
    until: str | None
    why: str
    adds: tuple[str, ...]


@dataclass(frozen=True)
class ComputerInfo:
    """One computer: where it is reached, its folders on this host, and its limits as in `computer.limits`."""

    name: str
    socket: str
    workspace: str
    home: str
    limits: dict[str, float]
    isolation: IsolationStatus | None
    usage: ComputerUsage | None


@dataclass(frozen=True)
class ComputerList:
    """`main` first, then the temporary computers in the order of their start."""

    computers: tuple[ComputerInfo, ...]


@dataclass(frozen=True)
class RecordedEvent:
    """A timeline event, as it travels."""

    seq: int
    at: IsoTime
    kind: str
    who: str
    data: dict[str, object]
    hash: str
    previous: str


DiskState = Literal["ok", "low", "full"]


@dataclass(frozen=True)
class DiskStatus:
    """The disk of a home, in bytes. `words` say how much is free."""

    folder: str
    free: int
    size: int
    state: DiskState
    words: str


@dataclass(frozen=True)
class KeeperStatus:
    """Everything that `freehold status` shows. `timeline_trouble` says why events cannot be written now."""

    version: str
    home: str
    boot: str
    ready: bool
    since: IsoTime | None
    missing: tuple[str, ...]
    keeper: KeeperProcess
    programs: tuple[ProgramStatus, ...]
    ports: tuple[ListeningPort, ...]
    url: str
    keeper_url: str
    manifest: ManifestFile
    advice: tuple[ManifestAdvice, ...]
    isolation: IsolationStatus | None
    usage: ComputerUsage | None
    sleep: SleepStatus | None
    disk: DiskStatus
    timeline_trouble: str | None
    events: tuple[RecordedEvent, ...]
    mounts: tuple[MountStatus, ...] = ()
    exceptions: tuple[ExceptionStatus, ...] = ()


@dataclass(frozen=True)
class StopStarted:
    """The keeper stops. It has stopped when the process `pid` has ended."""

    stopping: bool
    pid: int


@dataclass(frozen=True)
class GetKeeperStatus(TypedCall[KeeperStatus]):
    method: ClassVar[str] = "status"


@dataclass(frozen=True)
class RestartProgram(TypedCall[ProgramStatus]):
    """Stop a program in order and start it again. Answers when it has left the state `starting`."""

    method: ClassVar[str] = "restart"
    program: str
    who: str = "owner"


@dataclass(frozen=True)
class StopKeeper(TypedCall[StopStarted]):
    method: ClassVar[str] = "stop"


@dataclass(frozen=True)
class StartComputer(TypedCall[ComputerInfo]):
    """Start a temporary computer beside `main`. It ends when it is stopped, when its guest ends, or with the keeper.

    A folder that is not given is created, and removed when the computer has ended. `limits` has names and values of
    `computer.limits`; those that are not given have the default.
    """

    method: ClassVar[str] = "computer.start"
    name: str
    workspace: str | None = None
    home: str | None = None
    limits: dict[str, float] = field(default_factory=dict)
    image: str | None = None
    copy: str | None = None
    """The name of a working copy that is its workspace. It stays when the computer has ended."""
    agents: bool = False
    """Whether the installed agents can be started inside."""
    kept_home: str | None = None
    """The name of a folder of this Freehold that is its home. It is made when it is missing, and stays when the computer has ended."""
    who: str = "owner"


@dataclass(frozen=True)
class RemoveKeptHome(TypedCall[NoResult]):
    """Remove the folder that computers had as `kept_home`. Idempotent. Refused while one has it."""

    method: ClassVar[str] = "computer.remove_home"
    name: str


@dataclass(frozen=True)
class StopComputer(TypedCall[ComputerInfo]):
    """Stop a temporary computer. Answers when everything inside has ended and its temporary folders are removed."""

    method: ClassVar[str] = "computer.stop"
    name: str


@dataclass(frozen=True)
class ListComputers(TypedCall[ComputerList]):
    method: ClassVar[str] = "computer.list"
