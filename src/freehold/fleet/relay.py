"""Joins the connection of a client or of a guest to one between head and node: what one sends the other gets.

Bytes pass from one transport to the other without a task in between. A command of a computer on another machine passes
four such pipes, and a file all of its bytes. The connection between head and node carries one link after the other
(`pieces`).
"""

import asyncio
import contextlib
import threading

from freehold.errors import FreeholdError
from freehold.fleet.pieces import END, LENGTH, PieceReader
from freehold.fleet.wire import PIECE, Stream, abort_stream, read_now

LINGER_SECONDS = 5.0
"""How long one side may take to get what the other had sent before it ended."""
_buffers = threading.local()


async def carry_link(plain: Stream, shared: Stream) -> bool:
    """Until either side ends; the link has no half-closed state. Nothing large may wait to be written before.

    `plain` is the connection of the client or of the guest, which ends. `shared` is the one between head and node.
    Returns whether it can carry another link: both ends have said that this one is over, and nothing has come behind
    it. Else it is ended too.
    """
    passage = _Passage(plain, shared)
    is_clean = False
    try:
        passage.begin()
        await passage.over.wait()
        is_clean = await passage.finish()
    finally:
        abort_stream(plain[1])
        if not is_clean:
            abort_stream(shared[1])
    return is_clean


class _Passage:
    """What both ends of a link have in common. An end that is too full stops the other one."""

    def __init__(self, plain: Stream, shared: Stream) -> None:
        self._readers = plain[0], shared[0]
        self._plain = _find_transport(plain)
        self._shared = _find_transport(shared)
        self._plain_end = _PlainEnd(self, self._plain, self._shared)
        self._shared_end = _SharedEnd(self, self._shared, self._plain)
        self._pieces = PieceReader()
        self._has_said_end = False
        self._settled = asyncio.Event()
        self._is_clean = False
        self.over = asyncio.Event()

    def begin(self) -> None:
        """Nothing is awaited: what comes meanwhile is in the readers, or comes to the ends."""
        plain, shared = self._readers
        for end in (self._plain_end, self._shared_end):
            end.take_over()
        while data := read_now(plain):
            self._shared.write(LENGTH.pack(len(data)) + data)
        if data is not None or self._plain.is_closing():
            self.over.set()
        while data := read_now(shared):
            self.take(memoryview(data))
        if data is not None or self._shared.is_closing():
            self.lose_shared()

    def send(self, piece: memoryview) -> None:
        """Of the plain side; its length is in front of it."""
        if not self._has_said_end:
            self._shared.write(piece)

    def take(self, data: memoryview) -> None:
        """Of the shared side. What comes when this side is over is dropped until the end comes."""
        try:
            for part in self._pieces.split(data):
                if not self.over.is_set():
                    self._plain.write(part)
        except FreeholdError:
            self._refuse()
            return
        if self._pieces.rest and not self._has_said_end:
            self._refuse()  # the other end cannot begin anything before it knows that this one is through
        elif self._pieces.is_ended:
            self.over.set()
            self._settle()

    def _refuse(self) -> None:
        self._shared.abort()
        self.lose_shared()

    def lose_shared(self) -> None:
        self.over.set()
        self._settled.set()

    async def finish(self) -> bool:
        """Says the end when nobody can get anything more of this link here, and waits for that of the other side.
        Whether both have said it."""
        self._plain.close()  # when what was sent has been written
        self._shared.resume_reading()
        if not self._pieces.is_ended:
            self._say_end()
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                await self._plain_end.closed.wait()
        except TimeoutError:
            self._plain.abort()
        self._say_end()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2 * LINGER_SECONDS):
                await self._settled.wait()
        return self._is_clean

    def _say_end(self) -> None:
        if not self._has_said_end and not self._settled.is_set():
            self._shared.write(END)
            self._has_said_end = True
            self._settle()

    def _settle(self) -> None:
        """When both have said it. At once: the opening of the next link may be in the same bytes."""
        if not self._has_said_end or not self._pieces.is_ended or self._settled.is_set():
            return
        if not self._shared_end.is_full and not self._shared.is_closing():
            self._shared_end.give_back()
            if self._pieces.rest:
                self._readers[1].feed_data(self._pieces.rest)
            self._is_clean = True
        self._settled.set()


class _End(asyncio.BufferedProtocol):
    """One side of a link, instead of the protocol that its transport had before."""

    def __init__(self, passage: _Passage, transport: asyncio.Transport, other: asyncio.Transport) -> None:
        self._passage = passage
        self._transport = transport
        self._other = other
        self._before = transport.get_protocol()
        self.is_full = False
        self.closed = asyncio.Event()

    def take_over(self) -> None:
        self._transport.set_write_buffer_limits(high=PIECE)
        self._transport.set_protocol(self)

    def give_back(self) -> None:
        self._transport.set_protocol(self._before)

    def pause_writing(self) -> None:
        self.is_full = True
        self._other.pause_reading()

    def resume_writing(self) -> None:
        self.is_full = False
        self._other.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()
        self._passage.over.set()
        self._before.connection_lost(exc)


class _PlainEnd(_End):
    """At the client or at the guest."""

    def get_buffer(self, sizehint: int) -> memoryview:
        return _find_buffer()[LENGTH.size :]

    def buffer_updated(self, nbytes: int) -> None:
        piece = _find_buffer()[: LENGTH.size + nbytes]
        LENGTH.pack_into(piece, 0, nbytes)
        self._passage.send(piece)
        _leave_buffer(self._other)

    def eof_received(self) -> None:
        self._passage.over.set()


class _SharedEnd(_End):
    """At the other machine."""

    def get_buffer(self, sizehint: int) -> memoryview:
        return _find_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._passage.take(_find_buffer()[:nbytes])
        _leave_buffer(self._other)

    def eof_received(self) -> None:
        self._passage.lose_shared()

    def connection_lost(self, exc: Exception | None) -> None:
        self._passage.lose_shared()
        super().connection_lost(exc)


def _find_buffer() -> memoryview:
    """One for all links of this thread, and so of its event loop: the transport fills it and calls `buffer_updated` at
    once."""
    found: memoryview | None = getattr(_buffers, "view", None)
    if found is None:
        found = _buffers.view = memoryview(bytearray(LENGTH.size + PIECE))
    return found


def _leave_buffer(target: asyncio.Transport) -> None:
    """What a transport could not send at once it may keep as it is: then the buffer is its own."""
    if target.get_write_buffer_size():
        _buffers.view = None


def _find_transport(stream: Stream) -> asyncio.Transport:
    transport = stream[1].transport
    assert isinstance(transport, asyncio.Transport)
    return transport
