"""What one connection sends the other gets, whole and in order; neither outlives the other."""

import asyncio
import contextlib
import os
import socket
import tracemalloc
from collections.abc import AsyncIterator

import pytest

from freehold.fleet import relay as relay_module
from freehold.fleet.relay import relay
from freehold.fleet.wire import PIECE, Stream, abort_stream, encode_message, read_message

MIB = 1024 * 1024


async def _connect() -> tuple[Stream, Stream]:
    near, far = socket.socketpair()
    return (
        await asyncio.open_unix_connection(sock=near, limit=PIECE),
        await asyncio.open_unix_connection(sock=far, limit=PIECE),
    )


@contextlib.asynccontextmanager
async def _joined() -> AsyncIterator[tuple[Stream, Stream, asyncio.Task[None]]]:
    """Both ends of a relay, and the relay."""
    one, near = await _connect()
    other, far = await _connect()
    task = asyncio.create_task(relay(near, far))
    try:
        yield one, other, task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for _, writer in (one, other):
            abort_stream(writer)


async def _send(stream: Stream, data: bytes) -> None:
    for at in range(0, len(data), 100_003):
        stream[1].write(data[at : at + 100_003])
        await stream[1].drain()


async def test_bytes_arrive_whole_and_in_order_both_ways_at_once() -> None:
    there, back = os.urandom(5 * MIB + 1), os.urandom(3 * MIB + 7)
    async with _joined() as (one, other, _):
        _, _, at_other, at_one = await asyncio.gather(
            _send(one, there),
            _send(other, back),
            other[0].readexactly(len(there)),
            one[0].readexactly(len(back)),
        )
    assert at_other == there
    assert at_one == back


async def test_what_came_with_the_opening_message_is_not_lost() -> None:
    one, near = await _connect()
    other, far = await _connect()
    early = os.urandom(PIECE)
    one[1].write(encode_message({"open": "link"}) + early)
    assert await read_message(near[0]) == {"open": "link"}
    task = asyncio.create_task(relay(near, far))
    one[1].write(b"later")
    assert await other[0].readexactly(len(early) + 5) == early + b"later"
    one[1].close()
    await task
    other[1].close()


async def test_the_end_of_one_side_is_the_end_of_the_other() -> None:
    async with _joined() as (one, other, task):
        one[1].write(b"last words")
        assert await other[0].readexactly(10) == b"last words"
        other[1].close()
        await task
        assert await one[0].read() == b""


async def test_a_side_that_has_left_before_is_noticed() -> None:
    one, near = await _connect()
    other, far = await _connect()
    one[1].write(b"bye")
    one[1].close()
    await near[0].readexactly(1)
    while not near[0].at_eof():  # both bytes and the end are in the reader
        await near[0].read(1)
    await relay(near, far)
    assert await other[0].read() == b""
    other[1].close()


async def test_a_reader_that_stops_stops_the_sender() -> None:
    """Else one slow client would make the head keep all that its computer sends."""
    sent = 0

    async def send_all(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while sent < 64 * MIB:
            writer.write(bytes(PIECE))
            await writer.drain()
            sent += PIECE

    async with _joined() as (one, other, _):
        sending = asyncio.create_task(send_all(one[1]))
        for _round in range(2000):  # rounds of the loop, in which all could be sent
            await asyncio.sleep(0)
        assert not sending.done()
        assert sent < 16 * MIB
        assert len(await other[0].readexactly(64 * MIB)) == 64 * MIB
        await sending


async def test_what_was_sent_before_the_end_arrives() -> None:
    """The reader is slow: what no socket has taken yet waits here when the sender leaves."""
    said = os.urandom(400_000)
    async with _joined() as (one, other, task):
        other[1].transport.pause_reading()  # type: ignore[attr-defined]
        one[1].write(said)
        one[1].close()
        await one[1].wait_closed()
        for _round in range(1000):  # rounds of the loop, in which the end is seen
            await asyncio.sleep(0)
        other[1].transport.resume_reading()  # type: ignore[attr-defined]
        assert await other[0].read(-1) == said
        await task


async def test_a_side_that_takes_nothing_holds_the_other_only_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_module, "LINGER_SECONDS", 0.01)
    async with _joined() as (one, other, task):
        other[1].transport.pause_reading()  # type: ignore[attr-defined]
        one[1].write(bytes(400_000))
        one[1].close()
        await task


async def test_connections_share_one_buffer() -> None:
    async with contextlib.AsyncExitStack() as stack:
        tracemalloc.start()
        stack.callback(tracemalloc.stop)
        for _ in range(32):
            one, other, _ = await stack.enter_async_context(_joined())
            one[1].write(b"x")
            assert await other[0].readexactly(1) == b"x"
        size, _ = tracemalloc.get_traced_memory()
        assert size < 32 * PIECE
