"""The system-call filters, compiled by libseccomp once per process and passed to the sandbox as BPF programs.

There are two filters, and the kernel applies the stricter result: the first lists the allowed calls, the second refuses
some of them because of their arguments. libseccomp cannot express both for one call in one filter.
"""

import errno
import functools
import os
import stat
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from freehold.computer.walls.syscalls import ALLOWED, REFUSED
from freehold.errors import FreeholdError

CLONE_NEW = {
    "CLONE_NEWNS": 0x00020000,
    "CLONE_NEWCGROUP": 0x02000000,
    "CLONE_NEWUTS": 0x04000000,
    "CLONE_NEWIPC": 0x08000000,
    "CLONE_NEWUSER": 0x10000000,
    "CLONE_NEWPID": 0x20000000,
    "CLONE_NEWNET": 0x40000000,
}
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_MAX = 1, 2, 10, 16, 64
NETLINK_ROUTE = 0
RLIMIT_CORE = 4
CLONE_FILES, CLONE_THREAD = 0x00000400, 0x00010000
CLOSE_RANGE_UNSHARE = 2
FALLOC_PUNCH_HOLE = 2
# Ways of `ioctl` to reserve blocks (XFS_IOC_ALLOCSP, RESVSP, ZERO_RANGE and their variants, which work on other file
# systems too), and to make a file reserve more than is written (FS_IOC_FSSETXATTR).
RESERVING_IOCTLS = (*(0x40305800 | number for number in (10, 11, 36, 37, 40, 41, 42, 43, 57)), 0x401C5820)
# A lease makes every other reader of the file wait, history among them. F_SETDELEG is the same for folders.
LEASES = (1024, 1040)
GUEST, PRIO_USER = 1, 2
LARGEST_SEGMENT, MAX_SEMAPHORES = 64 * 1024, 256
PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
# Linux, the view of 32-bit programs, both without address randomisation (gdb), and the query.
PERSONALITIES = (0x0, 0x0008, 0x00040000, 0x00040008, 0xFFFFFFFF)
# The kernel reads a 32-bit int: higher bits must not defeat a 64-bit comparison.
INT = 0xFFFFFFFF


@functools.cache
def compile_filters(*, nameless_files: bool = True) -> tuple[bytes, ...]:
    """The BPF programs for this machine. Raises `computer.no-isolation` if libseccomp is missing.

    Without `nameless_files`, memfd_create is not allowed: only a cgroup counts memory that belongs to no process.
    """
    seccomp = _load_library()
    allowed = (name for name in ALLOWED if nameless_files or name != "memfd_create")
    return _export(_calls(seccomp, allowed)), _export(_arguments(seccomp))


def _load_library() -> ModuleType:
    try:
        import pyseccomp  # not at the top: the import searches for the C library
    except (ImportError, RuntimeError, OSError) as error:
        raise FreeholdError(
            "computer.no-isolation",
            f"The system-call filter cannot be built: {error}",
            hint="Install libseccomp (apt install libseccomp2, dnf install libseccomp)",
        ) from error
    return pyseccomp  # type: ignore[no-any-return]


def _calls(seccomp: Any, allowed: Iterable[str]) -> Any:
    rules = seccomp.SyscallFilter(seccomp.ERRNO(errno.ENOSYS))
    # Only the native architecture: i386 and x32 calls have other numbers than those checked here.
    rules.set_attr(seccomp.Attr.ACT_BADARCH, seccomp.KILL_PROCESS)
    for name in allowed:
        _add(seccomp, rules, seccomp.ALLOW, name)
    for name in REFUSED:
        _add(seccomp, rules, seccomp.ERRNO(errno.EPERM), name)
    for persona in PERSONALITIES:
        _add(seccomp, rules, seccomp.ALLOW, "personality", seccomp.Arg(0, seccomp.EQ, persona))
    return rules


