"""Two streams joined, and what is checked before they are."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from freehold.egress.clienthello import HELLO_LIMIT, looks_like_tls, read_client_hello
from freehold.egress.connections import Connection
from freehold.egress.names import Host, parse_host
from freehold.egress.stream import Inlet, Stream
from freehold.errors import FreeholdError

TLS_PORTS = frozenset({443, 465, 563, 636, 853, 989, 990, 992, 993, 994, 995, 2376, 5061, 5671, 6443, 8443, 8883, 9443})
"""Where nothing but TLS is let through. Elsewhere TLS is checked when it is seen."""

ALERT_UNRECOGNIZED_NAME = bytes([21, 3, 3, 0, 2, 2, 112])


async def check_server_name(inlet: Inlet, host: Host, *, named_address: bool) -> bytes:
    """The client's first message, once its SNI is known to be `host`. Raises `egress.not-tls` or `egress.wrong-sni`.

    `named_address`: a rule names the very address, which has no name to send.
    """
    buffer = bytearray()
    wanted = 1
    while True:
        while len(buffer) < wanted:
            await inlet.read_into(buffer, HELLO_LIMIT + 1024)
        hello = read_client_hello(bytes(buffer))
        if not isinstance(hello, int):
            break
        wanted = hello
    if hello.server_name is None:
        if host.address is None or not named_address:
            raise wrong_sni(host, "names no host")
    elif parse_host(hello.server_name) != host:
        raise wrong_sni(host, f"asks for {hello.server_name[:80]!a}")
    return bytes(buffer)


def wrong_sni(host: Host, what: str) -> FreeholdError:
    return FreeholdError("egress.wrong-sni", f"The connection was allowed to {host}, but its TLS {what}")


async def check_if_tls(inlet: Inlet, host: Host, *, named_address: bool) -> bytes:
    """The first bytes on a port where anything may be spoken; b"" when the client says nothing."""
    first = await inlet.read()
    if not looks_like_tls(first):
        return first
    inlet.put_back(first)
    return await check_server_name(inlet, host, named_address=named_address)


@asynccontextmanager
async def together() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group whose first failure comes out as itself: here both halves fail for one and the same reason."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from failed


async def join(
    connection: Connection,
    inlet: Inlet,
    client: Stream,
    upstream: Stream,
    answers: Inlet,
    before_sending: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Passes bytes both ways until both ends have finished; one end that breaks ends both."""

    async def up() -> None:
        if before_sending is not None:
            await before_sending()
        while piece := await inlet.read():
            await upstream.write(piece)
            connection.sent(len(piece))
        connection.half_closed = True
        await upstream.write_eof()

    async def down() -> None:
        while piece := await answers.read():
            await client.write(piece)
            connection.received(len(piece))
        connection.half_closed = True
        await client.write_eof()

    async with together() as both:
        both.create_task(up())
        both.create_task(down())
