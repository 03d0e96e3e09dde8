"""Builds the walls and starts the guest behind them. Blocking: the computer's own thread does this."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from freehold.computer.backend import Isolation
from freehold.computer.cgroups import Cgroup, find_parents, make_cgroup, sweep_stale
from freehold.computer.credentials import act_as
from freehold.computer.isolation import SESSIONS_APART, Tools, diagnose, find_tools, keeps_sessions_apart
from freehold.computer.layout import Sources, describe_environment, describe_etc, describe_root
from freehold.computer.limits import apply_rlimits, describe_mechanisms
from freehold.computer.ownership import claim_folder
from freehold.computer.seccomp import compile_filters
from freehold.computer.spec import AGENT_GID, AGENT_UID, GUEST_PATH, HELD_PORTS, WORKSPACE, ComputerSpec
from freehold.computer.stage import stage_sources
from freehold.errors import FreeholdError

PATIENCE = 10.0
MAX_WORDS = 64 * 1024

# Enters the groups while it still may, then becomes the next program.
ENTER_GROUPS = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 125; shift; done; shift; exec "$@"'

# What `python3 GUEST_PATH` does, without the modules that Python loads to find out that it is an archive.
RUN_ARCHIVE = f"import zipimport;exec(zipimport.zipimporter({GUEST_PATH!r}).get_code('__main__'))"
PYTHON = ("/usr/bin/python3", "-I", "-S", "-E", "-c", RUN_ARCHIVE, "--listen")
NAMESPACES = ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup")
NONE = "0" * 16
EXPECTED = {"NoNewPrivs": "1", "Seccomp": "2", "CapEff": NONE, "CapPrm": NONE, "CapBnd": NONE, "CapAmb": NONE}


@dataclass(frozen=True)
class Order:
    """What is to be sealed: the spec, the listening descriptor the guest inherits, its zipapp, and who it is on the host."""

    spec: ComputerSpec
    listener: int
    guest: Path
    uid: int


@dataclass(frozen=True)
class Sealed:
    """A guest behind its walls, with the handles to end it. `helper` is bubblewrap itself, outside of the walls."""

    helper: subprocess.Popen[bytes]
    guest: int
    cgroup: Cgroup | None
    isolation: Isolation

    def end(self) -> None:
        """Ending the helper ends pid 1, and the kernel ends everything else in its namespace."""
        with contextlib.suppress(ProcessLookupError):
            self.helper.kill()
        if self.cgroup is not None:
            self.cgroup.kill()

    def clear_away(self) -> None:
        """Returns when nothing is left of it, process or group."""
        self.end()
        _clear_away(self.helper, self.cgroup)


def seal(order: Order) -> Sealed:
    """Starts the guest. Raises rather than leave a wall out, and leaves nothing behind when it does.

    A root caller's thread changes its mount namespace for good: it is to be a thread of the computer's own.
    """
    tools = find_tools()
    parents = find_parents()
    sweep_stale(parents)
    cgroup = make_cgroup(order.spec.limits, parents)
    helper: subprocess.Popen[bytes] | None = None
    try:
        mechanisms = describe_mechanisms(cgroup)
        filters = compile_filters(nameless_files=mechanisms["memory"] != "watch")
        helper, told = _start(order, tools, filters, cgroup, _gather_sources(order))
        guest = _find_guest(helper, told, tools)
        walls = _await_walls(helper, guest, order.uid, tools)
        act_as(order.uid, lambda: apply_rlimits(guest, order.spec.limits, mechanisms))
    except BaseException:
        if helper is not None:
            helper.kill()
        _clear_away(helper, cgroup)
        raise
    return Sealed(helper, guest, cgroup, Isolation("bubblewrap", tools.version, order.uid, walls, mechanisms))


def _clear_away(helper: subprocess.Popen[bytes] | None, cgroup: Cgroup | None) -> None:
    if helper is not None:
        helper.wait()
        if helper.stderr is not None:
            helper.stderr.close()
    deadline = time.monotonic() + PATIENCE
    while cgroup is not None and not cgroup.remove() and time.monotonic() < deadline:
        cgroup.kill()
        time.sleep(0.005)


def _gather_sources(order: Order) -> Sources:
    spec = order.spec
    paths: list[Path] = [spec.workspace, spec.home, order.guest, *(mount.source for mount in spec.mounts)]
    if spec.image is not None:
        paths.append(spec.image)
    if os.geteuid() == 0:
        claim_folder(spec.workspace, order.uid)
        claim_folder(spec.home, order.uid)
        places = stage_sources(paths)
    else:
        places = [str(path.absolute()) for path in paths]
    mounts = tuple(places[3 : 3 + len(spec.mounts)])
    return Sources(places[0], places[1], places[2], mounts, places[-1] if spec.image is not None else None)


def _start(
    order: Order, tools: Tools, filters: Sequence[bytes], cgroup: Cgroup | None, sources: Sources
) -> tuple[subprocess.Popen[bytes], bytes]:
    info, info_inside = os.pipe()
    handed = [info_inside]
    try:
        arguments = _describe(order, filters, sources, info_inside, handed)
        helper = subprocess.Popen(
            [
                *_descend(order, tools, cgroup),
                tools.bwrap,
                "--args",
                str(arguments),
                "--",
                *PYTHON,
                str(order.listener),
                "--hold",
                ",".join(map(str, HELD_PORTS)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin"},
            cwd="/",
            pass_fds=[*handed, order.listener],
            start_new_session=True,
        )
    except BaseException:
        os.close(info)
        raise
    finally:
        for descriptor in handed:
            os.close(descriptor)
    with os.fdopen(info, "rb") as answer:
        return helper, answer.read()


def _find_guest(helper: subprocess.Popen[bytes], told: bytes, tools: Tools) -> int:
    if not told:
        raise _explain_failure(helper, tools)
    return int(json.loads(told)["child-pid"])


def _descend(order: Order, tools: Tools, cgroup: Cgroup | None) -> list[str]:
    """The programs on the way down: into the groups, then out of every privilege, for good."""
    steps: list[str] = []
    if cgroup is not None:
        steps += ["/bin/sh", "-c", ENTER_GROUPS, "sh", *map(str, cgroup.entrances), "--"]
    steps += [tools.setpriv, "--no-new-privs"]
    if os.geteuid() == 0:
        steps += [f"--reuid={order.uid}", f"--regid={order.uid}", "--clear-groups", "--inh-caps=-all"]
    return steps


def _describe(order: Order, filters: Sequence[bytes], sources: Sources, info: int, handed: list[int]) -> int:
    """The sandbox's arguments, in a file that only it can read: an environment does not belong on a command line."""

    def hand_over(content: bytes) -> str:
        descriptor = os.memfd_create("freehold")
        handed.append(descriptor)
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return str(descriptor)

    spec = order.spec
    words = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session", "--as-pid-1"]
    words += ["--uid", str(AGENT_UID), "--gid", str(AGENT_GID), "--hostname", spec.hostname]
    words += ["--cap-drop", "ALL", "--info-fd", str(info)]
    for program in filters:
        words += ["--add-seccomp-fd", hand_over(program)]
    words += describe_root(spec, sources)
    for path, content in describe_etc(spec.hostname).items():
        words += ["--perms", "0444", "--file", hand_over(content.encode()), path]
    words += ["--remount-ro", "/", "--chdir", WORKSPACE, *describe_environment(spec)]
    return int(hand_over(b"".join(os.fsencode(word) + b"\0" for word in words)))


