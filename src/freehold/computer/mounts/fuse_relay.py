"""Carries the requests of a FUSE mount to a helper program and its replies back, so that no request waits for ever.

The helper talks to a stranger's server. A process inside the computer that waits for a reply cannot be ended by anybody
but the one who replies. So the helper does not hold the device: this relay does, gives each request a time limit, and
answers those that the helper leaves open.
"""

import asyncio
import contextlib
import errno
import math
import os
import socket
import struct
from collections import deque

REQUEST = struct.Struct("<IIQ")
"""The start of a request: length, operation, number. Its whole header has 40 bytes."""
REPLY = struct.Struct("<IiQ")
"""The header of a reply: length, negative error, number of the request."""
DIRECTORY_ENTRY = struct.Struct("<QQII")
"""Before each name in a listing: inode, offset, length of the name, type."""
REQUEST_HEADER = 40
MAX_WRITE = 128 * 1024
MAX_PACKET = MAX_WRITE + 64 * 1024
MAX_WAITING = 1024
"""Requests that may wait for the helper to read them; more are refused."""

FORGET, MKDIR, WRITE, INIT, READDIR, CREATE, INTERRUPT, BATCH_FORGET = 2, 9, 16, 26, 28, 35, 36, 42
NO_REPLY = {FORGET, BATCH_FORGET, INTERRUPT}
GROWING = {MKDIR, WRITE, CREATE}
FUSE_MAX_PAGES = 1 << 22
_UNSAFE_IN_NAMES = bytes([*range(32), 47, 127])
_SHOWN = bytes.maketrans(_UNSAFE_IN_NAMES, b"?" * len(_UNSAFE_IN_NAMES))


