"""The bodies of `/v1/mcp`."""

import json
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from freehold.gateway.inputs import RecordBody, RequestBody
from freehold.mcp.pinned_tools import PinnedTool
from freehold.mcp.section import McpServerSection

Digest = Annotated[str, Field(min_length=64, max_length=64, pattern="^[0-9a-f]{64}$")]


class McpToolBody(BaseModel):
    """A tool as its server described it last. `digest` is over all of it."""

    name: str
    description: str
    parameters: str = Field(description="The JSON schema of its arguments.")
    digest: str
    allowed: bool
    changed: bool = Field(description="Whether it is no longer what the owner has allowed. It is then not offered.")


class McpServerBody(BaseModel):
    """`on`: agents are offered its tools that are allowed. `tools` is empty until it was tried or used."""

    name: str
    kind: Literal["inside", "remote"]
    place: str
    on: bool
    enabled: bool = Field(description="`enabled` in the manifest. Without it the server cannot be switched on here.")
    asks: bool
    signed_in: bool | None = Field(description="Whether you are signed in; null for a server without a sign-in.")
    tools: list[McpToolBody]


class AddMcpServerBody(RequestBody):
    """A server for the manifest: either a `command` that runs inside, or the `url` of a remote one."""

    name: str = Field(max_length=32, pattern="^[a-z][a-z0-9-]{0,31}$")
    command: str = Field(default="", max_length=2000)
    url: str = Field(default="", max_length=2000)
    key: str = Field(default="", max_length=100, description="The name of the secret that is sent to a remote server.")
    oauth: bool = Field(default=False, description="Whether you sign in to a remote server by OAuth.")


class DecideMcpToolBody(RequestBody):
    """The digest of the tool as it was shown; null to allow it no longer."""

    digest: Digest | None


class SwitchMcpServerBody(RequestBody):
    on: bool


class CallMcpToolBody(RequestBody):
    tool: str = Field(min_length=1, max_length=64)
    arguments: RecordBody


class McpSignInBody(BaseModel):
    """The address at which you sign in. It leads back to Freehold."""

    address: str


class McpAnswerBody(BaseModel):
    text: str
    failed: bool


def describe_server(
    name: str, section: McpServerSection, tools: dict[str, PinnedTool], *, is_off: bool, has_tokens: bool
) -> McpServerBody:
    return McpServerBody(
        name=name,
        kind="inside" if section.url is None else "remote",
        place=" ".join(section.command) if section.url is None else section.url,
        on=section.enabled and not is_off,
        enabled=section.enabled,
        asks=section.ask,
        signed_in=has_tokens if section.oauth else None,
        tools=[
            McpToolBody(
                name=tool,
                description=one.offered.description,
                parameters=json.dumps(one.offered.schema, indent=1, ensure_ascii=False),
                digest=one.offered.digest,
                allowed=one.is_allowed,
                changed=one.has_changed,
            )
            for tool, one in tools.items()
        ],
    )
