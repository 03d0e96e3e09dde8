"""Between a descriptor and a channel's stream, in either direction, at the pace of the slower."""

from __future__ import annotations

import os

from freehold.guest.kernel import deque
from freehold.guest.loop import HANG_UP, READ, WRITE
from freehold.guest.wire import DATA, SIDE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from freehold.guest.link import Channel
    from freehold.guest.loop import Loop

CHUNK = 64 * 1024
HELD = 32 * 1024


class Source:
    """Reads a descriptor it owns and sends what comes, as far as credit goes. Calls `ended` once, at its end.

    With `capture`, what comes after so many bytes is read, counted in `dropped` and thrown away. A `quiet` one is for
    those who only want the whole: small output is held back until the end, and the end itself goes without saying.
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
        channel: Channel,
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
        """There may be room again. Those that had none take at once, ahead of those that epoll will tell of."""
        if self.live:
            self._loop.watch(self._descriptor, READ, self._ready)
            self._take()

    def close(self) -> None:
        """Idempotent; does not call `ended`."""
        if self.live:
            self.live = False
            self._loop.forget(self._descriptor)
            os.close(self._descriptor)
            self._release()

    def drain(self) -> bool:
        """Send what can be had without waiting. False when there was no room for all of it."""
        while self.live:
            if self._capture != 0 and self._channel.room(self._stream) <= 0:
                return False
            if not self._take():
                break
        return True

    def _ready(self, events: int) -> None:
        if self._take() and events & HANG_UP:
            self._take()  # its writer is gone: most often this finds the end, and saves a round

    def _take(self) -> bool:
        """Whether something came."""
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
        except OSError:  # a pty whose far side is closed says EIO
            data = b""
        if not data:
            self.close()
            if channel.open and not self._quiet:
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
        if not self._quiet or len(data) > HELD or sum(map(len, self._held)) > HELD:
            self._release()
        return True

    def _release(self) -> None:
        """Send what was read; its credit is paid for already."""
        for data in self._held:
            self._channel.link.put(SIDE if self._stream else DATA, self._channel.number, data)
        self._held.clear()


class Sink:
    """Writes what a stream brings to a descriptor it owns, and grants the host room as it goes."""

    __slots__ = ("_channel", "_descriptor", "_ending", "_loop", "_owed", "_pending", "_stream", "live")

    def __init__(self, loop: Loop, channel: Channel, stream: int, descriptor: int) -> None:
        self._loop = loop
        self._channel = channel
        self._stream = stream
        self._descriptor = descriptor
        self._pending: deque[bytes] = deque()
        self._ending = False
        self._owed = 0
        self.live = True
        os.set_blocking(descriptor, False)

    def put(self, payload: bytes) -> None:
        if not self.live:
            self._repay(len(payload))  # nobody reads any more: let the host go on and find out by the exit
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
