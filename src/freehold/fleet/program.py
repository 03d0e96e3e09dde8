"""The head of the fleet as a program of the keeper."""

from freehold.features import FeatureProgram
from freehold.fleet.section import FleetSection
from freehold.manifest.model import Manifest


def plan_program(manifest: Manifest) -> FeatureProgram | None:
    """A program of its own: it talks to other machines, and has no key of the owner."""
    section = manifest.section(FleetSection)
    if not section.enabled:
        return None
    return FeatureProgram(
        name="fleet", module="freehold.fleet", host=section.address, port=section.port, probe_socket="fleet.sock"
    )
