"""`[ssh]`: SSH access to the computer."""

from pydantic import Field

from freehold.manifest.sections.base import ListenAddress, Section
from freehold.manifest.units import Port, Seconds


class SshSection(Section):
    """SSH access to the computer."""

    enabled: bool = Field(default=True, description="Whether the SSH server runs.")
    host: str = Field(default="127.0.0.1", description="The address it listens on.", examples=["::1"])
    port: Port = Field(default=2222, description="The port it listens on.")
    lifetime: Seconds = Field(default=86400, description="How long a certificate is valid; 24h at most.")
    forwarding: bool = Field(
        default=True,
        description="Whether clients may forward ports and sockets of the computer. Ports of the host are never forwarded.",
    )

    def listen_addresses(self) -> tuple[ListenAddress, ...]:
        return (ListenAddress("host", "port", self.host, self.port),) if self.enabled else ()
