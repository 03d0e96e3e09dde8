"""The head of the fleet as a program of the keeper."""

from freehold.features import FeatureProgram
from freehold.fleet.key_variables import list_key_variables
from freehold.fleet.section import FleetSection
from freehold.manifest.model import Manifest


def plan_program(manifest: Manifest) -> FeatureProgram | None:
    """A program of its own: it talks to other machines, and gets none of the keys that the manifest names."""
    section = manifest.section(FleetSection)
    if not section.enabled:
        return None
    return FeatureProgram(
        name="fleet",
        module="freehold.fleet",
        host=section.address,
        port=section.port,
        probe_socket="fleet.sock",
        hidden_variables=list_key_variables(manifest),
    )
