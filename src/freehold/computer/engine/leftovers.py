"""Removes containers of a Freehold that was killed together with everything that would have removed them.

A container says in its labels which link it serves and which process started it. It is a leftover when that process is
gone, or when a new computer takes over its link. What carries no such labels, or comes from another pid namespace, is
somebody else's and is never touched.
"""

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from freehold.computer.engine.api import EngineApi, EngineRefused

MARK = ("freehold", "computer")
LINK, OWNER = "freehold.link", "freehold.owner"
NAME = re.compile(r"freehold-[0-9a-f]{12}")
PID_NAMESPACE = Path("/proc/self/ns/pid")
_OWNER = re.compile(r"([0-9a-f-]{36}) (\d+) (\d+) (\d+)")


def make_container_labels(link: Path) -> dict[str, str]:
    """The labels of a container that this process starts."""
    return {MARK[0]: MARK[1], LINK: str(link.absolute()), OWNER: describe_owner(os.getpid())}


def describe_owner(pid: int) -> str:
    """Boot, pid namespace, pid and start time: the same words never describe another process."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {PID_NAMESPACE.stat().st_ino} {pid} {_read_start(pid)}"


def remove_leftovers(api: EngineApi, link: Path, name: str) -> None:
    """Called before the container `name` starts on this link. Raises EngineRefused if its predecessor cannot be removed."""
    for container in api.list_containers("=".join(MARK)):
        is_ours = NAME.fullmatch(container.name) is not None and _is_from_here(container.labels)
        if container.name == name or not is_ours:
            continue
        if container.labels.get(LINK) == str(link.absolute()):
            api.remove(container.name)
        elif _is_gone(container.labels):
            with contextlib.suppress(EngineRefused):
                api.remove(container.name)


def _is_from_here(labels: Mapping[str, Any]) -> bool:
    found = _OWNER.fullmatch(str(labels.get(OWNER)))
    return found is not None and int(found[2]) == PID_NAMESPACE.stat().st_ino


def _is_gone(labels: Mapping[str, Any]) -> bool:
    owner = str(labels[OWNER])
    found = _OWNER.fullmatch(owner)
    try:
        return found is None or describe_owner(int(found[3])) != owner
    except (FileNotFoundError, ProcessLookupError):
        return True


def _read_start(pid: int) -> str:
    """In ticks since the boot. The name of the program, which comes before, may contain anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
