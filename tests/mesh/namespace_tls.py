"""TLS in front of a port of this machine, as a proxy would have it."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path


@asynccontextmanager
async def serve_tls(address: str, certificates: Path, port: int) -> AsyncIterator[None]:
    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner, outer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        with suppress(asyncio.CancelledError):  # the server ends, and its connections with it
            await asyncio.gather(_pipe(reader, outer), _pipe(inner, writer))

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates / "certificate.pem", certificates / "key.pem")
    async with await asyncio.start_server(forward, address, 443, ssl=context):
        yield


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while part := await reader.read(65_536):
            writer.write(part)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
