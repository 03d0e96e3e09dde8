"""The loop of a zygote that is written in Python: forks an isolate for each request and reports births and deaths."""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
from functools import partial

from freehold.guest.isolates.records import BORN, LENGTH, RECORD, STATUS
from freehold.guest.isolates.walls import Walls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

CHANNEL = 100
"""The descriptor of the isolate's channel: far from those that programs open themselves."""
DESCRIPTORS = 3
MAX_ORDER = 512
MAX_HELD = 16 * 1024
"""Bytes of a record that waits for the next one."""


def serve(walls: Walls, live: Callable[[Walls, bytes], None]) -> None:
    """Fork until the guest closes the control socket. `live` runs in each child and must not return.

    It gets the limits with which the child seals itself while it is parked, or nothing.
    """
    control = socket.socket(fileno=os.dup(0))
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, _ignore)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    gc.collect()
    gc.freeze()
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while True:
        ready = dict(poll.poll())
        if woken in ready:
            os.read(woken, 512)
            _reap(control)
        if control.fileno() not in ready:
            continue
        data, descriptors, _, _ = socket.recv_fds(control, MAX_ORDER, DESCRIPTORS)
        if not data:
            return
        _fork(partial(live, walls, data[1:]), walls.ruleset, control, descriptors)


def _fork(live: Callable[[], None], ruleset: int, control: socket.socket, descriptors: list[int]) -> None:
    try:
        pid = os.fork()
    except OSError as error:
        _tell(control, STATUS.pack(0, error.errno or 1, 0, 0))
        pid = -1
    if pid == 0:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.detach()
            _take_descriptors(descriptors, ruleset)
            live()
        finally:
            os._exit(70)
    if pid > 0:
        _tell(control, STATUS.pack(pid, BORN, 0, 0))
    for descriptor in descriptors:
        os.close(descriptor)


def _take_descriptors(descriptors: list[int], keep: int) -> None:
    """Nothing to read, two outputs, the channel, and the prepared ruleset: everything else of the zygote is closed."""
    channel, out, err = descriptors
    null = os.open("/dev/null", os.O_RDONLY)
    for number, descriptor in enumerate((null, out, err)):
        os.dup2(descriptor, number)
    os.dup2(channel, CHANNEL, inheritable=False)
    os.closerange(3, keep)
    os.closerange(keep + 1, CHANNEL)
    os.closerange(CHANNEL + 1, 256)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # type: ignore[misc]  # noqa: SIM115


def rehearse(action: Callable[[], None]) -> None:
    """Run `action` while the channel leads nowhere, so that what it sends is not seen."""
    try:
        kept = os.dup(CHANNEL)
    except OSError:
        kept = -1  # the zygote itself has none
    nowhere = os.open("/dev/null", os.O_WRONLY)
    os.dup2(nowhere, CHANNEL, inheritable=False)
    os.close(nowhere)
    action()
    if kept < 0:
        os.close(CHANNEL)
    else:
        os.dup2(kept, CHANNEL, inheritable=False)
        os.close(kept)


def is_asked() -> bool:
    """Whether a request waits already, so that nothing must be done before it."""
    poll = select.poll()
    poll.register(CHANNEL, select.POLLIN)
    return bool(poll.poll(0))


def _reap(control: socket.socket) -> None:
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        processor = int((usage.ru_utime + usage.ru_stime) * 1e6)
        _tell(control, STATUS.pack(pid, status, processor, usage.ru_maxrss * 1024))


def _tell(control: socket.socket, report: bytes) -> None:
    try:
        control.send(report)
    except OSError:
        os._exit(0)  # the guest is gone


def _ignore(number: int, frame: object) -> None:
    return


def read_exactly(size: int) -> bytes:
    """Bytes from the channel; ends the isolate when the guest has closed it."""
    parts = []
    while size:
        part = os.read(CHANNEL, min(size, 1 << 20))
        if not part:
            os._exit(0)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_request() -> bytes:
    return read_exactly(LENGTH.unpack(read_exactly(LENGTH.size))[0])


def read_request_with_file() -> tuple[bytes, int | None]:
    """A request, and the descriptor of the file that came with it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, os.dup(CHANNEL)) as channel:
        start, files, _, _ = socket.recv_fds(channel, LENGTH.size, 1)
    if not start:
        os._exit(0)
    length = LENGTH.unpack(start + read_exactly(LENGTH.size - len(start)))[0]
    return read_exactly(length), files[0] if files else None


class RecordWriter:
    """Writes records to the channel. One that may wait goes together with the next, so that the guest wakes once."""

    def __init__(self) -> None:
        self._held = b""

    def write(self, kind: int, payload: bytes, *, may_wait: bool = False) -> None:
        data, self._held = self._held + RECORD.pack(kind, len(payload)) + payload, b""
        if may_wait and len(data) <= MAX_HELD:
            self._held = data
            return
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(CHANNEL, rest) :]


records = RecordWriter()
