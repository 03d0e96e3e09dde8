"""The bodies of `/v1/credentials`."""

from typing import Literal

from pydantic import BaseModel, Field

from freehold.egress.keyring import CredentialUse, HostCredential


class CredentialUseBody(BaseModel):
    """One request that carried the secret. `path` has no query."""

    at: str
    session: str
    method: str
    path: str


class CredentialBody(BaseModel):
    """A credential of the manifest. Its secret is never shown."""

    name: str
    host: str
    secret: str = Field(description="The name of the secret in the vault.")
    has_secret: bool
    header: str
    paths: list[str] = Field(description="All when empty.")
    methods: list[str] = Field(description="All when empty.")
    writes: Literal["ask", "allow", "deny"]
    tools: list[str]
    variables: list[str] = Field(description="Variables that hold the placeholder inside the computer.")
    ends_tls: bool = Field(description="Whether TLS of sessions to this host ends at Freehold.")
    uses: int = Field(description="Requests that carried the secret since Freehold started.")
    recent: list[CredentialUseBody] = Field(description="The last of them, newest first.")


def describe_credential(
    one: HostCredential, uses: list[CredentialUse], *, count: int, has_secret: bool
) -> CredentialBody:
    return CredentialBody(
        name=one.name,
        host=one.authority,
        secret=one.secret,
        has_secret=has_secret,
        header=one.header,
        paths=list(one.paths),
        methods=sorted(one.methods),
        writes=one.writes,
        tools=sorted(one.tools),
        variables=list(one.variables),
        ends_tls=one.intercepts,
        uses=count,
        recent=[CredentialUseBody(at=use.at, session=use.session, method=use.method, path=use.path) for use in uses],
    )
