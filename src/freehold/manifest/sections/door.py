"""Who may come in, and where the doors are: `[owner]`, `[gateway]`, `[keeper]`."""

from pydantic import Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Port, Seconds, Words


class Owner(Section):
    """The one person let in."""

    did: str | None = Field(
        default=None,
        description="The owner's DID. Without one, sign-in is by one-time link, and only on loopback.",
        examples=["did:plc:ewvi7nxzyoun6zhxrhs64oiz"],
    )
    handle: str | None = Field(
        default=None,
        description="The owner's handle, for display; the DID alone decides who is let in.",
        examples=["alice.example.com"],
    )
    service: str | None = Field(
        default=None,
        description="A PDS that is asked to resolve the handle when neither DNS nor the handle's own host answers.",
        examples=["https://bsky.social"],
    )
    plc_url: str = Field(
        default="https://plc.directory",
        description="The directory in which did:plc identities are looked up.",
    )


class Gateway(Section):
    """The front door: sign-in, API and control center."""

    host: str = Field(default="127.0.0.1", description="The address the gateway listens on.", examples=["0.0.0.0"])  # noqa: S104 - an example
    port: Port = Field(default=3000, description="The port the gateway listens on.")
    public_url: str | None = Field(
        default=None,
        description="The https address under which browsers elsewhere reach this Freehold; needs an owner DID.",
        examples=["https://agent.example.com"],
    )
    preview_url: str | None = Field(
        default=None,
        description="The address for previews of what the agent serves; another host than public_url, because agent-written pages must never share its cookies.",
        examples=["https://preview.example.net"],
    )
    trusted_proxies: Words = Field(
        default=(),
        description="Addresses or networks of reverse proxies whose forwarded headers are believed.",
        examples=[["127.0.0.1", "10.0.0.0/24"]],
    )
    session_idle: Seconds = Field(
        default=7 * 86400, description="A signed-in browser that is not used for this long is signed out."
    )
    session_absolute: Seconds = Field(
        default=30 * 86400, description="A signed-in browser is signed out after this long in any case."
    )


class Keeper(Section):
    """The process that never dies: history, undo and the recovery page."""

    host: str = Field(
        default="127.0.0.1", description="The address the keeper's recovery page listens on.", examples=["::1"]
    )
    port: Port = Field(default=8001, description="The port of the keeper's recovery page.")
