"""What a computer should be: its folders, its limits, its environment, its image."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True)
class Limits:
    """Bytes, seconds and counts; each is `computer.limits.<name>` in the manifest.

    memory      all memory of the computer, temporary files included; there is no swap
    processes   processes and threads that exist at once
    cpus        processor cores, may be a fraction
    open_files  open files of one process
    file_size   size of the largest file
    disk        bytes that the persistent folders (workspace and home) use on the disk, deleted files that are still
                open included
    inodes      names of files and folders in the persistent folders: each hard link counts
    output      bytes kept of the stdout of one command, and as many of its stderr
    cpu_time    processor seconds of one command
    wall_time   seconds that one command may run
    tmp         size of /tmp, and again of /dev/shm; both count as memory and each is at most a quarter of it
    """

    memory: int = 4 * GIB
    processes: int = 1024
    cpus: float = 2.0
    open_files: int = 16384
    file_size: int = 8 * GIB
    disk: int = 20 * GIB
    inodes: int = 2_000_000
    output: int = 16 * MIB
    cpu_time: int = 3600
    wall_time: int = 3600
    tmp: int = 1 * GIB


@dataclass(frozen=True)
class Mount:
    """A folder or file of the host that appears inside at `target`; read-only unless `writable`.

    `follows`: what is mounted on the source later is seen inside as well. The source is then a shared mount.
    """

    source: Path
    target: str
    writable: bool = False
    follows: bool = False


@dataclass(frozen=True)
class MemoryMount:
    """An empty folder in memory at `target`, writable, gone when the computer ends. It counts as memory."""

    target: str
    size: int


@dataclass(frozen=True)
class Device:
    """A device of the host that programs inside can use at `target`, a path below /dev. Only bubblewrap has them."""

    source: Path
    target: str


@dataclass(frozen=True)
class ComputerSpec:
    """Everything that a backend needs to know.

    `workspace` and `home` exist. A backend that runs as root may change their owner to the user that the computer runs
    as. `environment` is added to `BASE_ENVIRONMENT`; nothing of the host's environment is visible inside. `image` is a
    reference that the backend understands and checks: a root folder for bubblewrap. None means the backend's default.
    """

    workspace: Path
    home: Path
    limits: Limits = field(default_factory=Limits)
    mounts: tuple[Mount, ...] = ()
    memory_mounts: tuple[MemoryMount, ...] = ()
    devices: tuple[Device, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    image: str | None = None
    hostname: str = "freehold"
