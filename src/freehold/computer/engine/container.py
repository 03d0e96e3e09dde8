"""Starts a container and checks its walls. Blocking: runs in the thread of the computer."""

import contextlib
import hashlib
import json
import os
import re
import secrets
import select
import signal
import socket
import tarfile
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from freehold.computer.contract.report import Isolation, LimitMechanism
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.engine.api import EngineApi, EngineRefused
from freehold.computer.engine.filter_profile import make_filter_profile, make_short_profile
from freehold.computer.engine.handover import Handover
from freehold.computer.engine.layout import describe_container, pack_empty_root
from freehold.computer.engine.leftovers import make_container_labels, remove_leftovers
from freehold.computer.engine.orphan_guard import OrphanedContainerGuard
from freehold.computer.walls.cgroups import Cgroup, find_group_of
from freehold.computer.walls.credentials import call_as_uid
from freehold.computer.walls.landlock import SESSIONS_APART, can_separate_sessions
from freehold.computer.walls.limit_watch import apply_rlimits, describe_mechanisms
from freehold.computer.walls.mount_table import read_mounts
from freehold.computer.walls.ownership import chown_tree
from freehold.computer.walls.seccomp import compile_filters
from freehold.errors import FreeholdError

EMPTY_REPOSITORY = "localhost/freehold-empty"
START_TIMEOUT = 20.0
NAMESPACES = ("pid", "mnt", "net", "ipc", "uts", "cgroup")
NONE = "0" * 16
EXPECTED = {"NoNewPrivs": "1", "Seccomp": "2", "CapEff": NONE, "CapPrm": NONE, "CapBnd": NONE, "CapAmb": NONE}
NEEDS_PYTHON = "The image must have a working /usr/bin/python3"
PENDING = ("NoNewPrivs", "Seccomp", "its process")
FROM_CGROUP = ("memory", "processes", "cpus")


@dataclass(frozen=True)
class ContainerOrder:
    """What to start, with the listening socket for the guest, its path, the guest archive and the uid of the computer."""

    spec: ComputerSpec
    listener: socket.socket
    link: Path
    guest: Path
    uid: int


@dataclass(frozen=True)
class Container:
    """A running container and the handles to end it. `errors` is the end of the guest's standard error that is read.

    `process` is a handle to its first process, which never means another one.
    """

    api: EngineApi
    name: str
    pid: int
    process: int
    cgroup: Cgroup | None
    isolation: Isolation
    errors: int
    _cleanup: contextlib.ExitStack

    def remove(self) -> None:
        """Kill it and return when the engine has nothing left of it, or does not answer: then it is only killed."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(self.process, signal.SIGKILL)
        self._cleanup.close()
        os.close(self.errors)
        os.close(self.process)


def start_container(api: EngineApi, order: ContainerOrder) -> Container:
    """Start the guest. Raises if a wall cannot be built, and then leaves nothing behind.

    What does not wait for another is asked of the engine at the same time.
    """
    filters = compile_filters()
    # Without an image pid 1 is ours, and where the kernel counts its filters they are awaited.
    confirms = order.spec.image is None and count_filters(os.getpid()) is not None
    name = f"freehold-{secrets.token_hex(6)}"
    with (
        contextlib.ExitStack() as handles,
        contextlib.ExitStack() as cleanup,
        ThreadPoolExecutor(3, thread_name_prefix="engine") as beside,
    ):
        finding = beside.submit(find_image, api, order.spec.image)
        clearing = beside.submit(_remove_leftovers, api, order.link, name)
        asking = beside.submit(api.version)
        handover = Handover(order.uid)
        cleanup.callback(handover.close)
        cleanup.callback(OrphanedContainerGuard(api, name).close)
        if os.geteuid() == 0:
            for folder in (order.spec.workspace, order.spec.home):
                chown_tree(folder, order.uid)
        errors, errors_inside = os.pipe2(os.O_CLOEXEC)
        handles.callback(os.close, errors)
        with os.fdopen(errors_inside, "wb", buffering=0):
            body = describe_container(
                order.spec,
                image=finding.result(),
                uid=order.uid,
                guest=order.guest,
                handover=handover.folder,
                profile=_pass_filter_profile(api, handover.folder, is_short=confirms),
                labels=make_container_labels(order.link),
            )
            cleanup.callback(_remove, api, name)
            pid = _create_and_start(api, name, body, clearing)
            process = _open_process(pid)
            handles.callback(os.close, process)
            # Before the guest goes on: it then forbids inspection, and shows its namespaces to root only.
            walls = _await_walls(api, name, pid, order.uid)
            count = count_filters(pid)
            handover.give(pid, [order.listener.fileno(), errors_inside], filters)
        cgroup = find_group_of(pid)
        mechanisms = _describe_limits(cgroup)
        call_as_uid(order.uid, lambda: apply_rlimits(pid, order.spec.limits, mechanisms))
        if confirms:
            _await_filters(pid, process, (count or 0) + len(filters))
        handles.pop_all()
        isolation = Isolation(api.name, asking.result(), f"uid {order.uid} in a container", walls, mechanisms)
        return Container(api, name, pid, process, cgroup, isolation, errors, cleanup.pop_all())


def _pass_filter_profile(api: EngineApi, folder: Path, *, is_short: bool) -> str:
    """The profile as the engine takes it: docker its text, podman the path of a file."""
    profile = make_short_profile() if is_short else make_filter_profile()
    if api.name == "docker":
        return profile
    file = folder / "filters.json"
    file.write_text(profile)
    file.chmod(0o444)
    return str(file)


def _create_and_start(api: EngineApi, name: str, body: dict[str, Any], clearing: "Future[None]") -> int:
    """The pid of the container's first process. Raises `computer.no-isolation`."""
    try:
        api.create(name, body)
        clearing.result()  # its predecessor has ended
        api.start(name)
        state = api.read_state(name)
    except EngineRefused as error:
        raise FreeholdError(
            "computer.no-isolation",
            f"{api.name} could not start the computer: {error.message}",
            hint="freehold doctor says what this machine lacks",
        ) from error
    if state.pid <= 1:
        raise FreeholdError(
            "computer.no-isolation",
            f"{api.name} started the computer, and it ended at once with exit code {state.exit_code}",
            hint=NEEDS_PYTHON,
        )
    return state.pid


