"""A connection between head and node carries one link after the other. Nobody can end a link but its two ends, and
nothing of one comes to the next."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator

import pytest
from tests.fleet.fleet_work import SMALL, remote
from tests.fleet.link_ends import connect_pair, shared_connection
from tests.fleet.one_node import OneNode, one_node
from tests.support.condition import until

from freehold.computer import Computer
from freehold.errors import FreeholdError
from freehold.fleet import host as host_module
from freehold.fleet import relay as relay_module
from freehold.fleet import spare_connections
from freehold.fleet.early_connection import EarlyConnection
from freehold.fleet.pieces import END, LENGTH
from freehold.fleet.relay import carry_link
from freehold.fleet.spare_connections import MAX_SPARE, SpareConnections
from freehold.fleet.wire import PIECE, Stream, abort_stream, encode_message

FORGED = END + encode_message({"open": "link", "computer": "0" * 32}) + END * 3 + LENGTH.pack(1)
"""What a guest could say to end its link and begin another one."""


async def test_a_guest_that_forges_an_end_is_heard_as_it_is_and_ends_nothing() -> None:
    async with shared_connection() as shared:
        for _ in range(3):
            async with shared.carried() as link:
                link.other[1].write(FORGED)
                assert await link.one[0].readexactly(len(FORGED)) == FORGED
                link.one[1].write(FORGED)
                assert await link.other[0].readexactly(len(FORGED)) == FORGED
                link.one[1].close()
                assert await link.ends() == [True, True]


@pytest.mark.parametrize("leaver", ["client", "guest"])
async def test_what_nobody_has_read_does_not_come_to_the_next_link(leaver: str) -> None:
    async with shared_connection() as shared:
        async with shared.carried() as link:
            for stream in (link.one, link.other):
                stream[1].write(b"secret of the first" * 10_000)
            (link.one if leaver == "client" else link.other)[1].close()
            assert await link.ends() == [True, True]
        async with shared.carried() as link:
            link.one[1].write(b"there")
            link.other[1].write(b"back")
            assert await link.other[0].readexactly(5) == b"there"
            assert await link.one[0].readexactly(4) == b"back"
            link.one[1].close()
            assert await link.other[0].read(-1) == b""
            assert await link.one[0].read(-1) == b""
            assert await link.ends() == [True, True]


async def test_a_guest_that_sends_without_end_is_dropped_when_its_client_leaves() -> None:
    async with shared_connection() as shared, shared.carried() as link:

        async def send_always() -> None:
            with contextlib.suppress(OSError):
                while True:
                    link.other[1].write(os.urandom(PIECE))
                    await link.other[1].drain()

        async with asyncio.TaskGroup() as group:
            group.create_task(send_always())
            await link.one[0].readexactly(4 * PIECE)
            link.one[1].close()
            assert await link.ends() == [True, True]


async def test_a_link_that_is_cut_in_the_middle_ends_its_connection() -> None:
    async with shared_connection() as shared, shared.carried() as link:
        link.one[1].write(b"half")
        assert await link.other[0].readexactly(4) == b"half"
        abort_stream(shared.node[1])
        assert await link.ends() == [False, False]
        assert shared.head[1].is_closing()
        assert await link.one[0].read(-1) == b""


async def test_a_link_that_is_cancelled_ends_its_connection() -> None:
    async with shared_connection() as shared, shared.carried() as link:
        link.one[1].write(b"half")
        assert await link.other[0].readexactly(4) == b"half"
        link.head.cancel()
        assert not await link.node
        assert shared.head[1].is_closing()


LIES = {
    "more after the end": END + b"more",
    "a piece after the end": END + LENGTH.pack(1) + b"x",
    "two ends": END + END,
    "a piece that is too long": LENGTH.pack(PIECE + 1),
    "an error instead of pieces": encode_message({"error": {"code": "x", "message": "y" * PIECE, "hint": ""}}),
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_node_that_lies_about_the_end_loses_the_connection(lie: str) -> None:
    async with shared_connection() as shared:
        one, near = await connect_pair()
        task = asyncio.create_task(carry_link(near, shared.head))
        shared.node[1].write(LIES[lie])
        if lie.startswith("an error"):
            shared.node[1].close()
        assert not await task
        assert shared.head[1].is_closing()
        await one[0].read(-1)
        abort_stream(one[1])


async def test_a_node_that_never_ends_a_link_loses_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_module, "LINGER_SECONDS", 0.01)
    async with shared_connection() as shared:
        one, near = await connect_pair()
        one[1].close()
        shared.node[1].write(LENGTH.pack(PIECE) + b"it goes on")
        assert not await carry_link(near, shared.head)
        assert shared.head[1].is_closing()


async def test_a_node_that_takes_nothing_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has said the end, so that both have, and what the client said waits to be written."""
    monkeypatch.setattr(relay_module, "LINGER_SECONDS", 0.01)
    async with shared_connection() as shared:
        one, near = await connect_pair()
        task = asyncio.create_task(carry_link(near, shared.head))
        shared.node[1].transport.pause_reading()  # type: ignore[attr-defined]
        one[1].write(bytes(8 * PIECE))
        await until(lambda: shared.head[1].transport.get_write_buffer_size() >= PIECE)
        shared.node[1].write(END)
        assert not await task
        abort_stream(one[1])


