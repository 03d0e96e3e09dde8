"""One isolate, seen from the guest: parked, busy with an execution, or waiting for the next one of its context."""

from __future__ import annotations

import _socket
import os
import time

from freehold.guest.isolates import records
from freehold.guest.isolates.records import ITEM, LENGTH, MODULE, RECORD, RESULT
from freehold.guest.kernel import signals
from freehold.guest.loop import READ, WRITE
from freehold.guest.process_table import send_signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from freehold.guest.isolates.zygote import Zygote

CHUNK = 64 * 1024
MAX_PIPE = 1024 * 1024
"""Bytes that a pipe can hold at most, if the program inside makes it larger."""


class IsolateUser:
    """What an isolate calls while it runs a request."""

    def room(self) -> int:
        """How many bytes can be taken now. 0: the isolate waits for `Isolate.resume`."""
        raise NotImplementedError

    def output(self, stream: int, data: bytes) -> None:
        """Bytes of stdout (0) or stderr (1)."""
        raise NotImplementedError

    def item(self, data: bytes, size: int | None) -> None:
        """Bytes of an item with its header. `size`, that of the item, is given with the first of them."""
        raise NotImplementedError

    def module(self, data: bytes, size: int | None) -> None:
        """Bytes of a compiled module. `size` is given before the first of them."""
        raise NotImplementedError

    def answered(self, result: bytes) -> None:
        """The request has ended; all output was delivered."""
        raise NotImplementedError

    def died(self, status: int | None, processor: int, memory: int) -> None:
        """The process is gone before it answered. None: nobody knows how."""
        raise NotImplementedError


