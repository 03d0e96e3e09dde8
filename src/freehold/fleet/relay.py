"""Joins two connections: what one sends the other gets, as it is.

Bytes pass from one transport to the other without a task in between. A command of a computer on another machine passes
four such pipes, and a file all of its bytes.
"""

import asyncio
import threading

from freehold.fleet.wire import PIECE, Stream, abort_stream

LINGER_SECONDS = 5.0
"""How long one side may take to get what the other had sent before it ended."""
_buffers = threading.local()


async def relay(one: Stream, other: Stream) -> None:
    """Until either side ends; the link has no half-closed state. Nothing large may wait to be written before."""
    ended = asyncio.Event()
    try:
        pipes = [
            _Pipe(_find_transport(source), _find_transport(target), ended)
            for source, target in ((one, other), (other, one))
        ]
        for pipe, (reader, _) in zip(pipes, (one, other), strict=True):
            pipe.take_over(reader)
        await ended.wait()
        for _, writer in (one, other):
            if not writer.transport.is_closing():
                writer.transport.close()  # when what was sent has been written
        async with asyncio.timeout(LINGER_SECONDS):
            for pipe in pipes:
                await pipe.closed.wait()
    except TimeoutError:
        pass
    finally:
        for _, writer in (one, other):
            abort_stream(writer)


class _Pipe(asyncio.BufferedProtocol):
    """What `source` receives goes to `target`. Whoever has too much to send stops the other one."""

    def __init__(self, source: asyncio.Transport, target: asyncio.Transport, ended: asyncio.Event) -> None:
        self._source = source
        self._target = target
        self._ended = ended
        self._before = source.get_protocol()
        self.closed = asyncio.Event()

    def take_over(self, reader: asyncio.StreamReader) -> None:
        """Nothing is awaited: what comes meanwhile is in the reader, or comes to this pipe."""
        while data := _read_now(reader):
            self._target.write(data)
        self._source.set_write_buffer_limits(high=PIECE)
        self._source.set_protocol(self)
        if data is not None or self._source.is_closing():
            self._ended.set()

    def get_buffer(self, sizehint: int) -> memoryview:
        """One for all pipes: the transport fills it and calls `buffer_updated` at once."""
        return _find_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._target.write(bytes(_find_buffer()[:nbytes]))  # a copy: the transport may keep it

    def pause_writing(self) -> None:
        self._target.pause_reading()

    def resume_writing(self) -> None:
        self._target.resume_reading()

    def eof_received(self) -> None:
        self._ended.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended.set()
        self.closed.set()
        self._before.connection_lost(exc)


def _find_buffer() -> memoryview:
    """That of this thread, and so of its event loop."""
    found: memoryview | None = getattr(_buffers, "view", None)
    if found is None:
        found = _buffers.view = memoryview(bytearray(PIECE))
    return found


def _find_transport(stream: Stream) -> asyncio.Transport:
    transport = stream[1].transport
    assert isinstance(transport, asyncio.Transport)
    return transport


def _read_now(reader: asyncio.StreamReader) -> bytes | None:
    """What has arrived: None if nothing has, and empty at the end."""
    reading = reader.read(PIECE)
    try:
        reading.send(None)
    except StopIteration as done:
        data: bytes = done.value
        return data
    reading.close()
    return None
