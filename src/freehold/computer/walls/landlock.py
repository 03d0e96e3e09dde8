"""Whether this kernel can keep the sessions of one computer apart. The guest does it: see guest/kernel.py."""

import ctypes

LANDLOCK_CREATE_RULESET = 444
MIN_LANDLOCK_VERSION = 2
SESSIONS_APART = "sessions apart"


def read_landlock_version() -> int:
    """The Landlock version of the kernel; 0 if it has none or it is disabled."""
    libc = ctypes.CDLL(None)
    libc.syscall.restype = ctypes.c_long
    version: int = libc.syscall(ctypes.c_long(LANDLOCK_CREATE_RULESET), None, ctypes.c_long(0), ctypes.c_long(1))
    return max(0, version)


def can_separate_sessions() -> bool:
    """Whether the guest can prevent sessions of one computer from reading each other; see guest/kernel.py."""
    return read_landlock_version() >= MIN_LANDLOCK_VERSION
