"""`[models.<name>]` and `[budget]`: providers of language models, and what they may cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Words

ProviderKind = Literal["openai", "anthropic", "gemini", "openai-compatible"]

BASE_URLS: Mapping[ProviderKind, str] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
"""The base URL of each kind when the manifest sets none; openai-compatible servers have no default."""

AuthKind = Literal["key", "claude-code", "codex"]
"""How a request is paid: with an API key, or by the subscription that belongs to a vendor's own agent."""


@dataclass(frozen=True)
class SubscriptionTerms:
    """For whom and where the token of a subscription is used, and for nothing else."""

    agent: str
    kind: ProviderKind
    base_url: str


SUBSCRIPTIONS: Mapping[AuthKind, SubscriptionTerms] = {
    "claude-code": SubscriptionTerms("claude", "anthropic", "https://api.anthropic.com"),
    "codex": SubscriptionTerms("codex", "openai", "https://chatgpt.com/backend-api/codex"),
}

ProviderFeature = Literal[
    "urls", "web-search", "mcp", "plugins", "code-execution", "image-generation", "stored", "background"
]
FEATURES: Mapping[ProviderFeature, str] = {
    "urls": "the provider would fetch an address that the request names",
    "web-search": "the provider would search the web",
    "mcp": "the provider would call a server that the request names",
    "plugins": "the provider would run plugins",
    "code-execution": "the provider would run programs in a container of its own",
    "image-generation": "the provider would make images, whose cost is not counted in tokens",
    "stored": "the provider would keep the conversation, or use what it has kept",
    "background": "the provider would answer in the background, where the cost cannot be counted",
}
"""The words of `allow` for what providers do by themselves, and what each means."""
FIELD_PREFIX = "field:"
"""`field:messages.colour` in `allow`: a field of a request that Freehold does not know."""
TYPE_PREFIX = "type:"
"""`type:x_search` in `allow`: a type of a tool or of content that Freehold does not know."""


class BudgetSection(Section):
    """Limits on cost and tokens; none by default. Days and months are in UTC."""

    day_cost: float | None = Field(
        default=None,
        description="US dollars a day. When they are spent, requests are refused until the day is over.",
        examples=[5.0],
    )
    month_cost: float | None = Field(
        default=None,
        description="US dollars a calendar month. When they are spent, requests are refused until the month is over.",
        examples=[50.0],
    )
    day_tokens: int | None = Field(
        default=None,
        description="Tokens a day, in and out. When they are used, requests are refused until the day is over.",
        examples=[2_000_000],
    )
    month_tokens: int | None = Field(
        default=None,
        description="Tokens a calendar month, in and out. When they are used, requests are refused until the month is over.",
        examples=[20_000_000],
    )


class ModelSection(Section):
    """A provider of language models."""

    enabled: bool = Field(default=True, description="Whether agents may use it.")
    kind: ProviderKind = Field(default="openai-compatible", description="The API it speaks.")
    base_url: str | None = Field(
        default=None,
        description="The base URL; needed for openai-compatible only.",
        examples=["http://127.0.0.1:11434/v1"],
    )
    key: str | None = Field(
        default=None,
        description="Where its key is kept: `env:NAME` or `secret:name`. Never the key itself.",
        examples=["env:OPENAI_API_KEY"],
    )
    auth: AuthKind = Field(
        default="key",
        description="What `key` is: an API key, or the token of a subscription that only its vendor's own agent may use.",
        examples=["claude-code"],
    )
    model: str | None = Field(
        default=None, description="The model to use when none was chosen.", examples=["qwen3-coder"]
    )
    budget: BudgetSection = Field(default=BudgetSection(), description="What may be spent on it.")
    allow: Words = Field(
        default=(),
        description="What agents may use beside plain model requests. Paths of its API; a `*` at the end stands for the rest. "
        "What the provider does by itself: "
        + ", ".join(f"`{word}`" for word in FEATURES)
        + ". A field or a type that Freehold does not know: `field:NAME`, `type:NAME`.",
        examples=[["POST /v1/files", "GET /v1/files/*", "urls"]],
    )

    @property
    def address(self) -> str | None:
        """The base URL in force."""
        terms = SUBSCRIPTIONS.get(self.auth)
        return self.base_url or (terms.base_url if terms is not None else BASE_URLS.get(self.kind))

    def fits(self, agent: str, kinds: tuple[ProviderKind, ...]) -> bool:
        """Whether an agent that speaks these APIs may use it. A subscription is for its vendor's agent only."""
        terms = SUBSCRIPTIONS.get(self.auth)
        return self.enabled and self.kind in kinds and (terms is None or terms.agent == agent)
