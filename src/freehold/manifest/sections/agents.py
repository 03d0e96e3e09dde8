"""`[agents]` and `[agents.<name>]`: which agents there are and how each is started."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import ConfigDict, Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Command, Folders


class AgentSection(Section):
    """A program that speaks ACP on stdio, always started inside the computer."""

    package: str | None = Field(
        default=None,
        description="What is installed for it: `npm:name@version` or `pypi:name==version`, several with spaces between, or `archive:https://…#sha256=…` with its program; nothing when the computer already has it.",
        examples=["npm:opencode-ai@1.18.0"],
    )
    command: Command = Field(
        default=(), description="The program and its arguments, without a shell.", examples=["opencode acp"]
    )
    env: Mapping[str, str] = Field(
        default={},
        description="Environment variables it gets; never a key. `{model.url}`, `{model.key}`, `{model.name}` and `{model.kind}` stand for its model; the key is a placeholder.",
        examples=[{"OPENAI_BASE_URL": "{model.url}", "OPENAI_API_KEY": "{model.key}"}],
    )
    files: Mapping[str, str] = Field(
        default={},
        description="Configuration files it finds, by path below /home/agent. They can name its model as `env` does.",
        examples=[{".config/agent.toml": "telemetry = false"}],
    )
    memory: Folders = Field(
        default=(),
        description="Folders below /home/agent in which it keeps its conversations. Undo leaves them alone, and backups have them.",
        examples=[[".my-agent/sessions"]],
    )
    skills: Folders = Field(
        default=(),
        description="Folders below /home/agent in which it looks for skills, if it uses neither `.agents/skills` nor `.claude/skills`.",
        examples=[[".my-agent/skills"]],
    )
    mode: str | None = Field(
        default=None,
        description="The ACP session mode it is put into; by default one in which it asks.",
        examples=["default"],
    )
    model: str | None = Field(
        default=None,
        description="The name under [models] that it uses; by default the first that is enabled.",
        examples=["local"],
    )

    @property
    def changes_program(self) -> bool:
        """Whether it says what runs, or how that is configured. What Freehold knows of a name is then not known of it."""
        return bool(self.command or self.package or self.env or self.files)


class AgentsSection(Section):
    """The default agent, and how each agent is started."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, AgentSection] = Field(init=False)
    named_tables: ClassVar[type[Section]] = AgentSection
    named_example: ClassVar[str] = "opencode"

    default: str = Field(default="builtin", description="The agent that is used when none is chosen.")
    model: str | None = Field(
        default=None,
        description="The name under [models] that agents use when they name none; by default the first that is enabled.",
        examples=["anthropic"],
    )
    titles: Literal["model", "prompt"] = Field(
        default="model",
        description="Where the title of a session comes from: its first prompt, or a few words that its model makes of "
        "that when the model is cheap (at most 5 dollars for a million tokens of output) or runs on this machine.",
    )

    @property
    def named(self) -> Mapping[str, AgentSection]:
        """The agents that the manifest describes, by name."""
        return self.__pydantic_extra__
