"""A container as the engine is asked for it: its root, its folders, its limits."""

import contextlib
import functools
import io
import os
import resource
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from freehold.computer.contract.conventions import AGENT_HOME, BASE_ENVIRONMENT, GUEST_PATH, WORKSPACE
from freehold.computer.contract.spec import ComputerSpec, Limits, Mount
from freehold.computer.engine.handover import COMMAND, FOLDER_INSIDE
from freehold.computer.walls.inside import (
    MASKED_FILES,
    MASKED_FOLDERS,
    RUN_SIZE,
    SHARED_ETC,
    TOP_LEVEL,
    describe_etc,
    tmp_size,
)
from freehold.errors import FreeholdError

EMPTY_FOLDERS = (
    "dev",
    "etc",
    "home/agent",
    "mnt",
    "opt/freehold",
    "proc",
    "run",
    "sys",
    "tmp",
    "usr",
    "var",
    "workspace",
)
LINKS = {"var/tmp": "../tmp", "var/run": "../run"}
MAX_PROCESSES = 16_384
READ_ONLY_PROC = ("bus", "irq", "sys", "sysrq-trigger")


def pack_empty_root() -> bytes:
    """A root without files, for a computer that sees this machine's /usr. The same machine gives the same bytes."""
    links = dict(LINKS)
    for name in (*TOP_LEVEL, *(f"etc/{each}" for each in SHARED_ETC)):
        with contextlib.suppress(OSError):  # it is no link
            links[name] = os.readlink(f"/{name}")  # noqa: PTH115 - in every start
    return _pack_links(tuple(sorted(links.items())))


@functools.cache
def _pack_links(links: tuple[tuple[str, str], ...]) -> bytes:
    packed = io.BytesIO()
    names = [name for name, _ in links]
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        folders = {parent for name in (*EMPTY_FOLDERS, *names) for parent in map(str, Path(name).parents)} - {"."}
        for name in sorted({*EMPTY_FOLDERS, *folders}):
            head = tarfile.TarInfo(name)
            # The engine gives a tmpfs the mode of the folder that it covers.
            head.type, head.mode = tarfile.DIRTYPE, 0o1777 if name in ("run", "tmp") else 0o755
            tar.addfile(head)
        for name, target in links:
            head = tarfile.TarInfo(name)
            head.type, head.linkname, head.mode = tarfile.SYMTYPE, target, 0o777
            tar.addfile(head)
    return packed.getvalue()


def describe_container(
    spec: ComputerSpec,
    *,
    image: str,
    uid: int,
    guest: Path,
    handover: Path,
    profile: str,
    labels: Mapping[str, str],
) -> dict[str, Any]:
    """The body of the request that creates the container. `handover` also gets the files of /etc.

    `profile` is the system-call filter as this engine takes it.

    Nothing that an image asks for is left to it: neither its program, user and environment nor its health check, which
    the engine would run beside the guest and outside of its filters.
    """
    environment = {**BASE_ENVIRONMENT, **spec.environment}
    binds = [
        *(_describe_system() if spec.image is None else ()),
        *_write_etc(spec.hostname, uid, handover),
        _describe_bind(handover, FOLDER_INSIDE, "ro"),
        _describe_bind(guest, GUEST_PATH, "ro"),
        _describe_bind(spec.workspace, WORKSPACE),
        _describe_bind(spec.home, AGENT_HOME),
        *(_describe_mount(one) for one in spec.mounts),
    ]
    return {
        "Image": image,
        "User": f"{uid}:{uid}",
        "Hostname": spec.hostname,
        "WorkingDir": WORKSPACE,
        "Entrypoint": list(COMMAND),
        "Cmd": sorted(environment),
        "Env": [f"{name}={value}" for name, value in environment.items()],
        "NetworkDisabled": True,
        "AttachStdout": False,
        "AttachStderr": False,
        "Healthcheck": {"Test": ["NONE"]},
        "Labels": dict(labels),
        "HostConfig": {"Binds": binds, **_describe_walls(spec, profile), **_describe_limits(spec)},
    }


