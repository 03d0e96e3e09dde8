"""Whether a provider can be reached and takes its key, found out by asking for its list of models: nobody charges that."""

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

from freehold.egress import http1
from freehold.egress.http1 import Answer, Field
from freehold.egress.models.keys import Keys, key_field
from freehold.egress.models.provider import Provider
from freehold.egress.models.upstream import Upstream, Upstreams
from freehold.errors import FreeholdError
from freehold.observe.secrets import Secret

PATIENCE = 20.0
MAX_BYTES = 4 * 1024 * 1024
MAX_MODELS = 500
MAX_NAME = 200


@dataclass(frozen=True)
class Trial:
    """`status` is what the provider answered. `models` are the names it told, at most some hundred."""

    ok: bool
    status: int
    milliseconds: int
    words: str
    models: tuple[str, ...]


async def try_provider(provider: Provider, keys: Keys, upstreams: Upstreams) -> Trial:
    """Raises `models.no-key` or `models.unreachable`."""
    key = await keys.fetch(provider)
    began = time.monotonic()
    upstream = await upstreams.take(provider)
    try:
        async with asyncio.timeout(PATIENCE):
            await upstream.stream.write(_question(provider, key))
            answer = await http1.read_answer(upstream.inlet)
            while answer.status < 200:
                answer = await http1.read_answer(upstream.inlet)
            body = await _read(upstream, answer)
    except (OSError, FreeholdError, TimeoutError) as error:
        raise FreeholdError(
            "models.unreachable",
            f"The model provider {provider.name} took the connection, and then did not answer as HTTP servers do",
            hint=f"Is {provider.url} the address of its API?",
        ) from error
    finally:
        await upstream.stream.close()
    milliseconds = int((time.monotonic() - began) * 1000)
    found = _names(body) if answer.status == 200 else ()
    return Trial(answer.status == 200, answer.status, milliseconds, _words(provider, answer.status, len(found)), found)


def _question(provider: Provider, key: Secret | None) -> bytes:
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
    return http1.encode_head(f"GET {provider.base_path}{path} HTTP/1.1", fields)


async def _read(upstream: Upstream, answer: Answer) -> bytes:
    """As much of it as is looked at."""
    body = b""
    async for piece in http1.read_body(upstream.inlet, answer.framing("GET")):
        body += piece
        if len(body) > MAX_BYTES:
            break
    return body


def _names(body: bytes) -> tuple[str, ...]:
    """Whatever looks like a list of models; a provider may say anything."""
    try:
        told: Any = json.loads(body)
    except ValueError:
        return ()
    rows = told.get("data", told.get("models")) if isinstance(told, dict) else told
    names = []
    for row in rows if isinstance(rows, list) else ():
        name = row.get("id", row.get("name")) if isinstance(row, dict) else row
        if isinstance(name, str) and name.isprintable() and 0 < len(name) <= MAX_NAME:
            names.append(name.removeprefix("models/"))
    return tuple(names[:MAX_MODELS])


def _words(provider: Provider, status: int, count: int) -> str:
    if status == 200:
        return f"It answers and offers {count} model{'' if count == 1 else 's'}" if count else "It answers"
    if status in (401, 403):
        return "It answers, and refuses the key" if provider.key else "It answers, and wants a key"
    if status == 404:
        return f"It answers, and has no list of models below {provider.url}: is the address right?"
    if status == 429:
        return "It answers, and says that too much was asked of it"
    return f"It answers with status {status}"
