"""Which requests of a provider's API are allowed: those that use a model. The owner can allow others.

Files, batches, stored responses and account settings could carry data out, or spend money that is not counted.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from freehold.egress.http1 import HttpRequest
from freehold.egress.models.provider import Provider
from freehold.errors import FreeholdError
from freehold.manifest.sections.models import ProviderKind

Api = Literal["chat", "responses", "messages", "gemini"]
"""The four request formats. Each reports its token counts in its own way."""

RequestForm = Literal[
    "chat",
    "completion",
    "embedding",
    "responses",
    "response-tokens",
    "messages",
    "message-tokens",
    "generate",
    "count",
    "embed",
]
"""What the body of a request is. Each has its own list of known fields (`request_forms`)."""

_SEGMENT = r"[A-Za-z0-9._~@:!$&'()*+,;=-]+"
_TARGET = re.compile(rf"/([A-Za-z0-9_-]+)((?:/{_SEGMENT})*)/?(?:\?([!-\"$-~]*))?")
_MODEL = r"[A-Za-z0-9._~@:+-]+(?:/[A-Za-z0-9._~@:+-]+){0,2}"
_PLAIN = r"[A-Za-z0-9._~@+-]+"

_Rows = tuple[tuple[str, str, Api | None, RequestForm | None], ...]
_OPENAI: _Rows = (
    ("POST", r"/v1/chat/completions", "chat", "chat"),
    ("POST", r"/v1/responses(?:/compact)?", "responses", "responses"),
    ("POST", r"/v1/responses/input_tokens", None, "response-tokens"),
    ("POST", r"/v1/completions", "chat", "completion"),
    ("POST", r"/v1/embeddings", "chat", "embedding"),
    ("GET", rf"/v1/models(?:/{_MODEL})?", None, None),
)
_MESSAGES: _Rows = (
    ("POST", r"/v1/messages", "messages", "messages"),
    ("POST", r"/v1/messages/count_tokens", None, "message-tokens"),
)
_TABLES: Mapping[ProviderKind, _Rows] = {
    "openai": _OPENAI,
    # Ollama, vLLM, LM Studio and OpenRouter also serve Anthropic's API at the same address.
    "openai-compatible": (*_OPENAI, *_MESSAGES),
    "anthropic": (*_MESSAGES, ("GET", rf"/v1/models(?:/{_MODEL})?", None, None)),
    "gemini": (
        (
            "POST",
            rf"/v1(?:beta|alpha)?/models/{_PLAIN}:(?:generateContent|streamGenerateContent)",
            "gemini",
            "generate",
        ),
        ("POST", rf"/v1(?:beta|alpha)?/models/{_PLAIN}:countTokens", None, "count"),
        ("POST", rf"/v1(?:beta|alpha)?/models/{_PLAIN}:embedContent", "gemini", "embed"),
        ("GET", rf"/v1(?:beta|alpha)?/models(?:/{_MODEL})?", None, None),
    ),
}
_QUERY = frozenset({"alt", "beta", "api-version"})
"""Parameters of a model request that are sent on. Others could change its meaning, or leave the token counts out."""
_ANSWER_FORMATS = frozenset({"alt=sse", "alt=json"})
"""Those in which the token counts can be read."""
_CREDENTIALS = frozenset({"key", "api_key", "api-key", "apikey", "access_token", "oauth_token"})


@cache
def _open_to(kind: ProviderKind) -> tuple[tuple[str, re.Pattern[str], Api | None, RequestForm | None], ...]:
    """Compiled on first use: compiling all at import would slow down every start of the gateway."""
    return tuple((method, re.compile(pattern), api, form) for method, pattern, api, form in _TABLES[kind])


@dataclass(frozen=True)
class Route:
    """An allowed request: where it goes, and how its response is read."""

    provider: Provider
    path: str
    """The path that is sent to the provider."""
    api: Api | None
    """None for a request that uses no model and costs nothing."""
    offered: str | None = None
    """A key that was in the query."""
    form: RequestForm | None = None
    """None for a request without a body, and for a path that the owner allowed."""


def find_route(request: HttpRequest, providers: Mapping[str, Provider]) -> Route | None:
    """None for the provider's base URL, which some clients request first.

    Raises `models.malformed`, `models.not-found` or `models.closed`.
    """
    target = _TARGET.fullmatch(request.target)
    if target is None:
        raise FreeholdError("models.malformed", "The URL is not a plain path below the provider's base URL")
    name, path, query = target[1], target[2], target[3] or ""
    if any(segment in (".", "..") for segment in path.split("/")):
        raise FreeholdError("models.malformed", "The URL must not contain . or .. segments")
    provider = providers.get(name)
    if provider is None:
        raise FreeholdError("models.not-found", f"There is no model provider {name[:80]}")
    if not path:
        if request.method not in ("GET", "HEAD"):
            raise _closed(request.method, path)
        return None
    api, form = _api_of(provider, request.method, path)
    kept, offered = _split_query(query, _QUERY if form is not None else None)
    inner = path.removeprefix("/v1") if provider.speaks_openai else path
    return Route(provider, provider.base_path + inner + (f"?{kept}" if kept else ""), api, offered, form)


def _api_of(provider: Provider, method: str, path: str) -> tuple[Api | None, RequestForm | None]:
    for wanted, pattern, api, form in _open_to(provider.kind):
        if method == wanted and pattern.fullmatch(path):
            return api, form
    for rule in provider.allow:
        verb, _, allowed = rule.rpartition(" ")
        same = path.startswith(allowed[:-1]) if allowed.endswith("*") else path == allowed
        if same and method in ((verb,) if verb else ("GET", "POST", "DELETE")):
            return None, None
    raise _closed(method, path)


def _closed(method: str, path: str) -> FreeholdError:
    return FreeholdError(
        "models.closed",
        f"{method[:16]} {path[:120]} is not a model request, and the owner has not allowed it",
        hint="The owner can add it to allow in [models.<name>] of freehold.toml",
    )


def _split_query(query: str, known: frozenset[str] | None) -> tuple[str, str | None]:
    """The query without credentials, and without parameters by which Google overrides the request.

    Raises `models.malformed` for a model request whose response could not be read.
    """
    kept, offered = [], None
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if name.lower() in _CREDENTIALS:
            offered = value
        elif known is not None and name == "alt" and part not in _ANSWER_FORMATS:
            raise FreeholdError("models.malformed", f"The parameter {part[:80]!a} must be alt=sse or alt=json")
        elif (part and not name.startswith(("$", "%"))) if known is None else name in known:
            kept.append(part)
    return "&".join(kept), offered
