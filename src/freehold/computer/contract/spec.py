"""What a computer is asked to be: its folders, its limits, its environment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

GUEST_PATH = "/opt/freehold/guest.pyz"
WORKSPACE = "/workspace"
AGENT_HOME = "/home/agent"
AGENT_UID = 1000
AGENT_GID = 1000
PROXY = "http://127.0.0.1:3128"
HELD_PORTS = (3128, 3129, 3130)
"""Ports inside that only the host can answer at: the way out, the models and the host tools."""

BASE_ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/home/agent/.local/bin:/usr/local/bin:/usr/bin:/bin",
    "HOME": AGENT_HOME,
    "USER": "agent",
    "LOGNAME": "agent",
    "SHELL": "/bin/bash",
    "LANG": "C.UTF-8",
    "TERM": "xterm-256color",
    "HTTP_PROXY": PROXY,
    "HTTPS_PROXY": PROXY,
    "ALL_PROXY": PROXY,
    "NO_PROXY": "localhost,127.0.0.1,::1",
    "http_proxy": PROXY,
    "https_proxy": PROXY,
    "all_proxy": PROXY,
    "no_proxy": "localhost,127.0.0.1,::1",
}


@dataclass(frozen=True)
class Limits:
    """Bytes, seconds and counts; each is `computer.limits.<name>` in the manifest.

    memory      everything the computer holds, temporary files included; it has no swap
    processes   processes and threads alive at once
    cpus        share of the machine, in processors
    open_files  descriptors of one process
    file_size   the largest single file
    disk        bytes the persistent folders (workspace and home) may take on the disk
    inodes      files and folders in the persistent folders
    output      bytes captured of one command's stdout, and as many of its stderr
    cpu_time    seconds of processor one command may use
    wall_time   seconds one command may take
    tmp         /tmp, and again /dev/shm; both count as memory and neither gets more than a quarter of it
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
    """A folder or file of the host shown inside at `target`, read-only unless said otherwise."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True)
class ComputerSpec:
    """All that a backend needs. `workspace` and `home` exist; with a root keeper they come to belong to the computer's uid.

    `environment` is added to `BASE_ENVIRONMENT`; nothing of the host's own environment goes inside.
    `image` is a folder holding a root file system to use instead of the host's /usr.
    """

    workspace: Path
    home: Path
    limits: Limits = field(default_factory=Limits)
    mounts: tuple[Mount, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    image: Path | None = None
    hostname: str = "freehold"
