"""The host's end of a link: one socket, many channels, and a guest that is believed in nothing."""

import asyncio
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from freehold.computer import frames
from freehold.computer.channel import Channel, Receiver
from freehold.computer.frames import protocol_error
from freehold.computer.pulse import PING_EVERY, Health, Pulse
from freehold.errors import FreeholdError

MAX_UNSETTLED = 4096
"""Channels we closed and the guest has not: a guest that never answers must not fill our memory."""
MAX_GUEST_CHANNELS = 1024
MAX_UNSENT = 64 * 1024 * 1024
"""Requests waiting for a guest that sends signs of life and reads nothing."""

Accept = Callable[["Link", int, dict[str, Any]], None]
"""Told of a channel that the guest opens; must `adopt` it or raise a protocol error."""


class Link(asyncio.BufferedProtocol):
    """Connect with `Link.connect`. When it ends, `ended` holds the reason and every open channel was told."""

    def __init__(self, *, accept: Accept | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._decoder = frames.Decoder()
        self._transport: asyncio.Transport | None = None
        self._channels: dict[int, Channel] = {}
        self._accept = accept
        self._next = -1
        self._guest_next = 0
        self._guest_open = 0
        self._unsettled = 0
        self._resumed: asyncio.Future[None] | None = None
        self._heartbeat: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._last_beat = self._loop.time()
        self.pulse = Pulse(clock)
        self.ended: asyncio.Future[FreeholdError] = self._loop.create_future()
        self._greeted: asyncio.Future[None] = self._loop.create_future()

    @classmethod
    async def connect(
        cls, path: Path, *, accept: Accept | None = None, clock: Callable[[], float] = time.monotonic
    ) -> "Link":
        """A link that has shaken hands. Raises `link.refused`, `link.version` or `link.protocol`."""
        loop = asyncio.get_running_loop()
        try:
            _, link = await loop.create_unix_connection(lambda: cls(accept=accept, clock=clock), str(path))
        except OSError as error:
            raise FreeholdError(
                "link.refused",
                f"No computer answers at {path}: {error.strerror}",
                hint="freehold status tells whether it runs",
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
    def health(self) -> Health:
        return "lost" if self.ended.done() else self.pulse.health

    def open(self, request: dict[str, Any], receiver: Receiver, window: int = frames.WINDOW) -> Channel:
        if self.ended.done():
            raise self.ended.result()
        if window != frames.WINDOW:
            request = {**request, "window": window}
        payload = frames.encode_message(request)
        self._next += 2
        channel = Channel(self, self._next, receiver, window)
        self._channels[channel.number] = channel
        self.send(frames.OPEN, channel.number, payload)
        return channel

    def send(self, kind: int, channel: int, payload: bytes = b"") -> None:
        if self._transport is None or self.ended.done():
            return
        self._transport.write(frames.encode_frame(kind, channel, payload))
        if self._resumed is not None and self._transport.get_write_buffer_size() > MAX_UNSENT:
            self.cut(FreeholdError("link.lost", "The computer does not take what it is sent"))

    async def drain(self) -> None:
        """Wait while the socket takes nothing; writers go on in the order in which they came."""
        while self._resumed is not None and not self.ended.done():
            await asyncio.shield(self._resumed)

    def settle(self, channel: Channel) -> None:
        """Called when a side closed: forget the channel once both have."""
        if channel.closed_here and channel.closed_there:
            if self._channels.pop(channel.number, None) is not None and channel.number % 2 == 0:
                self._guest_open -= 1
            return
        if channel.closed_here:
            self._unsettled += 1
            if self._unsettled > MAX_UNSETTLED:
                self.cut(protocol_error("it leaves closed channels open"))

    def cut(self, error: FreeholdError) -> None:
        """End the link for the given reason. Idempotent."""
        if self.ended.done():
            return
        self.ended.set_result(error)
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        if self._transport is not None:
            self._transport.abort()
        self.resume_writing()
        channels = list(self._channels.values())
        self._channels.clear()
        for channel in channels:
            channel.abandon(error)

    def close(self) -> None:
        self.cut(FreeholdError("link.closed", "The link was closed from this side"))

    def beat(self) -> None:
        """One heartbeat: asks for a sign of life, or ends a link that has given none for too long."""
        now = self._loop.time()
        if now - self._last_beat > 2 * PING_EVERY:
            self.pulse.hear()  # it is we who slept and asked nothing: that is no silence of the guest's
        self._last_beat = now
        if self.pulse.health == "lost":
            self.cut(FreeholdError("link.lost", f"The computer has been silent for {self.pulse.silence:.0f} s"))
            return
        self.send(frames.PING, 0)
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        self._heartbeat = self._loop.call_later(PING_EVERY, self.beat)

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=1024 * 1024)
        transport.write(frames.PREAMBLE)
        self._heartbeat = self._loop.call_later(PING_EVERY, self.beat)

    def connection_lost(self, error: Exception | None) -> None:
        self.cut(FreeholdError("link.lost", "The computer hung up" if error is None else f"The link broke: {error}"))

    def pause_writing(self) -> None:
        self._resumed = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._resumed is not None:
            self._resumed.set_result(None)
            self._resumed = None

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._decoder.room()

    def buffer_updated(self, size: int) -> None:
        self.pulse.hear()
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
        if channel is None or channel.closed_there:
            if kind == frames.PONG and number == 0:
                return
            if kind == frames.OPEN:
                self._admit(number, bytes(payload))
                return
            raise protocol_error(f"a frame on channel {number}, which is not open")
        if kind in (frames.DATA, frames.SIDE):
            stream = kind - frames.DATA
            channel.allowed[stream] -= len(payload)
            if channel.allowed[stream] < 0:
                raise protocol_error(f"more bytes than were granted on channel {number}")
            if channel.closed_here:
                return
            channel.receiver.data(stream, payload)
        elif kind == frames.MESSAGE:
            message = frames.decode_message(bytes(payload))
            if not channel.closed_here:
                channel.receiver.message(message)
        elif kind == frames.END:
            if bytes(payload) not in (b"\0", b"\1"):
                raise protocol_error("the end of a stream that does not exist")
            if not channel.closed_here:
                channel.receiver.end(payload[0])
        elif kind == frames.GRANT:
            self._credit(channel, payload)
        elif kind == frames.CLOSE:
            if channel.closed_here:
                self._unsettled -= 1
            channel.ended_there()
            self.settle(channel)
        else:
            raise protocol_error(f"a frame of kind {kind} on channel {number}")

    def _credit(self, channel: Channel, payload: memoryview) -> None:
        try:
            stream, amount = frames.CREDIT.unpack(payload)
        except struct.error:
            raise protocol_error("a credit of the wrong size") from None
        if stream > 1:
            raise protocol_error("credit for a stream that does not exist")
        channel.credited(stream, amount)

    def _admit(self, number: int, payload: bytes) -> None:
        """The guest opens a channel: only for a listener that we asked for, in ascending order, and not too many."""
        if number % 2 or number <= self._guest_next or self._accept is None:
            raise protocol_error(f"it opened channel {number}, which is not its to open")
        if self._guest_open >= MAX_GUEST_CHANNELS:
            raise protocol_error(f"it opened more than {MAX_GUEST_CHANNELS} channels")
        self._guest_next = number
        self._guest_open += 1
        self._accept(self, number, frames.decode_message(payload))

    def adopt(self, number: int, receiver: Receiver) -> Channel:
        """Take a channel that the guest opened."""
        channel = Channel(self, number, receiver, frames.WINDOW)
        self._channels[number] = channel
        return channel
