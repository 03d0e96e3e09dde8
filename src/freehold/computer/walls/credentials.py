"""Calls a function with the uid of the computer.

To change the limits of another process one needs its uid or CAP_SYS_RESOURCE, which root in a container does not have.
In Linux each thread has its own credentials: a new thread gives up root with raw system calls (those of the C library
would change every thread), calls the function, and ends.
"""

import ctypes
import os
import platform
import threading
from collections.abc import Callable

_CALLS = {"x86_64": (119, 117), "aarch64": (149, 147)}  # setresgid, setresuid
_libc = ctypes.CDLL(None, use_errno=True)


def call_as_uid(uid: int, act: Callable[[], None]) -> None:
    """Call `act` with uid and gid `uid`. Errors of `act` are raised here."""
    if os.geteuid() == uid:
        act()
        return
    errors: list[BaseException] = []

    def become_and_act() -> None:
        try:
            for call in _CALLS[platform.machine()]:
                if _libc.syscall(ctypes.c_long(call), *(ctypes.c_long(uid),) * 3) != 0:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))  # noqa: TRY301
            act()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=become_and_act, name="credentials")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
