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
_libc = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]


def _call(name: str, *arguments: int | bytes) -> int:
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
