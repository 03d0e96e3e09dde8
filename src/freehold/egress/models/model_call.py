"""One real request to a model, for a few tokens: a key may list models and still have no credit to use one."""

import asyncio
import json
from typing import Any
from urllib.parse import quote

from freehold.egress.http1 import Field
from freehold.egress.http_exchange import HttpExchange
from freehold.egress.models.keys import key_fields
from freehold.egress.models.provider import Provider
from freehold.egress.models.upstream import UpstreamPool
from freehold.errors import FreeholdError
from freehold.observe.secrets import MASK, Secret, mask_secrets

CALL_TIMEOUT = 60.0
"""Seconds for the answer. A server on this machine may have to load the model first."""
MAX_BYTES = 4 * 1024 * 1024
MAX_SAID = 300
MAX_TOKENS = 16
"""The fewest that every provider accepts."""
PROMPT = "Answer with one word: ready"


async def call_model(provider: Provider, key: Secret | None, model: str, upstreams: UpstreamPool) -> tuple[int, bytes]:
    """The status and the body of the answer. Raises `models.unreachable`.

    It is not counted in usage: it costs a few tokens, and the owner asked for it.
    """
    path, body = _build_request(provider, model)
    return await exchange_once(provider, key, upstreams, "POST", path, json.dumps(body).encode(), CALL_TIMEOUT)


async def exchange_once(
    provider: Provider,
    key: Secret | None,
    upstreams: UpstreamPool,
    method: str,
    path: str,
    body: bytes,
    timeout: float,
) -> tuple[int, bytes]:
    """One request on a connection of its own: the status, and the first `MAX_BYTES` of the body.

    Raises `models.unreachable`.
    """
    upstream = await upstreams.connect(provider)
    try:
        async with asyncio.timeout(timeout):
            target = provider.base_path + path
            fields = _fields(provider, key, has_body=bool(body))
            exchange = HttpExchange(upstream.stream, upstream.reader, method, target, fields, len(body))
            await exchange.send_whole(body)
            response = await exchange.read_head()
            found = b""
            async for piece in exchange.read_body():
                found += piece
                if len(found) > MAX_BYTES:
                    break
            return response.status, found
    except (OSError, FreeholdError, TimeoutError) as error:
        raise FreeholdError(
            "models.unreachable",
            f"The model provider {provider.name} accepted the connection but did not respond with valid HTTP",
            hint=f"Check that {provider.url} is the address of its API",
        ) from error
    finally:
        await upstream.stream.close()


def read_error(body: bytes, key: Secret | None) -> str:
    """The provider's own words in the body of a failure, on one line and without the key. Empty when it has none."""
    try:
        content: Any = json.loads(body)
    except ValueError:
        return ""
    if isinstance(content, list) and content:
        content = content[0]
    for name in ("error", "detail", "message"):
        inner = content.get(name) if isinstance(content, dict) else None
        if isinstance(inner, dict):
            inner = inner.get("message")
        if isinstance(inner, str) and inner.strip():
            text = inner if key is None else inner.replace(key.reveal(), MASK)
            text = " ".join("".join(char if char.isprintable() else " " for char in text[: 4 * MAX_SAID]).split())
            return mask_secrets(text)[:MAX_SAID]
    return ""


def _build_request(provider: Provider, model: str) -> tuple[str, dict[str, Any]]:
    if provider.kind == "gemini":
        contents = [{"role": "user", "parts": [{"text": PROMPT}]}]
        return f"/v1beta/models/{quote(model)}:generateContent", {
            "contents": contents,
            "generationConfig": {"maxOutputTokens": MAX_TOKENS},
        }
    if provider.kind == "openai":
        return "/responses", {"model": model, "input": PROMPT, "max_output_tokens": MAX_TOKENS, "store": False}
    body = {"model": model, "messages": [{"role": "user", "content": PROMPT}], "max_tokens": MAX_TOKENS}
    return ("/v1/messages" if provider.kind == "anthropic" else "/chat/completions"), body


def _fields(provider: Provider, key: Secret | None, *, has_body: bool) -> list[Field]:
    fields: list[Field] = [
        ("Host", provider.authority),
        ("Accept", "application/json"),
        ("Accept-Encoding", "identity"),
        ("User-Agent", "freehold"),
        ("Connection", "close"),
    ]
    if has_body:
        fields.append(("Content-Type", "application/json"))
    if provider.kind == "anthropic":
        fields.append(("anthropic-version", "2023-06-01"))
    return fields if key is None else [*fields, *key_fields(provider, key, fields)]
