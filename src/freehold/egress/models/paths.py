"""Which requests are questions to a model. Everything else of a provider's API stays closed unless the owner opens it.

Files, batches, stored answers and the account are ways to carry data out, or to spend where nobody counts.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from freehold.egress.http1 import Request
from freehold.egress.models.provider import Provider
from freehold.errors import FreeholdError
from freehold.manifest.sections.minds import Kind

Api = Literal["chat", "responses", "messages", "gemini"]
"""The four ways to write a question, and so to read what it cost."""

_SEGMENT = r"[A-Za-z0-9._~@:!$&'()*+,;=-]+"
_TARGET = re.compile(rf"/([A-Za-z0-9_-]+)((?:/{_SEGMENT})*)/?(?:\?([!-\"$-~]*))?")
_MODEL = r"[A-Za-z0-9._~@:+-]+(?:/[A-Za-z0-9._~@:+-]+){0,2}"
_PLAIN = r"[A-Za-z0-9._~@+-]+"

_Rows = tuple[tuple[str, str, Api | None], ...]
_OPENAI: _Rows = (
    ("POST", r"/v1/chat/completions", "chat"),
    ("POST", r"/v1/responses(?:/compact)?", "responses"),
    ("POST", r"/v1/responses/input_tokens", None),
    ("POST", r"/v1/completions", "chat"),
    ("POST", r"/v1/embeddings", "chat"),
    ("GET", rf"/v1/models(?:/{_MODEL})?", None),
)
_MESSAGES: _Rows = (
    ("POST", r"/v1/messages", "messages"),
    ("POST", r"/v1/messages/count_tokens", None),
)
_TABLES: Mapping[Kind, _Rows] = {
    "openai": _OPENAI,
    # Ollama, vLLM, LM Studio and OpenRouter also speak Anthropic's API below the same address.
    "openai-compatible": (*_OPENAI, *_MESSAGES),
    "anthropic": (*_MESSAGES, ("GET", rf"/v1/models(?:/{_MODEL})?", None)),
    "gemini": (
        ("POST", rf"/v1(?:beta|alpha)?/models/{_PLAIN}:(?:generateContent|streamGenerateContent)", "gemini"),
        ("POST", rf"/v1(?:beta|alpha)?/models/{_PLAIN}:(?:countTokens|embedContent)", None),
        ("GET", rf"/v1(?:beta|alpha)?/models(?:/{_MODEL})?", None),
    ),
}
_CREDENTIALS = frozenset({"key", "api_key", "api-key", "apikey", "access_token", "oauth_token"})


@cache
def _open_to(kind: Kind) -> tuple[tuple[str, re.Pattern[str], Api | None], ...]:
    """Compiled when first asked for: all of them at import would hold up every start of the gateway."""
    return tuple((method, re.compile(pattern), api) for method, pattern, api in _TABLES[kind])


@dataclass(frozen=True)
class Route:
    """A request that may be sent: where to, and how its answer is read."""

    provider: Provider
    path: str
    """As the provider sees it."""
    api: Api | None
    """None for what asks no model and so costs nothing that is told."""
    offered: str | None = None
    """A key that stood in the query."""


def find_route(request: Request, providers: Mapping[str, Provider]) -> Route | None:
    """None for the provider's bare address, which some clients look at first.

    Raises `models.malformed`, `models.not-found` or `models.closed`.
    """
    target = _TARGET.fullmatch(request.target)
    if target is None:
        raise FreeholdError("models.malformed", "The address is not a plain path below the provider's own")
    name, path, query = target[1], target[2], target[3] or ""
    if any(segment in (".", "..") for segment in path.split("/")):
        raise FreeholdError("models.malformed", "The address climbs")
    provider = providers.get(name)
    if provider is None:
        raise FreeholdError("models.not-found", f"No model provider is called {name[:80]}")
    if not path:
        if request.method not in ("GET", "HEAD"):
            raise _closed(request.method, path)
        return None
    api = _api_of(provider, request.method, path)
    kept, offered = _sift(query)
    inner = path.removeprefix("/v1") if provider.speaks_openai else path
    return Route(provider, provider.base_path + inner + (f"?{kept}" if kept else ""), api, offered)


def _api_of(provider: Provider, method: str, path: str) -> Api | None:
    for wanted, pattern, api in _open_to(provider.kind):
        if method == wanted and pattern.fullmatch(path):
            return api
    for rule in provider.allow:
        verb, _, allowed = rule.rpartition(" ")
        same = path.startswith(allowed[:-1]) if allowed.endswith("*") else path == allowed
        if same and method in ((verb,) if verb else ("GET", "POST", "DELETE")):
            return None
    raise _closed(method, path)


def _closed(method: str, path: str) -> FreeholdError:
    return FreeholdError(
        "models.closed",
        f"{method[:16]} {path[:120]} is not a question to a model, and the owner has not opened it",
        hint="The owner can name it under allow in [models.<name>] of freehold.toml",
    )


def _sift(query: str) -> tuple[str, str | None]:
    """The query without credentials and without Google's own overrides of what the request says."""
    kept, offered = [], None
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if name.lower() in _CREDENTIALS:
            offered = value
        elif part and not name.startswith(("$", "%")):
            kept.append(part)
    return "&".join(kept), offered
