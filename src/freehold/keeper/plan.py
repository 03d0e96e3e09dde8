"""The settings of the manifest that the keeper uses, as plain values.

Another process reads the manifest (`freehold.keeper.plan_reader`) and ends: the manifest's models need about 12 MB that
the keeper would hold for as long as it runs.
"""

from dataclasses import dataclass
from typing import Literal

from freehold.features.declaration import FeatureProgram
from freehold.identity.sign_ins import control_center_url, recovery_url
from freehold.keeper.calls import ExceptionStatus, ManifestAdvice


@dataclass(frozen=True)
class MountPlan:
    kind: Literal["folder", "archive", "git", "memory", "s3", "webdav", "solid", "rclone"]
    source: str
    target: str
    writable: bool
    commit: str
    size: int

    @property
    def is_remote(self) -> bool:
        """Whether the program of the feature `mounts` mounts it, while the computer runs."""
        return self.kind in ("s3", "webdav", "solid", "rclone")


@dataclass(frozen=True)
class ServicePlan:
    name: str
    command: tuple[str, ...]
    port: int | None
    folder: str
    restart_on_undo: bool
    always: bool


@dataclass(frozen=True)
class NeededFilePlan:
    """A file in the system of the computer, the exception that needs it, and how to get it.

    `in_main`: it may be in a mount as well. `is_library`: the path is the name of a library that programs load.
    """

    path: str
    exception: str
    command: str
    in_main: bool
    is_library: bool = False


@dataclass(frozen=True)
class KeeperPlan:
    checksum: str
    owner: str | None
    gateway_host: str
    gateway_port: int
    public_url: str | None
    sign_in_idle: float
    sign_in_absolute: float
    keeper_host: str
    keeper_port: int
    metrics_host: str
    metrics_port: int
    otlp_endpoint: str | None
    programs: tuple[FeatureProgram, ...]
    """Programs of the features that are switched on."""
    backend: str
    engine_host: str | None
    """Where the container engine is reached; None for where it usually listens."""
    runs_in_fleet: bool
    """Whether the computers of runs are on other machines."""
    image: str | None
    """What the backend starts from; None for its default."""
    image_is_built: bool
    """Whether `freehold build` made the image, so that it is checked against its lock at boot."""
    shows_skills: bool
    """Whether computers see the skills."""
    sleep_after: float | None
    """Seconds without use after which the computer sleeps; None if it never does."""
    limits: dict[str, int | float]
    mounts: tuple[MountPlan, ...]
    services: tuple[ServicePlan, ...]
    history_folders: tuple[str, ...]
    history_ignore: tuple[str, ...]
    history_quota: int | None
    history_rate: int | None
    history_quiet: float
    advice: tuple[ManifestAdvice, ...]
    exceptions: tuple[ExceptionStatus, ...] = ()
    """Protections that are lowered, each with its reason."""
    needed_files: tuple[NeededFilePlan, ...] = ()
    devices: tuple[str, ...] = ()
    """Devices of this machine that the computer `main` can use."""

    @property
    def gateway_url(self) -> str:
        """The address for the owner's browser."""
        return control_center_url(self.gateway_port, self.public_url)

    @property
    def keeper_url(self) -> str:
        return recovery_url(self.keeper_port)
