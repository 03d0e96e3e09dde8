"""Relays bytes between two streams, and checks TLS before that."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from freehold.egress.clienthello import HELLO_LIMIT, looks_like_tls, read_client_hello
from freehold.egress.connections import EgressConnection
from freehold.egress.names import Host, parse_host
from freehold.egress.stream import ByteStream, PushbackReader
from freehold.errors import FreeholdError

TLS_PORTS = frozenset({443, 465, 563, 636, 853, 989, 990, 992, 993, 994, 995, 2376, 5061, 5671, 6443, 8443, 8883, 9443})
"""Ports where only TLS is allowed. On other ports TLS is checked when the client uses it."""

ALERT_UNRECOGNIZED_NAME = bytes([21, 3, 3, 0, 2, 2, 112])


async def check_server_name(reader: PushbackReader, host: Host, *, named_address: bool) -> bytes:
    """The client's first message, with an SNI that is `host`. Raises `egress.not-tls` or `egress.wrong-sni`.

    `named_address`: a rule names this address, so the client has no name to send.
    """
    buffer = bytearray()
    wanted = 1
    while True:
        while len(buffer) < wanted:
            await reader.read_into(buffer, HELLO_LIMIT + 1024)
        hello = read_client_hello(bytes(buffer))
        if not isinstance(hello, int):
            break
        wanted = hello
    if hello.server_name is None:
        if host.address is None or not named_address:
            raise wrong_sni(host, "has no server name")
    elif parse_host(hello.server_name) != host:
        raise wrong_sni(host, f"is for {hello.server_name[:80]!a}")
    return bytes(buffer)


def wrong_sni(host: Host, what: str) -> FreeholdError:
    return FreeholdError("egress.wrong-sni", f"The connection was allowed to {host}, but its TLS {what}")


async def check_if_tls(reader: PushbackReader, host: Host, *, named_address: bool) -> bytes:
    """The first bytes on a port where any protocol is allowed; b"" when the client sends nothing."""
    first = await reader.read()
    if not looks_like_tls(first):
        return first
    reader.put_back(first)
    return await check_server_name(reader, host, named_address=named_address)


@asynccontextmanager
async def raising_first_failure() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group that raises its first failure itself: both halves fail for the same reason."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from failed


async def relay_both_ways(
    connection: EgressConnection,
    reader: PushbackReader,
    client: ByteStream,
    upstream: ByteStream,
    responses: PushbackReader,
    before_sending: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Relays bytes both ways until both ends have finished. An error at one end closes both."""

    async def up() -> None:
        if before_sending is not None:
            await before_sending()
        while piece := await reader.read():
            await upstream.write(piece)
            connection.sent(len(piece))
        connection.half_closed = True
        await upstream.write_eof()

    async def down() -> None:
        while piece := await responses.read():
            await client.write(piece)
            connection.received(len(piece))
        connection.half_closed = True
        await client.write_eof()

    async with raising_first_failure() as both:
        both.create_task(up())
        both.create_task(down())
