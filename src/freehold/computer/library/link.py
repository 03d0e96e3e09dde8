"""The host's end of a link: one connection with many channels, to a guest that may be hostile."""

import asyncio
import struct
import time
from collections.abc import Callable
from typing import Any

from freehold.computer.contract.transport import Transport
from freehold.computer.library import frames
from freehold.computer.library.channel import Channel, Receiver
from freehold.computer.library.frames import protocol_error
from freehold.computer.library.heartbeat import PING_EVERY, Heartbeat, LinkHealth
from freehold.computer.library.use import ComputerUse
from freehold.errors import FreeholdError

MAX_UNSETTLED = 4096
"""Channels that the host closed and the guest did not. Beyond it no new one is opened: the guest has to catch up."""
MAX_GUEST_CHANNELS = 1024
MAX_UNSENT = 64 * 1024 * 1024
"""Bytes that wait for a guest that reads slowly. Beyond it new requests are refused."""
MAX_NUMBER = 2**32 - 1

AcceptChannel = Callable[["Link", int, dict[str, Any]], None]
"""Called when the guest opens a channel. Must `adopt` it; an error refuses this channel."""


class UnwantedChannel:
    """Receives what arrives on a channel that the host has refused: nothing is kept."""

    def data(self, stream: int, payload: memoryview) -> None:
        return

    def end(self, stream: int) -> None:
        return

    def message(self, message: dict[str, Any]) -> None:
        return

    def closed(self) -> None:
        return

    def lost(self, error: FreeholdError) -> None:
        return


