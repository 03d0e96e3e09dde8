"""Builds the walls and starts the guest behind them. Blocking: runs in the thread of the computer."""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from freehold.computer.bubblewrap.layout import BindSources, describe_environment, describe_root, image_folder
from freehold.computer.bubblewrap.requirements import SandboxTools, explain_bwrap_error, find_tools
from freehold.computer.contract.conventions import (
    AGENT_GID,
    AGENT_UID,
    GUEST_PATH,
    GUEST_PYTHON,
    RESERVED_PORTS,
    WORKSPACE,
)
from freehold.computer.contract.report import Isolation
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.walls.bind_stage import stage_sources
from freehold.computer.walls.cgroups import Cgroup, find_parents, make_cgroup, remove_stale_cgroups
from freehold.computer.walls.credentials import call_as_uid, start_as_uid
from freehold.computer.walls.inside import describe_etc
from freehold.computer.walls.landlock import SESSIONS_APART, can_separate_sessions
from freehold.computer.walls.limit_watch import apply_rlimits, describe_mechanisms
from freehold.computer.walls.ownership import chown_tree
from freehold.computer.walls.project_quota import ProjectQuota, use_project_quota
from freehold.computer.walls.seccomp import compile_filters
from freehold.errors import FreeholdError

START_TIMEOUT = 10.0
MAX_STDERR = 64 * 1024

# Does what `python3 GUEST_PATH` does, without the modules that Python loads to detect an archive.
RUN_ARCHIVE = f"import zipimport;exec(zipimport.zipimporter({GUEST_PATH!r}).get_code('__main__'))"
PYTHON = (GUEST_PYTHON, "-I", "-S", "-E", "-c", RUN_ARCHIVE, "--listen")
NAMESPACES = ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup")
NONE = "0" * 16
UNPRIVILEGED = {"NoNewPrivs": "1", "CapInh": NONE, "CapEff": NONE, "CapPrm": NONE, "CapAmb": NONE}
EXPECTED = {**UNPRIVILEGED, "CapBnd": NONE, "Seccomp": "2"}


@dataclass(frozen=True)
class SandboxOrder:
    """What to start: the spec, the listening descriptor for the guest, the guest archive, and the uid on the host."""

    spec: ComputerSpec
    listener: int
    guest: Path
    uid: int


@dataclass(frozen=True)
class Sandbox:
    """A running guest and the handles to end it. `helper` is the bubblewrap process, which is outside of the walls."""

    helper: subprocess.Popen[bytes]
    guest: int
    cgroup: Cgroup | None
    quota: ProjectQuota | None
    isolation: Isolation

    def kill(self) -> None:
        """Kill the helper. That kills pid 1, and the kernel kills everything else in its namespace."""
        with contextlib.suppress(ProcessLookupError):
            self.helper.kill()
        if self.cgroup is not None:
            self.cgroup.kill()

    def remove(self) -> None:
        """Kill it and return when no process and no cgroup is left."""
        self.kill()
        _remove(self.helper, self.cgroup)


def start_sandbox(order: SandboxOrder) -> Sandbox:
    """Start the guest. Raises if a wall cannot be built, and then leaves nothing behind.

    If root calls this, the mount namespace of the calling thread changes permanently: use a thread of its own.
    """
    tools = find_tools()
    parents = find_parents()
    cgroup = make_cgroup(order.spec.limits, parents)
    helper: subprocess.Popen[bytes] | None = None
    try:
        # Before the thread enters a mount namespace of its own.
        quota = use_project_quota((order.spec.workspace, order.spec.home), order.spec.limits)
        mechanisms = describe_mechanisms(cgroup, quota)
        filters = compile_filters(nameless_files=mechanisms["memory"] != "watch")
        sources = _gather_sources(order)
        descent = [] if cgroup is None else cgroup.entering_command_of_version_2()
        with contextlib.nullcontext() if cgroup is None else cgroup.entered(parents):
            helper, child_info = _start_bwrap(order, tools, filters, sources, descent)
        with os.fdopen(child_info, "rb") as answer:
            remove_stale_cgroups(parents)  # while bubblewrap builds the walls
            guest = _find_guest(helper, answer.read(), tools)
        walls = _await_walls(helper, guest, order.uid, tools)
        call_as_uid(order.uid, lambda: apply_rlimits(guest, order.spec.limits, mechanisms))
    except BaseException:
        if helper is not None:
            helper.kill()
        _remove(helper, cgroup)
        raise
    isolation = Isolation("bubblewrap", tools.version, f"uid {order.uid}", walls, mechanisms)
    return Sandbox(helper, guest, cgroup, quota, isolation)


