"""Judges whether a computer that somebody else started is sealed, by what the kernel says about its first process.

Nothing of an agent has run in it yet: the report comes from the first program of a new container.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from freehold.computer.attached.place_check import FOLDER_INSIDE, PAGE, check_places
from freehold.computer.attached.wall_report import WallReport, parse_status
from freehold.computer.contract.conventions import AGENT_HOME, WORKSPACE
from freehold.computer.contract.report import LimitMechanism
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.walls.inside import RUN_SIZE, tmp_size
from freehold.computer.walls.mount_table import MountEntry, parse_mounts

NONE = "0" * 16
EXPECTED = {"NoNewPrivs": "1", "Seccomp": "2", "CapEff": NONE, "CapPrm": NONE, "CapBnd": NONE, "CapAmb": NONE}
WALL_NAMES = {
    "NoNewPrivs": "programs inside can gain privileges (security_opt: no-new-privileges)",
    "Seccomp": "system calls are not filtered (security_opt: seccomp)",
}
WRITABLE_KINDS = frozenset({"proc", "sysfs", "cgroup", "cgroup2", "devpts", "mqueue"})
MEMORY_PLACES = frozenset({"/tmp", "/run", "/dev", "/dev/shm"})  # noqa: S108
NAMESPACES = ("pid", "mnt", "net", "ipc", "uts")
OF_THE_MACHINE = {"pid": "pid:[4026531836]", "uts": "uts:[4026531838]", "ipc": "ipc:[4026531839]"}
"""The kernel gives those of the machine itself always the same number."""
WALLS = (
    *(f"{name} namespace" for name in NAMESPACES),
    *("read-only root", "no new privileges", "no capabilities", "filtered system calls"),
)


def find_missing_walls(report: WallReport, spec: ComputerSpec, uid: int, link: Path) -> list[str]:
    """What is missing, in words; empty if the computer is sealed. `link` is the folder of the link."""
    table = parse_mounts(report.mounts.encode(errors="surrogateescape"))
    mounts = {one.place: one for one in table}  # the later ones cover the earlier ones
    return [
        *_check_process(report, uid),
        *_check_namespaces(report),
        *_check_network(report),
        *_check_mounts(mounts, spec),
        *check_places(report, mounts, spec, link),
        *_check_limits(report, spec),
    ]


def _check_process(report: WallReport, uid: int) -> Iterator[str]:
    status = parse_status(report.status)
    if report.pid != 1 or status.get("Pid") != "1":
        yield f"it is process {report.pid} and not the first one: it has no pid namespace of its own"
    if {status.get(name) for name in ("Uid", "Gid")} != {"\t".join([str(uid)] * 4)}:
        yield f"its user is {status.get('Uid', 'unknown').split()[:1]} and not {uid} (user)"
    if set(status.get("Groups", "").split()) - {str(uid)}:
        yield f"it is in other groups: {status['Groups']} (group_add)"
    for name, expected in EXPECTED.items():
        if status.get(name) != expected:
            yield WALL_NAMES.get(name) or f"it has capabilities: {name} is {status.get(name)} (cap_drop)"


def _check_namespaces(report: WallReport) -> Iterator[str]:
    """Each is neither Freehold's own nor the machine's. One that it shares with a third container looks like its own."""
    for name in NAMESPACES:
        found = report.namespaces.get(name, "")
        if not found:
            yield f"its {name} namespace is unknown"
        elif found in (os.readlink(f"/proc/self/ns/{name}"), OF_THE_MACHINE.get(name)):  # noqa: PTH115
            yield f"it has no {name} namespace of its own ({name})"


def _check_network(report: WallReport) -> Iterator[str]:
    names = {line.partition(":")[0].strip() for line in report.interfaces.splitlines() if ":" in line}
    if names != {"lo"}:
        yield f"it has a network: {', '.join(sorted(names - {'lo'})) or 'unknown'} (network_mode: none)"


def _check_mounts(seen: Mapping[str, MountEntry], spec: ComputerSpec) -> Iterator[str]:
    """Each mount is read-only, or a folder that the computer shall write in. An engine's socket is never there."""
    writable = {WORKSPACE, AGENT_HOME, *MEMORY_PLACES}
    writable |= {one.target for one in spec.mounts if one.writable} | {one.target for one in spec.memory_mounts}
    if "/" not in seen:
        yield "its root is unknown"
    for place, mount in seen.items():
        if place.endswith(".sock"):
            yield f"{place} is a socket of this machine (volumes)"
        elif "ro" not in mount.options and place not in writable and mount.kind not in WRITABLE_KINDS:
            covered = place.startswith(("/proc/", "/sys/", "/dev/")) and mount.kind in ("tmpfs", "devtmpfs")
            if not covered:
                yield f"{place} can be written (read_only)"
    targets = [*(one.target for one in spec.mounts), *(one.target for one in spec.memory_mounts)]
    for target in (WORKSPACE, AGENT_HOME, FOLDER_INSIDE, *targets):
        if target not in seen:
            yield f"{target} is not mounted (volumes)"
    for one in spec.mounts:
        if one.target in seen and not one.writable and "ro" not in seen[one.target].options:
            yield f"{one.target} can be written (volumes)"


