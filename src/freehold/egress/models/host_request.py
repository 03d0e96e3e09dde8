"""Requests on the host's own behalf, by the same door as those of programs inside: checked, counted, stopped."""

import asyncio

from freehold.egress.http1 import Field
from freehold.egress.http_exchange import HttpExchange
from freehold.egress.models.gateway import ModelGateway
from freehold.egress.models.placeholders import Endpoint
from freehold.egress.stream import PushbackReader

MAX_BYTES = 32 * 1024 * 1024


class PipeEnd:
    """One end of a stream within this process."""

    def __init__(self) -> None:
        self._reader = asyncio.StreamReader()
        self._other: asyncio.StreamReader | None = None

    def join(self, other: "PipeEnd") -> None:
        self._other, other._other = other._reader, self._reader

    async def read(self, n: int = 65_536, /) -> bytes:
        return await self._reader.read(n)

    async def write(self, data: bytes, /) -> None:
        if self._other is None or self._other.at_eof():
            raise ConnectionResetError("the other end is closed")
        self._other.feed_data(data)

    async def write_eof(self) -> None:
        if self._other is not None:
            self._other.feed_eof()

    async def close(self) -> None:
        await self.write_eof()
        self._other = None


async def send_host_request(models: ModelGateway, endpoint: Endpoint, path: str, body: bytes) -> tuple[int, bytes]:
    """The status, and the first `MAX_BYTES` of the answer. `path` is that of the provider's own API.

    What the gateway refuses has a status too, and its words in the answer.
    """
    provider = endpoint.provider
    fields: list[Field] = [
        ("Host", "localhost"),
        ("Authorization", f"Bearer {endpoint.key}"),
        ("Content-Type", "application/json"),
        ("Accept", "application/json"),
        ("Accept-Encoding", "identity"),
        ("Connection", "close"),
    ]
    if provider.kind == "anthropic":
        fields.append(("anthropic-version", "2023-06-01"))
    ours, theirs = PipeEnd(), PipeEnd()
    ours.join(theirs)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(models.handle(theirs))
        try:
            exchange = HttpExchange(ours, PushbackReader(ours), "POST", f"/{provider.name}{path}", fields, len(body))
            await exchange.send_whole(body)
            response = await exchange.read_head()
            answer = b""
            async for piece in exchange.read_body():
                answer += piece
                if len(answer) > MAX_BYTES:
                    break
        finally:
            await ours.close()
            serving.cancel()
    return response.status, answer
