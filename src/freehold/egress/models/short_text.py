"""Lets a model write a few words on the host's own behalf: never with a subscription, and only where that is cheap."""

import json
from typing import Any
from urllib.parse import quote

from freehold.egress.models.gateway import ModelGateway
from freehold.egress.models.host_request import send_host_request
from freehold.egress.models.prices import Prices
from freehold.egress.models.provider import Provider
from freehold.errors import FreeholdError
from freehold.manifest.addresses import parse_ip

MAX_PRICE = 5.0
"""Dollars for a million tokens of output."""
MAX_TOKENS = 400
"""Some models think before they write."""


def is_cheap(provider: Provider, model: str) -> bool:
    """Whether a few words cost next to nothing. Not when the price is unknown. Blocking: reads the table of prices."""
    if provider.auth != "key":
        return False
    if is_on_this_machine(provider):
        return True
    listed = Prices(provider.url).find_listed(model)
    price = None if listed is None else listed.usual_prices()[1]
    return price is not None and price <= MAX_PRICE


def is_on_this_machine(provider: Provider) -> bool:
    address = parse_ip(provider.host)
    return provider.host == "localhost" or (address is not None and address.is_loopback)


async def write_short_text(
    models: ModelGateway, provider: Provider, model: str, prompt: str, *, session: str, max_tokens: int = MAX_TOKENS
) -> str:
    """The answer of the model. `session` is what usage and budgets show. Raises `models.no-text`."""
    path, body = _build_request(provider, model, prompt, max_tokens)
    endpoint = models.endpoint_for(provider.name, session)
    status, answer = await send_host_request(models, endpoint, path, json.dumps(body).encode())
    text = _read_text(answer) if status == 200 else ""
    if not text:
        raise FreeholdError("models.no-text", f"{provider.name} wrote nothing (status {status})")
    return text


def _build_request(provider: Provider, model: str, prompt: str, max_tokens: int) -> tuple[str, dict[str, Any]]:
    if provider.kind == "gemini":
        contents = [{"role": "user", "parts": [{"text": prompt}]}]
        settings = {"maxOutputTokens": max_tokens}
        return f"/v1beta/models/{quote(model)}:generateContent", {"contents": contents, "generationConfig": settings}
    messages = [{"role": "user", "content": prompt}]
    if provider.kind == "anthropic":
        return "/v1/messages", {"model": model, "messages": messages, "max_tokens": max_tokens}
    # Newer models of OpenAI take no `max_tokens`, and other servers know no other name.
    limit = "max_completion_tokens" if provider.kind == "openai" else "max_tokens"
    return "/v1/chat/completions", {"model": model, "messages": messages, limit: max_tokens}


def _read_text(answer: bytes) -> str:
    """The text in any of the three forms; empty when there is none."""
    try:
        content: Any = json.loads(answer)
    except (ValueError, RecursionError):
        return ""
    for read in (
        lambda: content["choices"][0]["message"]["content"],
        lambda: "".join(part["text"] for part in content["content"] if part["type"] == "text"),
        lambda: "".join(part["text"] for part in content["candidates"][0]["content"]["parts"]),
    ):
        try:
            found = read()
        except (KeyError, IndexError, TypeError):
            continue
        if isinstance(found, str):
            return found
    return ""
