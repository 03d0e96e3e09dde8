"""The file system of a computer, as arguments for bubblewrap."""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from freehold.computer.contract.conventions import AGENT_HOME, BASE_ENVIRONMENT, GUEST_PATH, WORKSPACE
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.walls.inside import (
    MASKED_FILES,
    MASKED_FOLDERS,
    RUN_SIZE,
    SHARED_ETC,
    TOP_LEVEL,
    tmp_size,
)
from freehold.errors import FreeholdError

MAX_COPIED = 128 * 1024
"""Bytes of a file of /etc that is copied. For each bind, bubblewrap reads the whole list of mounts, which takes longer."""

OpenFiles = Callable[[int], str]
"""Takes over an open file, and returns the number that it has for bubblewrap."""


@dataclass(frozen=True)
class BindSources:
    """The paths that the sandbox binds: the originals, or the places where they were staged for it."""

    workspace: str
    home: str
    guest: str
    mounts: tuple[str, ...]
    image: str | None
    devices: tuple[str, ...] = ()


def image_folder(spec: ComputerSpec) -> Path:
    """The root folder that the image reference names; the host's own root without one."""
    return Path("/") if spec.image is None else Path(spec.image).expanduser().absolute()


def check_image(spec: ComputerSpec) -> None:
    """Refuse a root folder that does not exist, or in which the guest cannot start."""
    base = image_folder(spec)
    if not (base / "usr").is_dir():
        raise FreeholdError(
            "computer.unknown-image",
            f"computer.image is {spec.image!r}, and {base} is not a root folder",
            hint="Give a folder that contains usr/, or leave computer.image out",
        )
    if not os.path.lexists(base / "usr/bin/python3"):
        raise FreeholdError(
            "computer.no-python",
            f"{base / 'usr/bin/python3'} does not exist, and the guest needs it",
            hint="Install python3" if spec.image is None else "Use an image with python3, or leave computer.image out",
        )


def describe_root(spec: ComputerSpec, sources: BindSources, hand_over: OpenFiles) -> Iterator[str]:
    """Folders, binds, copies and masks, in the order in which bubblewrap creates them."""
    base = image_folder(spec)
    shown = "" if sources.image is None else sources.image
    yield from ("--ro-bind", f"{shown}/usr", "/usr")
    for name in TOP_LEVEL:
        yield from _copy_entry(base / name, f"{shown}/{name}", f"/{name}")
    if spec.image is not None and (base / "opt").is_dir():
        # One by one, because the guest is at /opt/freehold.
        for entry in sorted((base / "opt").iterdir()):
            if entry.name != "freehold":
                yield from _copy_entry(entry, f"{shown}/opt/{entry.name}", f"/opt/{entry.name}")
    yield from ("--dir", "/etc")
    for name in SHARED_ETC:
        copied = open_public_file(base, f"etc/{name}")
        if copied is not None:
            yield from ("--perms", "0444", "--file", hand_over(copied), f"/etc/{name}")
        else:
            yield from _copy_entry(base / "etc" / name, f"{shown}/etc/{name}", f"/etc/{name}")
    yield from _devices(spec, sources)
    yield from _proc()
    for target, mode, size in (("/tmp", "1777", tmp_size(spec.limits)), ("/run", "0755", RUN_SIZE)):  # noqa: S108
        yield from ("--perms", mode, "--size", str(size), "--tmpfs", target)
    yield from ("--symlink", "../tmp", "/var/tmp", "--symlink", "../run", "/var/run")  # noqa: S108
    yield from ("--bind", sources.workspace, WORKSPACE, "--bind", sources.home, AGENT_HOME)
    for mount, source in zip(spec.mounts, sources.mounts, strict=True):
        yield from ("--bind" if mount.writable else "--ro-bind", source, mount.target)
    for memory in spec.memory_mounts:
        yield from ("--perms", "0755", "--size", str(memory.size), "--tmpfs", memory.target)
    yield from ("--ro-bind", sources.guest, GUEST_PATH)


def open_public_file(base: Path, name: str) -> int | None:
    """A small file that every user may read, opened; None for anything else. No link below `base` is followed.

    Package managers replace such a file, and do not write into it: a bind would not show the new one either.
    """
    *folders, last = name.split("/")
    at = os.open(base, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            inner = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = inner
            if not os.fstat(at).st_mode & stat.S_IXOTH:
                return None
        if not _is_public(os.stat(last, dir_fd=at, follow_symlinks=False)):
            return None
        found = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    except OSError:
        return None
    finally:
        os.close(at)
    if _is_public(os.fstat(found)):
        return found
    os.close(found)
    return None


def _is_public(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and bool(found.st_mode & stat.S_IROTH) and found.st_size <= MAX_COPIED


def _copy_entry(found: Path, source: str, target: str) -> Iterator[str]:
    """Bind a file or folder; copy a link as a link, so that /bin is the same inside. What is missing is left out."""
    if found.is_symlink():
        yield from ("--symlink", str(found.readlink()), target)
    elif os.access(found, os.R_OK):
        yield from ("--ro-bind", source, target)


def _devices(spec: ComputerSpec, sources: BindSources) -> Iterator[str]:
    yield from ("--dev", "/dev")
    for device, source in zip(spec.devices, sources.devices, strict=True):
        yield from ("--dev-bind", source, device.target)
    yield from ("--perms", "1777", "--size", str(tmp_size(spec.limits)), "--tmpfs", "/dev/shm")  # noqa: S108
    yield from ("--remount-ro", "/dev")


def _proc() -> Iterator[str]:
    yield from ("--proc", "/proc")
    for name in MASKED_FILES:
        if Path("/proc", name).exists():
            # The bind does not allow devices, so opening the file fails.
            yield from ("--ro-bind", "/dev/null", f"/proc/{name}")
    for name in MASKED_FOLDERS:
        if Path("/proc", name).is_dir():
            yield from (
                "--perms",
                "0555",
                "--size",
                "4096",
                "--tmpfs",
                f"/proc/{name}",
                "--remount-ro",
                f"/proc/{name}",
            )


def describe_environment(spec: ComputerSpec) -> Iterator[str]:
    yield "--clearenv"
    for name, value in {**BASE_ENVIRONMENT, **spec.environment}.items():
        yield from ("--setenv", name, value)