class Link(asyncio.BufferedProtocol):
    """Created by `Link.connect`. When it has ended, `ended` holds the reason and every open channel has failed with it.

    A guest that breaks the framing or sends more than it was granted loses the link. An answer that is too long or
    malformed ends its own operation only.
    """

    def __init__(self, *, accept: AcceptChannel | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._decoder = frames.FrameDecoder()
        self._transport: asyncio.Transport | None = None
        self._channels: dict[int, Channel] = {}
        self._accept = accept
        self._next = -1
        self._guest_open = 0
        self._unsettled = 0
        self._resumed: asyncio.Future[None] | None = None
        self._ping_timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._last_beat = self._loop.time()
        self._is_paused = False
        self.heartbeat = Heartbeat(clock)
        self.use = ComputerUse()
        self.ended: asyncio.Future[FreeholdError] = self._loop.create_future()
        self._greeted: asyncio.Future[None] = self._loop.create_future()

    @classmethod
    async def connect(
        cls,
        transport: Transport,
        *,
        accept: AcceptChannel | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> "Link":
        """A link after the handshake. Raises `link.refused`, `link.version` or `link.protocol`."""
        try:
            link = await transport.connect(lambda: cls(accept=accept, clock=clock))
        except OSError as error:
            raise FreeholdError(
                "link.refused",
                f"No computer answers at {transport.address}: {error.strerror}",
                hint="Run freehold status to see whether it runs",
            ) from None
        waiting: list[asyncio.Future[Any]] = [link._greeted, link.ended]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            link.close()
            raise
        if link.ended.done():
            raise link.ended.result()
        return link

    @property
    def health(self) -> LinkHealth:
        if self.ended.done():
            return "lost"
        return "healthy" if self._is_paused else self.heartbeat.health

    @property
    def silence(self) -> float:
        """Seconds without an answer; 0 while the computer sleeps."""
        return 0.0 if self._is_paused else self.heartbeat.silence

    def pause(self) -> None:
        """The computer sleeps: no heartbeat is sent, and its silence means nothing."""
        self._is_paused = True
        if self._ping_timer is not None:
            self._ping_timer.cancel()

    def resume(self) -> None:
        """The computer is awake again."""
        if self._is_paused:
            self._is_paused = False
            self.heartbeat.record_activity()
            self._last_beat = self._loop.time()
            if not self.ended.done():
                self.send_heartbeat()

    def open(
        self, request: dict[str, Any], receiver: Receiver, window: int = frames.WINDOW, *, counts: bool = True
    ) -> Channel:
        """Begin an operation. One that does not count (`counts`) only looks at the computer and does not keep it awake."""
        if self.ended.done():
            raise self.ended.result()
        if window != frames.WINDOW:
            request = {**request, "window": window}
        payload = frames.encode_message(request)
        self._check_room()
        if self._unsettled >= MAX_UNSETTLED:
            raise frames.busy_error(f"{self._unsettled} requests that were given up have not ended yet")
        channel = Channel(self, self._take_number(), receiver, window)
        self._channels[channel.number] = channel
        self.use.touch(counts=counts)
        self.send(frames.OPEN, channel.number, payload)
        return channel

    def send(self, kind: int, channel: int, payload: bytes = b"") -> None:
        if self._transport is None or self.ended.done():
            return
        self._transport.write(frames.encode_frame(kind, channel, payload))

    def _check_room(self) -> None:
        """Raises `computer.busy` while a guest has not read what was sent before. The link and its channels stay."""
        if self._transport is not None and self._transport.get_write_buffer_size() > MAX_UNSENT:
            raise frames.busy_error(f"it has not read {MAX_UNSENT} bytes that were sent to it")

    def _take_number(self) -> int:
        """The next odd number that is free; after the largest it begins again."""
        while True:
            self._next = 1 if self._next + 2 > MAX_NUMBER else self._next + 2
            if self._next not in self._channels:
                return self._next

    async def drain(self) -> None:
        """Wait until the socket accepts data again; writers continue in the order in which they came."""
        while self._resumed is not None and not self.ended.done():
            await asyncio.shield(self._resumed)

    def settle(self, channel: Channel) -> None:
        """Called when one side closed the channel; forgets it when both have."""
        if channel.closed_by_host and channel.closed_by_guest:
            if self._channels.pop(channel.number, None) is not None and channel.number % 2 == 0:
                self._guest_open -= 1
            return
        if channel.closed_by_host:
            self._unsettled += 1

    def cut(self, error: FreeholdError) -> None:
        """End the link with this error. Idempotent."""
        if self.ended.done():
            return
        self.ended.set_result(error)
        if self._ping_timer is not None:
            self._ping_timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        self.resume_writing()
        channels = list(self._channels.values())
        self._channels.clear()
        for channel in channels:
            channel.fail(error)

    def close(self) -> None:
        self.cut(FreeholdError("link.closed", "The link was closed by this program"))

    def send_heartbeat(self) -> None:
        """Send a ping, or end a link that has been silent for too long."""
        now = self._loop.time()
        if now - self._last_beat > 2 * PING_EVERY:
            self.heartbeat.record_activity()  # this process was suspended and sent no ping: the silence is not the guest's
        self._last_beat = now
        if self.heartbeat.health == "lost":
            self.cut(FreeholdError("link.lost", f"The computer has not answered for {self.heartbeat.silence:.0f} s"))
            return
        self.send(frames.PING, 0)
        if self._ping_timer is not None:
            self._ping_timer.cancel()
        self._ping_timer = self._loop.call_later(PING_EVERY, self.send_heartbeat)

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=1024 * 1024)
        transport.write(frames.PREAMBLE)
        self._ping_timer = self._loop.call_later(PING_EVERY, self.send_heartbeat)

    def connection_lost(self, error: Exception | None) -> None:
        self.cut(
            FreeholdError("link.lost", "The computer closed the link" if error is None else f"The link failed: {error}")
        )

    def pause_writing(self) -> None:
        self._resumed = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._resumed is not None:
            self._resumed.set_result(None)
            self._resumed = None

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._decoder.room()

    def buffer_updated(self, size: int) -> None:
        self.heartbeat.record_activity()
        try:
            for kind, number, payload in self._decoder.advance(size):
                self._dispatch(kind, number, payload)
                if self.ended.done():
                    return
        except FreeholdError as error:
            self.cut(error)
            return
        if not self._greeted.done() and self._decoder.greeted:
            self._greeted.set_result(None)

    def _dispatch(self, kind: int, number: int, payload: memoryview) -> None:
        channel = self._channels.get(number)
        if channel is None or channel.closed_by_guest:
            if kind == frames.PONG and number == 0:
                return
            if kind == frames.OPEN:
                self._accept_guest_channel(number, bytes(payload))
                return
            raise protocol_error(f"a frame on channel {number}, which is not open")
        if kind in (frames.DATA, frames.SIDE):
            stream = kind - frames.DATA
            channel.allowed[stream] -= len(payload)
            if channel.allowed[stream] < 0:
                raise protocol_error(f"more bytes than granted on channel {number}")
            self._deliver(channel, kind, payload)
        elif kind in (frames.MESSAGE, frames.END):
            self._deliver(channel, kind, payload)
        elif kind == frames.GRANT:
            self._add_credit(channel, payload)
        elif kind == frames.CLOSE:
            if channel.closed_by_host:
                self._unsettled -= 1
            channel.close_by_guest()
            self.settle(channel)
        else:
            raise protocol_error(f"a frame of kind {kind} on channel {number}")

    def _deliver(self, channel: Channel, kind: int, payload: memoryview) -> None:
        """Hand an answer to its receiver. One that it cannot read ends this channel and no other."""
        if channel.closed_by_host:
            return
        try:
            if kind == frames.MESSAGE:
                channel.receiver.message(frames.decode_message(bytes(payload)))
            elif kind != frames.END:
                channel.receiver.data(kind - frames.DATA, payload)
            elif bytes(payload) in (b"\0", b"\1"):
                channel.receiver.end(payload[0])
            else:
                raise protocol_error("the end of an unknown stream")
        except FreeholdError as error:
            channel.refuse(error)

    def _add_credit(self, channel: Channel, payload: memoryview) -> None:
        try:
            stream, amount = frames.CREDIT.unpack(payload)
        except struct.error:
            raise protocol_error("a credit of the wrong size") from None
        if stream > 1:
            raise protocol_error("credit for an unknown stream")
        channel.add_credit(stream, amount)

    def _accept_guest_channel(self, number: int, payload: bytes) -> None:
        """The guest opens a channel. Its numbers are even, and it may open a limited number."""
        if number % 2 or number == 0 or number in self._channels or self._accept is None:
            raise protocol_error(f"it opened channel {number}, which it may not open")
        if self._guest_open >= MAX_GUEST_CHANNELS:
            raise protocol_error(f"it opened more than {MAX_GUEST_CHANNELS} channels")
        self._guest_open += 1
        try:
            self._accept(self, number, frames.decode_message(payload))
        except FreeholdError:
            # For example for a listener that the host has closed at this moment.
            self.adopt(number, UnwantedChannel()).close()

    def adopt(self, number: int, receiver: Receiver) -> Channel:
        """Accept a channel that the guest opened. What is sent on it is no use: a program inside asked for it."""
        channel = Channel(self, number, receiver, frames.WINDOW)
        channel.is_use = False
        self._channels[number] = channel
        return channel
