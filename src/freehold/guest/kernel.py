"""What the guest needs of slow modules, from where they have it; and the few calls that Python has no name for."""

from __future__ import annotations

import _ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signals
    from collections import deque as _deque
else:
    import _signal as _signals  # the same without its enumerations
    from _collections import deque as _deque  # and this without the rest

signals = _signals
deque = _deque

_PR_SET_DUMPABLE = 4
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


def hide_from_peers() -> None:
    """Programs inside share our uid: without this they could read and write our memory through /proc."""
    if _call("prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError("this kernel does not let the guest hide itself")


def open_signal_descriptor(number: int) -> int:
    """A descriptor that tells who sent the signal, which a handler never learns. The signal is blocked from here on."""
    signals.pthread_sigmask(signals.SIG_BLOCK, [number])
    mask = (1 << (number - 1)).to_bytes(128, "little")
    descriptor = _call("signalfd", -1, mask, _NONBLOCK_CLOEXEC)
    if descriptor < 0:
        raise OSError("this kernel has no signalfd")
    os.set_inheritable(descriptor, False)
    return descriptor


def read_sender(descriptor: int) -> int | None:
    """The pid that sent the signal, 0 when it came from outside of our pid namespace, None when there is none."""
    try:
        record = os.read(descriptor, 128)
    except BlockingIOError:
        return None
    return int.from_bytes(record[12:16], "little")


def can_set_apart() -> bool:
    """Whether this kernel has Landlock, and one that leaves renaming from folder to folder alone."""
    return _call("syscall", _CREATE_RULESET, None, 0, _ASK_VERSION) >= _FIRST_WITH_REFER


def set_apart(strictly: bool) -> None:
    """Put this thread, and all that it starts from here on, into a Landlock domain of its own, for good.

    From inside one, memory, environment and descriptors of processes that are not are out of reach, whatever the uid;
    so are sockets without a path and, `strictly`, signals, where the kernel has that (6.12). Files are as before.
    """
    scoped = _call("syscall", _CREATE_RULESET, None, 0, _ASK_VERSION) >= _FIRST_WITH_SCOPES
    scope = _ABSTRACT_SOCKETS | (_SIGNALS if strictly else 0)
    # A domain is about something, and every one forbids to move and link files from folder to folder unless that is
    # allowed, even if only a domain within it is about files: so this one is about that, and allows it everywhere.
    rules = b"".join(word.to_bytes(8, "little") for word in ((_REFER, 0, scope) if scoped else (_REFER,)))
    descriptor = _call("syscall", _CREATE_RULESET, rules, len(rules), 0)
    if descriptor < 0:
        raise OSError("this kernel does not make a Landlock domain")
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        beneath = _REFER.to_bytes(8, "little") + root.to_bytes(4, "little")
        if _call("syscall", _ADD_RULE, descriptor, _PATH_BENEATH, beneath, 0) != 0:
            raise OSError("this kernel does not take a Landlock rule")
        if _call("syscall", _RESTRICT_SELF, descriptor, 0) != 0:
            raise OSError("this kernel does not enter a Landlock domain")
    finally:
        os.close(root)
        os.close(descriptor)
