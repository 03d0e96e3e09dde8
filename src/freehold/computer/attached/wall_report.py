"""What the first process of a computer sends about its walls."""

from dataclasses import dataclass


@dataclass(frozen=True)
class WallReport:
    """Texts are those of the kernel's own files. `sizes`, `folders` (device and inode) and `kinds` are by place."""

    pid: int
    status: str
    limits: str
    mounts: str
    namespaces: dict[str, str]
    interfaces: str
    cgroup: dict[str, str]
    sizes: dict[str, int]
    folders: dict[str, tuple[int, ...]]
    kinds: dict[str, str]
    devices: dict[str, tuple[int, ...]]
    """Kind, major and minor number, by path."""


def parse_status(text: str) -> dict[str, str]:
    return {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}
