"""Moves the wall clock of a Python process by the seconds in a file, which may change at any time.

Only processes see it whose `PYTHONPATH` has this folder: the programs of Freehold on the host. The clock of the machine
is not changed. The monotonic clock does not move, as when a real clock jumps.
"""

import ctypes
import datetime
import gc
import mmap
import os
import struct
import time
from typing import Any

OFFSET_FILE = "SOAK_CLOCK_OFFSET"


def _move_clock(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    shared = mmap.mmap(descriptor, 8, prot=mmap.PROT_READ)
    os.close(descriptor)
    real_time, real_time_ns = time.time, time.time_ns
    moment = datetime.datetime

    def offset() -> float:
        found: float = struct.unpack("d", shared[:8])[0]
        return found

    def now(_: type, tz: datetime.tzinfo | None = None) -> datetime.datetime:
        return moment.fromtimestamp(time.time(), tz)

    time.time = lambda: real_time() + offset()
    time.time_ns = lambda: real_time_ns() + int(offset() * 1e9)
    # `datetime` is written in C and its attributes cannot be set; its dictionary can be changed.
    members: Any = gc.get_referents(moment.__dict__)[0]
    members["now"] = classmethod(now)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(moment))


if OFFSET_FILE in os.environ:
    _move_clock(os.environ[OFFSET_FILE])
