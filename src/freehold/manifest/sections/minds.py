"""Who thinks and who works here: `[models.<name>]`, `[agents]`."""

from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Command, Words

Kind = Literal["openai", "anthropic", "gemini", "openai-compatible"]

BASE_URLS: Mapping[Kind, str] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
"""Where each kind is reached when the manifest does not say; an openai-compatible server can be anywhere."""


class Budget(Section):
    """What may be spent; nothing said means no bound. Days and months are those of UTC."""

    day_cost: float | None = Field(default=None, description="US dollars a day.", examples=[5.0])
    month_cost: float | None = Field(default=None, description="US dollars a calendar month.", examples=[50.0])
    day_tokens: int | None = Field(default=None, description="Tokens a day, in and out.", examples=[2_000_000])
    month_tokens: int | None = Field(
        default=None, description="Tokens a calendar month, in and out.", examples=[20_000_000]
    )


class Model(Section):
    """A provider of language models."""

    enabled: bool = Field(default=True, description="Whether agents may use it.")
    kind: Kind = Field(default="openai-compatible", description="The API it speaks.")
    base_url: str | None = Field(
        default=None,
        description="Where it is reached; known for every kind but openai-compatible.",
        examples=["http://127.0.0.1:11434/v1"],
    )
    key: str | None = Field(
        default=None,
        description="Where its key is kept: `env:NAME` or `secret:name`. Never the key itself.",
        examples=["env:OPENAI_API_KEY"],
    )
    model: str | None = Field(
        default=None, description="The model to use when nobody chose one.", examples=["qwen3-coder"]
    )
    budget: Budget = Field(default=Budget(), description="What may be spent on it.")
    allow: Words = Field(
        default=(),
        description="Paths of its API that agents may use beside those that ask a model; a `*` at the end stands for the rest. The word `urls` lets the provider fetch addresses that a question names.",
        examples=[["POST /v1/files", "GET /v1/files/*"]],
    )

    @property
    def address(self) -> str | None:
        """The base URL in force."""
        return self.base_url or BASE_URLS.get(self.kind)


class Agent(Section):
    """A program that speaks ACP on stdio, always started inside the computer."""

    package: str | None = Field(
        default=None,
        description="What is installed for it: `npm:name@version` or `pypi:name==version`; nothing when the computer already has it.",
        examples=["npm:opencode-ai@1.18.0"],
    )
    command: Command = Field(
        default=(), description="The program and its arguments, without a shell.", examples=["opencode acp"]
    )
    env: Mapping[str, str] = Field(
        default={}, description="Environment variables it gets; never a key.", examples=[{"DISABLE_TELEMETRY": "1"}]
    )
    files: Mapping[str, str] = Field(
        default={},
        description="Configuration files it finds, by path below /home/agent.",
        examples=[{".config/agent.toml": "telemetry = false"}],
    )
    mode: str | None = Field(
        default=None,
        description="The ACP session mode it is put into; by default the one that asks.",
        examples=["default"],
    )
    model: str | None = Field(
        default=None,
        description="The name under [models] that it uses; by default the first that is enabled.",
        examples=["local"],
    )


class Agents(Section):
    """Which agent answers, and how each is started: `[agents]` and `[agents.<name>]`."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Agent] = Field(init=False)

    default: str = Field(default="builtin", description="The agent that answers when none is chosen.")

    @property
    def named(self) -> Mapping[str, Agent]:
        """The agents that the manifest describes, by name."""
        return self.__pydantic_extra__
