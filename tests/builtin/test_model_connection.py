"""Without a model of its own, the agent takes one for text from the list of its provider."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from freehold.builtin.json_rpc import RequestError
from freehold.builtin.model_connection import ModelSettings, connect_model


@asynccontextmanager
async def listing(names: Sequence[str]) -> AsyncIterator[ModelSettings]:
    """A provider that lists these models."""
    body = json.dumps({"data": [{"id": name} for name in names]}).encode()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield ModelSettings("openai-compatible", f"http://127.0.0.1:{port}/v1", "none", None, None)


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["only"], "only"),
        (["text-embedding-nomic-embed-text-v1.5", "whisper-1", "qwen3", "llama"], "qwen3"),
        (["nomic-embed-text"], "nomic-embed-text"),
    ],
)
async def test_the_first_model_for_text_is_taken(names: list[str], chosen: str) -> None:
    async with listing(names) as settings:
        assert (await connect_model(settings)).name == chosen


async def test_a_provider_that_lists_nothing_needs_a_model() -> None:
    async with listing([]) as settings:
        with pytest.raises(RequestError, match="No model is set"):
            await connect_model(settings)
