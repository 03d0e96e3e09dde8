"""The health component of backups."""

import asyncio
import time

from freehold.backup.recovery_state import is_set_up
from freehold.backup.section import BackupSection
from freehold.backup.status import describe_trouble, read_status
from freehold.gateway.health import probe_program
from freehold.gateway.services import Services
from freehold.observe.probes import Probe, ProbeResult


def make_probe(services: Services) -> Probe:
    async def probe() -> ProbeResult | None:
        if not services.manifest.section(BackupSection).to:
            return ProbeResult("off")
        program = await probe_program(services, "backup")
        if program is not None:
            return program
        status = await asyncio.to_thread(read_status, services.home)
        trouble = describe_trouble(status, has_key=is_set_up(services.home), now=time.time())
        return None if trouble is None else ProbeResult("failed" if trouble[1] else "degraded", trouble[0])

    return probe
