"""Checks at boot that everything outside Freehold that the manifest needs is present. Downloads nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from freehold.computer.bubblewrap.requirements import find_tools
from freehold.computer.walls.seccomp import compile_filters
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.images.artifacts import ImageFolder
from freehold.keeper.plan import KeeperPlan, MountPlan, NeededFilePlan
from freehold.keeper.shared_library import has_library


@dataclass(frozen=True)
class MissingArtifact:
    """What is missing, what needs it, and the command that installs it."""

    artifact: str
    needed_by: str
    command: str


def check_artifacts(plan: KeeperPlan, home: Home) -> None:
    """Raise `keeper.missing-artifact`, which names everything that is missing.

    Raises the error of the image, or of a skill, when it is not what its lock says.
    """
    if plan.image_is_built and plan.image is not None:
        # The build that is started, although another one may have become the current one meanwhile.
        ImageFolder(home.images, home.image_lock).check(plan.backend, build=Path(plan.image).parent)
    if plan.shows_skills and home.skill_lock.exists():
        from freehold.skills.store import check_skills

        check_skills(home)
    missing = list(find_missing(plan))
    if missing:
        raise FreeholdError(
            "keeper.missing-artifact",
            "; ".join(f"{one.artifact} (needed by {one.needed_by})" for one in missing),
            hint=" · ".join(dict.fromkeys(one.command for one in missing)),
        )


def find_missing(plan: KeeperPlan) -> Iterator[MissingArtifact]:
    if plan.backend == "bubblewrap":
        for look in (find_tools, compile_filters):
            try:
                look()
            except FreeholdError as error:
                yield MissingArtifact(error.message, 'computer.backend = "bubblewrap"', error.hint)
        yield from _find_missing_root(plan)
        yield from _find_missing_files(plan)
        yield from _find_missing_devices(plan)
    for mount in plan.mounts:
        if mount.is_remote:
            yield from _find_missing_helper(mount)
        if mount.is_remote or mount.kind == "memory":
            continue
        source = Path(mount.source).expanduser()
        if not source.exists():
            yield MissingArtifact(
                f"There is no {source}",
                f"the mount at {mount.target}",
                f"mkdir -p {source}" if mount.kind == "folder" else f"Put it at {source}",
            )


def _find_missing_helper(mount: MountPlan) -> Iterator[MissingArtifact]:
    """A remote mount needs rclone and FUSE on this machine, whatever the backend."""
    from freehold.computer.mounts.helper_process import find_rclone
    from freehold.computer.mounts.mount_point import check_fuse

    for look in (find_rclone, check_fuse):
        try:
            look()
        except FreeholdError as error:
            yield MissingArtifact(error.message, f"the mount at {mount.target}", error.hint)


def _find_missing_root(plan: KeeperPlan) -> Iterator[MissingArtifact]:
    root = Path("/") if plan.image is None else Path(plan.image).expanduser()
    if plan.image is not None and not root.is_dir():
        command = 'computer.image = "built", then freehold build'
        yield MissingArtifact(f"There is no folder {root}", "computer.image", command)
    elif not (root / "usr/bin/python3").exists():
        wanted = "apt install python3-minimal" if plan.image is None else "freehold build"
        yield MissingArtifact(
            f"There is no {root / 'usr/bin/python3'}", "the guest, which is pid 1 in the computer", wanted
        )


def _find_missing_devices(plan: KeeperPlan) -> Iterator[MissingArtifact]:
    for device in plan.devices:
        if not Path(device).is_char_device():
            command = "Install the driver of the GPU, and run nvidia-modprobe -u -c 0, which makes its devices"
            yield MissingArtifact(f"There is no device {device}", "[security.exceptions.gpu]", command)


def _find_missing_files(plan: KeeperPlan) -> Iterator[MissingArtifact]:
    """What exceptions need in the computer. In an image of a container engine, the doctor looks for it."""
    for file in plan.needed_files:
        if file.is_library:
            if not _has_library(plan, file):
                words = f"There is no {file.path} in the system of the computer"
                yield MissingArtifact(words, f"[security.exceptions.{file.exception}]", file.command)
            continue
        place = _find_place(plan, PurePosixPath(file.path), plan.mounts if file.in_main else ())
        if place is not None and not place.exists():
            yield MissingArtifact(f"There is no {place}", f"[security.exceptions.{file.exception}]", file.command)


def _has_library(plan: KeeperPlan, library: NeededFilePlan) -> bool:
    mounted = [Path(mount.source).expanduser() for mount in plan.mounts if library.in_main and mount.kind == "folder"]
    if any((folder / library.path).exists() for folder in mounted):
        return True
    root = Path("/") if plan.image is None else Path(plan.image).expanduser()
    return has_library(root, library.path, is_image=plan.image is not None)


def _find_place(plan: KeeperPlan, path: PurePosixPath, mounts: Sequence[MountPlan]) -> Path | None:
    """Where a path of the computer is on this machine: in its system or in a mounted folder. None: in another mount."""
    for mount in mounts:
        if path.is_relative_to(mount.target):
            if mount.kind != "folder":
                return None
            return Path(mount.source).expanduser() / path.relative_to(mount.target)
    root = Path("/") if plan.image is None else Path(plan.image).expanduser()
    return root / str(path).lstrip("/")
