"""The file system of a computer, as arguments for bubblewrap; and checks of the folders in a spec."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from freehold.computer.bubblewrap.ownership import check_folder_is_safe
from freehold.computer.contract.conventions import (
    AGENT_GID,
    AGENT_HOME,
    AGENT_UID,
    BASE_ENVIRONMENT,
    GUEST_PATH,
    WORKSPACE,
)
from freehold.computer.contract.spec import MIB, ComputerSpec, Limits
from freehold.errors import FreeholdError

RUN_SIZE = 16 * MIB

# Only what programs need from the host's /etc and what holds nothing private. Never /etc/profile and similar files:
# owners export keys there.
SHARED_ETC = (
    "ssl/certs",
    "ssl/openssl.cnf",
    "pki/tls/certs",
    "pki/ca-trust/extracted",
    "crypto-policies/back-ends",
    "ca-certificates.conf",
    "alternatives",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "os-release",
    "debian_version",
    "fonts",
    "mime.types",
    "protocols",
    "services",
)
TOP_LEVEL = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")

# bubblewrap itself makes /proc/sys, /proc/sysrq-trigger, /proc/irq and /proc/bus read-only.
MASKED_FILES = (
    "cmdline",
    "config.gz",
    "interrupts",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "modules",
    "sched_debug",
    "slabinfo",
    "timer_list",
    "timer_stats",
    "vmallocinfo",
)
MASKED_FOLDERS = ("acpi", "asound", "driver", "dynamic_debug", "firmware", "fs", "scsi")
RESERVED_TARGETS = ("/", "/dev", "/etc", "/proc", "/run", "/sys", "/tmp", "/usr", "/opt/freehold")  # noqa: S108


@dataclass(frozen=True)
class BindSources:
    """The paths that the sandbox binds: the originals, or the places where they were staged for it."""

    workspace: str
    home: str
    guest: str
    mounts: tuple[str, ...]
    image: str | None


def check_mounts(spec: ComputerSpec) -> None:
    """Refuse a mount that would cover a part of the computer or another mount."""
    taken: set[str] = set()
    for mount in spec.mounts:
        target = PurePosixPath(mount.target)
        wrong = ""
        if not target.is_absolute() or ".." in target.parts or "\0" in mount.target:
            wrong = "is not an absolute path inside the computer"
        elif str(target) in (WORKSPACE, AGENT_HOME, "/home") or _is_reserved(target):
            wrong = "is reserved for the computer"
        elif str(target) in taken:
            wrong = "is mounted twice"
        elif not mount.source.exists():
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


def _is_reserved(target: PurePosixPath) -> bool:
    top = "/" + target.parts[1] if len(target.parts) > 1 else "/"
    return top in RESERVED_TARGETS or top[1:] in TOP_LEVEL or str(target).startswith("/opt/freehold")


def describe_root(spec: ComputerSpec, sources: BindSources) -> Iterator[str]:
    """Folders, binds and masks, in the order in which bubblewrap creates them."""
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
        yield from _copy_entry(base / "etc" / name, f"{shown}/etc/{name}", f"/etc/{name}")
    yield from _devices(spec.limits)
    yield from _proc()
    for target, mode, size in (("/tmp", "1777", tmp_size(spec.limits)), ("/run", "0755", RUN_SIZE)):  # noqa: S108
        yield from ("--perms", mode, "--size", str(size), "--tmpfs", target)
    yield from ("--symlink", "../tmp", "/var/tmp", "--symlink", "../run", "/var/run")  # noqa: S108
    yield from ("--bind", sources.workspace, WORKSPACE, "--bind", sources.home, AGENT_HOME)
    for mount, source in zip(spec.mounts, sources.mounts, strict=True):
        yield from ("--bind" if mount.writable else "--ro-bind", source, mount.target)
    yield from ("--ro-bind", sources.guest, GUEST_PATH)


def _copy_entry(found: Path, source: str, target: str) -> Iterator[str]:
    """Bind a file or folder; copy a link as a link, so that /bin is the same inside. What is missing is left out."""
    if found.is_symlink():
        yield from ("--symlink", str(found.readlink()), target)
    elif os.access(found, os.R_OK):
        yield from ("--ro-bind", source, target)


def _devices(limits: Limits) -> Iterator[str]:
    yield from ("--dev", "/dev")
    yield from ("--perms", "1777", "--size", str(tmp_size(limits)), "--tmpfs", "/dev/shm")  # noqa: S108
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


def tmp_size(limits: Limits) -> int:
    """At most a quarter of the memory: temporary files use memory that no killed process would free."""
    return max(4096, min(limits.tmp, limits.memory // 4))


def describe_etc(hostname: str) -> Mapping[str, str]:
    """The files of /etc that are made for the computer."""
    return {
        "/etc/passwd": (
            "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
            f"agent:x:{AGENT_UID}:{AGENT_GID}:agent:{AGENT_HOME}:/bin/bash\n"
            "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        ),
        "/etc/group": f"root:x:0:\nagent:x:{AGENT_GID}:\nnogroup:x:65534:\n",
        "/etc/hosts": f"127.0.0.1 localhost {hostname}\n::1 localhost ip6-localhost\n",
        "/etc/hostname": f"{hostname}\n",
        "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n",
        # Without a name server the C library asks 127.0.0.1, where none listens.
        "/etc/resolv.conf": "",
    }


def describe_environment(spec: ComputerSpec) -> Iterator[str]:
    yield "--clearenv"
    for name, value in {**BASE_ENVIRONMENT, **spec.environment}.items():
        yield from ("--setenv", name, value)
