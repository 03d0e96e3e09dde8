"""Calls functions, and starts programs, with the uid of the computer.

To change the limits of another process one needs its uid or CAP_SYS_RESOURCE, which root in a container does not have.
In Linux each thread has its own credentials. They are changed with raw system calls, because those of the C library
would change every thread.
"""

import contextlib
import ctypes
import os
import platform
import threading
from collections.abc import Callable, Iterator, Sequence

_CALLS = {"x86_64": (119, 117, 116), "aarch64": (149, 147, 159)}
"""setresgid, setresuid, setgroups."""
_KEEP = -1
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION_3 = 0x20080522
_libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def start_as_uid(uid: int) -> Iterator[None]:
    """What this thread starts meanwhile has only uid and gid `uid`, no further group, no capability and no way to more.

    The thread itself is root again afterwards, with the saved uid that a started program does not inherit. It must have
    no other use for setuid programs: that the programs it starts gain no privileges is permanent. A thread that is not
    root keeps its uid and its groups.
    """
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), *(ctypes.c_ulong(0),) * 3))
    if os.geteuid() != 0:
        yield
        return
    _drop_inheritable_capabilities()
    set_gids, set_uids, set_groups = _CALLS[platform.machine()]
    uids, gids, groups = os.getresuid(), os.getresgid(), os.getgroups()
    try:
        _call(set_groups, 0, 0)
        _call(set_gids, uid, uid, uid)
        _call(set_uids, uid, uid, 0)
        yield
    finally:
        numbers = (ctypes.c_uint32 * len(groups))(*groups)
        steps = [(set_uids, _KEEP, 0, _KEEP), (set_uids, *uids), (set_gids, *gids)]
        _call_each([*steps, (set_groups, len(groups), ctypes.addressof(numbers))])


def _drop_inheritable_capabilities() -> None:
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, first the low 32 of each, then the high
    _check(_libc.capget(header, sets))
    sets[2] = sets[5] = 0
    _check(_libc.capset(header, sets))


def _call(number: int, *values: int) -> None:
    _check(_libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, values)))


def _call_each(calls: Sequence[tuple[int, ...]]) -> None:
    """Make every call, also after one that failed. Raises the first error."""
    errors: list[OSError] = []
    for call in calls:
        try:
            _call(*call)
        except OSError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def call_as_uid(uid: int, act: Callable[[], None]) -> None:
    """Call `act` in a new thread with uid and gid `uid`, which gives up root for good. Errors of `act` are raised here."""
    if os.geteuid() == uid:
        act()
        return
    errors: list[BaseException] = []

    def become_and_act() -> None:
        try:
            for call in _CALLS[platform.machine()][:2]:
                _call(call, uid, uid, uid)
            act()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=become_and_act, name="credentials")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