def _arguments(seccomp: Any) -> Any:
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    rules.set_attr(seccomp.Attr.ACT_BADARCH, seccomp.KILL_PROCESS)
    refuse = seccomp.ERRNO(errno.EPERM)

    def masked(place: int, mask: int, value: int) -> Any:
        return seccomp.Arg(place, seccomp.MASKED_EQ, mask, value)

    for flag in CLONE_NEW.values():
        _add(seccomp, rules, refuse, "clone", masked(0, flag, flag))
    # The limit on core dumps stays 1 (see limit_watch.py). A program that disables core dumps is told that it succeeded,
    # because some (gpg) stop otherwise.
    unchanged = seccomp.ERRNO(0)
    _add(seccomp, rules, unchanged, "setrlimit", masked(0, INT, RLIMIT_CORE))
    _add(seccomp, rules, unchanged, "prlimit64", masked(1, INT, RLIMIT_CORE), seccomp.Arg(2, seccomp.NE, 0))
    # Programs inside share the guest's uid. They must not change its limits or its scheduling.
    _add(seccomp, rules, refuse, "prlimit64", masked(0, INT, GUEST), seccomp.Arg(2, seccomp.NE, 0))
    for name in ("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"):
        _add(seccomp, rules, refuse, name, masked(0, INT, GUEST))
    for name, by_user in (("setpriority", PRIO_USER), ("ioprio_set", PRIO_USER + 1)):
        _add(seccomp, rules, refuse, name, masked(1, INT, GUEST))
        _add(seccomp, rules, refuse, name, masked(0, INT, by_user))
    # System V memory and semaphores outlive their process, so that no kill frees them: allow small ones only.
    too_large = seccomp.ERRNO(errno.EINVAL)
    _add(seccomp, rules, too_large, "shmget", seccomp.Arg(1, seccomp.GT, LARGEST_SEGMENT))
    _add(seccomp, rules, too_large, "semget", seccomp.Arg(1, seccomp.GT, MAX_SEMAPHORES))
    # Keystrokes of a terminal must not be forged.
    for request in (TIOCSTI, TIOCLINUX):
        _add(seccomp, rules, refuse, "ioctl", masked(1, INT, request))
    # A debugger may trace a child that asks for it (TRACEME), and no other process.
    for request in (PTRACE_ATTACH, PTRACE_SEIZE):
        _add(seccomp, rules, refuse, "ptrace", masked(0, INT, request))
    _add_disk_rules(seccomp, rules)
    for name, place in (("mknod", 1), ("mknodat", 2)):
        for kind in (stat.S_IFCHR, stat.S_IFBLK):
            _add(seccomp, rules, refuse, name, masked(place, 0o170000, kind))
    # Unix and loopback sockets only; packet, vsock, alg, bluetooth and others look as if not compiled in. Of netlink only
    # the route protocol is left, with which Node and the C library list interfaces. It shows only loopback here.
    absent = seccomp.ERRNO(errno.EAFNOSUPPORT)
    for family in range(AF_MAX):
        if family not in (AF_UNIX, AF_INET, AF_INET6, AF_NETLINK):
            _add(seccomp, rules, absent, "socket", masked(0, INT, family))
    _add(seccomp, rules, absent, "socket", seccomp.Arg(0, seccomp.GE, AF_MAX))
    beyond_route = seccomp.Arg(2, seccomp.GT, NETLINK_ROUTE)
    _add(seccomp, rules, absent, "socket", masked(0, INT, AF_NETLINK), beyond_route)
    return rules


def _add_disk_rules(seccomp: Any, rules: Any) -> None:
    """What would hide disk use from the watcher, or take a disk faster than it can look. See disk_guard.py."""

    def masked(place: int, mask: int, value: int) -> Any:
        return seccomp.Arg(place, seccomp.MASKED_EQ, mask, value)

    # Blocks reserved without writing: terabytes in milliseconds, beyond the end of the file, and RLIMIT_FSIZE does not
    # hold them. Programs fall back to writing, as on file systems without preallocation. Holes may be punched.
    absent = seccomp.ERRNO(errno.EOPNOTSUPP)
    _add(seccomp, rules, absent, "fallocate", masked(1, FALLOC_PUNCH_HOLE, 0))
    for bit in range(2, 32):
        _add(seccomp, rules, absent, "fallocate", masked(1, 1 << bit, 1 << bit))
    for request in RESERVING_IOCTLS:
        _add(seccomp, rules, absent, "ioctl", masked(1, INT, request))
    for command in LEASES:
        _add(seccomp, rules, seccomp.ERRNO(errno.EINVAL), "fcntl", masked(1, INT, command))
    # The watcher reads the open files of a process, not of each of its threads: a thread has no table of its own.
    invalid = seccomp.ERRNO(errno.EINVAL)
    _add(seccomp, rules, invalid, "clone", masked(0, CLONE_THREAD | CLONE_FILES, CLONE_THREAD))
    _add(seccomp, rules, invalid, "close_range", masked(2, CLOSE_RANGE_UNSHARE, CLOSE_RANGE_UNSHARE))


def _add(seccomp: Any, rules: Any, action: int, name: str, *conditions: Any) -> None:
    """Add a rule if this architecture and libseccomp know the call. Unknown calls stay forbidden."""
    try:
        number = seccomp.resolve_syscall(seccomp.Arch.NATIVE, name)
    except OSError:
        return
    if number >= 0:
        rules.add_rule(action, number, *conditions)


def _export(rules: Any) -> bytes:
    with os.fdopen(os.memfd_create("seccomp"), "w+b") as program:
        rules.export_bpf(program)
        program.seek(0)
        return program.read()