class FuseRelay:
    """Between the kernel (`device`, an open /dev/fuse) and the helper (`helper`, a socket that keeps packets apart).

    `timeout` is how long a process waits for one request, in seconds; `grace` the same after it got a signal. A helper
    that works on a request for twice that time is given up. Owns both descriptors. `full` refuses what would take more
    room.
    """

    def __init__(self, device: int, helper: socket.socket, *, timeout: float, grace: float = 5.0) -> None:
        self.full = False
        self.timed_out = 0
        self._device = device
        self._helper = helper
        self._timeout = timeout
        self._grace = grace
        self._buffer = bytearray(MAX_PACKET)
        self._operations: dict[int, int] = {}
        self._deadlines: dict[int, float] = {}
        self._interrupted: dict[int, float] = {}
        self._overdue: dict[int, float] = {}
        self._unsent: deque[bytes] = deque()
        self._ended: asyncio.Future[str] | None = None
        os.set_blocking(device, False)
        helper.setblocking(False)

    async def run(self) -> str:
        """Relay until either side is gone; returns who ended it, `kernel` or `helper`. Then every waiting process gets an error."""
        loop = asyncio.get_running_loop()
        self._ended = loop.create_future()
        loop.add_reader(self._device, self._read_requests)
        loop.add_reader(self._helper, self._read_replies)
        try:
            while not self._ended.done():
                self._expire(loop.time())
                # Every time limit is longer than the first two: none is set and over before this looks again.
                left = min(1.0, self._timeout / 4, self._find_next_limit() - loop.time())
                await asyncio.wait([self._ended], timeout=max(0.0, left))
            return self._ended.result()
        finally:
            self._close(loop)

    def _close(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.remove_reader(self._device)
        loop.remove_reader(self._helper)
        loop.remove_writer(self._helper)
        self._helper.close()
        os.close(self._device)  # the kernel now fails every request, those that wait and those to come

    def _end(self, who: str) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(who)

    def _read_requests(self) -> None:
        for _ in range(16):
            try:
                length = os.readv(self._device, [self._buffer])
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.EINTR):  # the process has stopped waiting
                    continue
                self._end("kernel")
                return
            if length < REQUEST_HEADER:
                self._end("kernel")
                return
            self._take_request(bytes(memoryview(self._buffer)[:length]))

    def _take_request(self, packet: bytes) -> None:
        _, operation, number = REQUEST.unpack_from(packet)
        now = asyncio.get_running_loop().time()
        if operation == INTERRUPT:
            (interrupted,) = struct.unpack_from("<Q", packet, REQUEST_HEADER)
            if interrupted in self._deadlines:
                self._interrupted.setdefault(interrupted, now + self._grace)
        elif operation in GROWING and self.full:
            self._fail(number, errno.ENOSPC)
            return
        elif operation not in NO_REPLY:
            if len(self._unsent) >= MAX_WAITING:
                self._fail(number, errno.EBUSY)
                return
            self._operations[number] = operation
            self._deadlines[number] = now + self._timeout
        self._unsent.append(packet)
        self._send()

    def _send(self) -> None:
        loop = asyncio.get_running_loop()
        while self._unsent:
            try:
                self._helper.send(self._unsent[0])
            except BlockingIOError:
                loop.add_writer(self._helper, self._send)
                return
            except OSError:
                self._end("helper")
                break
            self._unsent.popleft()
        loop.remove_writer(self._helper)

    def _read_replies(self) -> None:
        for _ in range(16):
            try:
                packet = self._helper.recv(MAX_PACKET)
            except BlockingIOError:
                return
            except OSError:
                packet = b""
            if not packet:
                self._end("helper")
                return
            self._take_reply(packet)

    def _take_reply(self, packet: bytes) -> None:
        """Pass a reply on if somebody waits for it. Everything else that the helper may say to the kernel is dropped."""
        if len(packet) < REPLY.size:
            return
        length, error, number = REPLY.unpack_from(packet)
        operation = self._operations.pop(number, None)
        if operation is None:
            self._overdue.pop(number, None)
            return
        del self._deadlines[number]
        self._interrupted.pop(number, None)
        if length != len(packet) or not -512 < error <= 0:
            self._fail(number, errno.EIO)
            return
        if error == 0 and operation == INIT:
            packet = _limit_init(packet)
        elif error == 0 and operation == READDIR:
            packet = _make_names_safe(packet)
        try:
            os.write(self._device, packet)
        except OSError as problem:
            if problem.errno != errno.ENOENT:  # nobody waits any more
                self._fail(number, errno.EIO)

    def _expire(self, now: float) -> None:
        while self._deadlines and (first := next(iter(self._deadlines.items())))[1] <= now:
            number = first[0]
            self.timed_out += 1
            if self._operations[number] == INIT:
                self._end("helper")
                return
            self._drop(number)
            self._overdue[number] = now + self._timeout
            self._fail(number, errno.ETIMEDOUT)
        # What it still works on may lock everything else in it.
        if self._overdue and next(iter(self._overdue.values())) <= now:
            self._end("helper")
        for number in [number for number, deadline in self._interrupted.items() if deadline <= now]:
            self._drop(number)
            self._fail(number, errno.EINTR)

    def _find_next_limit(self) -> float:
        """Each table has the earliest limit first."""
        return min(
            (next(iter(limits.values())) for limits in (self._deadlines, self._interrupted, self._overdue) if limits),
            default=math.inf,
        )

    def _drop(self, number: int) -> None:
        del self._operations[number]
        del self._deadlines[number]
        self._interrupted.pop(number, None)

    def _fail(self, number: int, error: int) -> None:
        with contextlib.suppress(OSError):
            os.write(self._device, REPLY.pack(REPLY.size, -error, number))


def _limit_init(packet: bytes) -> bytes:
    """The helper's offer, with no larger packets than the relay takes."""
    if len(packet) < REPLY.size + 24:
        return packet
    changed = bytearray(packet)
    (flags,) = struct.unpack_from("<I", changed, REPLY.size + 12)
    (max_write,) = struct.unpack_from("<I", changed, REPLY.size + 20)
    struct.pack_into("<I", changed, REPLY.size + 12, flags & ~FUSE_MAX_PAGES)
    struct.pack_into("<I", changed, REPLY.size + 20, min(max_write, MAX_WRITE))
    return bytes(changed)


def _make_names_safe(packet: bytes) -> bytes:
    """A listing in which control characters and slashes of names are question marks. One bad name must not hide the others."""
    changed = bytearray(packet)
    place = REPLY.size
    while place + DIRECTORY_ENTRY.size <= len(changed):
        *_, length, _ = DIRECTORY_ENTRY.unpack_from(changed, place)
        begin = place + DIRECTORY_ENTRY.size
        if begin + length > len(changed):
            break
        changed[begin : begin + length] = changed[begin : begin + length].translate(_SHOWN)
        place = begin + (length + 7 & ~7)
    return bytes(changed)
