"""`[fleet]`: computers on other machines."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from freehold.errors import FreeholdError
from freehold.manifest.sections.base import Section
from freehold.manifest.units import Bytes, Command, Seconds


class MachineSection(Section):
    """A kind of machine that the provider has."""

    named_example: ClassVar[str] = "small"

    cpus: float = Field(default=2.0, gt=0, le=4096, description="Processors that such a machine offers to computers.")
    memory: Bytes = Field(default=4 * 1024**3, ge=1024**2, description="Memory that it offers to computers.")
    gpus: int = Field(default=0, ge=0, le=64, description="NVIDIA GPUs that it offers to computers.")
    labels: Mapping[str, str] = Field(
        default={}, description="Labels of such a machine, by which computers choose it.", examples=[{"region": "home"}]
    )
    min: int = Field(default=0, ge=0, le=1000, description="How many run always.")
    max: int = Field(default=1, ge=1, le=1000, description="How many may run at a time.")


class AutoscalerSection(Section):
    """Ray's autoscaler asks for machines when computers wait, and lets those go that idle. Your commands do it."""

    start: Command = Field(
        default=(),
        description="The program that starts a machine at your provider, without a shell. It gets `FREEHOLD_JOIN_CODE`, `FREEHOLD_NODE` and `FREEHOLD_MACHINE`, the kind. The machine must run `freehold fleet join CODE`.",
        examples=["/srv/freehold/start-machine"],
    )
    stop: Command = Field(
        default=(),
        description="The program that ends one. It gets `FREEHOLD_NODE` and `FREEHOLD_MACHINE`, and may be run twice.",
        examples=["/srv/freehold/stop-machine"],
    )
    idle: Seconds = Field(
        default=600, ge=5, le=86400, description="A machine without computers is let go after so long."
    )
    machines: Mapping[str, MachineSection] = Field(
        default={}, description="The kinds of machines, by name. Without any, no machine is started."
    )


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
        default=32,
        ge=0,
        le=100_000,
        description="How many computers one session may have at a time; 0 is no limit. What you start yourself has none.",
    )
    save_every: Seconds = Field(
        default=30, ge=1, le=3600, description="How often files are brought back. A node that is lost costs so much."
    )

    autoscaler: AutoscalerSection = Field(
        default=AutoscalerSection(), description="Machines that are started when they are needed."
    )

    def require_enabled(self) -> None:
        if not self.enabled:
            raise FreeholdError(
                "fleet.disabled",
                "This Freehold is not the head of a fleet",
                hint='Set enabled = true and address = "…" in [fleet] of freehold.toml, then: freehold up',
            )
