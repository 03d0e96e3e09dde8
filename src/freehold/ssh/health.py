"""The health component of SSH access."""

from freehold.gateway.health import probe_program
from freehold.gateway.services import Services
from freehold.observe.probes import Probe, ProbeResult
from freehold.ssh.section import SshSection


def make_probe(services: Services) -> Probe:
    async def probe() -> ProbeResult | None:
        if not services.manifest.section(SshSection).enabled:
            return ProbeResult("off")
        return await probe_program(services, "ssh")

    return probe
