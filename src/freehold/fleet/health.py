"""The health component of the fleet."""

from freehold.errors import FreeholdError
from freehold.fleet.section import FleetSection
from freehold.gateway.health import probe_program
from freehold.gateway.services import Services
from freehold.observe.probes import Probe, ProbeResult
from freehold.strict_json import decode


def make_probe(services: Services) -> Probe:
    async def probe() -> ProbeResult | None:
        if not services.manifest.section(FleetSection).enabled:
            return ProbeResult("off")
        program = await probe_program(services, "fleet")
        if program is not None:
            return program
        # What follows takes 10 MB, and most have no fleet.
        from freehold.agents.visible_text import make_visible
        from freehold.fleet.fleet_client import ask_fleet
        from freehold.fleet.place import SOCKET
        from freehold.fleet.status import FleetStatus

        try:
            status = decode(FleetStatus, await ask_fleet(services.home.run / SOCKET, "status", most=1))
        except FreeholdError as error:
            return ProbeResult("degraded", error.message)
        if not status.is_ready:
            return ProbeResult("degraded", "Ray is starting")
        away = [f"{node.name}: {node.trouble}" for node in status.nodes if node.state == "away"]
        waits = [f"{status.waiting_count} computers wait: {status.waiting[0].reason}"] if status.waiting else []
        stuck = [f"No machine can be started: {status.trouble}"] if status.trouble else []
        stuck += [f"{one.name} is not ended: {one.trouble}" for one in status.machines if one.trouble]
        troubles = [*waits, *away, *stuck]
        return ProbeResult("degraded", make_visible("; ".join(troubles), lines=False)) if troubles else None

    return probe
