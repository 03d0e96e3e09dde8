"""inotify through ctypes: names are bytes, overflow is reported, and the queue can be read without waiting.

Why not watchfiles: see docs/adr/0005-history-store-and-watch.md.
"""

import ctypes
import os
import struct
from typing import NamedTuple

MODIFY = 0x002
ATTRIB = 0x004
CLOSE_WRITE = 0x008
MOVED_FROM = 0x040
MOVED_TO = 0x080
CREATE = 0x100
DELETE = 0x200
DELETE_SELF = 0x400
MOVE_SELF = 0x800
UNMOUNT = 0x2000
OVERFLOW = 0x4000
IGNORED = 0x8000
ONLYDIR = 0x01000000
EXCL_UNLINK = 0x04000000
ISDIR = 0x40000000

WATCHED = (
    MODIFY
    | ATTRIB
    | CLOSE_WRITE
    | MOVED_FROM
    | MOVED_TO
    | CREATE
    | DELETE
    | DELETE_SELF
    | MOVE_SELF
    | ONLYDIR
    | EXCL_UNLINK
)

_HEADER = struct.Struct("iIII")
_BUFFER = 1 << 18

_libc = ctypes.CDLL(None, use_errno=True)


class InotifyEvent(NamedTuple):
    watch: int
    mask: int
    name: bytes


class Inotify:
    """One inotify instance. Not thread-safe: the watcher holds its lock around every call."""

    def __init__(self) -> None:
        self.handle: int = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.handle < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")

    def add(self, folder: int) -> int:
        """Watch the folder behind this handle, even if it was renamed. OSError ENOSPC means that no watches are left."""
        watch: int = _libc.inotify_add_watch(self.handle, b"/proc/self/fd/%d" % folder, ctypes.c_uint32(WATCHED))
        if watch < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch")
        return watch

    def remove(self, watch: int) -> None:
        """Idempotent."""
        _libc.inotify_rm_watch(self.handle, watch)

    def read(self) -> list[InotifyEvent]:
        """All events in the queue, without waiting. Every write before this call is included."""
        events: list[InotifyEvent] = []
        while True:
            try:
                data = os.read(self.handle, _BUFFER)
            except BlockingIOError:
                return events
            at = 0
            while at < len(data):
                watch, mask, _cookie, length = _HEADER.unpack_from(data, at)
                at += _HEADER.size
                events.append(InotifyEvent(watch, mask, data[at : at + length].rstrip(b"\0")))
                at += length

    def close(self) -> None:
        os.close(self.handle)
