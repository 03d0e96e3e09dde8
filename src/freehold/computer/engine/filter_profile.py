"""The system-call filters that the engine itself applies, before any program of the image runs.

Pid 1 applies our filters to itself, and it is a program of the image: an image of others could leave them out. This
profile is made of the same tables, and nothing inside can leave it out. An engine takes one filter, which cannot allow
a call and refuse some of its arguments, so it lists the arguments that are allowed. What protects pid 1 and programs
inside from each other (their limits, priority, terminals and memory) is left to the filters of pid 1.

Without an image, pid 1 is this machine's own Python with a program of ours, and nothing else runs before its filters
stand, which the kernel confirms. The engine then gets a short profile: it writes and reads every rule many times in a
start.
"""

import errno
import functools
import json
import stat
from collections.abc import Iterator, Sequence
from typing import Any

from freehold.computer.walls import seccomp
from freehold.computer.walls.syscalls import ALLOWED, REFUSED

ALLOW, REFUSE = "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"
RLIMITS = 16
FILE_KINDS = 0o170000
SEALING = frozenset(
    {
        *("mount", "umount", "umount2", "pivot_root", "move_mount", "open_tree", "fsopen", "fsmount", "fsconfig"),
        *("fspick", "mount_setattr", "unshare", "setns", "sethostname", "pidfd_getfd"),
    }
)
"""What makes the walls of a computer. The computer itself may use none of it."""
DEVICES = (stat.S_IFCHR, stat.S_IFBLK)


@functools.cache
def make_filter_profile() -> str:
    """The profile as JSON."""
    limited: dict[str, list[list[dict[str, Any]]]] = {}
    for name, *conditions in _limit_arguments():
        limited.setdefault(name, []).append(conditions)
    calls: list[dict[str, Any]] = [
        {"names": [name for name in ALLOWED if name not in limited], "action": ALLOW},
        {"names": list(REFUSED), "action": REFUSE, "errnoRet": errno.EPERM},
        # Docker before 23 refuses the rest with EPERM, after which the C library does not fall back to clone.
        {"names": ["clone3"], "action": REFUSE, "errnoRet": errno.ENOSYS},
    ]
    calls += [{"names": [name], "action": ALLOW, "args": one} for name, every in limited.items() for one in every]
    return json.dumps({"defaultAction": REFUSE, "defaultErrnoRet": errno.ENOSYS, "syscalls": calls})


@functools.cache
def make_short_profile() -> str:
    """As JSON: refuses the dangerous calls, until the filters of pid 1 refuse all that is not allowed."""
    calls = [{"names": list(REFUSED), "action": REFUSE, "errnoRet": errno.EPERM}]
    return json.dumps({"defaultAction": ALLOW, "syscalls": calls})


@functools.cache
def make_outer_profile() -> str:
    """As JSON: for the container in which Freehold itself seals a computer. Refuses what neither it nor bubblewrap uses."""
    refused = [name for name in REFUSED if name not in SEALING]
    calls = [{"names": refused, "action": REFUSE, "errnoRet": errno.EPERM}]
    return json.dumps({"defaultAction": ALLOW, "syscalls": calls})


def _limit_arguments() -> Iterator[tuple[Any, ...]]:
    """A call and its conditions, all of which must hold. A call that is here more than once is allowed by each of them."""
    for persona in seccomp.PERSONALITIES:
        yield "personality", _compare(0, "EQ", persona)
    namespaces = sum(seccomp.CLONE_NEW.values())
    thread, files = seccomp.CLONE_THREAD, seccomp.CLONE_FILES
    yield "clone", _match(0, namespaces | thread, 0)
    yield "clone", _match(0, namespaces | thread | files, thread | files)
    for family in (seccomp.AF_UNIX, seccomp.AF_INET, seccomp.AF_INET6):
        yield "socket", _match(0, seccomp.INT, family)
    yield "socket", _match(0, seccomp.INT, seccomp.AF_NETLINK), _compare(2, "EQ", seccomp.NETLINK_ROUTE)
    yield "fallocate", _match(1, seccomp.INT & ~1, seccomp.FALLOC_PUNCH_HOLE)
    yield "close_range", _match(2, seccomp.CLOSE_RANGE_UNSHARE, 0)
    yield "shmget", _compare(1, "LE", seccomp.LARGEST_SEGMENT)
    yield "semget", _compare(1, "LE", seccomp.MAX_SEMAPHORES)
    for name, place in (("mknod", 1), ("mknodat", 2)):
        for kind in range(0, FILE_KINDS + 1, stat.S_IFIFO):
            if kind not in DEVICES:
                yield name, _match(place, FILE_KINDS, kind)
    yield "prlimit64", _compare(2, "EQ", 0)
    for limit in range(RLIMITS):
        if limit != seccomp.RLIMIT_CORE:
            yield "setrlimit", _match(0, seccomp.INT, limit)
            yield "prlimit64", _match(1, seccomp.INT, limit)
    for name, values in (("ioctl", seccomp.RESERVING_IOCTLS), ("fcntl", seccomp.LEASES)):
        for mask, value in list_others(values):
            yield name, _match(1, mask, value)


def list_others(values: Sequence[int], bit: int = 31, mask: int = 0, prefix: int = 0) -> Iterator[tuple[int, int]]:
    """Masks with their results, one of which fits each 32-bit number that is not among the values, and none of these."""
    if not values:
        yield mask, prefix
    elif bit >= 0:
        one = 1 << bit
        for part in (0, one):
            yield from list_others([each for each in values if each & one == part], bit - 1, mask | one, prefix | part)


def _compare(place: int, how: str, value: int) -> dict[str, Any]:
    return {"index": place, "op": f"SCMP_CMP_{how}", "value": value}


def _match(place: int, mask: int, value: int) -> dict[str, Any]:
    return {"index": place, "op": "SCMP_CMP_MASKED_EQ", "value": mask, "valueTwo": value}
