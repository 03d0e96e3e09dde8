"""Acts as the computer's uid for a moment, where being root is not enough.

Changing another process's limits needs its very uid, or CAP_SYS_RESOURCE, which root in a container lacks. Credentials
belong to threads in Linux: a thread of its own gives up root by the bare system calls (the C library's would change all
threads), acts, and ends.
"""

import ctypes
import os
import platform
import threading
from collections.abc import Callable

_CALLS = {"x86_64": (119, 117), "aarch64": (149, 147)}  # setresgid, setresuid
_libc = ctypes.CDLL(None, use_errno=True)


def act_as(uid: int, act: Callable[[], None]) -> None:
    """Calls `act` with the uid and gid `uid`; at once if that is who we are. An error it raises is raised here."""
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
