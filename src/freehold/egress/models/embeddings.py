"""Asks a provider for embeddings on the host's own behalf, by the same door as programs inside: checked, counted, stopped."""

import asyncio
import base64
import binascii
import json
import struct
from collections.abc import Sequence
from typing import Any

from freehold.egress.http1 import Field
from freehold.egress.http_exchange import HttpExchange
from freehold.egress.models.gateway import ModelGateway
from freehold.egress.stream import PushbackReader
from freehold.errors import FreeholdError

SESSION = "slot.memory"
"""What usage and budgets show as the session."""
MAX_BYTES = 32 * 1024 * 1024
MAX_DIMENSIONS = 16_384


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


async def fetch_embeddings(models: ModelGateway, provider: str, model: str, texts: Sequence[str]) -> list[list[float]]:
    """A vector for each text. Raises `models.…` when the provider is not there, refused, or over its budget."""
    await models.wait_ready()
    endpoint = models.endpoint_for(provider, SESSION)
    if not endpoint.provider.speaks_openai:
        raise FreeholdError(
            "models.no-embeddings",
            f"The provider {provider} has no /v1/embeddings",
            hint="Choose one of the kind openai or openai-compatible",
        )
    body = json.dumps({"model": model, "input": list(texts), "encoding_format": "base64"}).encode()
    fields: list[Field] = [
        ("Host", "localhost"),
        ("Authorization", f"Bearer {endpoint.key}"),
        ("Content-Type", "application/json"),
        ("Accept", "application/json"),
        ("Accept-Encoding", "identity"),
        ("Connection", "close"),
    ]
    ours, theirs = PipeEnd(), PipeEnd()
    ours.join(theirs)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(models.handle(theirs))
        try:
            exchange = HttpExchange(ours, PushbackReader(ours), "POST", f"/{provider}/v1/embeddings", fields, len(body))
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
    return _read_answer(provider, response.status, answer, len(texts))


def _read_answer(provider: str, status: int, answer: bytes, count: int) -> list[list[float]]:
    try:
        content: Any = json.loads(answer)
    except (ValueError, RecursionError):
        content = None
    if status != 200:
        error = content.get("error") if isinstance(content, dict) else None
        words = str(error.get("message", ""))[:300] if isinstance(error, dict) else ""
        raise FreeholdError(
            "models.embedding-refused", f"{provider} answered {status} to a request for embeddings: {words}"
        )
    try:
        rows = sorted(content["data"], key=lambda row: int(row["index"]))
        found = [_read_vector(row["embedding"]) for row in rows]
    except (KeyError, TypeError, ValueError, binascii.Error, struct.error):
        found = []
    if len(found) != count or any(not 0 < len(row) <= MAX_DIMENSIONS for row in found):
        raise FreeholdError("models.bad-embedding", f"{provider} did not answer with a vector for each text")
    return found


def _read_vector(given: object) -> list[float]:
    """Base64 is a quarter of the size. A provider that does not know it sends a list."""
    if isinstance(given, str):
        data = base64.b64decode(given, validate=True)
        return list(struct.unpack(f"<{len(data) // 4}f", data))
    if not isinstance(given, list):
        raise TypeError("not a vector")
    return [float(one) for one in given]