def _check_limits(report: WallReport, spec: ComputerSpec) -> Iterator[str]:
    limits = spec.limits
    allowed = read_group_limits(report.cgroup)
    for name, setting, wanted in (
        ("memory", "mem_limit", float(limits.memory)),
        ("processes", "pids_limit", float(limits.processes)),
        ("cpus", "cpus", limits.cpus),
    ):
        found = allowed.get(name)
        if found is None or found > wanted:
            shown = "no limit" if found is None else f"a limit of {found:g}"
            yield f"{name} has {shown}, and computer.limits.{name} is {wanted:g} ({setting})"
    for name, title, count in (
        ("open_files", "Max open files", limits.open_files),
        ("file_size", "Max file size", limits.file_size),
    ):
        match = re.search(rf"^{title}\s+\S+\s+(\S+)", report.limits, re.MULTILINE)
        if match is None or not match[1].isdigit() or int(match[1]) > count:
            yield f"{name} has no limit of {count} (ulimits)"
    for place, size in (
        ("/tmp", tmp_size(limits)),  # noqa: S108
        ("/dev/shm", tmp_size(limits)),  # noqa: S108
        ("/run", RUN_SIZE),
    ):
        if not 0 < report.sizes.get(place, 0) <= size + PAGE:
            yield f"{place} is not a folder in memory of at most {size} bytes (tmpfs, shm_size)"


def read_group_limits(cgroup: Mapping[str, str]) -> dict[str, float]:
    """The limits of its control group. One that is missing is not limited. Both versions of control groups."""
    found: dict[str, float] = {}
    for name, places in (
        ("memory", ("memory.max", "memory/memory.limit_in_bytes")),
        ("processes", ("pids.max", "pids/pids.max")),
    ):
        for place in places:
            text = cgroup.get(place, "").strip()
            if text.isdigit() and int(text) < 1 << 60:
                found[name] = float(text)
    quota, period = (*cgroup.get("cpu.max", "").split(), "", "")[:2]
    if not quota:
        quota, period = (cgroup.get(f"cpu/cpu.cfs_{name}_us", "").strip() for name in ("quota", "period"))
    if quota.isdigit() and period.isdigit() and int(period):
        found["cpus"] = int(quota) / int(period)
    return found


def describe_limits(report: WallReport) -> Mapping[str, LimitMechanism]:
    group: LimitMechanism = "cgroup v2" if report.cgroup.get("memory.max") else "cgroup v1"
    return {
        **dict.fromkeys(("memory", "processes", "cpus"), group),
        **dict.fromkeys(("open_files", "file_size"), "rlimit"),
        **dict.fromkeys(("disk", "inodes"), "watch"),
        **dict.fromkeys(("output", "cpu_time", "wall_time"), "guest"),
        "tmp": "tmpfs",
    }