# Spare connections


async def spare_pair(spares: SpareConnections) -> tuple[Stream, Stream]:
    head, node = await connect_pair()
    spares.keep(head)
    return head, node


async def test_a_connection_on_which_something_came_meanwhile_is_not_used() -> None:
    spares = SpareConnections()
    head, node = await spare_pair(spares)
    kept, other = await spare_pair(spares)
    other[1].write(b"x")
    await until(lambda: kept[0]._buffer)  # type: ignore[attr-defined]
    assert spares.take() is head
    assert spares.take() is None
    assert kept[1].is_closing()
    for stream in (head, node, other):
        abort_stream(stream[1])


async def test_a_connection_that_has_ended_meanwhile_is_not_used() -> None:
    spares = SpareConnections()
    head, node = await spare_pair(spares)
    node[1].close()
    await until(head[0].at_eof)
    assert spares.take() is None


async def test_spare_connections_are_few_and_end_after_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare_connections, "SPARE_SECONDS", 0.05)
    spares = SpareConnections()
    pairs = [await spare_pair(spares) for _ in range(MAX_SPARE + 3)]
    assert len(spares) == MAX_SPARE
    assert sum(head[1].is_closing() for head, _ in pairs) == 3
    await until(lambda: len(spares) == 0)
    for _, node in pairs:
        assert await node[0].read(-1) == b""
        abort_stream(node[1])
    last, node = await spare_pair(spares)
    spares.close()
    spares.close()
    assert last[1].is_closing()
    abort_stream(node[1])


# In a fleet


class HostileGuest:
    """In the place of the guest of a computer: says what it likes, to whoever opens a link."""

    def __init__(self, words: bytes, *, leaves: bool) -> None:
        self._words = words
        self._leaves = leaves
        self.heard = b""

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(self._words)
            await writer.drain()
            if not self._leaves:
                while data := await reader.read(PIECE):
                    self.heard += data
        writer.close()


@contextlib.asynccontextmanager
async def hostile(fleet: OneNode, guest: HostileGuest) -> AsyncIterator[Stream]:
    """A link to it, by the socket of a computer."""
    async with Computer.start(on=fleet.place, limits=SMALL) as computer:
        (hosted,) = fleet.host._computers.values()
        path = hosted.folder / "link"
        path.unlink()
        async with await asyncio.start_unix_server(guest.accept, str(path)):
            reader, writer = await asyncio.open_unix_connection(computer.transport.address)
            yield reader, writer
            writer.close()


def count_spares(fleet: OneNode) -> int:
    link = fleet.head.find_link("shed")
    assert link is not None
    return len(link.spares)


