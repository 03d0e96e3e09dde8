"""Fast replacements for slow modules, and the few system calls that Python does not offer."""

from __future__ import annotations

import _ctypes
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os as _os
    import signal as _signals
    from collections import deque as _deque
else:
    import _signal as _signals  # without the enumerations of `signal`
    import posix
    from _collections import deque as _deque  # without the rest of `collections`

    # Without the Python part of `os` and the classes that it imports.
    _os = type(sys)("os")
    _os.__dict__.update(posix.__dict__)
    _os.environb = posix.environ
    _os.fsencode = lambda text: text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    _os.fsdecode = lambda raw: raw.decode("utf-8", "surrogateescape") if isinstance(raw, bytes) else raw

os = _os
signals = _signals
deque = _deque

_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 4, 22, 38
_SECCOMP_MODE_FILTER = 2
_ALLOW_EVERYTHING = b"\x06\0\0\0" + (0x7FFF0000).to_bytes(4, "little")
"""A filter of one instruction."""
_NONBLOCK_CLOEXEC = 0o2000000 | 0o4000
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_ASK_VERSION = 1
_PATH_BENEATH, _REFER = 1, 1 << 13
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2
_FIRST_WITH_REFER, _FIRST_WITH_SCOPES = 2, 6
_libc = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]


def _call(name: str, *arguments: int | bytes | None) -> int:
    result: int = _ctypes.call_function(_ctypes.dlsym(_libc, name), arguments)
    return result


def forbid_inspection() -> None:
    """Programs inside have our uid. Without this call they could read and write our memory through /proc."""
    if _call("prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError("prctl(PR_SET_DUMPABLE, 0) failed")


def open_signal_descriptor(number: int) -> int:
    """A signalfd, which shows who sent the signal; a handler cannot. The signal is blocked from now on."""
    signals.pthread_sigmask(signals.SIG_BLOCK, [number])
    mask = (1 << (number - 1)).to_bytes(128, "little")
    descriptor = _call("signalfd", -1, mask, _NONBLOCK_CLOEXEC)
    if descriptor < 0:
        raise OSError("signalfd failed")
    os.set_inheritable(descriptor, False)
    return descriptor


def read_sender(descriptor: int) -> int | None:
    """The pid that sent the signal, 0 if it came from outside our pid namespace, None if there was no signal."""
    try:
        record = os.read(descriptor, 128)
    except BlockingIOError:
        return None
    return int.from_bytes(record[12:16], "little")


def mark_thread() -> None:
    """Add a system-call filter that refuses nothing. This thread and all that it starts have one more, permanently.

    A process cannot remove a filter, so the number of them (`Seccomp_filters` in /proc/PID/status) is a mark that
    neither a new Unix session nor an empty environment takes away.
    """
    address = id(_ALLOW_EVERYTHING) + bytes.__basicsize__ - 1  # where CPython keeps the bytes of an object
    program = (1).to_bytes(8, "little") + address.to_bytes(8, "little")
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if _call("prctl", _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program, 0, 0) != 0:
        raise OSError("prctl(PR_SET_SECCOMP) failed")


def can_scope_signals() -> bool:
    """Whether a Landlock domain can limit the signals of its processes to the domain itself (Linux 6.12 and later)."""
    return _call("syscall", _CREATE_RULESET, None, 0, _ASK_VERSION) >= _FIRST_WITH_SCOPES


def has_landlock() -> bool:
    """Whether this kernel has a Landlock version that can allow renames between folders."""
    return _call("syscall", _CREATE_RULESET, None, 0, _ASK_VERSION) >= _FIRST_WITH_REFER


def enter_landlock_domain(strictly: bool) -> None:
    """Move this thread and all that it starts later into a new Landlock domain, permanently.

    Inside it, memory, environment and descriptors of processes outside the domain cannot be reached, whatever the uid.
    From Linux 6.12 on, abstract sockets cannot be reached either, and with `strictly` no signals can be sent. File
    access is unchanged.
    """
    scoped = can_scope_signals()
    scope = _ABSTRACT_SOCKETS | (_SIGNALS if strictly else 0)
    # A ruleset must handle at least one right, and every domain forbids renames and links between folders unless it
    # allows them. So this one handles that right and allows it everywhere.
    rules = b"".join(word.to_bytes(8, "little") for word in ((_REFER, 0, scope) if scoped else (_REFER,)))
    descriptor = _call("syscall", _CREATE_RULESET, rules, len(rules), 0)
    if descriptor < 0:
        raise OSError("landlock_create_ruleset failed")
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        beneath = _REFER.to_bytes(8, "little") + root.to_bytes(4, "little")
        if _call("syscall", _ADD_RULE, descriptor, _PATH_BENEATH, beneath, 0) != 0:
            raise OSError("landlock_add_rule failed")
        if _call("syscall", _RESTRICT_SELF, descriptor, 0) != 0:
            raise OSError("landlock_restrict_self failed")
    finally:
        os.close(root)
        os.close(descriptor)
