"""The plan of a virtual machine's inside, as `vm_init.py` carries it out, and the folders that are shared with it."""

import os
import resource
from pathlib import Path
from typing import Any

from freehold.computer.contract.conventions import (
    AGENT_GID,
    AGENT_HOME,
    AGENT_UID,
    BASE_ENVIRONMENT,
    GUEST_PATH,
    GUEST_PYTHON,
    RESERVED_PORTS,
    WORKSPACE,
)
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.walls.bind_stage import STAGE, StagedBind
from freehold.computer.walls.inside import (
    MASKED_FILES,
    MASKED_FOLDERS,
    RUN_SIZE,
    SHARED_ETC,
    TOP_LEVEL,
    describe_etc,
    tmp_size,
)

SHARE = STAGE / "share"
SYSTEM = STAGE / "system"
REMOTE = STAGE / "remote"
"""What is mounted below it after the start reaches the machine: its folders are shared by a program of their own."""
PERIOD = 100_000
READ_ONLY_PROC = ("bus", "irq", "sys", "sysrq-trigger")
RUN_ARCHIVE = f"import zipimport;exec(zipimport.zipimporter({GUEST_PATH!r}).get_code('__main__'))"


def describe_share(spec: ComputerSpec, guest: Path) -> list[StagedBind]:
    """Everything of the host that the machine can reach: below SHARE and REMOTE, and below SYSTEM without an image."""
    binds = [
        StagedBind(spec.workspace, "share/workspace"),
        StagedBind(spec.home, "share/home"),
        StagedBind(guest, "share/guest.pyz", read_only=True),
    ]
    for number, mount in enumerate(spec.mounts):
        if mount.follows:  # what is mounted there may be written to or not, as it says itself
            binds.append(StagedBind(mount.source, f"remote/{number}"))
        else:
            binds.append(StagedBind(mount.source, f"share/mount-{number}", read_only=not mount.writable))
    if spec.image is None:
        for name in ("usr", *TOP_LEVEL, *(f"etc/{each}" for each in SHARED_ETC)):
            found = Path("/", name)
            if not found.is_symlink() and os.access(found, os.R_OK):
                binds.append(StagedBind(found, f"system/{name}", read_only=True))
    return binds


def link_system() -> None:
    """The symbolic links of this machine's system, below SYSTEM. Call it in the thread that has the stage."""
    for name in (*TOP_LEVEL, *(f"etc/{each}" for each in SHARED_ETC)):
        found = Path("/", name)
        place = SYSTEM / name
        if found.is_symlink() and not place.parent.is_mount():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(found.readlink())


def plan_inside(spec: ComputerSpec, filters: list[bytes], max_files: int) -> dict[str, Any]:
    """`max_files` is how many files the shares can know at once."""
    limits = spec.limits
    quota = max(1000, int(limits.cpus * PERIOD))
    return {
        "system": ["usr", *TOP_LEVEL, *(f"etc/{name}" for name in SHARED_ETC)],
        "tmp": tmp_size(limits),
        "run": RUN_SIZE,
        "etc": dict(describe_etc(spec.hostname)),
        "binds": [
            ["workspace", WORKSPACE, False],
            ["home", AGENT_HOME, False],
            ["guest.pyz", GUEST_PATH, True],
            *(
                [f"mount-{number}", mount.target, not mount.writable]
                for number, mount in enumerate(spec.mounts)
                if not mount.follows
            ),
        ],
        "remote": [[str(number), mount.target] for number, mount in enumerate(spec.mounts) if mount.follows],
        "memory": [[one.target, one.size] for one in spec.memory_mounts],
        "group": {
            "memory.max": str(limits.memory),
            "pids.max": str(limits.processes),
            "cpu.max": f"{quota} {PERIOD}",
        },
        "masked_files": list(MASKED_FILES),
        "masked_folders": list(MASKED_FOLDERS),
        "read_only_proc": list(READ_ONLY_PROC),
        "max_files": max_files,
        "hostname": spec.hostname,
        "uid": AGENT_UID,
        "gid": AGENT_GID,
        "file_size": limits.file_size,
        "rlimits": {
            "RLIMIT_NOFILE": [limits.open_files] * 2,
            "RLIMIT_FSIZE": [limits.file_size] * 2,
            "RLIMIT_CORE": [1, 1],
            "RLIMIT_MEMLOCK": [8 * 1024 * 1024] * 2,
            "RLIMIT_MSGQUEUE": [819_200] * 2,
            "RLIMIT_SIGPENDING": [4096] * 2,
            "RLIMIT_NICE": [0, 0],
            "RLIMIT_RTPRIO": [0, 0],
            "RLIMIT_NPROC": [resource.RLIM_INFINITY] * 2,
        },
        "filters": [program.hex() for program in filters],
        "folder": WORKSPACE,
        "environment": {**BASE_ENVIRONMENT, **spec.environment},
        "command": [
            GUEST_PYTHON, "-I", "-S", "-E", "-c", RUN_ARCHIVE, "--listen", "LISTENER", "--hold",
            ",".join(map(str, RESERVED_PORTS)),
        ],
    }  # fmt: skip
