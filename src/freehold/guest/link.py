"""One link to the host: frames in both directions, credit for every stream, and a limit on unsent bytes."""

from __future__ import annotations

from _socket import MSG_DONTWAIT

from freehold.guest import wire
from freehold.guest.codec import decode_message, encode_message, shorten
from freehold.guest.loop import HANG_UP, READ, WRITE, log_error, log_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable
    from typing import Any

    from freehold.guest.loop import Loop

MAX_UNSENT = 512 * 1024
"""Unsent bytes above which the link accepts no more data from processes and files."""
BATCH = 64
RECEIVE = 256 * 1024
RECEIVE_LITTLE = 32 * 1024
"""For most requests. The C library would map new memory for a larger buffer, and unmap it, each time."""
MAX_CHANNELS = 16384
MAX_NUMBER = 2**32 - 1
MAX_ERROR_TEXT = 1000


class Operation:
    """What a channel does. The link calls these methods; a subclass overrides those that it needs."""

    def data(self, stream: int, payload: bytes) -> None:
        """Bytes arrived. Call `channel.grant` once they are consumed."""

    def end(self, stream: int) -> None:
        """No more bytes arrive on the stream."""

    def message(self, message: dict[str, Any]) -> None:
        """The host sent a message to the running operation."""

    def credited(self) -> None:
        """More may be sent: the host granted credit, or the link is no longer congested."""

    def closed(self) -> None:
        """The host closed the channel, or the link was lost. Nothing can be sent any more."""


class GuestChannel:
    """The streams of one operation. `credit` is what we may still send, `allowed` what the host may still send.

    Nothing is sent on a closed channel: the host takes such a frame for a breach of the protocol.
    """

    __slots__ = ("allowed", "credit", "is_open", "link", "number", "operation")

    def __init__(self, link: GuestLink, number: int, window: int) -> None:
        self.link = link
        self.number = number
        self.credit = [window, window]
        self.allowed = [wire.WINDOW, wire.WINDOW]
        self.operation = Operation()
        self.is_open = True

    def room(self, stream: int) -> int:
        """How many bytes may be sent now. 0: wait for `credited`."""
        if self.link.unsent_bytes > MAX_UNSENT:
            self.link.congested_channels[self] = None
            return 0
        return min(self.credit[stream], wire.MAX_PAYLOAD)

    def send(self, stream: int, payload: bytes) -> None:
        self.credit[stream] -= len(payload)
        self.send_spent(stream, payload)

    def send_spent(self, stream: int, payload: bytes) -> None:
        """Send bytes whose credit is used already."""
        if self.is_open:
            self.link.send_frame(wire.SIDE if stream else wire.DATA, self.number, payload)

    def send_end(self, stream: int) -> None:
        if self.is_open:
            self.link.send_frame(wire.END, self.number, bytes((stream,)))

    def grant(self, stream: int, amount: int) -> None:
        if self.is_open and amount:
            self.allowed[stream] += amount
            self.link.send_frame(wire.GRANT, self.number, wire.CREDIT.pack(stream, amount))

    def send_message(self, message: dict[str, Any]) -> None:
        """A message that is too long for a frame ends this operation with an error instead, and not the link."""
        if not self.is_open:
            return
        payload = encode_message(message)
        if len(payload) > wire.MAX_PAYLOAD:
            self.fail("computer.too-large", f"The answer has {len(payload)} bytes (at most {wire.MAX_PAYLOAD})")
            return
        self.link.send_frame(wire.MESSAGE, self.number, payload)

    def finish(self, message: dict[str, Any] | None = None) -> None:
        """Send the last message and close the channel. Idempotent."""
        if not self.is_open:
            return
        if message is not None:
            self.send_message(message)
        if self.is_open:  # a message that was too long has closed it
            self.is_open = False
            self.link.send_frame(wire.CLOSE, self.number)
            self.link.release(self)

    def fail(self, code: str, message: str) -> None:
        self.finish({"error": [code, shorten(message, MAX_ERROR_TEXT)]})


