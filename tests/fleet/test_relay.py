"""What one side of a link sends the other gets, whole and in order; neither outlives the other."""

import asyncio
import contextlib
import os
import tracemalloc

import pytest
from tests.fleet.link_ends import carried_link, connect_pair, shared_connection

from freehold.fleet import relay as relay_module
from freehold.fleet.pieces import END, LENGTH
from freehold.fleet.relay import carry_link
from freehold.fleet.wire import PIECE, Stream, encode_message, read_message

MIB = 1024 * 1024


async def _send(stream: Stream, data: bytes) -> None:
    for at in range(0, len(data), 100_003):
        stream[1].write(data[at : at + 100_003])
        await stream[1].drain()


async def test_bytes_arrive_whole_and_in_order_both_ways_at_once() -> None:
    there, back = os.urandom(5 * MIB + 1), os.urandom(3 * MIB + 7)
    async with carried_link() as link:
        _, _, at_other, at_one = await asyncio.gather(
            _send(link.one, there),
            _send(link.other, back),
            link.other[0].readexactly(len(there)),
            link.one[0].readexactly(len(back)),
        )
    assert at_other == there
    assert at_one == back


async def test_what_came_with_the_opening_message_is_not_lost() -> None:
    early = os.urandom(PIECE)
    async with shared_connection() as shared:
        other, far = await connect_pair()
        shared.head[1].write(encode_message({"open": "link"}) + LENGTH.pack(PIECE) + early)
        assert await read_message(shared.node[0]) == {"open": "link"}
        task = asyncio.create_task(carry_link(far, shared.node))
        shared.head[1].write(LENGTH.pack(5) + b"later" + END)
        assert await other[0].read(-1) == early + b"later"
        assert await task
        other[1].close()


async def test_what_a_client_has_sent_before_is_not_lost() -> None:
    async with shared_connection() as shared:
        one, near = await connect_pair()
        one[1].write(b"early")
        await near[0].readexactly(1)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(carry_link(near, shared.head))
            assert await shared.node[0].readexactly(8) == LENGTH.pack(4) + b"arly"
            one[1].close()
            assert await shared.node[0].readexactly(4) == END
            shared.node[1].write(END)
        assert task.result()


async def test_the_end_of_one_side_is_the_end_of_the_other() -> None:
    async with carried_link() as link:
        link.one[1].write(b"last words")
        assert await link.other[0].readexactly(10) == b"last words"
        link.other[1].close()
        assert await link.ends() == [True, True]
        assert await link.one[0].read() == b""


async def test_a_side_that_has_left_before_is_noticed() -> None:
    async with shared_connection() as shared:
        one, near = await connect_pair()
        one[1].write(b"bye")
        one[1].close()
        await near[0].readexactly(1)
        while not near[0].at_eof():  # both bytes and the end are in the reader
            await near[0].read(1)
        shared.node[1].write(END)
        assert await carry_link(near, shared.head)


async def test_a_connection_that_has_ended_before_is_noticed() -> None:
    async with shared_connection() as shared:
        one, near = await connect_pair()
        shared.node[1].close()
        while not shared.head[0].at_eof():
            await shared.head[0].read(1)
        assert not await carry_link(near, shared.head)
        assert await one[0].read() == b""
        one[1].close()


async def test_a_reader_that_stops_stops_the_sender() -> None:
    """Else one slow client would make the head keep all that its computer sends."""
    sent = 0

    async def send_all(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while sent < 64 * MIB:
            writer.write(bytes(PIECE))
            await writer.drain()
            sent += PIECE

    async with carried_link() as link:
        sending = asyncio.create_task(send_all(link.one[1]))
        for _round in range(2000):  # rounds of the loop, in which all could be sent
            await asyncio.sleep(0)
        assert not sending.done()
        assert sent < 16 * MIB
        assert len(await link.other[0].readexactly(64 * MIB)) == 64 * MIB
        await sending


async def test_what_was_sent_before_the_end_arrives() -> None:
    """The reader is slow: what no socket has taken yet waits here when the sender leaves."""
    said = os.urandom(400_000)
    async with carried_link() as link:
        link.other[1].transport.pause_reading()  # type: ignore[attr-defined]
        link.one[1].write(said)
        link.one[1].close()
        await link.one[1].wait_closed()
        for _round in range(1000):  # rounds of the loop, in which the end is seen
            await asyncio.sleep(0)
        link.other[1].transport.resume_reading()  # type: ignore[attr-defined]
        assert await link.other[0].read(-1) == said
        assert await link.ends() == [True, True]


async def test_a_side_that_takes_nothing_holds_the_other_only_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_module, "LINGER_SECONDS", 0.05)
    async with carried_link() as link:
        link.other[1].transport.pause_reading()  # type: ignore[attr-defined]
        link.one[1].write(bytes(400_000))
        link.one[1].close()
        assert await link.ends() == [True, True]


async def test_links_share_one_buffer() -> None:
    async with contextlib.AsyncExitStack() as stack:
        tracemalloc.start()
        stack.callback(tracemalloc.stop)
        for _ in range(32):
            link = await stack.enter_async_context(carried_link())
            link.one[1].write(b"x")
            assert await link.other[0].readexactly(1) == b"x"
        size, _ = tracemalloc.get_traced_memory()
        assert size < 32 * PIECE