def _remove(helper: subprocess.Popen[bytes] | None, cgroup: Cgroup | None) -> None:
    if helper is not None:
        helper.wait()
        if helper.stderr is not None:
            helper.stderr.close()
    deadline = time.monotonic() + START_TIMEOUT
    while cgroup is not None and not cgroup.remove() and time.monotonic() < deadline:
        cgroup.kill()
        time.sleep(0.005)


def _gather_sources(order: SandboxOrder) -> BindSources:
    spec = order.spec
    paths: list[Path] = [spec.workspace, spec.home, order.guest, *(mount.source for mount in spec.mounts)]
    paths += [device.source for device in spec.devices]
    if spec.image is not None:
        paths.append(image_folder(spec))
    if os.geteuid() == 0:
        chown_tree(spec.workspace, order.uid)
        chown_tree(spec.home, order.uid)
        places = stage_sources(paths)
    else:
        places = [str(path.absolute()) for path in paths]
    mounted = 3 + len(spec.mounts)
    mounts, devices = tuple(places[3:mounted]), tuple(places[mounted : mounted + len(spec.devices)])
    image = places[-1] if spec.image is not None else None
    return BindSources(places[0], places[1], places[2], mounts, image, devices)


def _start_bwrap(
    order: SandboxOrder, tools: SandboxTools, filters: Sequence[bytes], sources: BindSources, descent: Sequence[str]
) -> tuple[subprocess.Popen[bytes], int]:
    """The process, and the pipe in which bubblewrap reports its child: JSON, or nothing if it failed.

    `descent` joins groups with the privileges of this process, which are dropped after it.
    """
    info, info_inside = os.pipe()
    handed = [info_inside]
    helper: subprocess.Popen[bytes] | None = None
    try:
        arguments = _write_arguments(order, filters, sources, info_inside, handed)
        steps = [*descent, *_drop_privileges(order, tools)] if descent else []
        with contextlib.nullcontext() if descent else start_as_uid(order.uid):
            helper = _spawn(order, tools, [*steps, tools.bwrap, "--args", str(arguments)], handed)
    except BaseException:
        os.close(info)
        if helper is not None:  # it runs, but this thread could not become what it was
            helper.kill()
            _remove(helper, None)
        raise
    finally:
        for descriptor in handed:
            os.close(descriptor)
    return helper, info


def _spawn(
    order: SandboxOrder, tools: SandboxTools, command: Sequence[str], handed: Sequence[int]
) -> subprocess.Popen[bytes]:
    guest = [*PYTHON, str(order.listener), "--hold", ",".join(map(str, RESERVED_PORTS)), "--ends-with", "2"]
    try:
        return subprocess.Popen(
            [*command, "--", *guest],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin"},
            cwd="/",
            pass_fds=[*handed, order.listener],
            start_new_session=True,
        )
    except OSError as error:
        raise explain_bwrap_error(f"{tools.bwrap}: {error.strerror}", tools.bwrap).error() from error


def _find_guest(helper: subprocess.Popen[bytes], child_info: bytes, tools: SandboxTools) -> int:
    if not child_info:
        raise _explain_failure(helper, tools)
    return int(json.loads(child_info)["child-pid"])


def _drop_privileges(order: SandboxOrder, tools: SandboxTools) -> list[str]:
    """The program that drops every privilege after another one has joined the groups."""
    steps = [tools.setpriv, "--no-new-privs"]
    if os.geteuid() == 0:
        steps += [f"--reuid={order.uid}", f"--regid={order.uid}", "--clear-groups", "--inh-caps=-all"]
    return steps