class GuestLink:
    def __init__(
        self,
        loop: Loop,
        connection: socket,
        begin: Callable[[GuestChannel, dict[str, Any]], Operation],
        gone: Callable[[GuestLink], None],
    ) -> None:
        self._loop = loop
        self._socket = connection
        self._descriptor = connection.fileno()
        self._begin = begin
        self._gone = gone
        self._inbox = b""
        self._receive = RECEIVE_LITTLE
        self._greeted = False
        self._outbox: list[bytes] = [wire.PREAMBLE]
        self._scheduled = False
        self._blocked = False
        self.unsent_bytes = len(wire.PREAMBLE)
        self.congested_channels: dict[GuestChannel, None] = {}
        self.channels: dict[int, GuestChannel] = {}
        self._own = 0
        self.accepted = 0
        self.alive = True
        connection.setblocking(False)
        loop.watch(self._descriptor, READ, self._ready)
        self._flush()

    def send_frame(self, kind: int, channel: int, payload: bytes = b"") -> None:
        if not self.alive:
            return
        size = len(payload)
        header = wire.HEADER.pack(size, kind, channel)
        if size <= 4096:
            self._outbox.append(header + payload)
        else:
            self._outbox.append(header)
            self._outbox.append(payload)
        self.unsent_bytes += size + wire.HEADER.size
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_after_round(self._flush)

    def open(self, message: dict[str, Any]) -> GuestChannel:
        """Open a channel to the host, for a connection from inside to a port that the host listens on."""
        while True:
            self._own = 2 if self._own + 2 > MAX_NUMBER else self._own + 2
            if self._own not in self.channels:
                break
        channel = GuestChannel(self, self._own, wire.WINDOW)
        self.channels[channel.number] = channel
        self.accepted += 1
        self.send_frame(wire.OPEN, channel.number, encode_message(message))
        return channel

    def release(self, channel: GuestChannel) -> None:
        if self.channels.pop(channel.number, None) is not None and channel.number % 2 == 0:
            self.accepted -= 1
        self.congested_channels.pop(channel, None)

    def cut(self, reason: str = "") -> None:
        """End the link: close every operation and the socket. Idempotent."""
        if not self.alive:
            return
        self.alive = False
        self._loop.forget(self._descriptor)
        self._socket.close()
        channels = list(self.channels.values())
        self.channels.clear()
        self.congested_channels.clear()
        self._outbox.clear()
        for channel in channels:
            channel.is_open = False
            try:
                channel.operation.closed()
            except Exception as error:
                log_error(error)
        if reason:
            log_line(f"link closed: {reason}")
        self._gone(self)

    def _ready(self, events: int) -> None:
        if events & WRITE:
            self._flush()
        if events & (READ | HANG_UP) and self.alive:
            try:
                data = self._socket.recv(self._receive)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                data = b""
            if not data:
                self.cut()
                return
            self._receive = RECEIVE if len(data) == self._receive else RECEIVE_LITTLE
            try:
                self._feed(data)
            except wire.WireError as error:
                self._flush()
                self.cut(str(error))

    def _feed(self, data: bytes) -> None:
        inbox = self._inbox + data if self._inbox else data
        at = 0
        if not self._greeted:
            if len(inbox) < len(wire.PREAMBLE):
                self._inbox = inbox
                return
            if inbox[: len(wire.PREAMBLE)] != wire.PREAMBLE:
                raise wire.WireError("the preamble is wrong")
            self._greeted = True
            at = len(wire.PREAMBLE)
        header = wire.HEADER.size
        while len(inbox) - at >= header:
            size, kind, number = wire.HEADER.unpack_from(inbox, at)
            if size > wire.MAX_PAYLOAD:
                raise wire.WireError(f"a frame of {size} bytes")
            end = at + header + size
            if len(inbox) < end:
                break
            try:
                self._dispatch(kind, number, inbox[at + header : end])
            except wire.WireError:
                raise
            except Exception as error:
                log_error(error)
                self._fail(number, error)
            at = end
            if not self.alive:
                return
        self._inbox = inbox[at:]

    def _fail(self, number: int, error: Exception) -> None:
        channel = self.channels.get(number)
        if channel is not None:
            channel.fail("computer.failed", f"{type(error).__name__}: {error}")
            channel.operation.closed()

    def _dispatch(self, kind: int, number: int, payload: bytes) -> None:
        if kind == wire.OPEN:
            self._accept(number, payload)
            return
        if kind == wire.PING:
            self.send_frame(wire.PONG, 0, payload[:8])
            return
        channel = self.channels.get(number)
        if channel is None:
            return  # sent before the host saw our close
        if kind in (wire.DATA, wire.SIDE):
            stream = kind - wire.DATA
            channel.allowed[stream] -= len(payload)
            if channel.allowed[stream] < 0:
                raise wire.WireError(f"more bytes than granted on channel {number}")
            channel.operation.data(stream, payload)
        elif kind == wire.GRANT:
            if len(payload) != wire.CREDIT.size or payload[0] > 1:
                raise wire.WireError("a bad grant")
            stream, amount = wire.CREDIT.unpack(payload)
            channel.credit[stream] += amount
            channel.operation.credited()
        elif kind == wire.MESSAGE:
            channel.operation.message(decode_message(payload))
        elif kind == wire.END and len(payload) == 1:
            channel.operation.end(payload[0])
        elif kind == wire.CLOSE:
            channel.operation.closed()
            channel.finish()
        else:
            raise wire.WireError(f"a frame of kind {kind}")

    def _accept(self, number: int, payload: bytes) -> None:
        if number % 2 == 0 or number in self.channels:
            raise wire.WireError(f"channel {number} cannot be opened")
        request = decode_message(payload)
        window = request.get("window", wire.WINDOW)
        if not isinstance(window, int) or not 0 < window <= wire.MAX_WINDOW:
            raise wire.WireError("a bad window")
        channel = GuestChannel(self, number, window)
        full = len(self.channels) >= MAX_CHANNELS
        self.channels[number] = channel
        if full:
            channel.fail("computer.busy", f"{MAX_CHANNELS} operations are running, which is the limit")
        else:
            channel.operation = self._begin(channel, request)

    def _flush(self) -> None:
        self._scheduled = False
        outbox = self._outbox
        while outbox and self.alive:
            try:
                sent = self._socket.sendmsg(outbox[:BATCH], (), MSG_DONTWAIT)
            except (BlockingIOError, InterruptedError):
                self._blocked = True
                self._loop.watch(self._descriptor, READ | WRITE, self._ready)
                return
            except OSError:
                self.cut()
                return
            self.unsent_bytes -= sent
            done = 0
            for part in outbox:
                if sent < len(part):
                    break
                sent -= len(part)
                done += 1
            del outbox[:done]
            if sent:
                outbox[0] = outbox[0][sent:]
        if not self.alive:
            return
        if self._blocked:
            self._blocked = False
            self._loop.watch(self._descriptor, READ, self._ready)
        if self.congested_channels:
            parched, self.congested_channels = self.congested_channels, {}
            for channel in parched:
                channel.operation.credited()
