"""`[fleet]`: computers on other machines."""

from typing import Literal

from pydantic import Field

from freehold.errors import FreeholdError
from freehold.manifest.sections.base import Section
from freehold.manifest.units import Seconds


class FleetSection(Section):
    """Sealed computers on other machines that have joined, placed by Ray."""

    enabled: bool = Field(default=False, description="Whether this Freehold is the head of a fleet.")
    address: str = Field(
        default="127.0.0.2",
        description="The IP address of this machine at which nodes reach it: of a private network, never 0.0.0.0.",
        examples=["10.0.0.5"],
    )
    port: int = Field(
        default=7810,
        ge=1024,
        le=65000,
        description="Where nodes join. Ray's head listens at the next one, and with `fixed_ports` at the 50 after it.",
    )
    fixed_ports: bool = Field(
        default=True, description="Whether Ray uses fixed ports, which a firewall can open; else it chooses free ones."
    )
    strategy: Literal["spread", "pack"] = Field(
        default="spread", description="Whether computers are spread over the nodes, or fill one after the other."
    )
    runs: bool = Field(
        default=False, description="Whether child sessions and runs have their computers in the fleet instead of here."
    )
    max_per_session: int = Field(
        default=32, ge=0, le=100_000, description="How many computers one session may have at a time; 0 is no limit."
    )
    save_every: Seconds = Field(
        default=30, ge=1, le=3600, description="How often files are brought back. A node that is lost costs so much."
    )

    def require_enabled(self) -> None:
        if not self.enabled:
            raise FreeholdError(
                "fleet.disabled",
                "This Freehold is not the head of a fleet",
                hint='Set enabled = true and address = "…" in [fleet] of freehold.toml, then: freehold up',
            )
