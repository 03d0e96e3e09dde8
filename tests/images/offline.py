"""Runs a block without a network: the calling thread, and what it starts, is in a network namespace of its own."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def offline() -> Iterator[None]:
    """Needs root. Restores the network at the end."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _check(_libc.unshare(CLONE_NEWNET))
        try:
            yield
        finally:
            _check(_libc.setns(before, CLONE_NEWNET))
    finally:
        os.close(before)


def _check(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
