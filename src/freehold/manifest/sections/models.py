"""`[models.<name>]` and `[budget]`: providers of language models, and what they may cost."""

from collections.abc import Mapping
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


class BudgetSection(Section):
    """Limits on cost and tokens; none by default. Days and months are in UTC."""

    day_cost: float | None = Field(default=None, description="US dollars a day.", examples=[5.0])
    month_cost: float | None = Field(default=None, description="US dollars a calendar month.", examples=[50.0])
    day_tokens: int | None = Field(default=None, description="Tokens a day, in and out.", examples=[2_000_000])
    month_tokens: int | None = Field(
        default=None, description="Tokens a calendar month, in and out.", examples=[20_000_000]
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
    model: str | None = Field(
        default=None, description="The model to use when none was chosen.", examples=["qwen3-coder"]
    )
    budget: BudgetSection = Field(default=BudgetSection(), description="What may be spent on it.")
    allow: Words = Field(
        default=(),
        description="Paths of its API that agents may use beside those that ask a model; a `*` at the end stands for the rest. The word `urls` lets the provider fetch addresses that a question names.",
        examples=[["POST /v1/files", "GET /v1/files/*"]],
    )

    @property
    def address(self) -> str | None:
        """The base URL in force."""
        return self.base_url or BASE_URLS.get(self.kind)
