"""Checks of the folders in a spec, before anything is started."""

from pathlib import PurePosixPath

from freehold.computer.contract.conventions import AGENT_HOME, WORKSPACE
from freehold.computer.contract.spec import ComputerSpec, MemoryMount, Mount
from freehold.computer.walls.inside import TOP_LEVEL
from freehold.computer.walls.ownership import check_folder_is_safe
from freehold.errors import FreeholdError

RESERVED_TARGETS = ("/", "/dev", "/etc", "/proc", "/run", "/sys", "/tmp", "/usr", "/opt/freehold")  # noqa: S108


def check_mounts(spec: ComputerSpec) -> None:
    """Refuse a mount that would cover a part of the computer or another mount."""
    taken: set[str] = set()
    mounts: list[Mount | MemoryMount] = [*spec.mounts, *spec.memory_mounts]
    for mount in mounts:
        target = PurePosixPath(mount.target)
        wrong = ""
        if not target.is_absolute() or ".." in target.parts or "\0" in mount.target:
            wrong = "is not an absolute path inside the computer"
        elif str(target) in (WORKSPACE, AGENT_HOME, "/home") or _is_reserved(target):
            wrong = "is reserved for the computer"
        elif str(target) in taken:
            wrong = "is mounted twice"
        elif isinstance(mount, Mount) and not mount.source.exists():
            raise FreeholdError(
                "computer.mount-missing",
                f"{mount.source}, the source of the mount at {mount.target}, does not exist",
                hint="Create it, or remove the mount from computer.mounts in freehold.toml",
            )
        if wrong:
            raise FreeholdError(
                "computer.mount-refused",
                f"The mount target {mount.target!r} {wrong}",
                hint="Choose another folder, such as /mnt/data, in computer.mounts",
            )
        taken.add(str(target))


def check_folders(spec: ComputerSpec) -> None:
    for folder in (spec.workspace, spec.home):
        if not folder.is_dir():
            raise FreeholdError("computer.no-folder", f"{folder} is not a folder", hint=f"mkdir -p {folder}")
        check_folder_is_safe(folder)


def _is_reserved(target: PurePosixPath) -> bool:
    top = "/" + target.parts[1] if len(target.parts) > 1 else "/"
    return top in RESERVED_TARGETS or top[1:] in TOP_LEVEL or str(target).startswith("/opt/freehold")
