"""The health component of remote mounts."""

from freehold.computer.mounts.rclone_remote import REMOTE_KINDS
from freehold.gateway.health import probe_program
from freehold.gateway.services import Services
from freehold.keeper.calls import GetKeeperStatus
from freehold.observe.probes import Probe, ProbeResult


def make_probe(services: Services) -> Probe:
    async def probe() -> ProbeResult | None:
        if not any(mount.kind in REMOTE_KINDS for mount in services.manifest.computer.mounts):
            return ProbeResult("off")
        program = await probe_program(services, "mounts")
        if program is not None:
            return program
        mounts = (await services.keeper.call(GetKeeperStatus())).mounts
        troubled = [f"{mount.target}: {mount.words or mount.state}" for mount in mounts if mount.state != "ready"]
        return ProbeResult("degraded", "; ".join(troubled)) if troubled else None

    return probe
