"""The SSH server as a program of the keeper."""

from freehold.features import FeatureProgram
from freehold.manifest.model import Manifest
from freehold.ssh.section import SshSection


def plan_program(manifest: Manifest) -> FeatureProgram | None:
    """A program of its own, so that bulk transfers do not slow the gateway. Its 60 MB are used from its first connection on."""
    section = manifest.section(SshSection)
    if not section.enabled:
        return None
    return FeatureProgram(
        name="ssh",
        module="freehold.ssh",
        host=section.host,
        port=section.port,
        probe_socket="ssh.sock",
        preparation_module="freehold.ssh.keys",
        prepared_files=("vault/ssh/authority", "vault/ssh/authority.pub", "vault/ssh/host", "vault/ssh/host.pub"),
        starts_on_demand=True,
    )
