"""What a node is told of a computer. Paths of the head mean nothing there: each folder is a part that was sent."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from freehold.computer.contract.conventions import PACKAGES_PATH
from freehold.computer.contract.report import Isolation, LimitEvent, LimitMechanism, MachineUsage, SleepReport
from freehold.computer.contract.spec import ComputerSpec, Device, Limits, MemoryMount, Mount
from freehold.errors import FreeholdError
from freehold.fleet.folder_state import StateLimits
from freehold.strict_json import WrongShape, decode

WORKSPACE_PART, HOME_PART = "workspace", "home"
MAX_SHOWN = StateLimits(entries=500_000, size=16 * 1024**3)
"""Of a folder that is shown read-only."""


@dataclass(frozen=True)
class ShownPart:
    """A folder or file that a computer sees read-only at `target`. `digest` names its state."""

    target: str
    digest: str
    is_file: bool


@dataclass(frozen=True)
class MemoryPart:
    target: str
    size: int


@dataclass(frozen=True)
class RemoteSpec:
    """A `ComputerSpec` without the folders of the head."""

    memory: int
    processes: int
    cpus: float
    open_files: int
    file_size: int
    disk: int
    inodes: int
    output: int
    cpu_time: int
    wall_time: int
    tmp: int
    hostname: str
    image: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    shown: tuple[ShownPart, ...] = ()
    in_memory: tuple[MemoryPart, ...] = ()
    gpus: int = 0

    @property
    def state_limits(self) -> StateLimits:
        return StateLimits(entries=self.inodes, size=self.disk)


def describe_spec(spec: ComputerSpec, shown: tuple[ShownPart, ...]) -> RemoteSpec:
    return RemoteSpec(
        **asdict(spec.limits),
        hostname=spec.hostname,
        image=spec.image,
        environment=dict(spec.environment),
        shown=shown,
        in_memory=tuple(MemoryPart(one.target, one.size) for one in spec.memory_mounts),
    )


def build_spec(
    remote: RemoteSpec, folder: Path, shown: Mapping[str, Path], devices: Sequence[str] = ()
) -> ComputerSpec:
    """On the node: `shown` are the folders of read-only parts by their digest, `devices` those of its GPUs."""
    limits = Limits(**{name: getattr(remote, name) for name in asdict(Limits())})
    mounts = [
        Mount(shown[one.digest] / "file" if one.is_file else shown[one.digest], one.target) for one in remote.shown
    ]
    return ComputerSpec(
        folder / WORKSPACE_PART,
        folder / HOME_PART,
        limits=limits,
        mounts=tuple(mounts),
        memory_mounts=tuple(MemoryMount(one.target, one.size) for one in remote.in_memory),
        environment=remote.environment,
        image=remote.image,
        hostname=remote.hostname,
        devices=tuple(Device(Path(device), device) for device in devices),
    )


def list_mounts(spec: ComputerSpec) -> list[Mount]:
    """Those that are sent to a node. Raises `computer.mount-refused`. Packages for isolates are those of the node."""
    found = [mount for mount in spec.mounts if not mount.target.startswith(f"{PACKAGES_PATH}/")]
    for mount in found:
        if mount.writable or mount.follows:
            raise FreeholdError(
                "computer.mount-refused",
                f"{mount.source} cannot be shown at {mount.target} of a computer on another machine: only read-only folders can",
                hint="Put what it should change into its workspace",
            )
        if not mount.source.exists():
            raise FreeholdError("computer.mount-missing", f"{mount.source} does not exist")
    return found


@dataclass(frozen=True)
class ReportedIsolation:
    """`Isolation` as a node reports it."""

    backend: str
    version: str
    runs_as: str
    walls: tuple[str, ...]
    limits: dict[str, LimitMechanism]

    def on_node(self, node: str) -> Isolation:
        return Isolation("ray", self.version, f"{self.runs_as} on the node {node}", self.walls, self.limits)


def decode_reported(shape: Any, body: object) -> Any:
    """Something that a node reported. Raises `fleet.bad-message`."""
    try:
        return decode(shape, body)
    except WrongShape as error:
        raise FreeholdError("fleet.bad-message", f"A node sent something else than was expected: {error}") from None


def decode_usage(body: object) -> MachineUsage:
    found: MachineUsage = decode_reported(MachineUsage, body)
    return found


def decode_event(body: object) -> LimitEvent:
    found: LimitEvent = decode_reported(LimitEvent, body)
    return found


def decode_sleep(body: object) -> SleepReport:
    found: SleepReport = decode_reported(SleepReport, body)
    return found
