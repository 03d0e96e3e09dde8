"""An archive as it is sent: in parts, as fast as it is read, and not forever."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

PART = 256 * 1024
TIMEOUT = 120.0
"""Seconds in which it is sent."""


class ArchiveResponse(StreamingResponse):
    """`on_end` is called once nothing more of it is sent, also when the other side has gone."""

    def __init__(self, packed: bytes, headers: Mapping[str, str], on_end: Callable[[], None]) -> None:
        length = {"content-length": str(len(packed))}
        super().__init__(_split(packed), headers={**headers, **length}, media_type="application/x-tar")
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(TIMEOUT):
                    await super().__call__(scope, receive, send)
        finally:
            self._on_end()


async def _split(packed: bytes) -> AsyncIterator[bytes]:
    for place in range(0, len(packed), PART):
        yield packed[place : place + PART]
