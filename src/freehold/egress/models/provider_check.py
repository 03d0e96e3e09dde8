"""Checks that a provider can be reached and accepts its key: by its list of models, and by a word of one model."""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from freehold.egress.models.keys import Keys
from freehold.egress.models.model_call import call_model, exchange_once, read_error
from freehold.egress.models.offered_model import OfferedModel, offer_models, suggest_model
from freehold.egress.models.provider import Provider
from freehold.egress.models.upstream import UpstreamPool
from freehold.observe.secrets import Secret

CHECK_TIMEOUT = 20.0
MAX_MODELS = 500
MAX_NAME = 200
CODEX_VERSION = "0.60.0"
"""The list of models for a ChatGPT subscription depends on the version of Codex that asks."""
_KEY_PATHS: Mapping[str, str] = {"openrouter.ai": "/key"}
"""Providers whose list of models is public: a request that needs the key comes first."""


@dataclass(frozen=True)
class ProviderCheck:
    """`status` is the HTTP status of the response. `models` are the names that it listed, at most `MAX_MODELS`.

    `suggested` is the model for an owner who chooses none; None when no model of the list is for text.
    `said` is what the provider itself said about a failure, in its own words; empty when it said nothing.
    """

    ok: bool
    status: int
    milliseconds: int
    message: str
    models: tuple[str, ...]
    offered: tuple[OfferedModel, ...] = ()
    said: str = ""
    suggested: str | None = None


async def check_provider(provider: Provider, keys: Keys, upstreams: UpstreamPool) -> ProviderCheck:
    """Asks for its list of models, which is free. Raises `models.no-key`, `models.signed-out` or `models.unreachable`."""
    return await ask_for_models(provider, await keys.fetch(provider), upstreams)


async def try_provider(
    provider: Provider, key: Secret | None, upstreams: UpstreamPool, model: str | None
) -> ProviderCheck:
    """As `check_provider`, with this key. A model is asked for a word as well. Raises `models.unreachable`."""
    check = await ask_for_models(provider, key, upstreams)
    # The token of a subscription is for requests that the vendor's own agent makes.
    if not check.ok or model is None or provider.auth != "key":
        return check
    began = time.monotonic()
    status, body = await call_model(provider, key, model, upstreams)
    milliseconds = check.milliseconds + int((time.monotonic() - began) * 1000)
    if status == 200:
        return replace(check, milliseconds=milliseconds, message=f"{model} answers")
    message = f"It accepts the key, but {model} does not answer (status {status})"
    return replace(
        check, ok=False, status=status, milliseconds=milliseconds, message=message, said=read_error(body, key)
    )


async def ask_for_models(provider: Provider, key: Secret | None, upstreams: UpstreamPool) -> ProviderCheck:
    """The list of its models. Raises `models.unreachable`."""

    async def get(path: str) -> tuple[int, bytes]:
        return await exchange_once(provider, key, upstreams, "GET", path, b"", CHECK_TIMEOUT)

    began = time.monotonic()
    key_path = _KEY_PATHS.get(provider.host) if key is not None else None
    status, body = (200, b"") if key_path is None else await get(key_path)
    if status == 200:
        status, body = await get(_list_path(provider))
    milliseconds = int((time.monotonic() - began) * 1000)
    if status != 200:
        said = read_error(body, key)
        return ProviderCheck(False, status, milliseconds, _words(provider, status, 0), (), said=said)
    rows = _rows(body)
    offered = await asyncio.to_thread(offer_models, provider.url, rows)
    # The agent of a subscription has models of its own.
    suggested = suggest_model(offered) if provider.auth == "key" else None
    names = tuple(rows)
    words = _words(provider, status, len(names))
    return ProviderCheck(True, status, milliseconds, words, names, offered, suggested=suggested)


def _list_path(provider: Provider) -> str:
    if provider.auth == "codex":
        return f"/models?client_version={CODEX_VERSION}"
    return {"anthropic": "/v1/models?limit=1000", "gemini": "/v1beta/models?pageSize=1000"}.get(
        provider.kind, "/models"
    )


def _rows(body: bytes) -> dict[str, Mapping[str, Any]]:
    """The rows of a list of models by their names; none when the body is something else."""
    try:
        content: Any = json.loads(body)
    except ValueError:
        return {}
    listed = content.get("data", content.get("models")) if isinstance(content, dict) else content
    found: dict[str, Mapping[str, Any]] = {}
    for row in listed if isinstance(listed, list) else ():
        name = row.get("id", row.get("slug", row.get("name"))) if isinstance(row, dict) else row
        if isinstance(name, str) and name.isprintable() and 0 < len(name) <= MAX_NAME and len(found) < MAX_MODELS:
            found[name.removeprefix("models/")] = row if isinstance(row, dict) else {}
    return found


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