def _describe_walls(spec: ComputerSpec, profile: str) -> dict[str, Any]:
    tmp = tmp_size(spec.limits)
    return {
        "NetworkMode": "none",
        "ReadonlyRootfs": True,
        "CapDrop": ["ALL"],
        "Init": False,
        "AutoRemove": False,
        "Privileged": False,
        "SecurityOpt": ["no-new-privileges", f"seccomp={profile}"],
        "MaskedPaths": [*(f"/proc/{name}" for name in (*MASKED_FILES, *MASKED_FOLDERS)), "/sys", "/dev/mqueue"],
        "ReadonlyPaths": [f"/proc/{name}" for name in READ_ONLY_PROC],
        "Tmpfs": {
            "/tmp": _describe_memory(tmp),  # noqa: S108
            "/run": _describe_memory(RUN_SIZE),
            **{one.target: _describe_memory(one.size) for one in spec.memory_mounts},
        },
        "ShmSize": tmp,
        "IpcMode": "private",
        "CgroupnsMode": "private",
        "LogConfig": {"Type": "none"},
    }


def _describe_memory(size: int) -> str:
    """An engine allows no programs there unless it is told: isolates of JavaScript load their addon from /tmp."""
    return f"rw,exec,nosuid,nodev,size={size},mode=1777"


def _describe_limits(spec: ComputerSpec) -> dict[str, Any]:
    limits = spec.limits
    return {
        "Memory": limits.memory,
        "MemorySwap": limits.memory,
        "PidsLimit": limits.processes,
        "NanoCpus": int(min(limits.cpus, os.cpu_count() or 1) * 1e9),
        "Ulimits": _describe_ulimits(limits),
    }


def _describe_mount(mount: Mount) -> str:
    return _describe_bind(
        mount.source, mount.target, *(() if mount.writable else ("ro",)), *(("rslave",) if mount.follows else ())
    )


def _describe_bind(source: Path, target: str, *options: str) -> str:
    """Raises `computer.bad-folder` for a path that the engine would read as two."""
    if ":" in f"{source.absolute()}{target}":
        raise FreeholdError(
            "computer.bad-folder",
            f"{source.absolute()} cannot be shown at {target}: an engine takes no path with a colon",
            hint="Give the folder another name, or use another backend",
        )
    return ":".join([str(source.absolute()), target, *((",".join(options),) if options else ())])


def _describe_ulimits(limits: Limits) -> list[dict[str, str | int]]:
    """The number of processes is limited by the group. The engine's own default may be more than it can give."""
    wanted = {
        "nofile": (resource.RLIMIT_NOFILE, limits.open_files),
        "fsize": (resource.RLIMIT_FSIZE, limits.file_size),
        "core": (resource.RLIMIT_CORE, 1),
        "nproc": (resource.RLIMIT_NPROC, MAX_PROCESSES),
    }
    found: list[dict[str, str | int]] = []
    for name, (kind, value) in wanted.items():
        _, ceiling = resource.getrlimit(kind)
        bound = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
        found.append({"Name": name, "Soft": bound, "Hard": bound})
    return found


def _describe_system() -> Iterator[str]:
    yield "/usr:/usr:ro"
    for name in (*TOP_LEVEL, *(f"etc/{each}" for each in SHARED_ETC)):
        found = Path("/", name)
        if not found.is_symlink() and os.access(found, os.R_OK):
            yield f"{found}:/{name}:ro"


def _write_etc(hostname: str, uid: int, folder: Path) -> list[str]:
    """The files of /etc that are made for the computer. Inside, the agent has the uid that it has on the host."""
    binds = []
    for path, content in describe_etc(hostname, uid).items():
        file = folder / Path(path).name
        file.write_text(content)
        file.chmod(0o444)
        binds.append(f"{file}:{path}:ro")
    return binds
