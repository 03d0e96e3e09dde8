"""`[gateway]`: where the control center and the API are served."""

from pydantic import Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Port, Seconds, Words


class GatewaySection(Section):
    """The control center and the API."""

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
    sign_in_idle: Seconds = Field(
        default=7 * 86400, description="A signed-in browser that is not used for this long is signed out."
    )
    sign_in_absolute: Seconds = Field(
        default=30 * 86400, description="A signed-in browser is signed out after this long in any case."
    )
