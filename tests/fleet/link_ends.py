"""The two ends of a connection that carries links, without TLS and without a fleet."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass

from freehold.fleet.relay import carry_link
from freehold.fleet.wire import PIECE, Stream, abort_stream


async def connect_pair() -> tuple[Stream, Stream]:
    near, far = socket.socketpair()
    return (
        await asyncio.open_unix_connection(sock=near, limit=PIECE),
        await asyncio.open_unix_connection(sock=far, limit=PIECE),
    )


@dataclass
class CarriedLink:
    """`one` is what a client has, `other` what a guest has; the tasks tell whether the connection can be used again."""

    one: Stream
    other: Stream
    head: "asyncio.Task[bool]"
    node: "asyncio.Task[bool]"

    async def ends(self) -> list[bool]:
        return list(await asyncio.gather(self.head, self.node))


@dataclass
class SharedConnection:
    """Between head and node."""

    head: Stream
    node: Stream

    @contextlib.asynccontextmanager
    async def carried(self) -> AsyncIterator[CarriedLink]:
        one, near = await connect_pair()
        other, far = await connect_pair()
        tasks = [asyncio.create_task(carry_link(*pair)) for pair in ((near, self.head), (far, self.node))]
        try:
            yield CarriedLink(one, other, *tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for _, writer in (one, other):
                abort_stream(writer)


@contextlib.asynccontextmanager
async def shared_connection() -> AsyncIterator[SharedConnection]:
    head, node = await connect_pair()
    try:
        yield SharedConnection(head, node)
    finally:
        for _, writer in (head, node):
            abort_stream(writer)


@contextlib.asynccontextmanager
async def carried_link() -> AsyncIterator[CarriedLink]:
    async with shared_connection() as shared, shared.carried() as link:
        yield link