async def test_computers_one_after_the_other_have_one_connection() -> None:
    async with one_node() as fleet:
        for number in range(5):
            async with Computer.start(on=fleet.place, limits=SMALL) as computer:
                assert (await computer.run(f"echo {number}; ls -A /tmp")).text == f"{number}\n"
        assert fleet.host.connections == 2  # and that of the head itself
        assert fleet.host.openings == ["control", "link"]
        assert count_spares(fleet) == 1


@pytest.mark.parametrize("leaves", [True, False])
@pytest.mark.parametrize("words", [b"", FORGED, b"\xff" * 1000, os.urandom(700_001)], ids=["", "forged", "ff", "long"])
async def test_a_computer_after_one_with_a_hostile_guest_gets_nothing_of_it(words: bytes, leaves: bool) -> None:
    async with one_node() as fleet:
        guest = HostileGuest(words, leaves=leaves)
        async with hostile(fleet, guest) as stream:
            assert await stream[0].readexactly(len(words)) == words
            if leaves:
                assert await stream[0].read(-1) == b""
            else:
                stream[1].write(FORGED)
                await until(lambda: guest.heard == FORGED)
        connections = fleet.host.connections
        async with Computer.start(on=fleet.place, limits=SMALL) as computer:
            assert (await computer.run("echo clean")).stdout == b"clean\n"
        assert fleet.host.connections == connections


async def test_what_a_hostile_guest_leaves_unread_and_unsent_does_not_reach_the_next_computer() -> None:
    async with one_node() as fleet:
        async with hostile(fleet, HostileGuest(os.urandom(8_000_000), leaves=False)) as stream:
            await stream[0].readexactly(100)
        async with Computer.start(on=fleet.place, limits=SMALL) as computer:
            assert (await computer.run("echo clean")).stdout == b"clean\n"


async def test_a_link_to_a_computer_that_the_node_does_not_have_is_ended() -> None:
    async with one_node() as fleet, Computer.start(on=fleet.place, limits=SMALL) as computer:
        (id,) = fleet.host._computers
        hosted = fleet.host._computers.pop(id)
        with pytest.raises(FreeholdError) as caught:
            await Computer.connect(computer.transport)
        assert caught.value.code == "link.lost"
        fleet.host._computers[id] = hosted
        assert (await computer.run("echo still")).stdout == b"still\n"


async def test_a_node_that_was_started_again_gets_new_connections() -> None:
    """The spare ones of before are of no use, and nobody waits for them."""
    async with one_node() as fleet:
        async with Computer.start(on=fleet.place, limits=SMALL):
            pass
        link = fleet.head.find_link("shed")
        assert link is not None
        await until(lambda: count_spares(fleet) == 1)
        link._disconnect()
        assert count_spares(fleet) == 0
        await until(lambda: not fleet.head.list_blocked())
        async with Computer.start(on=fleet.place, limits=SMALL) as computer:
            assert (await computer.run("echo again")).stdout == b"again\n"


async def test_a_head_that_has_ended_leaves_no_connection_at_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[None] = []
    carry = host_module.NodeHost._carry_links

    async def watch(*words: object) -> None:
        try:
            await carry(*words)  # type: ignore[arg-type]
        finally:
            ended.append(None)

    monkeypatch.setattr(host_module.NodeHost, "_carry_links", watch)
    async with one_node() as fleet:
        async with Computer.start(on=fleet.place, limits=SMALL):
            pass
        await until(lambda: count_spares(fleet) == 1)
        assert not ended
        link = fleet.head.find_link("shed")
        assert link is not None
        link.spares.close()  # as the system does for a program that has ended
        await until(lambda: len(ended) == 1)


async def test_an_early_connection_is_a_spare_one_if_there_is_one() -> None:
    async with one_node() as fleet:
        async with Computer.start(on=fleet.place, limits=SMALL) as computer:
            assert remote(computer).node == "shed"
        await until(lambda: count_spares(fleet) == 1)
        link = fleet.head.find_link("shed")
        assert link is not None
        early = EarlyConnection(link)
        assert count_spares(fleet) == 0
        stream = await early.take()
        assert stream is not None
        assert fleet.host.connections == 2
        stream[1].transport.abort()