def _write_arguments(
    order: SandboxOrder, filters: Sequence[bytes], sources: BindSources, info: int, handed: list[int]
) -> int:
    """Write bubblewrap's arguments to a memory file: the environment must not appear on a command line."""

    def hand_over(descriptor: int) -> str:
        handed.append(descriptor)
        return str(descriptor)

    def write(content: bytes) -> str:
        descriptor = os.memfd_create("freehold")
        number = hand_over(descriptor)
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return number

    spec = order.spec
    words = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session", "--as-pid-1"]
    words += ["--uid", str(AGENT_UID), "--gid", str(AGENT_GID), "--hostname", spec.hostname]
    words += ["--cap-drop", "ALL", "--info-fd", str(info)]
    for program in filters:
        words += ["--add-seccomp-fd", write(program)]
    words += describe_root(spec, sources, hand_over)
    for path, content in describe_etc(spec.hostname).items():
        words += ["--perms", "0444", "--file", write(content.encode()), path]
    words += ["--remount-ro", "/", "--chdir", WORKSPACE, *describe_environment(spec)]
    return int(write(b"".join(os.fsencode(word) + b"\0" for word in words)))


def _await_walls(helper: subprocess.Popen[bytes], guest: int, uid: int, tools: SandboxTools) -> tuple[str, ...]:
    """Read the guest's state from the kernel until every wall stands. Reports only what the kernel confirms."""
    deadline = time.monotonic() + START_TIMEOUT
    missing = "the guest did not appear"
    while time.monotonic() < deadline:
        if helper.poll() is not None:
            raise _explain_failure(helper, tools)
        try:
            missing = find_privilege(helper.pid, uid) or find_missing_wall(guest, uid)
        except OSError:
            continue
        if not missing:
            namespaces = (f"{name} namespace" for name in NAMESPACES)
            walls = (*namespaces, "no new privileges", "no capabilities", "filtered system calls")
            return (*walls, SESSIONS_APART) if can_separate_sessions() else walls
        time.sleep(0.001)
    raise FreeholdError(
        "computer.no-isolation",
        f"The sandbox did not build every wall within {START_TIMEOUT:.0f} s: {missing}",
        hint="Run freehold doctor to see which wall is missing",
    )


def find_missing_wall(pid: int, uid: int) -> str:
    """The first wall that the kernel does not show for a process; empty if all stand."""
    if difference := _compare_status(pid, uid, EXPECTED):
        return difference
    for name in NAMESPACES:
        # A guest that has forbidden inspection hides these links from users other than root. Its empty bounding set,
        # checked above, is only possible in a user namespace of its own.
        with contextlib.suppress(PermissionError):
            if Path(f"/proc/{pid}/ns/{name}").readlink() == Path(f"/proc/self/ns/{name}").readlink():
                return f"the {name} namespace is the host's"
    return ""


def find_privilege(pid: int, uid: int) -> str:
    """What bubblewrap, which is outside of the walls, still has of the keeper's privileges; empty if nothing."""
    return _compare_status(pid, uid, UNPRIVILEGED)


def _compare_status(pid: int, uid: int, expected: Mapping[str, str]) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    for name, value in expected.items():
        if status[name] != value:
            return f"{name} is {status[name]}"
    if {int(word) for word in status["Uid"].split()} != {uid}:
        return f"uid is {status['Uid']}"
    if os.geteuid() == 0 and (status["Groups"] or {int(word) for word in status["Gid"].split()} != {uid}):
        return f"gid is {status['Gid']}, groups are {status['Groups'] or 'none'}"
    return ""


def _explain_failure(helper: subprocess.Popen[bytes], tools: SandboxTools) -> FreeholdError:
    helper.kill()
    words = b"" if helper.stderr is None else helper.stderr.read(MAX_STDERR)
    return explain_bwrap_error(words.decode(errors="replace"), tools.bwrap).error()
