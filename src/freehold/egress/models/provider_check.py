"""Checks that a provider can be reached and accepts its key, by asking for its list of models, which is free."""

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

from freehold.egress.http1 import Field
from freehold.egress.http_exchange import HttpExchange
from freehold.egress.models.keys import Keys, key_field
from freehold.egress.models.provider import Provider
from freehold.egress.models.upstream import UpstreamConnection, UpstreamPool
from freehold.errors import FreeholdError
from freehold.observe.secrets import Secret

CHECK_TIMEOUT = 20.0
MAX_BYTES = 4 * 1024 * 1024
MAX_MODELS = 500
MAX_NAME = 200


@dataclass(frozen=True)
class ProviderCheck:
    """`status` is the HTTP status of the response. `models` are the names that it listed, at most `MAX_MODELS`."""

    ok: bool
    status: int
    milliseconds: int
    message: str
    models: tuple[str, ...]


async def check_provider(provider: Provider, keys: Keys, upstreams: UpstreamPool) -> ProviderCheck:
    """Raises `models.no-key` or `models.unreachable`."""
    key = await keys.fetch(provider)
    began = time.monotonic()
    upstream = await upstreams.connect(provider)
    try:
        async with asyncio.timeout(CHECK_TIMEOUT):
            exchange = _exchange(upstream, provider, key)
            await exchange.send_whole(b"")
            response = await exchange.read_head()
            body = await _read(exchange)
    except (OSError, FreeholdError, TimeoutError) as error:
        raise FreeholdError(
            "models.unreachable",
            f"The model provider {provider.name} accepted the connection but did not respond with valid HTTP",
            hint=f"Check that {provider.url} is the address of its API",
        ) from error
    finally:
        await upstream.stream.close()
    milliseconds = int((time.monotonic() - began) * 1000)
    found = _names(body) if response.status == 200 else ()
    return ProviderCheck(
        response.status == 200, response.status, milliseconds, _words(provider, response.status, len(found)), found
    )


def _exchange(upstream: UpstreamConnection, provider: Provider, key: Secret | None) -> HttpExchange:
    path = {"anthropic": "/v1/models?limit=1000", "gemini": "/v1beta/models?pageSize=1000"}.get(
        provider.kind, "/models"
    )
    fields: list[Field] = [
        ("Host", provider.authority),
        ("Accept", "application/json"),
        ("Accept-Encoding", "identity"),
        ("User-Agent", "freehold"),
        ("Connection", "close"),
    ]
    if provider.kind == "anthropic":
        fields.append(("anthropic-version", "2023-06-01"))
    if key is not None:
        fields.append(key_field(provider, key))
    return HttpExchange(upstream.stream, upstream.reader, "GET", provider.base_path + path, fields, 0)


async def _read(exchange: HttpExchange) -> bytes:
    """The first `MAX_BYTES` of the body."""
    body = b""
    async for piece in exchange.read_body():
        body += piece
        if len(body) > MAX_BYTES:
            break
    return body


def _names(body: bytes) -> tuple[str, ...]:
    """The names in a list of models; none when the body is something else."""
    try:
        content: Any = json.loads(body)
    except ValueError:
        return ()
    rows = content.get("data", content.get("models")) if isinstance(content, dict) else content
    names = []
    for row in rows if isinstance(rows, list) else ():
        name = row.get("id", row.get("name")) if isinstance(row, dict) else row
        if isinstance(name, str) and name.isprintable() and 0 < len(name) <= MAX_NAME:
            names.append(name.removeprefix("models/"))
    return tuple(names[:MAX_MODELS])


def _words(provider: Provider, status: int, count: int) -> str:
    if status == 200:
        return f"It responds and offers {count} model{'' if count == 1 else 's'}" if count else "It responds"
    if status in (401, 403):
        return "It responds, but refuses the key" if provider.key else "It responds, but needs a key"
    if status == 404:
        return f"It responds, but has no list of models below {provider.url}: check the address"
    if status == 429:
        return "It responds, but its rate limit is reached"
    return f"It responds with status {status}"
