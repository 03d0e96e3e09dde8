"""Postpones Python's cyclic garbage collection during work with very many objects.

A collection looks at every object while nothing else of the process can run. With the steps of a large restore in
memory this takes hundreds of milliseconds, and the keeper's loop would wait. These objects form no cycles.
"""

import ctypes
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_running = 0


@contextmanager
def postpone_collection() -> Iterator[None]:
    """May be nested, and used by several threads: the collection begins again when the last one ends."""
    global _running
    with _lock:
        _running += 1
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if not _running:
                gc.enable()


def trim_memory() -> None:
    """After long work: Python's free lists and the allocator would keep free memory for ever otherwise."""
    with _lock:
        if not _running:
            gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # other threads run meanwhile
