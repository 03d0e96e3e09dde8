"""The health component of the mesh. A relay or a host that is away is said here, and stops nothing."""

import asyncio
import sqlite3
from importlib.util import find_spec

from freehold.gateway.services import Services
from freehold.mesh.section import MeshSection
from freehold.observe.probes import Probe, ProbeResult
from freehold.timeline import Timeline


def make_probe(services: Services) -> Probe:
    async def probe() -> ProbeResult | None:
        section = services.manifest.section(MeshSection)
        if not section.enabled:
            return ProbeResult("off")
        if find_spec("coincurve") is None:
            return ProbeResult("failed", "the library for its keys is not installed: pip install 'freehold[mesh]'")
        away = await asyncio.to_thread(_list_away, services.timeline, section)
        return ProbeResult("degraded", "; ".join(away)) if away else None

    return probe


def _list_away(timeline: Timeline, section: MeshSection) -> list[str]:
    """What of the manifest cannot be reached, with the reason."""
    try:
        relays = dict(timeline.query("SELECT url, CASE state WHEN 'ok' THEN NULL ELSE error END FROM mesh_relay"))
        hosts = timeline.query("SELECT host, state, error FROM mesh_registration")
    except sqlite3.OperationalError:
        return ["the mesh has not started"]
    found = [
        f"{url}: {relays.get(url, 'not connected yet')}" for url in section.relays if relays.get(url, "") is not None
    ]
    if section.mode == "client":
        states = {host: (state, error) for host, state, error in hosts}
        state, error = states.get(section.host, ("waiting", None))
        if state != "registered":
            found.append(f"{section.host}: {error or state}")
    return found
