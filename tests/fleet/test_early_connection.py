"""The connection that is made before it is needed: used once, only while it is good, and never left open."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.support.condition import until

from freehold.fleet import early_connection
from freehold.fleet.certificates import make_own_pair, pinned_context
from freehold.fleet.early_connection import EarlyConnection
from freehold.fleet.node_link import NodeAddress, NodeLink


class TlsNode:
    """Says hello, and remembers who is connected. `refuses` ends each connection at once."""

    def __init__(self) -> None:
        self.refuses = False
        self.accepted = 0
        self.open: set[asyncio.StreamWriter] = set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self.open.add(writer)
        with contextlib.suppress(OSError):
            writer.write(b"hello")
            if not self.refuses:
                await reader.read()
        self.open.discard(writer)
        writer.transport.abort()


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[tuple[TlsNode, NodeLink]]:
    own, peer, node = make_own_pair("head"), make_own_pair("node"), TlsNode()
    context = pinned_context(peer, own.certificate, server=True)
    async with await asyncio.start_server(node.accept, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        address = NodeAddress("shed", "127.0.0.1", port, pinned_context(own, peer.certificate, server=False))
        yield node, NodeLink(address, lambda *_: None, lambda *_: None, lambda _: None)
        await until(lambda: not node.open)


async def test_it_is_given_once_and_no_session_can_be_resumed() -> None:
    async with running() as (node, link):
        early = EarlyConnection(link)
        stream = await early.take()
        assert stream is not None
        assert await stream[0].readexactly(5) == b"hello"
        assert await early.take() is None
        early.close()
        assert not stream[1].is_closing()
        tls = stream[1].get_extra_info("ssl_object")
        assert tls.version() == "TLSv1.3"
        assert tls.session is None or not tls.session.has_ticket
        stream[1].transport.abort()
        assert node.accepted == 1


async def test_one_that_the_node_has_ended_is_not_used() -> None:
    async with running() as (node, link):
        node.refuses = True
        early = EarlyConnection(link)
        assert early._opening is not None
        stream = await asyncio.shield(early._opening)
        await until(stream[1].is_closing)
        assert await early.take() is None


async def test_one_that_is_too_old_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_connection, "MAX_AGE", -1.0)
    async with running() as (node, link):
        assert await EarlyConnection(link).take() is None
        await until(lambda: node.accepted == 1)


@pytest.mark.parametrize("is_complete", [True, False])
async def test_one_that_nobody_takes_is_closed(is_complete: bool) -> None:
    async with running() as (node, link):
        early = EarlyConnection(link)
        if is_complete:
            await until(lambda: node.accepted == 1)
        early.close()
        early.close()
        assert await early.take() is None


async def test_a_node_that_cannot_be_reached_gives_none() -> None:
    async with running() as (_, link):
        pass
    assert await EarlyConnection(link).take() is None