def _open_process(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError as error:
        raise _ended_at_once() from error


def _ended_at_once() -> FreeholdError:
    return FreeholdError("computer.no-isolation", "The computer ended as soon as it was started", hint=NEEDS_PYTHON)


def _remove_leftovers(api: EngineApi, link: Path, name: str) -> None:
    try:
        remove_leftovers(api, link, name)
    except EngineRefused as error:
        raise FreeholdError(
            "computer.no-isolation",
            f"{api.name} did not remove the computer that was there before: {error.message}",
            hint=f"Remove its container yourself: {api.name} ps --all, {api.name} rm --force NAME",
        ) from error


def _remove(api: EngineApi, name: str) -> None:
    # If the engine is gone, what it still knows of the container is removed by the next start.
    with contextlib.suppress(FreeholdError):
        api.remove(name)


def _describe_limits(cgroup: Cgroup | None) -> Mapping[str, LimitMechanism]:
    """The engine sets the limits of the group. Where the group cannot be read, it is still the engine's promise."""
    found = dict(describe_mechanisms(cgroup))
    if cgroup is None:
        found |= dict.fromkeys(FROM_CGROUP, "cgroup v2")
    return found


def find_image(api: EngineApi, image: str | None) -> str:
    """The id of an image in the engine: an empty root without one, else an archive of `freehold build`, or a name."""
    if image is None:
        root = pack_empty_root()
        tag = hashlib.sha256(root).hexdigest()[:16]
        found = api.find_image_id(f"{EMPTY_REPOSITORY}:{tag}")
        if found is None:
            api.import_image(root, EMPTY_REPOSITORY, tag)
            found = api.find_image_id(f"{EMPTY_REPOSITORY}:{tag}")
        if found is None:
            raise FreeholdError("computer.no-isolation", f"{api.name} did not keep the empty image")
        return found
    if image.startswith(("/", "~", ".")):
        return _load_archive(api, Path(image).expanduser().absolute())
    described = api.read_image(image)
    if described is None:
        raise _unknown_image(image, f"{api.name} has no image of that name", f"{api.name} pull, or freehold build")
    _check_volumes(image, described)
    return str(described.get("Id"))


def _check_volumes(image: str, described: Mapping[str, Any]) -> None:
    """The engine gives a container every volume that its image declares: writable, without a limit, beside the history."""
    config = described.get("Config")
    volumes = config.get("Volumes") if isinstance(config, dict) else None
    if volumes:
        places = ", ".join(sorted(map(str, volumes)))[:200]
        hint = "Make one without VOLUME, or use freehold build"
        raise _unknown_image(image, f"that image declares volumes, which no limit would cover: {places}", hint)


def _load_archive(api: EngineApi, archive: Path) -> str:
    """Load an archive unless the engine has it. An image is known by the hash of its configuration."""
    try:
        with tarfile.open(archive) as tar:
            member = tar.extractfile("manifest.json")
            config = json.loads(b"" if member is None else member.read(1 << 20))[0]["Config"]
    except (OSError, tarfile.TarError, ValueError, KeyError, IndexError, TypeError) as error:
        raise _unknown_image(str(archive), f"it is not an image archive ({error})", "freehold build") from error
    digest = f"sha256:{Path(str(config)).name.removesuffix('.json')}"
    described = api.read_image(digest)
    if described is None:
        api.load_image(archive)
        described = api.read_image(digest)
    if described is None:
        raise _unknown_image(str(archive), f"{api.name} loaded it and does not know {digest}", "freehold build")
    _check_volumes(str(archive), described)
    return str(described.get("Id"))


def _unknown_image(image: str, why: str, hint: str) -> FreeholdError:
    return FreeholdError("computer.unknown-image", f"computer.image is {image!r}, and {why}", hint=hint)


def _await_walls(api: EngineApi, name: str, pid: int, uid: int) -> tuple[str, ...]:
    """Read the guest's state from the kernel until every wall stands. Reports only what the kernel confirms.

    The filter comes last, and where Freehold is not root the process can be seen a moment later. What else the engine
    builds is there before that, or never.
    """
    deadline = time.monotonic() + START_TIMEOUT
    missing = "the guest did not appear"
    while time.monotonic() < deadline:
        try:
            missing = find_missing_container_wall(pid, uid)
        except OSError as error:
            missing = f"its process cannot be seen: {error.strerror}"
            if not api.read_state(name).running:
                raise _ended_at_once() from error
        if not missing:
            walls = (*(f"{each} namespace" for each in NAMESPACES), "read-only root", "no new privileges")
            walls = (*walls, "no capabilities", "filtered system calls")
            return (*walls, SESSIONS_APART) if can_separate_sessions() else walls
        if not missing.startswith(PENDING):
            break
        time.sleep(0.002)
    # Podman makes no cgroup namespace where the machine has control groups of version 1.
    needs_v2 = api.name == "podman" and "cgroup namespace" in missing
    raise FreeholdError(
        "computer.no-isolation",
        f"The container did not get every wall: {missing}",
        hint="Use control groups v2 (systemd.unified_cgroup_hierarchy=1), or another backend"
        if needs_v2
        else f"freehold doctor --backend {api.name} shows what this machine can do",
    )


def _await_filters(pid: int, process: int, wanted: int) -> None:
    """Until pid 1 has this many filters. Raises `computer.no-isolation`."""
    deadline = time.monotonic() + START_TIMEOUT
    while (found := count_filters(pid) or 0) < wanted:
        if select.select([process], [], [], 0.001)[0]:
            raise _ended_at_once()
        if time.monotonic() > deadline:
            raise FreeholdError(
                "computer.no-isolation",
                f"The guest has {found} filters of system calls instead of {wanted}",
                hint=NEEDS_PYTHON,
            )


def count_filters(pid: int) -> int | None:
    """How many filters of system calls a process has. None: kernels before 5.9 do not tell."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^Seccomp_filters:\s*(\d+)", status, re.MULTILINE)
    return None if found is None else int(found[1])


def find_missing_container_wall(pid: int, uid: int) -> str:
    """The first wall that the kernel does not show for pid 1 of a container; empty if all stand."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    for name, expected in EXPECTED.items():
        if status[name] != expected:
            return f"{name} is {status[name]}"
    if {int(word) for word in status["Uid"].split()} != {uid}:
        return f"uid is {status['Uid']}"
    for name in NAMESPACES:
        if Path(f"/proc/{pid}/ns/{name}").readlink() == Path(f"/proc/self/ns/{name}").readlink():
            return f"the {name} namespace is the host's"
    root = next((mount for mount in reversed(read_mounts(pid)) if mount.place == "/"), None)
    return "" if root is not None and "ro" in root.options else "its root is writable"
