"""`[credentials.<name>]`: secrets that agents may use for named hosts, and never see."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, Strict

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Words


class CredentialSection(Section):
    """A secret of the vault, the host that it may be sent to, and how. Inside the computer there is a placeholder."""

    host: str = Field(
        default="",
        description="The one host that the secret may be sent to, always with TLS; with a port when it is not 443.",
        examples=["git.example.org"],
    )
    secret: str = Field(
        default="", description="The secret of the vault: `secret:name`.", examples=["secret:git-example"]
    )
    paths: Words = Field(
        default=(),
        description="Paths that requests may have, each with everything below it; all when it is left out.",
        examples=[["/me/notes.git"]],
    )
    methods: Words = Field(
        default=(),
        description="Methods that requests may have; all when it is left out. `writes` counts too.",
        examples=[["GET", "HEAD", "POST"]],
    )
    auth: Literal["bearer", "basic", "header"] = Field(
        default="bearer",
        description="How the secret is sent: as a bearer token, as the password of basic authentication, or as it is.",
    )
    header: str = Field(
        default="Authorization", description="The header field that it is sent in.", examples=["X-Api-Key"]
    )
    user: str = Field(
        default="",
        max_length=100,
        description="The user of basic authentication; empty when the secret is `USER:PASSWORD`, or when any will do.",
        examples=["x-access-token"],
    )
    writes: Literal["ask", "allow", "deny"] = Field(
        default="ask",
        description="What happens to a push, a publish and every other request that is not for reading.",
    )
    tools: Annotated[tuple[Literal["git", "npm", "pip"], ...], Strict(False)] = Field(
        default=(),
        description="Tools that are set up to use it. The first path is the address of an npm registry or a pip index.",
        examples=[["git"]],
    )
    scope: str = Field(
        default="", max_length=100, description="The scope of npm packages that come from here.", examples=["@me"]
    )
    env: Words = Field(
        default=(),
        description="Variables that hold the placeholder, for tools that look for a token there.",
        examples=[["GH_TOKEN"]],
    )


class CredentialsSection(Section):
    """The credentials by name."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, CredentialSection] = Field(init=False)

    @property
    def credentials(self) -> Mapping[str, CredentialSection]:
        return self.__pydantic_extra__
