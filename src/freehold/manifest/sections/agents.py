"""`[agents]` and `[agents.<name>]`: which agents there are and how each is started."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import ConfigDict, Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Command


class AgentSection(Section):
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

    @property
    def named(self) -> Mapping[str, AgentSection]:
        """The agents that the manifest describes, by name."""
        return self.__pydantic_extra__
