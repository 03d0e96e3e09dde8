"""The system-call filter of isolates, compiled by libseccomp when the guest is packed.

It is added to the computer's own filters, which allow a list, and refuses more. What Landlock does not know (modes,
owners, times and attributes of files) and what no resource limit counts (memory without an owner) is refused here.
"""

import errno
import os
from typing import Any

from freehold.errors import FreeholdError

PID_MARK = 0x5A5A1234
"""Stands for the pid of the isolate, which only it may signal. The copy in `freehold.guest.isolates.walls` replaces it."""
CLONE_THREAD = 0x10000
SHARED_ANONYMOUS, GROWS_DOWN = 0x21, 0x100
SET_OWNER = (8, 10, 15)
"""F_SETOWN, F_SETSIG and F_SETOWN_EX of fcntl: with them the kernel sends signals in the place of the isolate."""
SET_OWNER_IOCTLS = (0x8901, 0x8902)
AF_INET, AF_INET6, SOCK_STREAM, TYPE_MASK = 2, 10, 1, 0xF
IPPROTO_TCP, MSG_FASTOPEN = 6, 0x20000000
FLAGS_OF_SENDING = {"sendto": 3, "sendmsg": 2, "sendmmsg": 3}
"""Which argument has them."""
INT = 0xFFFFFFFF

_REFUSED = """
execve execveat fork vfork ptrace process_vm_readv process_vm_writev
kill tkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal pidfd_open
setrlimit memfd_create shmget shmat semget msgget mq_open io_setup mlock mlock2 mlockall
seccomp landlock_create_ruleset landlock_add_rule setsid setpgid setpriority ioprio_set
sched_setscheduler sched_setattr sched_setparam inotify_init inotify_init1
chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat truncate
utime utimes utimensat futimesat setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr
bind listen accept accept4 sync syncfs
"""
REFUSED = tuple(_REFUSED.split())


def compile_isolate_filters() -> tuple[bytes, bytes]:
    """The BPF programs without and with a way to the network. Raises `computer.no-isolation` without libseccomp."""
    try:
        import pyseccomp  # not at the top: the import searches for the C library
    except (ImportError, RuntimeError, OSError) as error:
        raise FreeholdError(
            "computer.no-isolation",
            f"The system-call filter of isolates cannot be built: {error}",
            hint="Install libseccomp (apt install libseccomp2, dnf install libseccomp)",
        ) from error
    return _compile(pyseccomp, network=False), _compile(pyseccomp, network=True)


def _compile(seccomp: Any, network: bool) -> bytes:
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    rules.set_attr(seccomp.Attr.ACT_BADARCH, seccomp.KILL_PROCESS)
    refuse = seccomp.ERRNO(errno.EPERM)

    def add(action: int, name: str, *conditions: Any) -> None:
        try:
            number = seccomp.resolve_syscall(seccomp.Arch.NATIVE, name)
        except OSError:
            return
        if number >= 0:
            rules.add_rule(action, number, *conditions)

    def masked(place: int, mask: int, value: int) -> Any:
        return seccomp.Arg(place, seccomp.MASKED_EQ, mask, value)

    for name in REFUSED:
        add(refuse, name)
    add(seccomp.ERRNO(errno.ENOSYS), "clone3")  # the C library then uses clone, whose flags can be read
    add(refuse, "clone", masked(0, CLONE_THREAD, 0))
    add(refuse, "tgkill", seccomp.Arg(0, seccomp.NE, PID_MARK))
    add(refuse, "prlimit64", seccomp.Arg(2, seccomp.NE, 0))
    # RLIMIT_DATA counts neither shared memory nor mappings that look like stacks.
    add(refuse, "mmap", masked(3, SHARED_ANONYMOUS, SHARED_ANONYMOUS))
    add(refuse, "mmap", masked(3, GROWS_DOWN, GROWS_DOWN))
    for command in SET_OWNER:
        add(refuse, "fcntl", masked(1, INT, command))
    for request in SET_OWNER_IOCTLS:
        add(refuse, "ioctl", masked(1, INT, request))
    for kind in range(16):
        if kind != SOCK_STREAM:  # a pair of datagram sockets can send to the sockets of others by their paths
            add(refuse, "socketpair", masked(1, TYPE_MASK, kind))
    if network:
        _allow_outgoing_tcp(seccomp, add, masked, refuse)
    else:
        for name in ("socket", "connect"):
            add(refuse, name)
    with os.fdopen(os.memfd_create("seccomp"), "w+b") as program:
        rules.export_bpf(program)
        program.seek(0)
        return program.read()


def _allow_outgoing_tcp(seccomp: Any, add: Any, masked: Any, refuse: int) -> None:
    """TCP over IPv4 and IPv6. Landlock holds the port: that of egress, and no other.

    It does not see the other protocols of stream sockets (multipath TCP, SCTP, SMC), nor a connection that is made by
    sending (TCP Fast Open).
    """
    for family in range(64):
        if family not in (AF_INET, AF_INET6):
            add(refuse, "socket", masked(0, INT, family))
    add(refuse, "socket", seccomp.Arg(0, seccomp.GE, 64))
    for kind in range(16):
        if kind != SOCK_STREAM:
            add(refuse, "socket", masked(1, TYPE_MASK, kind))
    add(refuse, "socket", seccomp.Arg(2, seccomp.GT, IPPROTO_TCP))
    for name, place in FLAGS_OF_SENDING.items():
        add(refuse, name, masked(place, MSG_FASTOPEN, MSG_FASTOPEN))