def _await_walls(helper: subprocess.Popen[bytes], guest: int, uid: int, tools: Tools) -> tuple[str, ...]:
    """Looks at the guest from outside until the kernel says that it is sealed, so that what is told is what is."""
    deadline = time.monotonic() + PATIENCE
    missing = "no answer"
    while time.monotonic() < deadline:
        if helper.poll() is not None:
            raise _explain_failure(helper, tools)
        try:
            missing = find_missing_wall(guest, uid)
        except OSError:
            continue
        if not missing:
            namespaces = (f"{name} namespace" for name in NAMESPACES)
            walls = (*namespaces, "no new privileges", "no capabilities", "filtered system calls")
            return (*walls, SESSIONS_APART) if keeps_sessions_apart() else walls
        time.sleep(0.001)
    raise FreeholdError(
        "computer.no-isolation",
        f"The sandbox did not build all walls within {PATIENCE:.0f} s: {missing}",
        hint="Run freehold doctor to see which wall is missing",
    )


def find_missing_wall(pid: int, uid: int) -> str:
    """The first wall that the kernel does not (yet) show around a process, or nothing."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    for name, expected in EXPECTED.items():
        if status[name] != expected:
            return f"{name} is {status[name]}"
    if {int(word) for word in status["Uid"].split()} != {uid}:
        return f"uid is {status['Uid']}"
    for name in NAMESPACES:
        # A guest that already forbade looking into it shows no links to an owner without root; the empty bounding set
        # seen above exists in a user namespace of its own only.
        with contextlib.suppress(PermissionError):
            if Path(f"/proc/{pid}/ns/{name}").readlink() == Path(f"/proc/self/ns/{name}").readlink():
                return f"the {name} namespace is the host's"
    return ""


def hears(pid: int, number: signal.Signals) -> bool:
    """Whether a guest has set itself up to be told of this signal; before that the kernel drops it, as for any pid 1."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    (mask,) = (line.split()[1] for line in lines if line.startswith("SigBlk:"))
    return bool(int(mask, 16) >> (number - 1) & 1)


def _explain_failure(helper: subprocess.Popen[bytes], tools: Tools) -> FreeholdError:
    helper.kill()
    words = b"" if helper.stderr is None else helper.stderr.read(MAX_WORDS)
    return diagnose(words.decode(errors="replace"), tools.bwrap).error()
