"""Embeddings for the host go through the model gateway: with the real key, counted, within the budget, and stoppable."""

import asyncio
import base64
import json
import struct
from pathlib import Path

import pytest
from tests.egress.models.gateway_harness import KEY, GatewayHarness
from tests.egress.models.recording_provider import SeenRequest, gateway_to, recording_provider

from freehold.egress.models.budget import BudgetLimits
from freehold.egress.models.embeddings import SESSION, fetch_embeddings
from freehold.errors import FreeholdError


def reply(status: int, content: object) -> bytes:
    body = json.dumps(content).encode()
    return b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        status,
        len(body),
        body,
    )


def vectors(request: SeenRequest, *, packed: bool) -> object:
    """One number a text: its length. In the wrong order, as a provider may."""
    texts = json.loads(request.body)["input"]
    rows = [
        {
            "index": n,
            "embedding": base64.b64encode(struct.pack("<2f", len(text), 1)).decode() if packed else [len(text), 1],
        }
        for n, text in enumerate(texts)
    ]
    return {"data": rows[::-1], "model": "text-embedding-3-small", "usage": {"prompt_tokens": 7, "total_tokens": 7}}


@pytest.mark.parametrize("packed", [True, False])
async def test_texts_become_vectors_and_are_counted(tmp_path: Path, packed: bool) -> None:
    async def answer(request: SeenRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(200, vectors(request, packed=packed)))

    async with recording_provider(answer) as provider, gateway_to(tmp_path, provider.port) as gateway:
        found = await fetch_embeddings(gateway.models, "openai", "text-embedding-3-small", ["a", "bcd"])
        assert found == [[1.0, 1.0], [3.0, 1.0]]
        assert KEY.encode() in provider.raw
        assert b"freehold-placeholder" not in provider.raw
        used = await gateway.models.usage_of(SESSION)
        assert (used.requests, used.tokens.input, used.tokens.output) == (1, 7, 0)


@pytest.mark.parametrize(
    ("status", "content", "code"),
    [
        (400, {"error": {"message": "no such model"}}, "models.embedding-refused"),
        (200, {"data": []}, "models.bad-embedding"),
        (200, {"data": [{"index": 0, "embedding": "!!"}]}, "models.bad-embedding"),
        (200, {"data": [{"index": 0, "embedding": []}]}, "models.bad-embedding"),
        (200, {"data": [{"index": 0, "embedding": {"a": 1}}]}, "models.bad-embedding"),
        (200, "nonsense", "models.bad-embedding"),
    ],
)
async def test_a_wrong_answer_is_refused(tmp_path: Path, status: int, content: object, code: str) -> None:
    async def answer(request: SeenRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(status, content))

    async with recording_provider(answer) as provider, gateway_to(tmp_path, provider.port) as gateway:
        with pytest.raises(FreeholdError) as refused:
            await fetch_embeddings(gateway.models, "openai", "m", ["a"])
        assert refused.value.code == code


async def test_the_kill_switch_and_the_budget_hold(gateway: GatewayHarness) -> None:
    await gateway.models.set_budget("openai", BudgetLimits(day_tokens=1))
    with pytest.raises(FreeholdError, match="budget"):
        await fetch_embeddings(gateway.models, "openai", "m", ["many words " * 50])
    await gateway.models.set_budget("openai", None)
    await gateway.models.stop(why="enough")
    with pytest.raises(FreeholdError):
        await fetch_embeddings(gateway.models, "openai", "m", ["a"])
    assert gateway.provider.requests == []
    with pytest.raises(FreeholdError) as refused:
        await fetch_embeddings(gateway.models, "anthropic", "m", ["a"])
    assert refused.value.code == "models.no-embeddings"
