"""Moves bytes between a descriptor and a stream of a channel, at the speed of the slower side."""

from __future__ import annotations

from freehold.guest.kernel import deque, os
from freehold.guest.loop import HANG_UP, READ, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from freehold.guest.link import GuestChannel
    from freehold.guest.loop import Loop

CHUNK = 64 * 1024
MAX_HELD = 32 * 1024


class StreamSource:
    """Reads a descriptor that it owns and sends the bytes, as far as there is credit. Calls `ended` once, at the end.

    After `capture` bytes the rest is read, counted in `dropped` and discarded. With `quiet`, small output is held back
    until the end, and no END frame is sent.
    """

    __slots__ = (
        "_capture",
        "_channel",
        "_descriptor",
        "_ended",
        "_held",
        "_loop",
        "_quiet",
        "_stream",
        "dropped",
        "live",
    )

    def __init__(
        self,
        loop: Loop,
        channel: GuestChannel,
        stream: int,
        descriptor: int,
        ended: Callable[[], None],
        capture: int | None = None,
        quiet: bool = False,
    ) -> None:
        self._loop = loop
        self._channel = channel
        self._stream = stream
        self._descriptor = descriptor
        self._ended = ended
        self._capture = capture
        self._quiet = quiet
        self._held: list[bytes] = []
        self.dropped = 0
        self.live = True
        os.set_blocking(descriptor, False)
        loop.watch(descriptor, READ, self._ready)

    def resume(self) -> None:
        """There may be credit again. Read at once, before the descriptors that epoll reports."""
        if self.live:
            self._loop.watch(self._descriptor, READ, self._ready)
            self._read()

    def close(self) -> None:
        """Idempotent; does not call `ended`."""
        if self.live:
            self.live = False
            self._loop.forget(self._descriptor)
            os.close(self._descriptor)
            self._release()

    def drain(self) -> bool:
        """Send what can be read without waiting. False if there was not enough credit."""
        while self.live:
            if self._capture != 0 and self._channel.room(self._stream) <= 0:
                return False
            if not self._read():
                break
        return True

    def _ready(self, events: int) -> None:
        if self._read() and events & HANG_UP:
            self._read()  # the writer is gone: this usually finds the end and saves a round

    def _read(self) -> bool:
        """Read and send once; whether there was data."""
        channel = self._channel
        if self._capture == 0:
            room = CHUNK
        else:
            room = min(channel.room(self._stream), CHUNK)
            if room <= 0:
                self._loop.forget(self._descriptor)
                return False
            if self._capture is not None:
                room = min(room, self._capture)
        try:
            data = os.read(self._descriptor, room)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:  # EIO: the slave side of a pty was closed
            data = b""
        if not data:
            self.close()
            if channel.is_open and not self._quiet:
                channel.send_end(self._stream)
            self._ended()
            return False
        if self._capture == 0:
            self.dropped += len(data)
            return True
        if self._capture is not None:
            self._capture -= len(data)
        channel.credit[self._stream] -= len(data)
        self._held.append(data)
        if not self._quiet or len(data) > MAX_HELD or sum(map(len, self._held)) > MAX_HELD:
            self._release()
        return True

    def _release(self) -> None:
        """Send the bytes that were held back; their credit is already used."""
        for data in self._held:
            self._channel.send_spent(self._stream, data)
        self._held.clear()


class StreamSink:
    """Writes the bytes of a stream to a descriptor that it owns, and grants the host new credit."""

    __slots__ = ("_channel", "_descriptor", "_ending", "_loop", "_owed", "_pending", "_stream", "live")

    def __init__(self, loop: Loop, channel: GuestChannel, stream: int, descriptor: int) -> None:
        self._loop = loop
        self._channel = channel
        self._stream = stream
        self._descriptor = descriptor
        self._pending: deque[bytes] = deque()
        self._ending = False
        self._owed = 0
        self.live = True
        os.set_blocking(descriptor, False)

    def write(self, payload: bytes) -> None:
        if not self.live:
            self._repay(len(payload))  # the reader has ended: let the host go on; it will see the exit
            return
        self._pending.append(payload)
        if len(self._pending) == 1:
            self._ready(WRITE)

    def end(self) -> None:
        self._ending = True
        if not self._pending:
            self.close()

    def close(self) -> None:
        """Idempotent."""
        if self.live:
            self.live = False
            self._loop.forget(self._descriptor)
            os.close(self._descriptor)
            self._repay(sum(map(len, self._pending)))
            self._pending.clear()

    def _ready(self, events: int) -> None:
        while self._pending:
            payload = self._pending[0]
            try:
                written = os.write(self._descriptor, payload)
            except (BlockingIOError, InterruptedError):
                self._loop.watch(self._descriptor, WRITE, self._ready)
                return
            except OSError:
                self.close()
                return
            if written < len(payload):
                self._pending[0] = payload[written:]
            else:
                self._pending.popleft()
            self._repay(written)
        self._loop.forget(self._descriptor)
        if self._ending:
            self.close()

    def _repay(self, amount: int) -> None:
        self._owed += amount
        if self._owed >= CHUNK or not self._pending:
            self._channel.grant(self._stream, self._owed)
            self._owed = 0
