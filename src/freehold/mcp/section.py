"""`[mcp.<name>]`: servers whose tools agents may use."""

from collections.abc import Mapping

from pydantic import ConfigDict, Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Command, Words


class McpServerSection(Section):
    """A program inside the computer, or an address that is reached through egress."""

    enabled: bool = Field(default=True, description="Whether agents are offered its tools.")
    command: Command = Field(
        default=(),
        description="The program and its arguments, without a shell. It runs inside, once for each session that uses it.",
        examples=["npx -y @modelcontextprotocol/server-everything"],
    )
    env: Mapping[str, str] = Field(
        default={}, description="Environment variables of the program; never a key.", examples=[{"LANG": "C.UTF-8"}]
    )
    url: str | None = Field(
        default=None,
        description="The address of a remote server that speaks streamable HTTP. The rules of egress apply.",
        examples=["https://mcp.example.org/mcp"],
    )
    key: str | None = Field(
        default=None,
        description="The secret that is sent to the remote server as a bearer token: `secret:name`. No agent sees it.",
        examples=["secret:notes"],
    )
    oauth: bool = Field(
        default=False,
        description="Whether you sign in to the remote server by OAuth, with `freehold mcp login` or on the page. No agent sees a token.",
    )
    tools: Words = Field(
        default=(),
        description='Tools that are allowed as they are seen first; `["*"]` for all. Others are allowed one by one.',
        examples=[["search", "read"]],
    )
    ask: bool = Field(default=True, description="Whether the owner is asked before each call.")


class McpSection(Section):
    """The servers by name."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, McpServerSection] = Field(init=False)

    @property
    def servers(self) -> Mapping[str, McpServerSection]:
        return self.__pydantic_extra__