class Isolate:
    def __init__(self, zygote: Zygote, limits: bytes = b"") -> None:
        self.zygote = zygote
        self.sealed_for = limits
        """The limits of the only kind of request that it can run: it seals itself while it is parked. Empty: any."""
        self._loop = zygote.loop
        self.pid = 0
        self.over = False
        self._doomed = False
        self._interrupt_at_birth = False
        self._user: IsolateUser | None = None
        self._at_end: Callable[[], None] | None = None
        self._channel, self._its_channel = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._channel.setblocking(False)
        self._out, self._its_out = os.pipe()
        self._err, self._its_err = os.pipe()
        os.set_blocking(self._out, False)
        os.set_blocking(self._err, False)
        self._inbox = b""
        self._left = 0
        self._left_of = ITEM
        self._outbox = memoryview(b"")
        self._file: int | None = None
        self._watched = False
        self._holds_pipes = False
        self._answer: bytes | None = None
        self._end: tuple[int | None, int, int] = (None, 0, 0)
        self._closed = False

    def descriptors_of_child(self) -> tuple[int, int, int]:
        return self._its_channel.fileno(), self._its_out, self._its_err

    def close_child_ends(self) -> None:
        self._its_channel.close()
        os.close(self._its_out)
        os.close(self._its_err)

    @property
    def busy(self) -> bool:
        return self._user is not None

    def processor_time(self) -> float:
        """Seconds that all its threads have used."""
        if self.over:
            return self._end[1] / 1e6
        if not self.pid:
            return 0.0
        try:
            return time.clock_gettime((~self.pid << 3) | 2)  # the clock of that process
        except OSError:
            return 0.0

    def begin(self, user: IsolateUser, request: bytes, inputs: bytes, file: int | None = None) -> None:
        """Send a request with its inputs, and a descriptor, if the isolate is one that expects it."""
        self._user = user
        self._outbox = memoryview(LENGTH.pack(len(request)) + request + inputs)
        self._file = file
        if self.over:
            self._loop.call_after_round(lambda: self._fail(None, 0, 0))
            return
        self._write()
        self._watch()

    def interrupt(self) -> None:
        """SIGINT: what runs ends with an exception, and the isolate's variables stay."""
        if self.pid:
            send_signal(self.pid, signals.SIGINT)
        else:
            self._interrupt_at_birth = True

    def kill(self) -> None:
        self._doomed = True
        if self.pid and not self.over:
            send_signal(self.pid, signals.SIGKILL)

    def on_end(self, action: Callable[[], None]) -> None:
        """Call `action` when the process is gone."""
        self._at_end = action

    def born(self, pid: int) -> None:
        self.pid = pid
        if self._doomed:
            self.kill()
        elif self._interrupt_at_birth:
            self.interrupt()

    def ended(self, status: int | None, processor: int, memory: int) -> None:
        """The process is gone. What it wrote before is still delivered, as soon as the user has room for it."""
        if self.over:
            return
        self.over = True
        self._end = status, processor, memory
        self._watched = False
        for descriptor in (self._channel.fileno(), self._out, self._err):
            self._loop.forget(descriptor)
        self._settle()
        if self._at_end is not None:
            self._at_end()

    def _settle(self) -> None:
        """After the end: the rest of what it wrote, then its answer, or the news that there is none."""
        user = self._user
        if user is not None and self._end[0] is not None:
            if self._answer is None and not self._deliver_rest(user):
                return  # `resume` goes on
            if self._answer is not None:
                return  # `_finish` goes on
        self._close()
        self._fail(*self._end)

    def _deliver_rest(self, user: IsolateUser) -> bool:
        """False when the user has no room for all of it yet."""
        while self._user is user and self._answer is None:
            room = min(CHUNK, user.room())
            if room <= 0:
                return False
            try:
                data = self._channel.recv(room)
            except OSError:
                data = b""
            self._inbox += data
            if not data or not self._read_records(user):
                break
        if self._user is not user or self._answer is not None:
            return True
        return self._drain_pipes()

    def _close(self) -> None:
        """Idempotent."""
        if not self._closed:
            self._closed = True
            self._channel.close()
            os.close(self._out)
            os.close(self._err)

    def _fail(self, status: int | None, processor: int, memory: int) -> None:
        user, self._user = self._user, None
        if user is not None:
            user.died(status, processor, memory)

    def resume(self) -> None:
        """The user has room again."""
        if self._user is None:
            return
        if self.over:
            self._settle()
        else:
            self._watch()

    def _watch(self) -> None:
        if not self._watched:
            self._watched = True
            self._watch_channel()
            self._loop.watch(self._out, READ, self._out_ready)
            self._loop.watch(self._err, READ, self._err_ready)
        elif self._outbox:
            self._watch_channel()

    def _pause(self) -> None:
        if self._watched:
            self._watched = False
            self._watch_channel()
            self._loop.forget(self._out)
            self._loop.forget(self._err)

    def _watch_channel(self) -> None:
        """A channel that is watched for more than is wanted would wake the guest without end."""
        events = (READ if self._watched else 0) | (WRITE if self._outbox else 0)
        if events:
            self._loop.watch(self._channel.fileno(), events, self._channel_ready)
        else:
            self._loop.forget(self._channel.fileno())

    def _write(self) -> None:
        try:
            if self._file is None:
                sent = self._channel.send(self._outbox)
            else:  # with the first bytes
                rights = self._file.to_bytes(4, "little")
                sent = self._channel.sendmsg([self._outbox], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
                self._file = None
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self.kill()
            sent = len(self._outbox)
        self._outbox = self._outbox[sent:]

    def _out_ready(self, events: int) -> None:
        self._read_pipe(0, self._out)

    def _err_ready(self, events: int) -> None:
        self._read_pipe(1, self._err)

    def _read_pipe(self, stream: int, descriptor: int, reserve: int = 0) -> bool:
        """Read once; whether there was data. Output between executions belongs to nobody and is dropped.

        `reserve` bytes of the user's room are left for something else.
        """
        user = self._user
        if user is not None and self._left and self._left_of == ITEM:
            self._hold_pipes()  # nothing may come between the parts of an item
            return False
        room = CHUNK if user is None else min(CHUNK, user.room() - reserve)
        if room <= 0:
            if not reserve:
                self._pause()
            return False
        try:
            data = os.read(descriptor, room)
        except (BlockingIOError, InterruptedError):
            return False
        if not data:
            self._loop.forget(descriptor)
            return False
        if user is not None:
            user.output(stream, data)
        return True

    def _hold_pipes(self) -> None:
        self._holds_pipes = True
        self._loop.forget(self._out)
        self._loop.forget(self._err)

    def _release_pipes(self) -> None:
        self._holds_pipes = False
        if self._watched:
            self._loop.watch(self._out, READ, self._out_ready)
            self._loop.watch(self._err, READ, self._err_ready)

    def _drain_pipes(self, reserve: int = 0) -> bool:
        """Read what both pipes hold. False when the user has no room for the rest.

        Bounded: a thread that goes on writing must not keep the guest here.
        """
        for stream, descriptor in enumerate((self._out, self._err)):
            for _ in range(MAX_PIPE // CHUNK + 1):
                if not self._read_pipe(stream, descriptor, reserve):
                    break
        user = self._user
        return user is None or user.room() > 0

    def _channel_ready(self, events: int) -> None:
        if events & WRITE and self._outbox:
            self._write()
            if not self._outbox:
                self._watch_channel()
        if not events & ~WRITE:
            return
        user = self._user
        room = CHUNK if user is None else min(CHUNK, user.room())
        if room <= 0:
            self._pause()
            return
        try:
            data = self._channel.recv(room)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._loop.forget(self._channel.fileno())
            return  # the zygote reports how it ended
        if user is None:
            self.kill()  # it speaks without being asked
            return
        self._inbox += data
        if not self._read_records(user):
            self.kill()

    def _read_records(self, user: IsolateUser) -> bool:
        """Pass on what has arrived. False if it is not valid."""
        is_drained = False
        while self._inbox:
            if self._left:
                part, self._inbox = self._inbox[: self._left], self._inbox[self._left :]
                self._left -= len(part)
                if self._left_of == ITEM:
                    user.item(part, None)
                    if not self._left and self._holds_pipes:
                        self._release_pipes()
                else:
                    user.module(part, None)
                continue
            if len(self._inbox) < RECORD.size:
                return True
            kind, size = RECORD.unpack_from(self._inbox)
            if kind == ITEM and size <= records.MAX_ITEM:
                if not is_drained:
                    is_drained = self._drain_pipes(reserve=len(self._inbox))  # what was written before comes before
                part, self._inbox = self._inbox[: RECORD.size + size], self._inbox[RECORD.size + size :]
                self._left, self._left_of = size + RECORD.size - len(part), ITEM
                user.item(part, size)
            elif kind == MODULE and size <= records.MAX_ITEM:
                self._inbox = self._inbox[RECORD.size :]
                self._left, self._left_of = size, MODULE
                user.module(b"", size)
            elif kind == RESULT and size <= records.MAX_RESULT:
                if len(self._inbox) < RECORD.size + size:
                    return True
                result = self._inbox[RECORD.size :]
                self._inbox = b""
                if len(result) != size:
                    return False
                self._finish(user, result)
                return True
            else:
                return False
        return True

    def _finish(self, user: IsolateUser, result: bytes) -> None:
        self._answer = result
        if not self._drain_pipes():
            # The host reads slowly: the rest of the output first.
            self._loop.call_later(0.01, lambda: self._finish(user, result) if self._user is user else None)
            return
        self._user = self._answer = None
        if self.over:
            self._close()
        user.answered(result)
